//! Events and their claims and keys, in table `errors`.
//!
//! | pk | sk | item |
//! | --- | --- | --- |
//! | `event#PROJECT#ID` | `payload` | the event as it was sent, trimmed and compressed |
//! | `event#PROJECT#ID` | `claim` | marks the event as counted |
//! | `error-events#PROJECT#FINGERPRINT#SHARD` | time and ID | lists the event under its error; its row has the same shard |
//!
//! One transaction writes an event's claim, its row in the log and its key under the error, unless
//! the claim already exists. From then on the event counts. So an event that is delivered twice
//! counts once.
//!
//! Each item of that transaction belongs to the event, so different events do not conflict. Only
//! the first event of an error also creates the error.

use std::collections::HashMap;
use std::time::Duration;

use aws_sdk_dynamodb::types::ReturnValuesOnConditionCheckFailure;
use serde_json::value::RawValue;

use shared::dynamodb::item::{Item, ItemReader, b, key, n, s, time_key};
use shared::dynamodb::transaction::Transaction;
use shared::dynamodb::{Cause, StoreError};
use shared::page::Page;
use shared::projects::project::ProjectId;
use shared::timestamp::Timestamp;

use super::ErrorStore;
use super::errors::TABLE;
use super::rows::{row_key, shard_of, write_row};
use crate::grouping::Fingerprint;
use crate::log::row::EventRow;
use crate::{ErrorId, ErrorRecord, EventId, NewError, StoredEvent};

/// Retention of events: 90 days. Their counts are kept longer, in runs.
pub const EVENT_RETENTION: Duration = Duration::from_hours(90 * 24);
/// Maximum bytes of payloads of a page, before compression: a response can have 6 MB and escapes
/// them as JSON in JSON.
const MAX_PAGE_PAYLOADS: usize = 2_000_000;
/// The default level of zstd. Higher levels cost more time than they save.
const COMPRESSION_LEVEL: i32 = 3;
/// Maximum bytes of a decompressed payload: more than the limit that events are trimmed to.
const MAX_PAYLOAD_BYTES: usize = 16 << 20;

/// The outcome of counting an event.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CountOutcome {
    /// The event is counted.
    Counted,
    /// The event was already counted.
    Duplicate {
        /// The fingerprint of the error that counts the event.
        fingerprint: Fingerprint,
        /// The time of the event in its first delivery.
        occurred_at: Timestamp,
        /// The time of receipt of the first delivery.
        received_at: Timestamp,
    },
    /// The event was already counted, but its claim cannot be read.
    UnreadableDuplicate,
    /// The event is not counted: a concurrent request has just created its error.
    ErrorExists,
    /// The event is not counted: the partition of its row or key is throttled.
    Throttled,
}

/// The error that counts an event.
#[derive(Debug, Clone)]
pub enum ErrorOfEvent {
    /// An existing error.
    Known(ErrorId),
    /// A new error, created together with the event.
    New(Box<NewError>),
}

