//! Dispatch from the outbox into feeds and event batches.

use std::collections::VecDeque;

use notifications::domain_event::{DomainEvent, Visibility};
use notifications::feed::can_batch;
use notifications::store::{Channels, OutboxPage, Shard};
use shared::dynamodb::StoreError;
use shared::projects::project::Organization;

use crate::{JobContext, markers};

/// Dispatches all domain events. Visibilities take turns, with one page each, so that none waits
/// for a storm in another.
pub(crate) async fn dispatch_all(job: &mut JobContext<'_>) {
    let mut turns = VecDeque::new();
    for shard in job.leases.shards() {
        let visibilities = job.notifications().outbox_visibilities(shard).await;
        let visibilities = job.unless_failed(visibilities).unwrap_or_default();
        turns.extend(visibilities.into_iter().map(|visibility| (shard, visibility)));
    }
    while let Some((shard, visibility)) = turns.pop_front() {
        let has_more = dispatch_page(job, shard, &visibility).await;
        if let Some(true) = job.unless_failed(has_more) {
            turns.push_back((shard, visibility));
        }
    }
}

/// Dispatches a page of domain events. Returns `true` if there can be more.
async fn dispatch_page(
    job: &mut JobContext<'_>,
    shard: Shard,
    visibility: &str,
) -> Result<bool, StoreError> {
    let app = job.app;
    let OutboxPage { domain_events: mut waiting, has_more } =
        job.notifications().outbox_page(shard, visibility).await?;
    let Some(first) = waiting.first().cloned() else { return Ok(false) };
    // The first event by key need not be the earliest.
    let since = waiting.iter().map(|domain_event| domain_event.at).min().unwrap_or(first.at);
    if job.deadline.has_passed() || !job.leases.keep(app, shard).await? {
        job.note_waiting(since);
        return Ok(false);
    }
    let found = waiting.len();
    waiting.retain(|domain_event| can_batch(domain_event, &first));
    let channels =
        Channels { emails: job.senders.mailer.is_some(), events: job.senders.publisher.is_some() };
    let new_id = || app.ids.new_uuid(app.clock.now());
    // Events of a deleted project are dropped.
    let organization = organization_of(job, &first).await;
    let organization = organization.inspect_err(|_| job.note_waiting(since))?;
    if organization.is_some() {
        let marked = markers::add_markers(job.app, &waiting).await;
        marked.inspect_err(|_| job.note_waiting(since))?;
    }
    let target = organization.as_ref().map(|organization| (organization, channels));
    let dispatched = job.notifications().dispatch(target, &waiting, new_id).await;
    let is_dispatched = dispatched.inspect_err(|_| job.note_waiting(since))?;
    Ok(!is_dispatched || has_more || waiting.len() < found)
}

async fn organization_of(
    job: &mut JobContext<'_>,
    domain_event: &DomainEvent,
) -> Result<Option<Organization>, StoreError> {
    match &domain_event.visibility {
        Visibility::User(organization, _) => Ok(Some(organization.clone())),
        Visibility::Project(id) => Ok(job.project(*id).await?.map(|project| project.organization)),
    }
}
