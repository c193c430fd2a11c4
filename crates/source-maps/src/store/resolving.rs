//! Resolves frames: finds their maps, and reads the pieces that they need.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::num::NonZeroUsize;
use std::sync::Arc;
use std::time::Duration;

use serde::Serialize;
use shared::cache::TimedCache;
use shared::dynamodb::StoreError;
use shared::dynamodb::immutable_items::{ItemKey, place};
use shared::dynamodb::item::{ItemReader, key, n, s};
use shared::json::members::Members;
use shared::projects::project::ProjectId;
use shared::timestamp::Timestamp;

use super::{Lookup, ProjectMaps, TABLE};
use crate::MapKey;
use crate::event::{MinifiedFrame, ResolvedFrames, minified_frames};
use crate::pieces::{Found, Table};

/// Time after which a new or deleted map takes effect in a warm function.
const MAX_AGE: Duration = Duration::from_secs(15);
/// Number of cached maps, and of keys without a map.
const CAPACITY: NonZeroUsize = NonZeroUsize::new(1_000).unwrap();
/// Number of cached tables, which never change. Each was parsed from at most 32 kB.
const TABLES: NonZeroUsize = NonZeroUsize::new(256).unwrap();
const TABLE_AGE: Duration = Duration::from_hours(24);
/// Time between two updates of a map's last use.
const USE_PRECISION: Duration = Duration::from_hours(24);

/// The map of a key, which events share. `None` for a key without a map.
type CachedMap = Option<Arc<Lookup>>;

/// The maps of keys, and tables of maps.
#[derive(Debug)]
pub struct SourceMapCache {
    maps: TimedCache<(ProjectId, MapKey), CachedMap>,
    tables: TimedCache<ItemKey, Arc<Table>>,
}

impl Default for SourceMapCache {
    fn default() -> Self {
        let maps = TimedCache::new(CAPACITY, MAX_AGE);
        Self { maps, tables: TimedCache::new(TABLES, TABLE_AGE) }
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
    missing: Vec<MapKey>,
    used: Vec<Arc<Lookup>>,
}

/// Resolves frames of a project's events.
#[derive(Debug, Clone, Copy)]
pub struct Resolver<'a> {
    maps: ProjectMaps<'a>,
    cache: &'a SourceMapCache,
    now: Timestamp,
}

impl<'a> Resolver<'a> {
    /// Returns the resolver of a project's events at a time.
    pub fn new(maps: ProjectMaps<'a>, cache: &'a SourceMapCache, now: Timestamp) -> Self {
        Self { maps, cache, now }
    }

    /// Resolves the frames of an event.
    pub async fn resolve(self, frames: &[MinifiedFrame]) -> Result<Resolution, StoreError> {
        let maps = self.find_maps(frames).await?;
        let missing = maps.iter().filter(|(_, map)| map.is_none());
        let missing = missing.map(|(key, _)| key.clone()).collect();
        let positions = self.find_positions(&maps, frames).await?;
        let resolved = frames.iter().zip(&positions).filter(|(_, position)| position.is_some());
        let used: BTreeSet<&MapKey> = resolved.map(|(frame, _)| &frame.key).collect();
        let used = used.into_iter().filter_map(|key| maps.get(key)?.clone()).collect();
        Ok(Resolution { frames: ResolvedFrames::of(frames, positions), missing, used })
    }

    /// Notes that the maps of a resolution were used, once a day for each map.
    pub async fn note_use(self, resolution: &Resolution) -> Result<(), StoreError> {
        let is_due = |map: &&Arc<Lookup>| map.last_used_at.plus(USE_PRECISION) <= self.now;
        for map in resolution.used.iter().filter(is_due) {
            let update = self.maps.db.update(TABLE, self.maps.lookup_key(&map.key));
            let update = update
                .update_expression("SET lastUsedAt = :now")
                .condition_expression("mapId = :map AND lastUsedAt < :now")
                .expression_attribute_values(":map", s(map.map_id))
                .expression_attribute_values(":now", n(self.now.as_millis()));
            self.maps.db.write_if(update).await?;
            let used = Lookup { last_used_at: self.now, ..Lookup::clone(map) };
            self.put_cached(&map.key, Some(used));
        }
        Ok(())
    }

