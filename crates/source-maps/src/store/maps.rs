//! Maps: their pieces, the items by which frames find them, and the list of a project.

use std::collections::{BTreeSet, HashMap};
use std::time::Duration;

use aws_sdk_dynamodb::types::TransactWriteItem;
use futures_util::stream::{self, StreamExt, TryStreamExt};
use serde::{Deserialize, Serialize};
use shared::dynamodb::item::{Item, ItemReader, b, item_at, key, n, s, time_key};
use shared::dynamodb::page::one_more_than;
use shared::dynamodb::transaction::Transaction;
use shared::dynamodb::{Cause, ConflictRetry, StoreError};
use shared::page::{Page, PageRequest};
use shared::timestamp::Timestamp;
use tokio::time::sleep;
use uuid::Uuid;

use super::upkeep::UNPUBLISHED;
use super::{DueMap, MAPS, ProjectMaps, TABLE, Upload, json, read_json};
use crate::MapKey;
use crate::bundle::{Checksum, PreparedMap};
use crate::pieces::Index;

/// Pieces that are written concurrently: enough to keep DynamoDB busy.
const PIECES_AT_ONCE: usize = 16;
/// Maps that are published in one transaction, with at most five actions each.
const MAPS_AT_ONCE: usize = 16;
/// Maximum retries to write a piece that is throttled. A new table takes about 4 MB per second.
const MAX_RETRIES: u32 = 8;
/// Time before the first retry, which doubles four times.
const RETRY_PAUSE: Duration = Duration::from_millis(100);

/// A map whose pieces are stored under one of its keys.
#[derive(Debug, Clone, Copy)]
pub struct StoredMap<'m> {
    /// The id of its pieces.
    pub map_id: Uuid,
    /// The key by which frames find it.
    pub key: &'m MapKey,
    /// The prepared map.
    pub prepared: &'m PreparedMap,
}

/// The item by which frames find a map.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Lookup {
    pub(super) key: MapKey,
    /// The id of its pieces.
    pub map_id: Uuid,
    /// The first position of each table.
    pub index: Index,
    /// Time of the last use, to within a day.
    pub last_used_at: Timestamp,
    pub(super) listing: String,
    pub(super) bundle: Checksum,
}

/// A map in the list of a project.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ListedMap {
    /// The debug ID, if the script has one.
    pub debug_id: Option<String>,
    /// The release of the upload.
    pub release: Option<String>,
    /// The distribution of the upload.
    pub dist: Option<String>,
    /// The URL of its script.
    pub url: String,
    /// The bytes before compression.
    pub size: u64,
    /// Time of the upload.
    pub created_at: Timestamp,
    /// Time of the last use, to within a day.
    pub last_used_at: Timestamp,
}

