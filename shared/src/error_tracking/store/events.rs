//! Events, in table `errors`: what SDKs sent, and what is counted of it.
//!
//! | pk | sk | item |
//! | --- | --- | --- |
//! | `event#PROJECT#ID` | `payload` | the event as it was sent, trimmed and compressed |
//! | `event#PROJECT#ID` | `claim` | that the event is counted |
//! | `error-events#PROJECT#FINGERPRINT` | time and id | that the event is one of an error's |
//!
//! An event counts from the moment on at which its claim, its row in the log and its key among its error's
//! events are written, in one transaction with the condition that there is no claim yet. All keys of
//! that transaction are the event's own: events do not get into each other's way, and one that is
//! delivered twice counts once.

use std::collections::HashMap;
use std::time::Duration;

use aws_sdk_dynamodb::types::ReturnValuesOnConditionCheckFailure;
use futures_util::stream::{self, StreamExt, TryStreamExt};
use serde_json::value::RawValue;

use crate::error_tracking::log::row::{EventRow, Fingerprint};
use crate::error_tracking::{EventId, StoredEvent};
use crate::page::{Page, PageRequest};
use crate::projects::project::ProjectId;
use crate::timestamp::Timestamp;

use super::errors::TABLE;
use super::rows::{shard_of, write_row};
use crate::dynamodb::item::{Item, ItemReader, b, key, n, s, time_key};
use crate::dynamodb::page::one_more_than;
use crate::dynamodb::request::IntoAction;
use crate::dynamodb::{Cause, Store, StoreError};

/// How long events are kept. What is counted of them is kept longer, in runs.
pub const EVENT_RETENTION: Duration = Duration::from_hours(90 * 24);
/// Queries under way at once.
const PARALLEL: usize = 8;
/// The most bytes of payloads of a page, before compression: an answer may have 6 MB, as JSON in
/// JSON.
const MAX_PAGE_PAYLOADS: usize = 2_000_000;
/// zstd's own default: more takes longer than it saves.
const COMPRESSION_LEVEL: i32 = 3;
/// The most bytes that a payload may have after decompression: more than any event is trimmed to.
const MAX_PAYLOAD_BYTES: usize = 16 << 20;

/// Which action of the transaction that counts an event puts its row.
const ROW_ACTION: usize = 1;

/// What became of an event.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Counting {
    /// It is counted now.
    Counted,
    /// It was counted before.
    Duplicate {
        /// When it occurred by its first delivery, if that was for the same error.
        first: Option<Timestamp>,
    },
    /// It is not counted: the partition of its row takes no more.
    LogThrottled,
}

impl Store {
    /// Stores what was sent of an event. The first delivery stays.
    pub async fn put_payload(
        &self,
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
        self.put_unless_there(TABLE, "pk", item).await
    }

    /// Counts an event, once, as received `now`: its row is in the log soon after that, or never. The
    /// project must be [wanted](Self::want_packing) in the packing queue.
    pub async fn count_event(
        &self,
        project: ProjectId,
        event: EventId,
        row: &EventRow,
        shards: u8,
        now: Timestamp,
    ) -> Result<Counting, StoreError> {
        let mut claim = key(&event_pk(project, event), "claim");
        claim.insert("fingerprint".to_owned(), b(&row.fingerprint.0));
        claim.insert("occurredAt".to_owned(), s(row.occurred_at));
        let logged = write_row(project, shard_of(event, shards), event, row, now);
        let of_error = key(&error_events_pk(project, row.fingerprint), &place_sk(row, event));
        let [claim, logged, of_error] = [claim, logged, of_error].map(|mut item| {
            item.insert("expiresAt".to_owned(), n(now.plus(EVENT_RETENTION).as_seconds()));
            item
        });
        let claim = self
            .put(TABLE, claim)
            .condition_expression("attribute_not_exists(pk)")
            .return_values_on_condition_check_failure(ReturnValuesOnConditionCheckFailure::AllOld);
        let mut actions = vec![claim.into_action()?];
        for item in [logged, of_error] {
            actions.push(self.put(TABLE, item).into_action()?);
        }
        match self.commit_all(actions).await {
            Err(StoreError::Throttled { actions, .. }) if actions.contains(&ROW_ACTION) => {
                Ok(Counting::LogThrottled)
            }
            Err(failure) => Err(failure),
            Ok(None) => Ok(Counting::Counted),
            Ok(Some(cancelled)) => {
                let claim = cancelled.reasons.first().and_then(|reason| reason.item.as_ref());
                let first = claim.map(|claim| read_claim(claim, row.fingerprint)).transpose()?;
                Ok(Counting::Duplicate { first: first.flatten() })
            }
        }
    }

