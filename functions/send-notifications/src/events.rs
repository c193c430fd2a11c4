//! Publication of event batches on EventBridge.

use std::collections::VecDeque;

use serde_json::json;

use notifications::domain_event::{DomainEvent, DomainEventKind, Visibility};
use notifications::store::{EventBatch, Shard};
use shared::dynamodb::StoreError;

use crate::JobContext;
use crate::senders::{Event, PublishError, Publisher};

/// Maximum batches of a shard per read.
const BATCH_PAGE_SIZE: i32 = 20;

/// Publishes all batches. Shards take turns, with one page each.
pub(crate) async fn publish(job: &mut JobContext<'_>) {
    let Some(publisher) = &job.senders.publisher else { return };
    let mut shards: VecDeque<(Shard, Option<String>)> =
        job.leases.shards().into_iter().map(|shard| (shard, None)).collect();
    while let Some((shard, after)) = shards.pop_front() {
        let last_batch = publish_page(job, publisher, shard, after.as_deref()).await;
        if let Some(Some(last)) = job.unless_failed(last_batch) {
            shards.push_back((shard, Some(last)));
        }
    }
}

/// Publishes a page of a shard's batches. Returns its last sort key if more can follow.
async fn publish_page(
    job: &mut JobContext<'_>,
    publisher: &Publisher,
    shard: Shard,
    after: Option<&str>,
) -> Result<Option<String>, StoreError> {
    let mut page = job.notifications().event_batches(shard, after, BATCH_PAGE_SIZE).await?;
    for mut batch in page.batches {
        batch.domain_events.retain(|domain_event| domain_event.kind.detail_type().is_some());
        if job.deadline.has_passed() || !job.leases.keep(job.app, shard).await? {
            note_waiting(job, &batch.domain_events);
            return Ok(None);
        }
        let events = events_of(job, &batch).await?;
        let Err(PublishError { cause, remaining }) = publisher.publish(&events).await else {
            job.notifications().delete_event_batch(shard, &batch).await?;
            continue;
        };
        tracing::error!(cause, "events not published");
        job.note_failure(StoreError::OtherService { service: "EventBridge", cause });
        let is_remaining = |(at, _): &(usize, DomainEvent)| remaining.contains(at);
        let count = batch.domain_events.len();
        batch.domain_events = batch
            .domain_events
            .into_iter()
            .enumerate()
            .filter(is_remaining)
            .map(|(_, it)| it)
            .collect();
        note_waiting(job, &batch.domain_events);
        if batch.domain_events.len() == count {
            // EventBridge accepts nothing: other batches would most likely fail too.
            page.last = None;
            break;
        }
        job.notifications().replace_event_batch(shard, &batch).await?;
    }
    Ok(page.last)
}

/// Records that events remain for the next invocation.
fn note_waiting(job: &mut JobContext<'_>, domain_events: &[DomainEvent]) {
    if let Some(since) = domain_events.iter().map(|domain_event| domain_event.at).min() {
        job.note_waiting(since);
    }
}

/// Returns a batch's events for EventBridge.
async fn events_of(job: &mut JobContext<'_>, batch: &EventBatch) -> Result<Vec<Event>, StoreError> {
    let mut events = Vec::with_capacity(batch.domain_events.len());
    for domain_event in &batch.domain_events {
        let Some(detail_type) = domain_event.kind.detail_type() else { continue };
        let detail = detail_of(job, batch, domain_event).await?;
        events.push(Event { detail_type, detail, at: domain_event.at.as_seconds() });
    }
    Ok(events)
}

/// Returns the detail of an event as JSON. Repetitions have equal `id` fields.
async fn detail_of(
    job: &mut JobContext<'_>,
    batch: &EventBatch,
    domain_event: &DomainEvent,
) -> Result<String, StoreError> {
    let mut detail = json!({
        "id": domain_event.id(),
        "at": domain_event.at,
        "organization": batch.organization,
        "title": domain_event.title,
    });
    match &domain_event.visibility {
        Visibility::Project(id) => {
            let project = job.named_project(*id).await?;
            let named = project.map(|it| json!({"id": it.id, "slug": it.slug, "name": it.name}));
            detail["project"] = named.unwrap_or_else(|| json!({"id": id}));
        }
        Visibility::User(_, user) => detail["user"] = json!(user),
    }
    let (subject, detail_field) = match domain_event.kind {
        DomainEventKind::ErrorCreated | DomainEventKind::ErrorReopened => ("errorId", "culprit"),
        DomainEventKind::ErrorSpiked => {
            detail["events"] = json!(domain_event.weight);
            ("errorId", "culprit")
        }
        DomainEventKind::InsightCreated => {
            detail["affectedSessions"] = json!(domain_event.weight);
            ("insightId", "description")
        }
        DomainEventKind::InsightTrending => {
            detail["affectedSessions"] = json!(domain_event.weight);
            ("insightId", "trend")
        }
        DomainEventKind::FlagChanged => ("flagKey", "change"),
        DomainEventKind::ApiKeyCreated | DomainEventKind::WeekEnded => ("keyId", "userAgent"),
    };
    detail[subject] = json!(domain_event.subject);
    if !domain_event.detail.is_empty() {
        detail[detail_field] = json!(domain_event.detail);
    }
    if let Some(actor) = &domain_event.actor {
        detail["actor"] = json!(actor);
    }
    Ok(detail.to_string())
}
