//! Events and their claims and keys, in table `errors`.
//!
//! | pk | sk | item |
//! | --- | --- | --- |
//! | `event#PROJECT#ID` | `payload` | the event as it was sent, trimmed and compressed |
//! | `event#PROJECT#ID` | `claim` | marks the event as counted |
//! | `error-events#PROJECT#FINGERPRINT#SHARD` | time and ID | lists the event under its error |
//!
//! One transaction writes an event's claim, its row in the log and its key under the error, unless
//! the claim already exists. From then on the event counts. So an event that is delivered twice
//! counts once.
//!
//! Each item of that transaction belongs to the event, so different events do not conflict. Only
//! the first event of an error also creates the error.

use std::collections::HashMap;
use std::time::Duration;

use aws_sdk_dynamodb::operation::query::builders::QueryFluentBuilder;
use aws_sdk_dynamodb::types::{ReturnValuesOnConditionCheckFailure, Select};
use futures_util::future::try_join_all;
use futures_util::stream::{self, StreamExt, TryStreamExt};
use serde_json::value::RawValue;

use shared::dynamodb::item::{Item, ItemReader, b, key, n, s, sort_key_at_end, time_key};
use shared::dynamodb::transaction::Transaction;
use shared::dynamodb::{Cause, StoreError};
use shared::page::Page;
use shared::projects::project::ProjectId;
use shared::timestamp::Timestamp;

use super::ErrorStore;
use super::errors::TABLE;
use super::rows::{shard_of, write_row};
use crate::grouping::Fingerprint;
use crate::log::row::EventRow;
use crate::{ErrorRecord, EventId, KnownError, NewError, StoredEvent};

/// Retention of events: 90 days. Their counts are kept longer, in runs.
pub const EVENT_RETENTION: Duration = Duration::from_hours(90 * 24);
/// Maximum concurrent queries.
const PARALLEL: usize = 8;
const HOUR: Duration = Duration::from_hours(1);
/// Maximum bytes of payloads of a page, before compression: a response can have 6 MB and escapes
/// them as JSON in JSON.
const MAX_PAGE_PAYLOADS: usize = 2_000_000;
/// The default level of zstd. Higher levels cost more time than they save.
const COMPRESSION_LEVEL: i32 = 3;
/// Maximum bytes of a decompressed payload: more than the limit that events are trimmed to.
const MAX_PAYLOAD_BYTES: usize = 16 << 20;

/// Maximum partitions of the keys of one error's events, for 8,000 events a second.
pub(super) const MAX_EVENT_SHARDS: u8 = 16;

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
    /// The event is not counted: the partition of its row is throttled.
    LogThrottled,
    /// The event is not counted: the partition of its key is throttled.
    EventsThrottled,
}

/// The error that counts an event.
#[derive(Debug, Clone)]
pub enum ErrorOfEvent {
    /// An existing error.
    Known(KnownError),
    /// A new error, created together with the event.
    New(Box<NewError>),
}