    /// Events of an error, the latest first. Strongly consistent: what was acknowledged is seen.
    pub async fn list_error_events(
        &self,
        project: ProjectId,
        fingerprint: Fingerprint,
        page_request: &PageRequest,
        now: Timestamp,
    ) -> Result<Page<StoredEvent>, StoreError> {
        let pk = error_events_pk(project, fingerprint);
        let mut query = self
            .query(TABLE)
            .consistent_read(true)
            .scan_index_forward(false)
            .key_condition_expression("pk = :pk")
            .filter_expression("expiresAt > :now")
            .expression_attribute_values(":pk", s(&pk))
            .expression_attribute_values(":now", n(now.as_seconds()))
            .limit(one_more_than(page_request.limit));
        if let Some(after) = &page_request.after {
            query = query.set_exclusive_start_key(Some(key(&pk, after)));
        }
        let answer = query.send().await?;
        let stopped_at = answer.last_evaluated_key.as_ref().map(read_event_key).transpose()?;
        let found = answer.items.unwrap_or_default();
        let mut keys = found.iter().map(read_event_key).collect::<Result<Vec<_>, _>>()?;
        let limit = usize::try_from(page_request.limit).unwrap_or(usize::MAX);
        let mut end = stopped_at.map(|key| key.sk);
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

    async fn read_payloads(
        &self,
        project: ProjectId,
        keys: &[EventKey],
    ) -> Result<HashMap<EventId, Box<RawValue>>, StoreError> {
        let keys = keys.iter().map(|key| payload_key(project, key.id)).collect();
        let items = self.get_all(TABLE, keys).await?;
        items.iter().map(read_payload).collect()
    }

    /// When the latest event of each of some errors occurred, of those that have one. Strongly
    /// consistent, as the list of their events.
    pub async fn latest_events(
        &self,
        project: ProjectId,
        fingerprints: impl Iterator<Item = Fingerprint>,
        now: Timestamp,
    ) -> Result<HashMap<Fingerprint, Timestamp>, StoreError> {
        let reads: Vec<_> = fingerprints
            .map(|fingerprint| async move {
                let latest = self.latest_event(project, fingerprint, now).await?;
                Ok::<_, StoreError>(latest.map(|latest| (fingerprint, latest)))
            })
            .collect();
        let latest = stream::iter(reads).buffer_unordered(PARALLEL);
        latest.try_filter_map(async |latest| Ok(latest)).try_collect().await
    }

    async fn latest_event(
        &self,
        project: ProjectId,
        fingerprint: Fingerprint,
        now: Timestamp,
    ) -> Result<Option<Timestamp>, StoreError> {
        let answer = self
            .query(TABLE)
            .consistent_read(true)
            .scan_index_forward(false)
            .key_condition_expression("pk = :pk")
            .expression_attribute_values(":pk", s(error_events_pk(project, fingerprint)))
            .limit(1)
            .send()
            .await?;
        let items = answer.items.unwrap_or_default();
        let Some(item) = items.first() else { return Ok(None) };
        let expires_at = ItemReader { table: TABLE, item }.optional_integer("expiresAt")?;
        let is_there = expires_at.is_some_and(|expires_at| expires_at > now.as_seconds());
        Ok(is_there.then_some(read_event_key(item)?.occurred_at))
    }
}

/// Where an event stands among those of its error.
struct EventKey {
    sk: String,
    occurred_at: Timestamp,
    id: EventId,
}

fn event_pk(project: ProjectId, event: EventId) -> String {
    format!("event#{project}#{event}")
}

fn payload_key(project: ProjectId, event: EventId) -> Item {
    key(&event_pk(project, event), "payload")
}

fn error_events_pk(project: ProjectId, fingerprint: Fingerprint) -> String {
    format!("error-events#{project}#{fingerprint}")
}

fn place_sk(row: &EventRow, event: EventId) -> String {
    format!("{}#{event}", time_key(row.occurred_at))
}

/// When a claimed event occurred, if it is one of the error.
fn read_claim(item: &Item, error: Fingerprint) -> Result<Option<Timestamp>, StoreError> {
    let reader = ItemReader { table: TABLE, item };
    let occurred_at = reader.time("occurredAt")?;
    Ok((reader.bytes("fingerprint")? == error.0).then_some(occurred_at))
}

fn read_event_key(item: &Item) -> Result<EventKey, StoreError> {
    let reader = ItemReader { table: TABLE, item };
    let sk = reader.text("sk")?;
    let key = sk.split_once('#').and_then(|(time, id)| {
        let occurred_at = crate::dynamodb::item::read_time_key(time)?;
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
