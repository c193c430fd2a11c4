//! Resolves frames: finds their maps, and reads the pieces that they need.

use std::collections::{BTreeMap, HashMap};
use std::num::NonZeroUsize;
use std::sync::Arc;
use std::time::Duration;

use serde::Serialize;
use shared::cache::TimedCache;
use shared::dynamodb::immutable_items::{ItemKey, place};
use shared::dynamodb::item::{Item, ItemReader, n, s};
use shared::dynamodb::{Store, StoreError};
use shared::projects::project::ProjectId;
use shared::timestamp::Timestamp;

use super::maps::{Lookup, read_lookup};
use super::{PieceKind, SourceMapStore, TABLE, lookup_key, piece_key};
use crate::MapKey;
use crate::event::{Members, MinifiedFrame, Resolved, ResolvedFrames, minified_frames};
use crate::pieces::{Found, decompress, decompress_text, look_up};

/// Time after which a new or deleted map takes effect in a warm function.
const MAX_AGE: Duration = Duration::from_secs(15);
/// Number of cached maps, and of keys without a map.
const CAPACITY: NonZeroUsize = NonZeroUsize::new(1_000).unwrap();
/// Time between two updates of a map's last use.
const USE_PRECISION: Duration = Duration::from_hours(24);

/// The maps of keys, which events share. `None` for a key without a map.
#[derive(Debug)]
pub struct SourceMapCache(TimedCache<(ProjectId, String), Option<Arc<Lookup>>>);

impl Default for SourceMapCache {
    fn default() -> Self {
        Self(TimedCache::new(CAPACITY, MAX_AGE))
    }
}

