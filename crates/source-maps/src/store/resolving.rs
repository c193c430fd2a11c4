//! Resolves frames: finds their maps, and reads the pieces that they need.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::num::NonZeroUsize;
use std::sync::Arc;
use std::time::Duration;

use serde::Serialize;
use shared::cache::TimedCache;
use shared::dynamodb::StoreError;
use shared::dynamodb::immutable_items::{ItemKey, place};
use shared::dynamodb::item::{Item, ItemReader, n, s};
use shared::json::members::Members;
use shared::projects::project::ProjectId;
use shared::timestamp::Timestamp;

use super::maps::Lookup;
use super::{SourceMapStore, TABLE, lookup_key, piece_key};
use crate::MapKey;
use crate::event::{MinifiedFrame, ResolvedFrames, minified_frames};
use crate::pieces::{Found, Table};

/// Time after which a new or deleted map takes effect in a warm function.
const MAX_AGE: Duration = Duration::from_secs(15);
/// Number of cached maps, and of keys without a map.
const CAPACITY: NonZeroUsize = NonZeroUsize::new(1_000).unwrap();
/// Time between two updates of a map's last use.
const USE_PRECISION: Duration = Duration::from_hours(24);

/// The maps of keys, which events share. `None` for a key without a map.
#[derive(Debug)]
pub struct SourceMapCache(TimedCache<(ProjectId, MapKey), Option<Arc<Lookup>>>);

impl Default for SourceMapCache {
    fn default() -> Self {
        Self(TimedCache::new(CAPACITY, MAX_AGE))
    }
}

/// The reason why frames of an event have no map.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum MapStatus {
    /// No map was uploaded.
    Missing,
    /// The bundle with the map was rejected.
    Failed,
}

/// The resolved frames of an event, and the maps that it names.
#[derive(Debug, Default)]
pub struct Resolution {
    /// The resolved frames.
    pub frames: ResolvedFrames,
    /// The keys without a map.
    pub missing: Vec<MapKey>,
    used: BTreeMap<MapKey, Arc<Lookup>>,
}

/// The maps of frames. `None` for a key without a map.
type Maps<'f> = HashMap<&'f MapKey, Option<Arc<Lookup>>>;

