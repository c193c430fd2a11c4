//! EventBridge is told.

use std::collections::VecDeque;

use serde_json::json;

use notifications::happening::{Happening, HappeningKind, Scene};
use notifications::store::{EventBatch, NotificationStore, Shard};
use shared::dynamodb::StoreError;

use crate::Run;
use crate::outside::{Event, NotTaken, Publisher};

/// How many batches of a shard are read at a time.
const BATCHES_AT_ONCE: i32 = 20;

/// Publishes all batches. Shards take turns.
pub(crate) async fn publish(run: &mut Run<'_>) {
    let Some(publisher) = &run.outside.publisher else { return };
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
    run: &mut Run<'_>,
    publisher: &Publisher,
    shard: Shard,
    after: Option<&str>,
) -> Result<Option<String>, StoreError> {
    let mut page =
        NotificationStore::new(&run.app.store).event_batches(shard, after, BATCHES_AT_ONCE).await?;
    for mut batch in page.batches {
        batch.happenings.retain(|happening| happening.kind.detail_type().is_some());
        if run.deadline.has_passed() || !run.leases.keep(run.app, shard).await? {
            leave(run, &batch.happenings);
            return Ok(None);
        }
        let events = events_of(run, &batch).await?;
        let Err(NotTaken { cause, left }) = publisher.publish(&events).await else {
            NotificationStore::new(&run.app.store).delete_batch_of_events(shard, &batch).await?;
            continue;
        };
        tracing::error!(cause, "EventBridge could not be told");
        run.note_failure(StoreError::OtherService { service: "EventBridge", cause });
        let is_left = |(at, _): &(usize, Happening)| left.contains(at);
        let told = batch.happenings.len();
        batch.happenings =
            batch.happenings.into_iter().enumerate().filter(is_left).map(|(_, it)| it).collect();
        leave(run, &batch.happenings);
        if batch.happenings.len() == told {
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
fn leave(run: &mut Run<'_>, happenings: &[Happening]) {
    if let Some(since) = happenings.iter().map(|happening| happening.at).min() {
        run.leave(since);
    }
}

/// What EventBridge is told of a batch: an event for each of its happenings.
async fn events_of(run: &mut Run<'_>, batch: &EventBatch) -> Result<Vec<Event>, StoreError> {
    let mut events = Vec::with_capacity(batch.happenings.len());
    for happening in &batch.happenings {
        let Some(detail_type) = happening.kind.detail_type() else { continue };
        let detail = detail_of(run, batch, happening).await?;
        events.push(Event { detail_type, detail, at: happening.at.as_seconds() });
    }
    Ok(events)
}

/// What others are told: `id` tells a repetition.
async fn detail_of(
    run: &mut Run<'_>,
    batch: &EventBatch,
    happening: &Happening,
) -> Result<String, StoreError> {
    let mut detail = json!({
        "id": happening.id(),
        "at": happening.at,
        "organization": batch.organization,
        "title": happening.title,
    });
    match &happening.scene {
        Scene::Project(id) => {
            let project = run.named_project(*id).await?;
            let named = project.map(|it| json!({"id": it.id, "slug": it.slug, "name": it.name}));
            detail["project"] = named.unwrap_or_else(|| json!({"id": id}));
        }
        Scene::User(_, user) => detail["user"] = json!(user),
    }
    let (subject, says) = match happening.kind {
        HappeningKind::ErrorCreated | HappeningKind::ErrorReopened => ("errorId", "culprit"),
        HappeningKind::ErrorSpiked => {
            detail["events"] = json!(happening.weight);
            ("errorId", "culprit")
        }
        HappeningKind::InsightCreated => {
            detail["affectedSessions"] = json!(happening.weight);
            ("insightId", "description")
        }
        HappeningKind::InsightTrending => {
            detail["affectedSessions"] = json!(happening.weight);
            ("insightId", "trend")
        }
        HappeningKind::FlagChanged => ("flagKey", "change"),
        HappeningKind::ApiKeyCreated | HappeningKind::WeekEnded => ("keyId", "detail"),
    };
    detail[subject] = json!(happening.subject);
    if !happening.detail.is_empty() {
        detail[says] = json!(happening.detail);
    }
    if let Some(actor) = &happening.actor {
        detail["actor"] = json!(actor);
    }
    Ok(detail.to_string())
}