/// The reason why frames of an event have no map.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
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
    /// The stored form of the keys without a map.
    pub missing: Vec<String>,
    used: Vec<(String, Arc<Lookup>)>,
}

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
        let missing = maps.iter().filter(|(_, map)| map.is_none()).map(|(key, _)| key.to_string());
        let missing = missing.collect();
        let found = self.find_positions(project, &maps, frames).await?;
        let positions = self.read_contexts(project, &maps, frames, found).await?;
        let mut used: BTreeMap<String, Arc<Lookup>> = BTreeMap::new();
        for (frame, _) in frames.iter().zip(&positions).filter(|(_, it)| it.is_some()) {
            if let Some(Some(map)) = maps.get(&frame.key) {
                used.insert(frame.key.to_string(), Arc::clone(map));
            }
        }
        let frames = ResolvedFrames::of(frames, positions);
        Ok(Resolution { frames, missing, used: used.into_iter().collect() })
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
        let reasons = self.explain_missing(project, &resolution.missing, now).await?;
        let is_resolved = !resolution.frames.is_empty();
        let written = is_resolved.then(|| write(resolution.frames.apply(event))).flatten();
        Ok((reasons.into_values().max(), written))
    }

    /// Returns the reason why some keys have no map.
    pub async fn explain_missing(
        self,
        project: ProjectId,
        keys: &[String],
        now: Timestamp,
    ) -> Result<HashMap<String, MapStatus>, StoreError> {
        if keys.is_empty() {
            return Ok(HashMap::new());
        }
        let failures = self.list_failures(project, now).await?;
        let status_of = |key: &String| {
            let has_failed = failures.iter().any(|failure| failure.map_keys.contains(key));
            if has_failed { MapStatus::Failed } else { MapStatus::Missing }
        };
        Ok(keys.iter().map(|key| (key.clone(), status_of(key))).collect())
    }

    /// Returns the map of each frame's key.
    async fn find_maps<'f>(
        self,
        cache: &SourceMapCache,
        project: ProjectId,
        frames: &'f [MinifiedFrame],
        now: Timestamp,
    ) -> Result<BTreeMap<&'f MapKey, Option<Arc<Lookup>>>, StoreError> {
        let mut maps: BTreeMap<&MapKey, Option<Arc<Lookup>>> = BTreeMap::new();
        let mut unknown: BTreeMap<String, &MapKey> = BTreeMap::new();
        for frame in frames {
            if maps.contains_key(&frame.key) {
                continue;
            }
            let key = frame.key.to_string();
            let cached = cache.0.get(&(project, key.clone()), now);
            if cached.is_none() {
                unknown.insert(key, &frame.key);
            }
            maps.insert(&frame.key, cached.flatten());
        }
        if unknown.is_empty() {
            return Ok(maps);
        }
        let keys = unknown.keys().map(|key| lookup_key(project, key)).collect();
        let items = self.db.get_all(TABLE, keys).await?;
        let mut found: HashMap<String, Arc<Lookup>> = HashMap::new();
        for item in &items {
            let pk = ItemReader { table: TABLE, item }.text("pk")?;
            let key = pk.rsplit('#').next().unwrap_or_default();
            found.insert(key.to_owned(), Arc::new(read_lookup(item)?));
        }
        for (key, map_key) in unknown {
            let map = found.remove(&key);
            cache.0.insert((project, key), map.clone(), now);
            maps.insert(map_key, map);
        }
        Ok(maps)
    }

    /// Returns the source position of each frame.
    async fn find_positions(
        self,
        project: ProjectId,
        maps: &BTreeMap<&MapKey, Option<Arc<Lookup>>>,
        frames: &[MinifiedFrame],
    ) -> Result<Vec<Option<Found>>, StoreError> {
        let keys = frames.iter().map(|frame| {
            let map = maps.get(&frame.key)?.as_ref()?;
            let table = map.index.table_of(frame.line, frame.column)?;
            Some(piece_key(project, map.map_id, PieceKind::Table, table))
        });
        let keys: Vec<Option<Item>> = keys.collect();
        let tables =
            read_pieces(self.db, keys.iter().flatten().cloned().collect(), decompress).await?;
        let found = frames.iter().zip(&keys).map(|(frame, key)| {
            let table = tables.get(&place(key.as_ref()?))?;
            look_up(table, frame.line, frame.column).unwrap_or_else(|| {
                tracing::warn!("a table of a source map is unreadable");
                None
            })
        });
        Ok(found.collect())
    }

    /// Adds the source lines to each position.
    async fn read_contexts(
        self,
        project: ProjectId,
        maps: &BTreeMap<&MapKey, Option<Arc<Lookup>>>,
        frames: &[MinifiedFrame],
        found: Vec<Option<Found>>,
    ) -> Result<Vec<Option<Resolved>>, StoreError> {
        let key_of = |frame: &MinifiedFrame, text: u32| {
            let map = maps.get(&frame.key)?.as_ref()?;
            let number = usize::try_from(text).ok()?;
            Some(piece_key(project, map.map_id, PieceKind::Text, number))
        };
        let found: Vec<(&MinifiedFrame, Option<Found>)> = frames.iter().zip(found).collect();
        let mut keys = Vec::new();
        for (frame, found) in &found {
            for text in found.iter().flat_map(Found::texts) {
                keys.extend(key_of(frame, text));
            }
        }
        let texts = read_pieces(self.db, keys, decompress_text).await?;
        let resolved = found.into_iter().map(|(frame, found)| {
            let found = found?;
            let context = found
                .context(|number| texts.get(&place(&key_of(frame, number)?)).map(String::as_str));
            Some(Resolved { found, context })
        });
        Ok(resolved.collect())
    }
}

/// Reads pieces, each once. Omits missing and unreadable ones.
async fn read_pieces<T>(
    db: &Store,
    keys: Vec<Item>,
    read: impl Fn(&[u8]) -> Option<T>,
) -> Result<HashMap<ItemKey, T>, StoreError> {
    let distinct: HashMap<ItemKey, Item> = keys.into_iter().map(|key| (place(&key), key)).collect();
    if distinct.is_empty() {
        return Ok(HashMap::new());
    }
    let items = db.get_all_unchanging(TABLE, distinct.into_values().collect()).await?;
    let mut pieces = HashMap::with_capacity(items.len());
    for (place, item) in items {
        let bytes = ItemReader { table: TABLE, item: &item }.blob("bytes")?;
        if let Some(piece) = read(bytes) {
            pieces.insert(place, piece);
        }
    }
    Ok(pieces)
}
