//! Removal of maps, and the erasure of a project, by the list of maps to look at: those that can have
//! expired, and pieces to remove.
//!
//! Each map has an entry from before its pieces are written until they are removed. So no crash
//! leaves pieces that no entry names. The first entry is due after an hour. If the map is published
//! then, the next entry is due when the map expires.

use std::collections::BTreeSet;
use std::time::Duration;

use aws_sdk_dynamodb::types::TransactWriteItem;
use serde::{Deserialize, Serialize};
use shared::dynamodb::item::{Item, ItemReader, item_at, key, n, s, time_key};
use shared::dynamodb::transaction::Transaction;
use shared::dynamodb::{StoreError, Sweep};
use shared::projects::project::ProjectId;
use shared::timestamp::Timestamp;
use uuid::Uuid;

use super::bundles::chunk_key;
use super::{
    BUNDLES, BundleRecord, FAILURES, Lookup, MAPS, ProjectMaps, SourceMapStore, TABLE, json,
    read_json,
};
use crate::MapKey;
use crate::bundle::Checksum;

/// Time that a map is kept after its last use.
const RETENTION: Duration = Duration::from_hours(180 * 24);
/// Time after which the pieces of a map that was not published are removed. An assembly takes at
/// most minutes.
pub(super) const UNPUBLISHED: Duration = Duration::from_hours(1);

const PK: &str = "due";
/// Entries that are read at once.
const ENTRIES_AT_ONCE: i32 = 100;
/// Items of another list that are erased per step.
const ITEMS_AT_ONCE: i32 = 25;

/// An entry of the list.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct DueMap {
    /// The project.
    pub project: ProjectId,
    pub(super) map_id: Uuid,
    pub(super) map_key: MapKey,
    pub(super) pieces: usize,
    pub(super) at: Timestamp,
}

impl DueMap {
    fn key(&self) -> Item {
        key(PK, &format!("{}#{}#{}", time_key(self.at), self.project, self.map_id))
    }

    pub(super) fn item(&self) -> Result<Item, StoreError> {
        Ok(item_at(self.key(), [("project", s(self.project)), ("entry", json(self)?)]))
    }
}

impl SourceMapStore<'_> {
    /// Returns entries that are due, the oldest first.
    pub async fn list_due(self, now: Timestamp) -> Result<Vec<DueMap>, StoreError> {
        let until = format!("{}#~", time_key(now));
        let query = self.db.partition(TABLE, PK);
        let query = query.key_condition_expression("pk = :pk AND sk <= :until");
        let query = query.expression_attribute_values(":until", s(until));
        let items = query.limit(ENTRIES_AT_ONCE).send().await?.items.unwrap_or_default();
        items.iter().map(|item| read_json(item, "entry")).collect()
    }
}

