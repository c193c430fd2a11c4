//! Maps: their pieces, the items by which frames find them, and the list of a project.

use aws_sdk_dynamodb::types::TransactWriteItem;
use futures_util::stream::{self, StreamExt, TryStreamExt};
use serde::Serialize;
use shared::dynamodb::item::{Item, ItemReader, b, item_at, key, n, s, time_key};
use shared::dynamodb::page::one_more_than;
use shared::dynamodb::transaction::Transaction;
use shared::dynamodb::{ConflictRetry, StoreError};
use shared::page::{Page, PageRequest};
use shared::projects::project::ProjectId;
use shared::timestamp::Timestamp;
use uuid::Uuid;

use super::bundles::{self, Lease};
use super::upkeep::{DueMap, RETENTION, UNPUBLISHED};
use super::{PieceKind, SourceMapStore, TABLE, count, lookup_key, maps_pk, piece_key, read_count};
use crate::MapKey;
use crate::bundle::Checksum;
use crate::pieces::{Index, Pieces};

/// Pieces that are written concurrently: enough to keep DynamoDB busy.
const PIECES_AT_ONCE: usize = 16;
/// Maps that are published in one transaction, with at most seven actions each.
const MAPS_AT_ONCE: usize = 12;
/// Maximum attempts to write a piece that is throttled. A new table takes about 4 MB per second.
const MAX_WRITES: u32 = 8;

/// A map whose pieces are stored.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoredMap {
    /// The id of its pieces.
    pub map_id: Uuid,
    /// The key by which frames find it.
    pub key: MapKey,
    /// The URL of its script.
    pub url: String,
    /// The bytes before compression.
    pub bytes: u64,
    /// The bytes of its pieces.
    pub stored_bytes: u64,
    /// The first position of each table.
    pub index: Index,
    /// Number of tables.
    pub tables: usize,
    /// Number of texts.
    pub texts: usize,
}

/// The item by which frames find a map.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Lookup {
    /// The id of its pieces.
    pub map_id: Uuid,
    /// The first position of each table.
    pub index: Index,
    /// Time of the last use, to within a day.
    pub last_used_at: Timestamp,
    pub(super) listing: String,
    pub(super) tables: usize,
    pub(super) texts: usize,
    pub(super) bundle: Checksum,
}

/// A map in the list of a project.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
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
    /// The stored form of the key.
    #[serde(skip)]
    pub map_key: String,
}