impl SourceMapStore<'_> {
    /// Resolves the frames of an event.
    pub async fn resolve(
        self,
        cache: &SourceMapCache,
        project: ProjectId,
        frames: &[MinifiedFrame],
        now: Timestamp,
    ) -> Result<Resolution, StoreError> {
        if frames.is_empty() {
            return Ok(Resolution::default());
        }
        let maps = self.find_maps(cache, project, frames, now).await?;
        let missing = maps.iter().filter(|(_, map)| map.is_none()).map(|(key, _)| (*key).clone());
        let missing = missing.collect();
        let positions = self.find_positions(project, &maps, frames).await?;
        let resolved = frames.iter().zip(&positions).filter(|(_, position)| position.is_some());
        let map_of = |(frame, _): (&MinifiedFrame, _)| {
            Some((frame.key.clone(), maps.get(&frame.key).cloned()??))
        };
        let used = resolved.filter_map(map_of).collect();
        Ok(Resolution { frames: ResolvedFrames::of(frames, positions), missing, used })
    }

    /// Notes that the maps of a resolution were used, once a day for each map.
    pub async fn note_use(
        self,
        cache: &SourceMapCache,
        project: ProjectId,
        resolution: &Resolution,
        now: Timestamp,
    ) -> Result<(), StoreError> {
        for (key, map) in &resolution.used {
            if map.last_used_at.plus(USE_PRECISION) > now {
                continue;
            }
            let update = self.db.update(TABLE, lookup_key(project, key));
            let update = update
                .update_expression("SET lastUsedAt = :now")
                .condition_expression("mapId = :map AND lastUsedAt < :now")
                .expression_attribute_values(":map", s(map.map_id))
                .expression_attribute_values(":now", n(now.as_millis()));
            self.db.write_if(update).await?;
            let used = Lookup { last_used_at: now, ..Lookup::clone(map) };
            cache.0.insert((project, key.clone()), Some(Arc::new(used)), now);
        }
        Ok(())
    }

    /// Resolves the frames of a stored event. Returns the reason why some have no map, and the event
    /// with resolved frames, as `write` writes it.
    pub async fn resolve_stored<T>(
        self,
        cache: &SourceMapCache,
        project: ProjectId,
        event: Option<Members<'_>>,
        now: Timestamp,
        write: impl FnOnce(Members<'_>) -> Option<T>,
    ) -> Result<(Option<MapStatus>, Option<T>), StoreError> {
        let Some(event) = event else { return Ok((None, None)) };
        let resolution = self.resolve(cache, project, &minified_frames(&event), now).await?;
        let status = self.explain_missing(project, &resolution.missing, now).await?;
        let is_resolved = !resolution.frames.is_empty();
        let written = is_resolved.then(|| write(resolution.frames.apply(event))).flatten();
        Ok((status, written))
    }

    /// Returns the reason why keys have no map, if there are any.
    async fn explain_missing(
        self,
        project: ProjectId,
        keys: &[MapKey],
        now: Timestamp,
    ) -> Result<Option<MapStatus>, StoreError> {
        if keys.is_empty() {
            return Ok(None);
        }
        let failures = self.list_failures(project, now).await?;
        let has_failed = |key| failures.iter().any(|failure| failure.map_keys.contains(key));
        let is_failed = keys.iter().any(has_failed);
        Ok(Some(if is_failed { MapStatus::Failed } else { MapStatus::Missing }))
    }

    /// Returns the map of each frame's key.
    async fn find_maps<'f>(
        self,
        cache: &SourceMapCache,
        project: ProjectId,
        frames: &'f [MinifiedFrame],
        now: Timestamp,
    ) -> Result<Maps<'f>, StoreError> {
        let mut maps = Maps::new();
        let mut unknown = Vec::new();
        for key in frames.iter().map(|frame| &frame.key).collect::<BTreeSet<_>>() {
            match cache.0.get(&(project, key.clone()), now) {
                Some(map) => drop(maps.insert(key, map)),
                None => unknown.push(key),
            }
        }
        let mut found = self.find_lookups(project, unknown.iter().copied()).await?;
        for key in unknown {
            let map = found.remove(key).map(Arc::new);
            cache.0.insert((project, key.clone()), map.clone(), now);
            maps.insert(key, map);
        }
        Ok(maps)
    }

    /// Returns the source position of each frame.
    async fn find_positions(
        self,
        project: ProjectId,
        maps: &Maps<'_>,
        frames: &[MinifiedFrame],
    ) -> Result<Vec<Option<Found>>, StoreError> {
        let find = |frame: &MinifiedFrame| {
            let map = maps.get(&frame.key)?.as_ref()?;
            let (table, line) = map.index.find(frame.line, frame.column)?;
            let key = piece_key(project, map.map_id, table);
            Some((place(&key), key, line))
        };
        let places: Vec<Option<(ItemKey, Item, u32)>> = frames.iter().map(find).collect();
        let keys: HashMap<_, _> =
            places.iter().flatten().map(|(place, key, _)| (place, key.clone())).collect();
        let items = self.db.get_all_unchanging(TABLE, keys.into_values().collect()).await?;
        let mut tables = HashMap::with_capacity(items.len());
        for (place, item) in items {
            let bytes = ItemReader { table: TABLE, item: &item }.blob("bytes")?;
            if let Some(table) = Table::read(bytes) {
                tables.insert(place, table);
            } else {
                tracing::warn!("a piece of a source map is unreadable");
            }
        }
        let found = frames.iter().zip(&places).map(|(frame, found)| {
            let (place, _, line) = found.as_ref()?;
            tables.get(place)?.look_up(*line, frame.column)
        });
        Ok(found.collect())
    }
}