impl ErrorStore<'_> {
    /// Stores the payload of an event. The payload of the first delivery stays.
    pub async fn put_payload(
        self,
        project: ProjectId,
        event: EventId,
        payload: &[u8],
        now: Timestamp,
    ) -> Result<(), StoreError> {
        let compressed = zstd::bulk::compress(payload, COMPRESSION_LEVEL).map_err(|error| {
            StoreError::Rejected(Cause::of_step("a payload cannot be packed", error))
        })?;
        let mut item = payload_key(project, event);
        item.insert("payload".to_owned(), b(&compressed));
        item.insert("expiresAt".to_owned(), n(now.plus(EVENT_RETENTION).as_seconds()));
        self.db.put_unless_there(TABLE, "pk", item).await
    }

    /// Deletes the payload of a deleted event, which is not counted.
    pub async fn delete_payload(
        self,
        project: ProjectId,
        event: EventId,
    ) -> Result<(), StoreError> {
        self.db.delete_all(TABLE, vec![payload_key(project, event)]).await
    }

    /// Counts an event once, as received `now`: its row is in the log soon, or never. Call
    /// [`enqueue_for_packing`](Self::enqueue_for_packing) first. The same transaction creates a new
    /// error, so no event is counted without its error.
    pub async fn count_event(
        self,
        project: ProjectId,
        event: EventId,
        row: &EventRow,
        error: &ErrorOfEvent,
        log_shards: u8,
        now: Timestamp,
    ) -> Result<CountOutcome, StoreError> {
        let mut claim = key(&event_pk(project, event), "claim");
        claim.insert("fingerprint".to_owned(), b(&row.fingerprint.0));
        claim.insert("occurredAt".to_owned(), s(row.occurred_at));
        claim.insert("receivedAt".to_owned(), n(now.as_millis()));
        let shard = shard_of(event, log_shards);
        let logged = write_row(project, shard, event, row, now);
        let mut of_error = key(
            &error_events_pk(project, row.fingerprint, shard),
            &event_key_text(row.occurred_at, event),
        );
        // The time of the row, for deletions.
        of_error.insert("receivedAt".to_owned(), n(now.as_millis()));
        let [claim, logged, of_error] = [claim, logged, of_error].map(|mut item| {
            item.insert("expiresAt".to_owned(), n(now.plus(EVENT_RETENTION).as_seconds()));
            item
        });
        let claim = self
            .db
            .put(TABLE, claim)
            .condition_expression("attribute_not_exists(pk)")
            .return_values_on_condition_check_failure(ReturnValuesOnConditionCheckFailure::AllOld);
        let mut transaction = Transaction::default();
        transaction.add("claim", claim)?;
        transaction.add("row", self.db.put(TABLE, logged))?;
        transaction.add("key", self.db.put(TABLE, of_error))?;
        if let ErrorOfEvent::New(new) = error {
            self.create_error(project, new, row.occurred_at, now, &mut transaction)?;
        }
        match self.db.commit_unless_throttled(transaction).await {
            Err(StoreError::Throttled { actions, .. })
                if actions.contains(&"row") || actions.contains(&"key") =>
            {
                Ok(CountOutcome::Throttled)
            }
            Err(failure) => Err(failure),
            Ok(None) => Ok(CountOutcome::Counted),
            Ok(Some(cancelled)) => match cancelled.items("claim").next() {
                Some(claim) => {
                    let read = self.db.unless_damaged(claim, read_claim(claim))?;
                    Ok(read.unwrap_or(CountOutcome::UnreadableDuplicate))
                }
                None => Ok(CountOutcome::ErrorExists),
            },
        }
    }

    /// Returns the location of an error's events.
    pub async fn events_of_error(
        self,
        project: ProjectId,
        error: &ErrorRecord,
    ) -> Result<EventsOfError, StoreError> {
        let (fingerprint, since) = (error.description.fingerprint, error.events_since);
        Ok(EventsOfError { fingerprint, shards: self.log_shards(project).await?, since })
    }

    /// Returns the events of these keys, as many as fit into a page. The page ends at the last key
    /// if not all fit.
    pub(super) async fn events_of(
        self,
        project: ProjectId,
        keys: &[EventKey],
    ) -> Result<Page<(String, StoredEvent)>, StoreError> {
        let mut payloads = self.read_payloads(project, keys).await?;
        let mut bytes = 0;
        let mut items: Vec<(String, StoredEvent)> = Vec::with_capacity(keys.len());
        for key in keys {
            let Some(event) = payloads.remove(&key.id) else { continue };
            bytes += event.get().len();
            if bytes > MAX_PAGE_PAYLOADS && !items.is_empty() {
                let end = items.last().map(|(sk, _)| sk.clone());
                return Ok(Page { items, end });
            }
            let (event_id, occurred_at) = (key.id, key.occurred_at);
            items.push((key.sk.clone(), StoredEvent { event_id, occurred_at, event }));
        }
        Ok(Page { items, end: None })
    }

    /// Returns the fingerprint and the time of an event, if it was counted.
    pub(super) async fn find_claim(
        self,
        project: ProjectId,
        event: EventId,
    ) -> Result<Option<(Fingerprint, Timestamp)>, StoreError> {
        let claim = self.db.get(TABLE, key(&event_pk(project, event), "claim")).await?;
        Ok(match claim.as_ref().map(read_claim).transpose()? {
            Some(CountOutcome::Duplicate { fingerprint, occurred_at, .. }) => {
                Some((fingerprint, occurred_at))
            }
            _ => None,
        })
    }

    async fn read_payloads(
        self,
        project: ProjectId,
        keys: &[EventKey],
    ) -> Result<HashMap<EventId, Box<RawValue>>, StoreError> {
        let keys = keys.iter().map(|key| payload_key(project, key.id)).collect();
        let items = self.db.get_all(TABLE, keys).await?;
        self.db.undamaged(&items, read_payload)
    }
}

