//! The list of maps to look at: maps that can have expired, and pieces to remove.
//!
//! Each map has an entry from before its pieces are written until they are removed. So no crash
//! leaves pieces that no entry names. The first entry is due after an hour. If the map is published
//! then, the next entry is due when the map expires.

use std::time::Duration;

use aws_sdk_dynamodb::types::TransactWriteItem;
use serde::{Deserialize, Serialize};
use shared::dynamodb::StoreError;
use shared::dynamodb::item::{Item, ItemReader, item_at, key, n, s, time_key};
use shared::dynamodb::transaction::Transaction;
use shared::projects::project::ProjectId;
use shared::timestamp::Timestamp;
use uuid::Uuid;

use super::bundles::key_of;
use super::maps::Lookup;
use super::{SourceMapStore, TABLE, json, lookup_key, maps_pk, piece_key, read_json};
use crate::MapKey;

/// Time that a map is kept after its last use.
const RETENTION: Duration = Duration::from_hours(180 * 24);
/// Time after which the pieces of a map that was not published are removed. An assembly takes at
/// most minutes.
pub(super) const UNPUBLISHED: Duration = Duration::from_hours(1);

const PK: &str = "due";
/// Entries that are read at once.
const ENTRIES_AT_ONCE: i32 = 100;

/// An entry of the list.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct DueMap {
    pub(super) project: ProjectId,
    pub(super) map_id: Uuid,
    pub(super) map_key: MapKey,
    pub(super) pieces: usize,
    pub(super) at: Timestamp,
}

impl DueMap {
    pub(super) fn key(&self) -> Item {
        key(PK, &format!("{}#{}#{}", time_key(self.at), self.project, self.map_id))
    }

    pub(super) fn item(&self) -> Result<Item, StoreError> {
        Ok(item_at(self.key(), [("project", s(self.project)), ("entry", json(self)?)]))
    }

    fn read(item: &Item) -> Result<Self, StoreError> {
        read_json(ItemReader { table: TABLE, item }, "entry")
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
        items.iter().map(DueMap::read).collect()
    }

    /// Returns some entries of a project.
    pub(super) async fn list_due_of(self, project: ProjectId) -> Result<Vec<DueMap>, StoreError> {
        let query = self
            .db
            .partition(TABLE, PK)
            .filter_expression("#project = :project")
            .expression_attribute_names("#project", "project")
            .expression_attribute_values(":project", s(project));
        let mut items = query.into_paginator().items().send();
        let mut found = Vec::new();
        while found.len() < ENTRIES_AT_ONCE.unsigned_abs() as usize
            && let Some(item) = items.next().await
        {
            found.push(DueMap::read(&item?)?);
        }
        Ok(found)
    }

    /// Removes a due map, unless it was used in the meantime.
    pub async fn settle(self, due: &DueMap, now: Timestamp) -> Result<(), StoreError> {
        let current = self.find_lookup(due.project, &due.map_key).await?;
        if let Some(current) = current.filter(|it| it.map_id == due.map_id) {
            let expires_at = current.last_used_at.plus(RETENTION);
            if expires_at > now {
                let mut tx = Transaction::default();
                let later = DueMap { at: expires_at, ..due.clone() };
                tx.add("later", self.db.put(TABLE, later.item()?))?;
                tx.add("due", self.db.delete(TABLE, due.key()))?;
                return self.db.commit_all(tx).await.map(drop);
            }
            if !self.remove(due.project, &due.map_key, &current, Vec::new(), now).await? {
                // The map was used or replaced at this moment. The next run looks again.
                return Ok(());
            }
        }
        self.remove_pieces(due).await
    }

    /// Removes the pieces that an entry names, and then the entry.
    pub(super) async fn remove_pieces(self, due: &DueMap) -> Result<(), StoreError> {
        let keys = (0..due.pieces).map(|piece| piece_key(due.project, due.map_id, piece));
        self.db.delete_all(TABLE, keys.collect()).await?;
        self.db.delete_all(TABLE, vec![due.key()]).await
    }

    /// Removes a map from lookups and lists, and enters its pieces for removal. Returns `false` if
    /// the map was used or replaced in the meantime.
    pub(super) async fn remove(
        self,
        project: ProjectId,
        map_key: &MapKey,
        current: &Lookup,
        more: Vec<TransactWriteItem>,
        now: Timestamp,
    ) -> Result<bool, StoreError> {
        let mut tx = Transaction::from(more);
        let delete = self.db.delete(TABLE, lookup_key(project, map_key));
        let delete = delete
            .condition_expression("mapId = :map AND lastUsedAt = :used")
            .expression_attribute_values(":map", s(current.map_id))
            .expression_attribute_values(":used", n(current.last_used_at.as_millis()));
        tx.add("lookup", delete)?;
        self.add_removal(&mut tx, project, map_key, current, now)?;
        tx.add("bundle", self.db.delete(TABLE, key_of(project, &current.bundle)))?;
        let cancelled = self.db.commit_all(tx).await?;
        match cancelled {
            None => Ok(true),
            Some(cancelled) if cancelled.failed("lookup") => Ok(false),
            Some(cancelled) => Err(cancelled.into_error()),
        }
    }

    /// Adds the removal of a map's listing and pieces to a transaction.
    pub(super) fn add_removal(
        self,
        tx: &mut Transaction,
        project: ProjectId,
        map_key: &MapKey,
        current: &Lookup,
        now: Timestamp,
    ) -> Result<(), StoreError> {
        let due = DueMap {
            project,
            map_id: current.map_id,
            map_key: map_key.clone(),
            pieces: current.index.tables(),
            at: now,
        };
        tx.add("listing", self.db.delete(TABLE, key(&maps_pk(project), &current.listing)))?;
        tx.add("due", self.db.put(TABLE, due.item()?))
    }
}