impl ProjectMaps<'_> {
    /// Writes the pieces of a map. Until the map is published, frames do not find it.
    pub async fn put_pieces(self, map: StoredMap<'_>, now: Timestamp) -> Result<(), StoreError> {
        let tables = &map.prepared.pieces.tables;
        let due = DueMap {
            project: self.project,
            map_id: map.map_id,
            map_key: map.key.clone(),
            pieces: tables.len(),
            at: now.plus(UNPUBLISHED),
        };
        self.db.put_over(TABLE, due.item()?).await?;
        let item_of = |(number, piece): (usize, &Vec<u8>)| {
            item_at(self.piece_key(map.map_id, number), [("bytes", b(piece))])
        };
        let writes: Vec<_> =
            tables.iter().enumerate().map(|it| self.put_piece(item_of(it))).collect();
        stream::iter(writes).buffer_unordered(PIECES_AT_ONCE).try_collect().await
    }

    async fn put_piece(self, item: Item) -> Result<(), StoreError> {
        for attempt in 0..MAX_RETRIES {
            match self.db.put_over(TABLE, item.clone()).await {
                Err(error) if error.may_pass() => sleep(RETRY_PAUSE * (1 << attempt.min(4))).await,
                outcome => return outcome,
            }
        }
        self.db.put_over(TABLE, item).await
    }

    /// Makes maps findable, and replaces maps with the same keys. Returns `false` if the bundle was
    /// removed.
    pub async fn publish(
        self,
        upload: &Upload,
        maps: &[StoredMap<'_>],
        now: Timestamp,
    ) -> Result<bool, StoreError> {
        for maps in maps.chunks(MAPS_AT_ONCE) {
            let mut retry = ConflictRetry::default();
            loop {
                if !retry.next_attempt().await {
                    return Err(StoreError::Contended("the maps kept being replaced".into()));
                }
                let tx = self.publication(upload, maps, now).await?;
                match self.db.commit_all(tx).await? {
                    None => break,
                    Some(cancelled) if cancelled.failed("own bundle") => return Ok(false),
                    Some(cancelled) if cancelled.failed("lookup") => {}
                    Some(cancelled) => return Err(cancelled.into_error()),
                }
            }
        }
        Ok(true)
    }

    async fn publication(
        self,
        upload: &Upload,
        maps: &[StoredMap<'_>],
        now: Timestamp,
    ) -> Result<Transaction, StoreError> {
        let mut tx = Transaction::default();
        let own = self.db.check(TABLE, self.bundle_key(&upload.checksum));
        tx.add("own bundle", own.condition_expression("attribute_exists(pk)"))?;
        let mut current = self.find_lookups(&maps.iter().map(|map| map.key).collect()).await?;
        let mut replaced_bundles = BTreeSet::new();
        for map in maps {
            let listing = format!("{}#{}", time_key(now), map.map_id);
            let index = map.prepared.pieces.index.to_bytes();
            let failed = |error| StoreError::Rejected(Cause::of_step("writing an index", error));
            let lookup = [
                ("mapId", s(map.map_id)),
                ("listing", s(&listing)),
                ("index", b(&index.map_err(failed)?)),
                ("bundle", s(&upload.checksum)),
                ("lastUsedAt", n(now.as_millis())),
            ];
            let listed = ListedMap {
                debug_id: map.key.debug_id().map(str::to_owned),
                release: upload.release.clone(),
                dist: upload.dist.clone(),
                url: map.prepared.map.url.clone(),
                size: map.prepared.map.bytes,
                created_at: now,
                last_used_at: now,
            };
            let bytes = n(i64::try_from(map.prepared.pieces.bytes()).unwrap_or(i64::MAX));
            let listed = [("mapKey", s(map.key)), ("storedBytes", bytes), ("map", json(&listed)?)];
            let listed = item_at(key(&self.pk(MAPS), &listing), listed);
            tx.add("listing", self.db.put(TABLE, listed))?;
            let put = self.db.put(TABLE, item_at(self.lookup_key(map.key), lookup));
            let Some(current) = current.remove(map.key) else {
                tx.add("lookup", put.condition_expression("attribute_not_exists(pk)"))?;
                continue;
            };
            let put = put
                .condition_expression("mapId = :map")
                .expression_attribute_values(":map", s(current.map_id));
            tx.add("lookup", put)?;
            self.add_removal(&mut tx, &current, now)?;
            replaced_bundles.insert(current.bundle);
        }
        replaced_bundles.remove(&upload.checksum);
        for bundle in &replaced_bundles {
            tx.add("bundle", self.db.delete(TABLE, self.bundle_key(bundle)))?;
        }
        Ok(tx)
    }

    /// Returns the current maps of keys. Omits keys without a map.
    pub(super) async fn find_lookups(
        self,
        map_keys: &BTreeSet<&MapKey>,
    ) -> Result<HashMap<MapKey, Lookup>, StoreError> {
        let keys = map_keys.iter().map(|key| self.lookup_key(key)).collect();
        let read = |item: &Item| Lookup::read(item).map(|lookup| (lookup.key.clone(), lookup));
        self.db.get_all(TABLE, keys).await?.iter().map(read).collect()
    }

    /// Returns a page of the project's maps, the newest first.
    pub async fn list_maps(self, request: &PageRequest) -> Result<Page<ListedMap>, StoreError> {
        let query = self
            .db
            .partition(TABLE, self.pk(MAPS))
            .scan_index_forward(false)
            .key_condition_expression("pk = :pk AND sk < :before")
            .expression_attribute_values(":before", s(request.after.as_deref().unwrap_or("~")))
            .limit(one_more_than(request.limit));
        let output = query.send().await?;
        let more = output.last_evaluated_key.is_some();
        let end_of = |item: &Item| Ok(ItemReader { table: TABLE, item }.text("sk")?.to_owned());
        let items = output.items.unwrap_or_default();
        let page = self.db.page(items, more, request.limit, end_of, read_listed)?;
        let keys = page.items.iter().map(|(key, _)| key).collect();
        let current = self.find_lookups(&keys).await?;
        let with_use = |(key, listed): &(MapKey, ListedMap)| {
            let last_used_at = current.get(key).map_or(listed.last_used_at, |it| it.last_used_at);
            ListedMap { last_used_at, ..listed.clone() }
        };
        Ok(page.map(with_use))
    }

    /// Returns the bytes of the project's pieces.
    pub async fn stored_bytes(self) -> Result<u64, StoreError> {
        let query = self.db.partition(TABLE, self.pk(MAPS)).consistent_read(false);
        let items = self.db.all(query.projection_expression("storedBytes")).await?;
        items.iter().map(|item| ItemReader { table: TABLE, item }.count("storedBytes")).sum()
    }

    /// Returns the keys of all maps of a release.
    pub async fn find_by_release(self, release: &str) -> Result<Vec<MapKey>, StoreError> {
        let items = self.db.all(self.db.partition(TABLE, self.pk(MAPS))).await?;
        let mut listed = items.iter().map(read_listed).collect::<Result<Vec<_>, _>>()?;
        listed.retain(|(_, map)| map.release.as_deref() == Some(release));
        Ok(listed.into_iter().map(|(key, _)| key).collect())
    }

    /// Removes the map of a key, if there is one. `entry` is the action that records the removal.
    pub async fn delete_map(
        self,
        map_key: &MapKey,
        entry: TransactWriteItem,
        now: Timestamp,
    ) -> Result<(), StoreError> {
        let mut retry = ConflictRetry::default();
        while retry.next_attempt().await {
            let current = self.find_lookups(&[map_key].into()).await?.remove(map_key);
            let Some(current) = current else { return Ok(()) };
            if self.remove(&current, vec![entry.clone()], now).await? {
                return Ok(());
            }
        }
        Err(StoreError::Contended("the map kept being replaced".into()))
    }
}

impl Lookup {
    fn read(item: &Item) -> Result<Self, StoreError> {
        let reader = ItemReader { table: TABLE, item };
        let index = Index::from_bytes(reader.blob("index")?);
        Ok(Self {
            key: reader.parsed("pk", |pk| pk.rsplit('#').next().map(MapKey::from))?,
            map_id: reader.parsed("mapId", |text| Uuid::try_parse(text).ok())?,
            listing: reader.text("listing")?.to_owned(),
            index: index.ok_or_else(|| reader.damaged("index"))?,
            bundle: reader.parsed("bundle", Checksum::parse)?,
            last_used_at: reader.millis("lastUsedAt")?,
        })
    }
}

fn read_listed(item: &Item) -> Result<(MapKey, ListedMap), StoreError> {
    Ok((ItemReader { table: TABLE, item }.text("mapKey")?.into(), read_json(item, "map")?))
}