impl ErrorOfEvent {
    /// Returns the error, which exists once the event is counted.
    pub fn known(&self) -> KnownError {
        match self {
            Self::Known(known) => *known,
            Self::New(new) => new.known,
        }
    }
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
        let log_shard = shard_of(event, log_shards);
        let logged = write_row(project, log_shard, event, row, now);
        let shard = shard_of(event, error.known().event_shards);
        let mut of_error =
            key(&error_events_pk(project, row.fingerprint, shard), &event_sk(row, event));
        // The time and shard of the row, for deletions.
        of_error.insert("receivedAt".to_owned(), n(now.as_millis()));
        of_error.insert("logShard".to_owned(), n(log_shard));
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
            Err(StoreError::Throttled { actions, .. }) if actions.contains(&"row") => {
                Ok(CountOutcome::LogThrottled)
            }
            Err(StoreError::Throttled { actions, .. }) if actions.contains(&"key") => {
                Ok(CountOutcome::EventsThrottled)
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

    /// Returns the number of events of an error in each of the last `hours` hours.
    ///
    /// Reads the latest `limit` events of each partition. If a partition has more, counts each of
    /// its hours separately, up to `limit`. So an hour with events never appears empty, even if
    /// other hours have many. Eventually consistent: the numbers are only displayed.
    pub async fn latest_events_by_hour(
        self,
        project: ProjectId,
        error: &EventsOfError,
        hours: u32,
        limit: i32,
        now: Timestamp,
    ) -> Result<EventsByHour, StoreError> {
        let mut counted = EventsByHour::none(hours);
        let since = now.minus(HOUR * hours);
        let reads = (0..error.shards)
            .map(|shard| self.event_times_if_few(project, error, shard, since, limit));
        let mut left = Vec::new();
        for (shard, times) in (0..error.shards).zip(try_join_all(reads).await?) {
            match times {
                Some(times) => times.into_iter().for_each(|at| counted.add(hours_ago(at, now), 1)),
                None => left.extend((0..hours).map(|ago| (shard, ago))),
            }
        }
        let counts: Vec<_> = left
            .into_iter()
            .map(|(shard, ago)| async move {
                let (events, is_cut) =
                    self.count_hour(project, error, shard, ago, limit, now).await?;
                Ok::<_, StoreError>((ago, events, is_cut))
            })
            .collect();
        let mut counts = stream::iter(counts).buffer_unordered(PARALLEL);
        while let Some((ago, events, is_cut)) = counts.try_next().await? {
            counted.add(ago.into(), events);
            counted.is_cut |= is_cut;
        }
        Ok(counted)
    }

    /// Returns the times of a partition's events since a time. `None` if there can be more than
    /// `limit`.
    async fn event_times_if_few(
        self,
        project: ProjectId,
        error: &EventsOfError,
        shard: u8,
        since: Timestamp,
        limit: i32,
    ) -> Result<Option<Vec<Timestamp>>, StoreError> {
        let query = self.query_event_keys(project, error, shard, &time_key(since), END);
        let response = query.limit(limit).send().await?;
        if response.last_evaluated_key.is_some() {
            return Ok(None);
        }
        let items = response.items.unwrap_or_default();
        let keys: Vec<EventKey> = self.db.undamaged(&items, read_event_key)?;
        Ok(Some(keys.into_iter().map(|key| key.occurred_at).collect()))
    }

    /// Counts events of a partition in the hour that ended `ago` hours before `now`, up to `limit`.
    /// Also returns `true` if there can be more.
    async fn count_hour(
        self,
        project: ProjectId,
        error: &EventsOfError,
        shard: u8,
        ago: u32,
        limit: i32,
        now: Timestamp,
    ) -> Result<(u64, bool), StoreError> {
        // An event exactly one hour old belongs to the earlier hour.
        let end = |ago: u32| time_key(now.minus(HOUR * ago).plus(Duration::from_millis(1)));
        // Clocks differ: future events belong to the last hour.
        let last = if ago == 0 { END.to_owned() } else { end(ago) };
        let query = self.query_event_keys(project, error, shard, &end(ago + 1), &last);
        let response = query.select(Select::Count).limit(limit).send().await?;
        let events = u64::try_from(response.count()).unwrap_or_default();
        Ok((events, response.last_evaluated_key.is_some()))
    }

    /// Returns a query of a partition's keys from `from` to `to`, the latest first.
    fn query_event_keys(
        self,
        project: ProjectId,
        error: &EventsOfError,
        shard: u8,
        from: &str,
        to: &str,
    ) -> QueryFluentBuilder {
        let received = error.since.map_or(0, Timestamp::as_millis);
        self.db
            .query(TABLE)
            .scan_index_forward(false)
            .key_condition_expression("pk = :pk AND sk BETWEEN :from AND :to")
            .filter_expression("receivedAt >= :received")
            .expression_attribute_values(
                ":pk",
                s(error_events_pk(project, error.fingerprint, shard)),
            )
            .expression_attribute_values(":from", s(from))
            .expression_attribute_values(":to", s(to))
            .expression_attribute_values(":received", n(received))
    }
}

/// The location of an error's events.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct EventsOfError {
    /// The fingerprint of the events.
    pub fingerprint: Fingerprint,
    /// The number of partitions that store their keys.
    pub shards: u8,
    /// Events received before this time belong to a deleted error.
    pub since: Option<Timestamp>,
}

impl From<&ErrorRecord> for EventsOfError {
    fn from(error: &ErrorRecord) -> Self {
        Self {
            fingerprint: error.description.fingerprint,
            shards: error.event_shards,
            since: error.events_since,
        }
    }
}

/// The number of events in each hour.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EventsByHour {
    /// The number of events of each hour, the earliest first.
    pub hours: Vec<u64>,
    /// `true` if there can be more events than were counted.
    pub is_cut: bool,
}

impl EventsByHour {
    fn none(hours: u32) -> Self {
        Self { hours: vec![0; usize::try_from(hours).unwrap_or_default()], is_cut: false }
    }

    /// Adds events of the hour that ended `ago` hours ago.
    fn add(&mut self, ago: u64, events: u64) {
        let Ok(ago) = usize::try_from(ago) else { return };
        if let Some(hour) = self.hours.iter_mut().nth_back(ago) {
            *hour = hour.saturating_add(events);
        }
    }
}

/// Returns the whole hours from `at` to `now`.
fn hours_ago(at: Timestamp, now: Timestamp) -> u64 {
    at.until(now).as_secs() / HOUR.as_secs()
}

/// A key that sorts after the keys of all events.
const END: &str = "~";

/// The position of an event among those of its error.
pub(super) struct EventKey {
    pub(super) sk: String,
    pub(super) occurred_at: Timestamp,
    pub(super) id: EventId,
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

fn event_sk(row: &EventRow, event: EventId) -> String {
    event_key_text(row.occurred_at, event)
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

pub(super) fn read_event_key(item: &Item) -> Result<EventKey, StoreError> {
    let reader = ItemReader { table: TABLE, item };
    let sk = reader.text("sk")?;
    let key = sk.split_once('#').and_then(|(time, id)| {
        let occurred_at = shared::dynamodb::item::read_time_key(time)?;
        Some(EventKey { sk: sk.to_owned(), occurred_at, id: EventId::parse(id).ok()? })
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
