//! The outbox is emptied: into feeds, and into batches of events.

use std::collections::VecDeque;

use notifications::domain_event::{DomainEvent, Visibility};
use notifications::feed::can_batch;
use notifications::store::{Channels, NotificationStore, OutboxPage, Shard};
use shared::dynamodb::StoreError;
use shared::projects::project::Organization;

use crate::JobContext;

/// Takes all that happened out of the outbox. Scenes take turns of one step each, so that none waits for
/// another's storm.
pub(crate) async fn empty(run: &mut JobContext<'_>) {
    let mut turns = VecDeque::new();
    for shard in run.leases.shards() {
        let scenes = NotificationStore::new(&run.app.store).waiting_scenes(shard).await;
        let scenes = run.unless_failed(scenes).unwrap_or_default();
        turns.extend(scenes.into_iter().map(|scene| (shard, scene)));
    }
    while let Some((shard, scene)) = turns.pop_front() {
        let taken = take(run, shard, &scene).await;
        if let Some(true) = run.unless_failed(taken) {
            turns.push_back((shard, scene));
        }
    }
}

/// Takes some of what happened in a scene. Answers whether there may be more.
async fn take(run: &mut JobContext<'_>, shard: Shard, scene: &str) -> Result<bool, StoreError> {
    let app = run.app;
    let OutboxPage { domain_events: mut waiting, has_more } =
        NotificationStore::new(&app.store).waiting_domain_events(shard, scene).await?;
    let Some(first) = waiting.first().cloned() else { return Ok(false) };
    // The first by its key is not the first that happened.
    let since = waiting.iter().map(|domain_event| domain_event.at).min().unwrap_or(first.at);
    if run.deadline.has_passed() || !run.leases.keep(app, shard).await? {
        run.leave(since);
        return Ok(false);
    }
    let found = waiting.len();
    waiting.retain(|domain_event| can_batch(domain_event, &first));
    let outlets =
        Channels { mails: run.senders.mailer.is_some(), events: run.senders.publisher.is_some() };
    let new_id = || app.ids.new_uuid(app.clock.now());
    // Nobody is left to be told of what happened in a project that is gone.
    let organization = organization_of(run, &first).await;
    let organization = organization.inspect_err(|_| run.leave(since))?;
    let told = organization.as_ref().map(|organization| (organization, outlets));
    let taken = NotificationStore::new(&app.store).take(told, &waiting, new_id).await;
    let is_taken = taken.inspect_err(|_| run.leave(since))?;
    Ok(!is_taken || has_more || waiting.len() < found)
}

async fn organization_of(
    run: &mut JobContext<'_>,
    domain_event: &DomainEvent,
) -> Result<Option<Organization>, StoreError> {
    match &domain_event.scene {
        Visibility::User(organization, _) => Ok(Some(organization.clone())),
        Visibility::Project(id) => Ok(run.project(*id).await?.map(|project| project.organization)),
    }
}
