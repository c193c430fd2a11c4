//! Events of an error that pass filters, in either order. Filters match the values in rows, which
//! event keys lead to.

use std::collections::HashMap;

use futures_util::future::try_join_all;

use shared::dynamodb::StoreError;
use shared::dynamodb::item::{n, s, sort_key_at_end, time_key};
use shared::page::{Page, PageRequest};
use shared::projects::project::ProjectId;
use shared::timestamp::Timestamp;

use super::ErrorStore;
use super::errors::TABLE;
use super::events::{EventKey, EventsOfError, error_events_pk, event_key_text, read_event_key};
use super::rows::{LogRow, read_row, tags_of};
use crate::category::Category;
use crate::query::error_events::EventOrder;
use crate::query::filter::EventFilters;
use crate::{EventId, StoredEvent};

/// Maximum keys that are read for a page.
const MAX_SCANNED: usize = 2_000;
/// Keys that are read at once if their rows are filtered.
const KEYS_AT_ONCE: i32 = 100;
/// Maximum keys of one minute that are read for a position.
const MAX_IN_MINUTE: usize = 1_000;

/// A range of an error's event keys.
#[derive(Debug, Clone)]
pub struct KeyRange {
    /// The first key, inclusive.
    pub from: String,
    /// The end, exclusive.
    pub to: String,
    /// The order.
    pub order: EventOrder,
}

impl KeyRange {
    /// Returns the keys of events that occurred from `from` until before `to`.
    pub fn of_times(from: Timestamp, to: Timestamp, order: EventOrder) -> Self {
        Self { from: time_key(from), to: time_key(to), order }
    }

    /// Returns the keys that follow this key in the order.
    #[must_use]
    pub fn after(mut self, key: &str) -> Self {
        match self.order {
            EventOrder::Newest => self.to = self.to.min(key.to_owned()),
            EventOrder::Oldest => self.from = self.from.max(format!("{key}~")),
        }
        self
    }
}

