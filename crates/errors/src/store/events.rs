//! Events, in table `errors`: what SDKs sent, and what is counted of it.
//!
//! | pk | sk | item |
//! | --- | --- | --- |
//! | `event#PROJECT#ID` | `payload` | the event as it was sent, trimmed and compressed |
//! | `event#PROJECT#ID` | `claim` | that the event is counted |
//! | `error-events#PROJECT#FINGERPRINT#SHARD` | time and id | that the event is one of an error's |
//!
//! An event counts from the moment on at which its claim, its row in the log and its key among its error's
//! events are written, in one transaction with the condition that there is no claim yet. All keys of
//! that transaction are the event's own, but for the first of an error: events do not get into each
//! other's way, and one that is delivered twice counts once.

use std::collections::HashMap;
use std::time::Duration;

use aws_sdk_dynamodb::operation::query::builders::QueryFluentBuilder;
use aws_sdk_dynamodb::types::{ReturnValuesOnConditionCheckFailure, Select};
use futures_util::future::try_join_all;
use futures_util::stream::{self, StreamExt, TryStreamExt};
use serde_json::value::RawValue;

use shared::dynamodb::item::{Item, ItemReader, b, key, n, s, sort_key_at_end, time_key};
use shared::dynamodb::page::one_more_than;
use shared::dynamodb::transaction::Transaction;
use shared::dynamodb::{Cause, StoreError};
use shared::page::{Page, PageRequest};
use shared::projects::project::ProjectId;
use shared::timestamp::Timestamp;

use super::ErrorStore;
use super::errors::TABLE;
use super::rows::{shard_of, write_row};
use crate::grouping::Fingerprint;
use crate::log::row::EventRow;
use crate::{ErrorRecord, EventId, KnownError, NewError, StoredEvent};

/// How long events are kept. What is counted of them is kept longer, in runs.
pub const EVENT_RETENTION: Duration = Duration::from_hours(90 * 24);
/// Queries under way at once.
const PARALLEL: usize = 8;
const HOUR: Duration = Duration::from_hours(1);
/// The most bytes of payloads of a page, before compression: an answer may have 6 MB, as JSON in
/// JSON.
const MAX_PAGE_PAYLOADS: usize = 2_000_000;
/// zstd's own default: more takes longer than it saves.
const COMPRESSION_LEVEL: i32 = 3;
/// The most bytes that a payload may have after decompression: more than any event is trimmed to.
const MAX_PAYLOAD_BYTES: usize = 16 << 20;

/// The most partitions of the keys of one error's events: 8,000 events a second.
pub(super) const MAX_EVENT_SHARDS: u8 = 16;

/// What became of an event.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CountOutcome {
    /// It is counted now.
    Counted,
    /// It was counted before.
    Duplicate {
        /// The error that it counts under.
        fingerprint: Fingerprint,
        /// When it occurred by its first delivery.
        occurred_at: Timestamp,
        /// When that was received.
        received_at: Timestamp,
    },
    /// It was counted before; under which error, cannot be read any more.
    UnreadableDuplicate,
    /// It is not counted: its error was to be made, and somebody else has just done that.
    ErrorExists,
    /// It is not counted: the partition of its row takes no more.
    LogThrottled,
    /// It is not counted: the partition of the keys of its error's events takes no more.
    EventsThrottled,
}

/// The error that an event counts under.
#[derive(Debug, Clone)]
pub enum ErrorOfEvent {
    /// One that was there.
    Known(KnownError),
    /// One that is made with the event.
    New(Box<NewError>),
}

impl ErrorOfEvent {
    /// What leads to the error, once the event is counted.
    pub fn known(&self) -> KnownError {
        match self {
            Self::Known(known) => *known,
            Self::New(new) => new.known,
        }
    }
}

