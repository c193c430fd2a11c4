//! The newest events of a project's collections.

use std::cmp::Reverse;

use futures_util::stream::{self, StreamExt, TryStreamExt};

use shared::dynamodb::StoreError;
use shared::dynamodb::item::{Item, range_key, s};
use shared::page::PageRequest;
use shared::projects::project::ProjectId;

use super::MarkerStore;
use super::collections::{TABLE, events_pk, read_event};
use crate::{CollectionId, EventMarker, TimeRange};

/// Maximum collections that are read.
const MAX_COLLECTIONS: u32 = 100;
/// Collections that are read concurrently.
const COLLECTIONS_AT_ONCE: usize = 16;

/// The newest events that people added, and the number of the others.
#[derive(Debug)]
pub struct NewestMarkers {
    /// The events with their collections, newest first.
    pub events: Vec<(CollectionId, EventMarker)>,
    /// The number of further events.
    pub left_out: u64,
    /// `false` if there can be more of them.
    pub is_exact: bool,
}

impl MarkerStore<'_> {
    /// Returns up to `limit` events of a range in a project's newest collections without a source.
    /// Eventually consistent.
    pub async fn newest_markers(
        self,
        project: ProjectId,
        range: TimeRange,
        limit: u32,
    ) -> Result<NewestMarkers, StoreError> {
        let first = PageRequest { limit: MAX_COLLECTIONS, after: None };
        let collections = self.list_collections(project, &first).await?;
        let mut newest =
            NewestMarkers { events: Vec::new(), left_out: 0, is_exact: collections.end.is_none() };
        let filled = collections.items.into_iter().filter(|it| it.source.is_none());
        let reads: Vec<_> = filled
            .filter(|it| it.event_count > 0)
            .map(|it| async move {
                let (first, end) = (range_key(range.from), range.to.map(range_key));
                let query = self
                    .db
                    .query(TABLE)
                    .key_condition_expression("pk = :pk AND sk BETWEEN :first AND :end")
                    .expression_attribute_values(":pk", s(events_pk(it.id)))
                    .expression_attribute_values(":first", s(first))
                    // No event has this key, so the end is exclusive.
                    .expression_attribute_values(":end", s(end.as_deref().unwrap_or("~")));
                Ok::<_, StoreError>((it.id, self.db.newest(query, limit).await?))
            })
            .collect();
        let mut reads = stream::iter(reads).buffer_unordered(COLLECTIONS_AT_ONCE);
        while let Some((id, of_collection)) = reads.try_next().await? {
            let read = |item: &Item| read_event(item).map(|event| (id, event));
            let events: Vec<_> = self.db.undamaged(&of_collection.items, read)?;
            newest.events.extend(events);
            newest.left_out += of_collection.left_out;
            newest.is_exact &= of_collection.is_exact;
        }
        drop(reads);
        newest.events.sort_unstable_by_key(|(_, event)| Reverse((event.occurred_at, event.id)));
        let limit = usize::try_from(limit).unwrap_or(usize::MAX);
        newest.left_out += newest.events.len().saturating_sub(limit) as u64;
        newest.events.truncate(limit);
        Ok(newest)
    }
}