    /// Resolves the frames of a stored event. Returns the reason why some have no map, and the event
    /// with resolved frames, as `write` writes it.
    pub async fn resolve_stored<T>(
        self,
        event: Option<Members<'_>>,
        write: impl FnOnce(Members<'_>) -> Option<T>,
    ) -> Result<(Option<MapStatus>, Option<T>), StoreError> {
        let Some(event) = event else { return Ok((None, None)) };
        let resolution = self.resolve(&minified_frames(&event)).await?;
        let mut status = None;
        if !resolution.missing.is_empty() {
            let failures = self.maps.list_failures(self.now).await?;
            let has_failed = |key| failures.iter().any(|failure| failure.map_keys.contains(key));
            let is_failed = resolution.missing.iter().any(has_failed);
            status = Some(if is_failed { MapStatus::Failed } else { MapStatus::Missing });
        }
        let is_resolved = !resolution.frames.is_empty();
        let written = is_resolved.then(|| write(resolution.frames.apply(event))).flatten();
        Ok((status, written))
    }

    /// Returns the map of each frame's key, or `None` for a key without a map.
    async fn find_maps(
        self,
        frames: &[MinifiedFrame],
    ) -> Result<BTreeMap<MapKey, CachedMap>, StoreError> {
        let (mut maps, mut unknown) = (BTreeMap::new(), BTreeSet::new());
        for key in frames.iter().map(|frame| &frame.key).collect::<BTreeSet<_>>() {
            match self.cache.maps.get(&(self.maps.project, key.clone()), self.now) {
                Some(map) => drop(maps.insert(key.clone(), map)),
                None => drop(unknown.insert(key)),
            }
        }
        let mut found = self.maps.find_lookups(&unknown).await?;
        for key in unknown {
            maps.insert(key.clone(), self.put_cached(key, found.remove(key)));
        }
        Ok(maps)
    }

    fn put_cached(self, key: &MapKey, map: Option<Lookup>) -> CachedMap {
        let map = map.map(Arc::new);
        self.cache.maps.insert((self.maps.project, key.clone()), map.clone(), self.now);
        map
    }

    /// Returns the source position of each frame.
    async fn find_positions(
        self,
        maps: &BTreeMap<MapKey, CachedMap>,
        frames: &[MinifiedFrame],
    ) -> Result<Vec<Option<Found>>, StoreError> {
        let find = |frame: &MinifiedFrame| {
            let map = maps.get(&frame.key)?.as_ref()?;
            let (table, line) = map.index.find(frame.line, frame.column)?;
            Some((place(&self.maps.piece_key(map.map_id, table)), line))
        };
        let places: Vec<Option<(ItemKey, u32)>> = frames.iter().map(find).collect();
        let distinct: BTreeSet<&ItemKey> =
            places.iter().flatten().map(|(place, _)| place).collect();
        let (mut tables, mut unread) = (HashMap::new(), Vec::new());
        for place in distinct {
            match self.cache.tables.get(place, self.now) {
                Some(table) => drop(tables.insert(place.clone(), table)),
                None => unread.push(key(&place.0, &place.1)),
            }
        }
        for (place, item) in self.maps.db.get_all_large(TABLE, unread, |_| true).await? {
            let bytes = ItemReader { table: TABLE, item: &item }.blob("bytes")?;
            if let Some(table) = Table::read(bytes).map(Arc::new) {
                self.cache.tables.insert(place.clone(), Arc::clone(&table), self.now);
                tables.insert(place, table);
            } else {
                tracing::warn!("a piece of a source map is unreadable");
            }
        }
        let found = frames.iter().zip(&places).map(|(frame, found)| {
            let (place, line) = found.as_ref()?;
            tables.get(place)?.look_up(*line, frame.column)
        });
        Ok(found.collect())
    }
}