/// The location of an error's events.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct EventsOfError {
    /// The fingerprint of the events.
    pub fingerprint: Fingerprint,
    /// The number of partitions that store their keys, as their rows.
    pub(super) shards: u8,
    /// Events received before this time belong to a deleted error.
    pub since: Option<Timestamp>,
}

/// The position of an event among those of its error.
pub(super) struct EventKey {
    pub(super) sk: String,
    pub(super) occurred_at: Timestamp,
    pub(super) id: EventId,
    /// The key of its row in the log.
    pub(super) row: Item,
}

fn event_pk(project: ProjectId, event: EventId) -> String {
    format!("event#{project}#{event}")
}

pub(super) fn payload_key(project: ProjectId, event: EventId) -> Item {
    key(&event_pk(project, event), "payload")
}

/// Returns a partition of an error's event keys.
pub(super) fn error_events_pk(project: ProjectId, fingerprint: Fingerprint, shard: u8) -> String {
    format!("error-events#{project}#{fingerprint}#{shard:02}")
}

/// Returns the sort key of an event under its error.
pub(super) fn event_key_text(occurred_at: Timestamp, event: EventId) -> String {
    format!("{}#{event}", time_key(occurred_at))
}

/// Reads the claim of an event that was already counted.
fn read_claim(item: &Item) -> Result<CountOutcome, StoreError> {
    let reader = ItemReader { table: TABLE, item };
    Ok(CountOutcome::Duplicate {
        fingerprint: Fingerprint(reader.bytes("fingerprint")?),
        occurred_at: reader.time("occurredAt")?,
        received_at: reader.millis("receivedAt")?,
    })
}

/// Reads the key of an event from a partition of an error's event keys.
pub(super) fn read_event_key(
    project: ProjectId,
    shard: u8,
    item: &Item,
) -> Result<EventKey, StoreError> {
    let reader = ItemReader { table: TABLE, item };
    let (sk, received_at) = (reader.text("sk")?, reader.millis("receivedAt")?);
    let key = sk.split_once('#').and_then(|(time, id)| {
        let occurred_at = shared::dynamodb::item::read_time_key(time)?;
        let id = EventId::parse(id).ok()?;
        let row = row_key(project, shard, id, received_at);
        Some(EventKey { sk: sk.to_owned(), occurred_at, id, row })
    });
    key.ok_or_else(|| reader.damaged("sk"))
}

fn read_payload(item: &Item) -> Result<(EventId, Box<RawValue>), StoreError> {
    let reader = ItemReader { table: TABLE, item };
    let id = |pk: &str| EventId::parse(pk.rsplit('#').next()?).ok();
    let payload = zstd::bulk::decompress(reader.blob("payload")?, MAX_PAYLOAD_BYTES).ok();
    let payload = payload.and_then(|payload| serde_json::from_slice(&payload).ok());
    Ok((reader.parsed("pk", id)?, payload.ok_or_else(|| reader.damaged("payload"))?))
}