impl ProjectMaps<'_> {
    /// Returns some entries of the project.
    pub(super) async fn list_due(self) -> Result<Vec<DueMap>, StoreError> {
        let query = self
            .db
            .partition(TABLE, PK)
            .filter_expression("#project = :project")
            .expression_attribute_names("#project", "project")
            .expression_attribute_values(":project", s(self.project));
        let mut items = query.into_paginator().items().send();
        let mut found = Vec::new();
        while found.len() < ENTRIES_AT_ONCE.unsigned_abs() as usize
            && let Some(item) = items.next().await
        {
            found.push(read_json(&item?, "entry")?);
        }
        Ok(found)
    }

    /// Removes a due map, unless it was used in the meantime.
    pub async fn settle(self, due: &DueMap, now: Timestamp) -> Result<(), StoreError> {
        let current = self.find_lookups(&[&due.map_key].into()).await?.remove(&due.map_key);
        if let Some(current) = current.filter(|it| it.map_id == due.map_id) {
            let expires_at = current.last_used_at.plus(RETENTION);
            if expires_at > now {
                let later = DueMap { at: expires_at, ..due.clone() };
                // After a crash in between, the next run settles the old entry again.
                self.db.put_over(TABLE, later.item()?).await?;
                return self.db.delete_all(TABLE, vec![due.key()]).await;
            }
            if !self.remove(&current, Vec::new(), now).await? {
                // The map was used or replaced at this moment. The next run looks again.
                return Ok(());
            }
        }
        self.remove_pieces(due).await
    }

    /// Removes the pieces that an entry names, and then the entry.
    pub(super) async fn remove_pieces(self, due: &DueMap) -> Result<(), StoreError> {
        let keys = (0..due.pieces).map(|piece| self.piece_key(due.map_id, piece));
        self.db.delete_all(TABLE, keys.collect()).await?;
        self.db.delete_all(TABLE, vec![due.key()]).await
    }

    /// Removes a map from lookups and lists, and enters its pieces for removal. Returns `false` if
    /// the map was used or replaced in the meantime.
    pub(super) async fn remove(
        self,
        current: &Lookup,
        more: Vec<TransactWriteItem>,
        now: Timestamp,
    ) -> Result<bool, StoreError> {
        let mut tx = Transaction::from(more);
        let delete = self.db.delete(TABLE, self.lookup_key(&current.key));
        let delete = delete
            .condition_expression("mapId = :map AND lastUsedAt = :used")
            .expression_attribute_values(":map", s(current.map_id))
            .expression_attribute_values(":used", n(current.last_used_at.as_millis()));
        tx.add("lookup", delete)?;
        self.add_removal(&mut tx, current, now)?;
        tx.add("bundle", self.db.delete(TABLE, self.bundle_key(&current.bundle)))?;
        match self.db.commit_all(tx).await? {
            None => Ok(true),
            Some(cancelled) if cancelled.failed("lookup") => Ok(false),
            Some(cancelled) => Err(cancelled.into_error()),
        }
    }

    /// Adds the removal of a map's listing and pieces to a transaction.
    pub(super) fn add_removal(
        self,
        tx: &mut Transaction,
        current: &Lookup,
        now: Timestamp,
    ) -> Result<(), StoreError> {
        let due = DueMap {
            project: self.project,
            map_id: current.map_id,
            map_key: current.key.clone(),
            pieces: current.index.tables(),
            at: now,
        };
        tx.add("listing", self.db.delete(TABLE, key(&self.pk(MAPS), &current.listing)))?;
        tx.add("due", self.db.put(TABLE, due.item()?))
    }

    /// Ends the assembly of the project's bundles: removes them with their chunks. An invocation
    /// that assembles one cannot publish its maps any more. None are left if it removes nothing.
    pub async fn erase_bundles(self) -> Result<Sweep, StoreError> {
        let query = self.db.partition(TABLE, self.pk(BUNDLES)).limit(ITEMS_AT_ONCE);
        let items = query.send().await?.items.unwrap_or_default();
        let mut keys = Vec::new();
        for item in &items {
            let checksum = ItemReader { table: TABLE, item }.text("sk")?;
            keys.push(key(&self.pk(BUNDLES), checksum));
            keys.extend(Checksum::parse(checksum).map(|it| self.queue_key(&it)));
            // An unreadable bundle must not stop the erasure; its chunks expire within a day.
            if let Ok(BundleRecord { upload, .. }) = read_json(item, "bundle") {
                let chunks: BTreeSet<Checksum> = upload.chunks.into_iter().collect();
                let keys = chunks.iter().map(|it| chunk_key(&upload.organization, it)).collect();
                self.db.delete_all(TABLE, keys).await?;
            }
        }
        self.db.sweep_away(TABLE, keys, None).await
    }

    /// Removes some of the project's maps with their pieces, then failures. None are left if it
    /// removes nothing.
    pub async fn erase_maps(self) -> Result<Sweep, StoreError> {
        let due = self.list_due().await?;
        let mut removed = u64::try_from(due.len()).unwrap_or(u64::MAX);
        for entry in &due {
            self.db.delete_all(TABLE, vec![self.lookup_key(&entry.map_key)]).await?;
            self.remove_pieces(entry).await?;
        }
        for pk in [self.pk(MAPS), self.pk(FAILURES)] {
            let query = self.db.partition(TABLE, pk).projection_expression("pk, sk");
            let keys = query.limit(ITEMS_AT_ONCE).send().await?.items.unwrap_or_default();
            removed += self.db.sweep_away(TABLE, keys, None).await?.removed;
        }
        Ok(Sweep { removed, after: None })
    }
}