impl ErrorStore<'_> {
    /// Stores what was sent of an event. The first delivery stays.
    pub async fn put_payload(
        self,
        project: ProjectId,
        event: EventId,
        payload: &[u8],
        now: Timestamp,
    ) -> Result<(), StoreError> {
        let compressed = zstd::bulk::compress(payload, COMPRESSION_LEVEL).map_err(|error| {
            StoreError::Refused(Cause::of_step("a payload cannot be packed", error))
        })?;
        let mut item = payload_key(project, event);
        item.insert("payload".to_owned(), b(&compressed));
        item.insert("expiresAt".to_owned(), n(now.plus(EVENT_RETENTION).as_seconds()));
        self.db.put_unless_there(TABLE, "pk", item).await
    }

    /// Deletes what was sent of an event that counts for nothing, since it was deleted.
    pub async fn delete_payload(
        self,
        project: ProjectId,
        event: EventId,
    ) -> Result<(), StoreError> {
        self.db.delete_all(TABLE, vec![payload_key(project, event)]).await
    }

    /// Counts an event, once, as received `now`: its row is in the log soon after that, or never. The
    /// project must be [wanted](Self::want_packing) in the packing queue. A new error is made in the same
    /// transaction, so that none is counted that is not there.
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
        // Where its row is.
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
            self.make_error(project, new, row.occurred_at, now, &mut transaction)?;
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

    /// Events of an error, the latest first. Strongly consistent: what was acknowledged is seen.
    pub async fn list_error_events(
        self,
        project: ProjectId,
        error: &EventsOfError,
        page_request: &PageRequest,
        now: Timestamp,
    ) -> Result<Page<StoredEvent>, StoreError> {
        let shards = (0..error.shards).map(|shard| {
            let limit = one_more_than(page_request.limit);
            self.read_event_keys(project, error, shard, page_request.after.as_deref(), limit, now)
        });
        let shards = try_join_all(shards).await?;
        // Down to the greatest key that a shard was read to, no event is missing.
        let bound = shards.iter().filter_map(|page| page.next.clone()).max();
        let mut keys: Vec<EventKey> = shards.into_iter().flat_map(|page| page.keys).collect();
        if let Some(bound) = &bound {
            keys.retain(|key| key.sk >= *bound);
        }
        keys.sort_unstable_by(|one, other| other.sk.cmp(&one.sk));
        let limit = usize::try_from(page_request.limit).unwrap_or(usize::MAX);
        let mut end = bound;
        if keys.len() > limit {
            keys.truncate(limit);
            end = keys.last().map(|key| key.sk.clone());
        }

        let mut payloads = self.read_payloads(project, &keys).await?;
        let mut bytes = 0;
        let mut items = Vec::with_capacity(keys.len());
        for key in &keys {
            let Some(payload) = payloads.remove(&key.id) else { continue };
            bytes += payload.get().len();
            if bytes > MAX_PAGE_PAYLOADS && !items.is_empty() {
                end = items.last().map(|(last, _): &(&EventKey, _)| last.sk.clone());
                break;
            }
            items.push((key, payload));
        }
        let items = items.into_iter().map(|(key, event)| StoredEvent {
            event_id: key.id,
            occurred_at: key.occurred_at,
            event,
        });
        Ok(Page { items: items.collect(), end })
    }

    /// Keys of events of an error in one of their partitions, the latest first.
    async fn read_event_keys(
        self,
        project: ProjectId,
        error: &EventsOfError,
        shard: u8,
        before: Option<&str>,
        limit: i32,
        now: Timestamp,
    ) -> Result<EventKeyPage, StoreError> {
        let answer = self
            .db
            .query(TABLE)
            .consistent_read(true)
            .scan_index_forward(false)
            .key_condition_expression("pk = :pk AND sk < :before")
            .filter_expression("expiresAt > :now AND receivedAt >= :since")
            .expression_attribute_values(
                ":pk",
                s(error_events_pk(project, error.fingerprint, shard)),
            )
            .expression_attribute_values(":before", s(before.unwrap_or(END)))
            .expression_attribute_values(":now", n(now.as_seconds()))
            .expression_attribute_values(":since", n(error.since.map_or(0, Timestamp::as_millis)))
            .limit(limit)
            .send()
            .await?;
        let next = sort_key_at_end(TABLE, answer.last_evaluated_key.as_ref())?;
        let items = answer.items.unwrap_or_default();
        let keys = self.db.undamaged(&items, read_event_key)?;
        Ok(EventKeyPage { keys, next })
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

    /// How many events of an error occurred in each of some hours up to `now`. Of each of their partitions the
    /// latest `limit` are read; where there are more, each hour is counted by itself, up to `limit` again. So no
    /// hour that has some looks like one that has none, however many there are in others. Eventually
    /// consistent: it is to be looked at, and nothing rests on it.
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

    /// When the events of a partition occurred since a time; nothing if there may be more than `limit`.
    async fn event_times_if_few(
        self,
        project: ProjectId,
        error: &EventsOfError,
        shard: u8,
        since: Timestamp,
        limit: i32,
    ) -> Result<Option<Vec<Timestamp>>, StoreError> {
        let query = self.query_event_keys(project, error, shard, &time_key(since), END);
        let answer = query.limit(limit).send().await?;
        if answer.last_evaluated_key.is_some() {
            return Ok(None);
        }
        let items = answer.items.unwrap_or_default();
        let keys: Vec<EventKey> = self.db.undamaged(&items, read_event_key)?;
        Ok(Some(keys.into_iter().map(|key| key.occurred_at).collect()))
    }

    /// How many events of a partition occurred in an hour that ended so many hours before `now`, up to `limit`,
    /// and whether there may be more.
    async fn count_hour(
        self,
        project: ProjectId,
        error: &EventsOfError,
        shard: u8,
        ago: u32,
        limit: i32,
        now: Timestamp,
    ) -> Result<(u64, bool), StoreError> {
        // What is a whole hour ago is of the hour before.
        let end = |ago: u32| time_key(now.minus(HOUR * ago).plus(Duration::from_millis(1)));
        // Clocks differ: what is yet to come is of the last hour.
        let last = if ago == 0 { END.to_owned() } else { end(ago) };
        let query = self.query_event_keys(project, error, shard, &end(ago + 1), &last);
        let answer = query.select(Select::Count).limit(limit).send().await?;
        let events = u64::try_from(answer.count()).unwrap_or_default();
        Ok((events, answer.last_evaluated_key.is_some()))
    }

    /// Begins a query of a partition's keys between two, the latest first.
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

/// The events of an error: where their keys are, and from when on they are its own.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct EventsOfError {
    /// What they have in common.
    pub fingerprint: Fingerprint,
    /// Over how many partitions their keys are spread.
    pub shards: u8,
    /// Events that were received before belong to an error that was deleted.
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

/// How many events there were in each of some hours.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EventsByHour {
    /// Those of each hour, the earliest first.
    pub hours: Vec<u64>,
    /// Whether there may be more of them than were counted.
    pub is_cut: bool,
}

