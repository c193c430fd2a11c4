//! EventBridge is told.

use std::collections::VecDeque;

use serde_json::json;

use notifications::domain_event::{DomainEvent, DomainEventKind, Visibility};
use notifications::store::{EventBatch, NotificationStore, Shard};
use shared::dynamodb::StoreError;

use crate::JobContext;
use crate::senders::{Event, PublishError, Publisher};

/// How many batches of a shard are read at a time.
const BATCHES_AT_ONCE: i32 = 20;

/// Publishes all batches. Shards take turns.
pub(crate) async fn publish(run: &mut JobContext<'_>) {
    let Some(publisher) = &run.senders.publisher else { return };
    let mut shards: VecDeque<(Shard, Option<String>)> =
        run.leases.shards().into_iter().map(|shard| (shard, None)).collect();
    while let Some((shard, after)) = shards.pop_front() {
        let page_end = publish_some(run, publisher, shard, after.as_deref()).await;
        if let Some(Some(last)) = run.unless_failed(page_end) {
            shards.push_back((shard, Some(last)));
        }
    }
}

/// Publishes the batches of a shard that come next. Answers after which one there may be more.
async fn publish_some(
    run: &mut JobContext<'_>,
    publisher: &Publisher,
    shard: Shard,
    after: Option<&str>,
) -> Result<Option<String>, StoreError> {
    let mut page =
        NotificationStore::new(&run.app.store).event_batches(shard, after, BATCHES_AT_ONCE).await?;
    for mut batch in page.batches {
        batch.domain_events.retain(|domain_event| domain_event.kind.detail_type().is_some());
        if run.deadline.has_passed() || !run.leases.keep(run.app, shard).await? {
            leave(run, &batch.domain_events);
            return Ok(None);
        }
        let events = events_of(run, &batch).await?;
        let Err(PublishError { cause, left }) = publisher.publish(&events).await else {
            NotificationStore::new(&run.app.store).delete_batch_of_events(shard, &batch).await?;
            continue;
        };
        tracing::error!(cause, "EventBridge could not be told");
        run.note_failure(StoreError::OtherService { service: "EventBridge", cause });
        let is_left = |(at, _): &(usize, DomainEvent)| left.contains(at);
        let told = batch.domain_events.len();
        batch.domain_events =
            batch.domain_events.into_iter().enumerate().filter(is_left).map(|(_, it)| it).collect();
        leave(run, &batch.domain_events);
        if batch.domain_events.len() == told {
            // EventBridge takes nothing, and would most likely take nothing of the others.
            page.last = None;
            break;
        }
        // Accepted events are not sent again.
        NotificationStore::new(&run.app.store).replace_batch_of_events(shard, &batch).await?;
    }
    Ok(page.last)
}

/// Notes that something is left for the next run.
fn leave(run: &mut JobContext<'_>, domain_events: &[DomainEvent]) {
    if let Some(since) = domain_events.iter().map(|domain_event| domain_event.at).min() {
        run.leave(since);
    }
}

/// What EventBridge is told of a batch: an event for each of its happenings.
async fn events_of(run: &mut JobContext<'_>, batch: &EventBatch) -> Result<Vec<Event>, StoreError> {
    let mut events = Vec::with_capacity(batch.domain_events.len());
    for domain_event in &batch.domain_events {
        let Some(detail_type) = domain_event.kind.detail_type() else { continue };
        let detail = detail_of(run, batch, domain_event).await?;
        events.push(Event { detail_type, detail, at: domain_event.at.as_seconds() });
    }
    Ok(events)
}

/// What others are told: `id` tells a repetition.
async fn detail_of(
    run: &mut JobContext<'_>,
    batch: &EventBatch,
    domain_event: &DomainEvent,
) -> Result<String, StoreError> {
    let mut detail = json!({
        "id": domain_event.id(),
        "at": domain_event.at,
        "organization": batch.organization,
        "title": domain_event.title,
    });
    match &domain_event.scene {
        Visibility::Project(id) => {
            let project = run.named_project(*id).await?;
            let named = project.map(|it| json!({"id": it.id, "slug": it.slug, "name": it.name}));
            detail["project"] = named.unwrap_or_else(|| json!({"id": id}));
        }
        Visibility::User(_, user) => detail["user"] = json!(user),
    }
    let (subject, says) = match domain_event.kind {
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
        DomainEventKind::ApiKeyCreated | DomainEventKind::WeekEnded => ("keyId", "detail"),
    };
    detail[subject] = json!(domain_event.subject);
    if !domain_event.detail.is_empty() {
        detail[says] = json!(domain_event.detail);
    }
    if let Some(actor) = &domain_event.actor {
        detail["actor"] = json!(actor);
    }
    Ok(detail.to_string())
}