impl ErrorStore<'_> {
    /// Returns events of an error, the latest first. Strongly consistent: acknowledged events are
    /// listed.
    pub async fn list_error_events(
        self,
        project: ProjectId,
        error: &EventsOfError,
        page_request: &PageRequest,
        now: Timestamp,
    ) -> Result<Page<StoredEvent>, StoreError> {
        let to = page_request.after.clone().unwrap_or_else(|| "~".to_owned());
        let range = KeyRange { from: "0".to_owned(), to, order: EventOrder::Newest };
        let (all, limit) = (EventFilters::default(), page_request.limit);
        let limit = usize::try_from(limit).unwrap_or(usize::MAX);
        let page = self.matching_events(project, error, range, &all, limit, now).await?;
        let events = page.items.into_iter().map(|(_, event)| event);
        Ok(Page { items: events.collect(), end: page.end })
    }

    /// Returns up to `limit` events of a range of keys that pass the filters. Strongly consistent.
    pub async fn matching_events(
        self,
        project: ProjectId,
        error: &EventsOfError,
        mut range: KeyRange,
        filters: &EventFilters,
        limit: usize,
        now: Timestamp,
    ) -> Result<Page<(String, StoredEvent)>, StoreError> {
        let (mut keys, mut scanned, mut end) = (Vec::new(), 0, None);
        let page = if filters.is_empty() { one_more(limit) } else { KEYS_AT_ONCE };
        while keys.len() <= limit {
            if scanned >= MAX_SCANNED || range.from >= range.to {
                break;
            }
            let (located, last) = self.located_keys(project, error, &range, page, now).await?;
            scanned += located.len().max(1);
            keys.extend(self.passing(project, located, filters).await?);
            end = last;
            let Some(last) = &end else { break };
            range = range.after(last);
        }
        if keys.len() > limit {
            keys.truncate(limit);
            end = keys.last().map(|key: &EventKey| key.sk.clone());
        }
        let events = self.events_of(project, &keys).await?;
        Ok(Page { end: events.end.or(end), ..events })
    }

    /// Returns the number of events that pass the filters in a range of less than a minute. `None`
    /// if there are too many keys.
    pub async fn count_matching(
        self,
        project: ProjectId,
        error: &EventsOfError,
        mut range: KeyRange,
        filters: &EventFilters,
        now: Timestamp,
    ) -> Result<Option<u64>, StoreError> {
        let (mut count, mut scanned) = (0, 0);
        while range.from < range.to {
            let (located, last) =
                self.located_keys(project, error, &range, KEYS_AT_ONCE, now).await?;
            scanned += located.len();
            if scanned > MAX_IN_MINUTE {
                return Ok(None);
            }
            count += self.passing(project, located, filters).await?.len() as u64;
            let Some(last) = last else { break };
            range = range.after(&last);
        }
        Ok(Some(count))
    }

    /// Returns the key of an event, if it belongs to the error. Strongly consistent.
    pub async fn find_event_key(
        self,
        project: ProjectId,
        error: &EventsOfError,
        event: EventId,
        now: Timestamp,
    ) -> Result<Option<String>, StoreError> {
        let Some((fingerprint, occurred_at)) = self.find_claim(project, event).await? else {
            return Ok(None);
        };
        if fingerprint != error.fingerprint {
            return Ok(None);
        }
        let sk = event_key_text(occurred_at, event);
        let range = KeyRange { from: sk.clone(), to: format!("{sk}~"), order: EventOrder::Newest };
        let (found, _) = self.located_keys(project, error, &range, 1, now).await?;
        Ok((!found.is_empty()).then_some(sk))
    }

    /// Returns the first keys of a range, in order, and the last one if more can follow.
    async fn located_keys(
        self,
        project: ProjectId,
        error: &EventsOfError,
        range: &KeyRange,
        limit: i32,
        now: Timestamp,
    ) -> Result<(Vec<EventKey>, Option<String>), StoreError> {
        let newest_first = range.order == EventOrder::Newest;
        let reads = (0..error.shards).map(|shard| async move {
            let query = self
                .db
                .query(TABLE)
                .consistent_read(true)
                .scan_index_forward(!newest_first)
                .key_condition_expression("pk = :pk AND sk BETWEEN :from AND :to")
                .filter_expression("expiresAt > :now AND receivedAt >= :since")
                .expression_attribute_values(
                    ":pk",
                    s(error_events_pk(project, error.fingerprint, shard)),
                )
                .expression_attribute_values(":from", s(&range.from))
                .expression_attribute_values(":to", s(&range.to))
                .expression_attribute_values(":now", n(now.as_seconds()))
                .expression_attribute_values(
                    ":since",
                    n(error.since.map_or(0, Timestamp::as_millis)),
                );
            let response = query.limit(limit).send().await?;
            let next = sort_key_at_end(TABLE, response.last_evaluated_key.as_ref())?;
            let items = response.items.unwrap_or_default();
            let keys: Vec<EventKey> =
                self.db.undamaged(&items, |item| read_event_key(project, shard, item))?;
            Ok::<_, StoreError>((keys, next))
        });
        let shards = try_join_all(reads).await?;
        // Keys are complete up to the first key at which a shard's page ended.
        let ends = shards.iter().filter_map(|(_, next)| next.clone());
        let bound = if newest_first { ends.max() } else { ends.min() };
        let mut keys: Vec<EventKey> = shards.into_iter().flat_map(|(keys, _)| keys).collect();
        // `BETWEEN` is inclusive.
        keys.retain(|key| key.sk != range.to);
        if let Some(bound) = &bound {
            keys.retain(|key| (key.sk >= *bound) == newest_first || key.sk == *bound);
        }
        keys.sort_unstable_by(|one, other| one.sk.cmp(&other.sk));
        if newest_first {
            keys.reverse();
        }
        Ok((keys, bound))
    }

    /// Returns the keys of events that pass the filters, in order.
    async fn passing(
        self,
        project: ProjectId,
        mut keys: Vec<EventKey>,
        filters: &EventFilters,
    ) -> Result<Vec<EventKey>, StoreError> {
        if filters.is_empty() {
            return Ok(keys);
        }
        let rows = keys.iter().map(|key| key.row.clone()).collect();
        let mut passes = HashMap::new();
        let categories: Vec<Category> = filters.categories().into_iter().collect();
        let categories = Some(categories.as_slice());
        let items = self.db.get_all(TABLE, rows).await?;
        let mut rows: Vec<LogRow> = self.db.undamaged(&items, |item| read_row(item, categories))?;
        self.resolve_tags(project, &mut rows, tags_of(categories).as_deref()).await?;
        for row in rows {
            let id = row.sk.split_once('#').and_then(|(_, id)| EventId::parse(id).ok());
            passes.extend(id.map(|id| (id, filters.matches(&row.row.attributes))));
        }
        keys.retain(|key| passes.get(&key.id).copied().unwrap_or(false));
        Ok(keys)
    }
}

fn one_more(limit: usize) -> i32 {
    i32::try_from(limit.saturating_add(1)).unwrap_or(i32::MAX)
}