impl SourceMapStore<'_> {
    /// Writes the pieces of a map. Until the map is published, frames do not find it.
    pub async fn put_pieces(
        self,
        project: ProjectId,
        map: &StoredMap,
        pieces: &Pieces,
        now: Timestamp,
    ) -> Result<(), StoreError> {
        self.db.put_over(TABLE, due_of(project, map, now.plus(UNPUBLISHED)).item()).await?;
        let tables = pieces.tables.iter().enumerate().map(|it| (PieceKind::Table, it));
        let texts = pieces.texts.iter().enumerate().map(|it| (PieceKind::Text, it));
        let writes: Vec<_> = tables
            .chain(texts)
            .map(|(kind, (number, piece))| {
                let key = piece_key(project, map.map_id, kind, number);
                self.put_piece(item_at(key, [("bytes", b(piece))]))
            })
            .collect();
        stream::iter(writes).buffer_unordered(PIECES_AT_ONCE).try_collect().await
    }

    async fn put_piece(self, item: Item) -> Result<(), StoreError> {
        let mut attempt = 0;
        loop {
            match self.db.put_over(TABLE, item.clone()).await {
                Err(error) if error.may_pass() && attempt < MAX_WRITES => {
                    tokio::time::sleep(std::time::Duration::from_millis(100 << attempt.min(4)))
                        .await;
                    attempt += 1;
                }
                outcome => return outcome,
            }
        }
    }

    /// Makes maps findable, and replaces maps with the same keys. Returns `false` if the bundle was
    /// removed, or is assembled by another invocation.
    pub async fn publish(
        self,
        project: ProjectId,
        lease: &Lease,
        maps: &[StoredMap],
        now: Timestamp,
    ) -> Result<bool, StoreError> {
        for maps in maps.chunks(MAPS_AT_ONCE) {
            let mut retry = ConflictRetry::default();
            loop {
                if !retry.next_attempt().await {
                    return Err(StoreError::Contended("the maps kept being replaced".into()));
                }
                let tx = self.publication(project, lease, maps, now).await?;
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
        project: ProjectId,
        lease: &Lease,
        maps: &[StoredMap],
        now: Timestamp,
    ) -> Result<Transaction, StoreError> {
        let mut tx = Transaction::default();
        tx.add("own bundle", bundles::check(self.db, project, lease))?;
        let mut replaced_bundles = Vec::new();
        for map in maps {
            let map_key = map.key.to_string();
            let current = self.find_lookup(project, &map_key).await?;
            let listing = format!("{}#{}", time_key(now), map.map_id);
            let put = self.db.put(TABLE, lookup_item(project, map, &listing, lease, now));
            let put = match &current {
                Some(current) => put
                    .condition_expression("mapId = :map")
                    .expression_attribute_values(":map", s(current.map_id)),
                None => put.condition_expression("attribute_not_exists(pk)"),
            };
            tx.add("lookup", put)?;
            tx.add(
                "listing",
                self.db.put(TABLE, listing_item(project, map, &listing, lease, now)),
            )?;
            let unpublished = due_of(project, map, lease.began.plus(UNPUBLISHED));
            tx.add("unpublished", self.db.delete(TABLE, unpublished.key()))?;
            let due = due_of(project, map, now.plus(RETENTION));
            tx.add("due", self.db.put(TABLE, due.item()))?;
            if let Some(current) = current {
                self.add_removal(&mut tx, project, &map_key, &current, now)?;
                if current.bundle != lease.checksum && !replaced_bundles.contains(&current.bundle) {
                    replaced_bundles.push(current.bundle);
                }
            }
        }
        for bundle in replaced_bundles {
            tx.add("bundle", self.db.delete(TABLE, bundles::key_of(project, bundle)))?;
        }
        Ok(tx)
    }

    /// Returns the current map of a key.
    pub(super) async fn find_lookup(
        self,
        project: ProjectId,
        map_key: &str,
    ) -> Result<Option<Lookup>, StoreError> {
        let item = self.db.get(TABLE, lookup_key(project, map_key)).await?;
        item.as_ref().map(read_lookup).transpose()
    }

    /// Returns a page of a project's maps, the newest first.
    pub async fn list_maps(
        self,
        project: ProjectId,
        page_request: &PageRequest,
    ) -> Result<Page<ListedMap>, StoreError> {
        let query = self.db.query(TABLE).consistent_read(true).scan_index_forward(false);
        let query = query
            .key_condition_expression("pk = :pk AND sk < :before")
            .expression_attribute_values(":pk", s(maps_pk(project)))
            .expression_attribute_values(":before", s(page_request.after.as_deref().unwrap_or("~")))
            .limit(one_more_than(page_request.limit));
        let output = query.send().await?;
        let more = output.last_evaluated_key.is_some();
        let end_of = |item: &Item| Ok(ItemReader { table: TABLE, item }.text("sk")?.to_owned());
        let items = output.items.unwrap_or_default();
        let mut page = self.db.page(items, more, page_request.limit, end_of, read_listed)?;
        let keys = page.items.iter().map(|map| lookup_key(project, &map.map_key)).collect();
        for item in self.db.get_all(TABLE, keys).await? {
            let reader = ItemReader { table: TABLE, item: &item };
            let (pk, used) = (reader.text("pk")?, reader.millis("lastUsedAt")?);
            for map in &mut page.items {
                if pk.ends_with(&map.map_key) {
                    map.last_used_at = map.last_used_at.max(used);
                }
            }
        }
        Ok(page)
    }

    /// Returns the bytes of a project's pieces.
    pub async fn stored_bytes(self, project: ProjectId) -> Result<u64, StoreError> {
        let query = self.db.query_attributes(TABLE, &["storedBytes"]);
        let query = query
            .key_condition_expression("pk = :pk")
            .expression_attribute_values(":pk", s(maps_pk(project)));
        let mut items = query.into_paginator().items().send();
        let mut bytes = 0_u64;
        while let Some(item) = items.next().await {
            let item = item?;
            bytes = bytes
                .saturating_add(ItemReader { table: TABLE, item: &item }.count("storedBytes")?);
        }
        Ok(bytes)
    }

    /// Removes all maps of a release.
    pub async fn delete_by_release(
        self,
        project: ProjectId,
        release: &str,
        entry_of: impl Fn(&str) -> Result<TransactWriteItem, StoreError>,
        now: Timestamp,
    ) -> Result<(), StoreError> {
        let query = self.db.query(TABLE).consistent_read(true);
        let query = query
            .key_condition_expression("pk = :pk")
            .filter_expression("#release = :release")
            .expression_attribute_names("#release", "release")
            .expression_attribute_values(":pk", s(maps_pk(project)))
            .expression_attribute_values(":release", s(release));
        let mut items = query.into_paginator().items().send();
        while let Some(item) = items.next().await {
            let item = item?;
            let map_key = ItemReader { table: TABLE, item: &item }.text("mapKey")?;
            self.delete_map(project, map_key, &entry_of, now).await?;
        }
        Ok(())
    }

    /// Removes the map with the stored form of a key, if there is one. `entry_of` returns the action
    /// that records the removal.
    pub async fn delete_map(
        self,
        project: ProjectId,
        map_key: &str,
        entry_of: impl Fn(&str) -> Result<TransactWriteItem, StoreError>,
        now: Timestamp,
    ) -> Result<(), StoreError> {
        let mut retry = ConflictRetry::default();
        while retry.next_attempt().await {
            let Some(current) = self.find_lookup(project, map_key).await? else { return Ok(()) };
            if self.remove(project, map_key, &current, vec![entry_of(map_key)?], now).await? {
                return Ok(());
            }
        }
        Err(StoreError::Contended("the map kept being replaced".into()))
    }
}

fn due_of(project: ProjectId, map: &StoredMap, at: Timestamp) -> DueMap {
    let (tables, texts) = (map.tables, map.texts);
    DueMap { project, map_id: map.map_id, map_key: map.key.to_string(), tables, texts, at }
}

fn lookup_item(
    project: ProjectId,
    map: &StoredMap,
    listing: &str,
    lease: &Lease,
    now: Timestamp,
) -> Item {
    item_at(
        lookup_key(project, &map.key.to_string()),
        [
            ("mapId", s(map.map_id)),
            ("listing", s(listing)),
            ("index", b(&map.index.to_bytes())),
            ("tables", count(map.tables)),
            ("texts", count(map.texts)),
            ("bundle", s(lease.checksum)),
            ("lastUsedAt", n(now.as_millis())),
        ],
    )
}

pub(super) fn read_lookup(item: &Item) -> Result<Lookup, StoreError> {
    let reader = ItemReader { table: TABLE, item };
    Ok(Lookup {
        map_id: reader.parsed("mapId", |text| Uuid::try_parse(text).ok())?,
        listing: reader.text("listing")?.to_owned(),
        index: Index::from_bytes(reader.blob("index")?).ok_or_else(|| reader.damaged("index"))?,
        tables: read_count(reader, "tables")?,
        texts: read_count(reader, "texts")?,
        bundle: reader.parsed("bundle", Checksum::parse)?,
        last_used_at: reader.millis("lastUsedAt")?,
    })
}

fn listing_item(
    project: ProjectId,
    map: &StoredMap,
    listing: &str,
    lease: &Lease,
    now: Timestamp,
) -> Item {
    let mut item = item_at(
        key(&maps_pk(project), listing),
        [
            ("mapKey", s(&map.key)),
            ("url", s(&map.url)),
            ("size", count(map.bytes)),
            ("storedBytes", count(map.stored_bytes)),
            ("createdAt", s(now)),
        ],
    );
    let release = lease.release.as_ref().map(|it| ("release", s(it)));
    let dist = lease.dist.as_ref().map(|it| ("dist", s(it)));
    let id = match &map.key {
        MapKey::DebugId(id) => Some(("debugId", s(id))),
        MapKey::Url { .. } => None,
    };
    let optional = [release, dist, id].into_iter().flatten();
    item.extend(optional.map(|(name, value)| (name.to_owned(), value)));
    item
}

fn read_listed(item: &Item) -> Result<ListedMap, StoreError> {
    let reader = ItemReader { table: TABLE, item };
    let optional = |name| reader.optional_text(name).map(|it| it.map(str::to_owned));
    let created_at = reader.time("createdAt")?;
    Ok(ListedMap {
        debug_id: optional("debugId")?,
        release: optional("release")?,
        dist: optional("dist")?,
        url: reader.text("url")?.to_owned(),
        size: reader.count("size")?,
        created_at,
        last_used_at: created_at,
        map_key: reader.text("mapKey")?.to_owned(),
    })
}