impl EventsByHour {
    fn none(hours: u32) -> Self {
        Self { hours: vec![0; usize::try_from(hours).unwrap_or_default()], is_cut: false }
    }

    /// Adds events of the hour that ended so many hours ago.
    fn add(&mut self, ago: u64, events: u64) {
        let Ok(ago) = usize::try_from(ago) else { return };
        if let Some(hour) = self.hours.iter_mut().nth_back(ago) {
            *hour = hour.saturating_add(events);
        }
    }
}

/// How many whole hours before `now` something was.
fn hours_ago(at: Timestamp, now: Timestamp) -> u64 {
    at.until(now).as_secs() / HOUR.as_secs()
}

/// What sorts after the keys of all events.
const END: &str = "~";

/// Keys of events that were read at once.
struct EventKeyPage {
    keys: Vec<EventKey>,
    /// The key after which more may follow.
    next: Option<String>,
}

/// Where an event stands among those of its error.
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

/// The partition of keys of an error's events.
pub(super) fn error_events_pk(project: ProjectId, fingerprint: Fingerprint, shard: u8) -> String {
    format!("error-events#{project}#{fingerprint}#{shard:02}")
}

fn event_sk(row: &EventRow, event: EventId) -> String {
    format!("{}#{event}", time_key(row.occurred_at))
}

/// What is known of an event that was counted before.
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
