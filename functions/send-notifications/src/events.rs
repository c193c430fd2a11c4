//! EventBridge is told.

use serde_json::json;
use shared::dynamodb::StoreError;
use shared::notifications::store::{EventBatch, Shard};
use shared::projects::happening::{Happening, HappeningKind, Scene};

use crate::Run;
use crate::outside::{Event, Publisher};

/// How many batches of a shard are read at a time.
const BATCHES_AT_ONCE: i32 = 20;

/// Publishes all batches. Shards take turns.
pub(crate) async fn publish(run: &mut Run<'_>) {
    let Some(publisher) = &run.outside.publisher else { return };
    let mut shards = run.leases.shards();
    while !shards.is_empty() {
        let mut busy = Vec::new();
        for shard in shards {
            let more = publish_some(run, publisher, shard).await;
            if let Some(true) = run.unless_failed(more) {
                busy.push(shard);
            }
        }
        shards = busy;
    }
}

/// Publishes some batches of a shard. Answers whether there may be more.
async fn publish_some(
    run: &mut Run<'_>,
    publisher: &Publisher,
    shard: Shard,
) -> Result<bool, StoreError> {
    let batches = run.app.store.event_batches(shard, BATCHES_AT_ONCE).await?;
    for batch in &batches {
        let may_go_on = !run.deadline.has_passed() && run.leases.keep(run.app, shard).await?;
        let outcome = if may_go_on { tell(run, publisher, batch).await? } else { Err(None) };
        if let Err(failure) = outcome {
            if let Some(cause) = failure {
                tracing::error!(cause, "EventBridge could not be told");
                run.note_failure(StoreError::Unavailable("EventBridge".into()));
            }
            if let Some(since) = batch.happenings.iter().map(|happening| happening.at).min() {
                run.leave(since);
            }
            // The others would most likely fare no better.
            return Ok(false);
        }
        run.app.store.delete_batch_of_events(shard, batch).await?;
    }
    Ok(!batches.is_empty())
}

async fn tell(
    run: &mut Run<'_>,
    publisher: &Publisher,
    batch: &EventBatch,
) -> Result<Result<(), Option<String>>, StoreError> {
    let mut events = Vec::with_capacity(batch.happenings.len());
    for happening in &batch.happenings {
        let Some(detail_type) = happening.kind.detail_type() else { continue };
        let detail = detail_of(run, batch, happening).await?;
        events.push(Event { detail_type, detail, at: happening.at.as_seconds() });
    }
    Ok(publisher.publish(&events).await.map_err(Some))
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
