//! Which projects have rows to pack, in table `errors`.
//!
//! | pk | sk | item |
//! | --- | --- | --- |
//! | `packing-queue#SHARD` | `PROJECT` | when the project got events, and when it is looked at next |
//!
//! Who writes a row has seen the entry `wanted` in the twelve hours before, and an entry is removed
//! only when it was not wanted for 25: so none is missing of a project that has rows.

use std::time::Duration;

use futures_util::future::try_join_all;

use shared::dynamodb::StoreError;
use shared::dynamodb::item::{Item, ItemReader, key, n, s};
use shared::projects::project::ProjectId;
use shared::timestamp::Timestamp;

use super::ErrorStore;
use super::errors::TABLE;
use super::head::{count, head_key};
use crate::log::visit::SOON;

/// Over how many partitions the queue is spread: thousands of projects may enter it at once.
const QUEUE_SHARDS: u8 = 16;
/// How often an entry is wanted again.
const WANTED_AGAIN: Duration = Duration::from_hours(12);
/// How long nobody wants an entry that is removed.
const UNWANTED: Duration = Duration::from_hours(25);
/// How long after its first event a project is looked at first.
const FIRST_VISIT: Duration = Duration::from_mins(5);

/// A project in the queue.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct QueueEntry {
    /// The project.
    pub project: ProjectId,
    /// When it last was asked for.
    pub wanted: Timestamp,
    /// When it is looked at next.
    pub due: Timestamp,
    /// What is waiting to be packed.
    pub waiting: QueueBacklog,
}

/// An entry as it was found.
struct Found {
    entry: QueueEntry,
    /// Whether it is to be written anew.
    is_damaged: bool,
}

/// Rows of a project that are not packed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct QueueBacklog {
    /// Since when there are some at the earliest.
    pub since: Timestamp,
    /// How many there were when the project was last looked at.
    pub rows: u64,
}

impl ErrorStore<'_> {
    /// Makes sure that a project's log will be packed, by an `early` visit if there is one, and answers
    /// over how many partitions its rows are spread. To be called a minute before a row is written at the
    /// earliest.
    pub async fn enqueue_for_packing(
        self,
        project: ProjectId,
        early: Option<Timestamp>,
        now: Timestamp,
    ) -> Result<u8, StoreError> {
        let keys = vec![head_key(project), entry_key(project)];
        let waiting = QueueBacklog { since: now, rows: 0 };
        let (mut shards, mut entry) = (1, None::<Found>);
        for item in self.db.get_all(TABLE, keys).await? {
            if item.get("sk") == Some(&s("head")) {
                shards = self.shards_of_head(&item)?;
            } else {
                entry = Some(self.found_entry(project, &item, now)?);
            }
        }
        let is_fresh = |entry: &QueueEntry| {
            now < entry.wanted.plus(WANTED_AGAIN) && early.is_none_or(|early| entry.due <= early)
        };
        match entry {
            None => {
                let due = early.unwrap_or_else(|| now.plus(FIRST_VISIT));
                let entry = QueueEntry { project, wanted: now, due, waiting };
                // If somebody else was faster, theirs is as new.
                self.db.put_unless_there(TABLE, "pk", write_entry(&entry)).await?;
            }
            Some(found) if is_fresh(&found.entry) => {}
            Some(found) => {
                let due = early.map_or(found.entry.due, |early| found.entry.due.min(early));
                self.want_again(&found, due, now).await?;
            }
        }
        Ok(shards)
    }

    /// Makes sure that a project is in the queue, and is looked at once everything that was received
    /// before `now` can be packed. For an error that is about to be deleted: for hours from then on the
    /// project stays, and as long as something is to be removed.
    pub async fn want_removal(self, project: ProjectId, now: Timestamp) -> Result<(), StoreError> {
        let due = now.plus(SOON);
        let waiting = QueueBacklog { since: now, rows: 0 };
        let entry = QueueEntry { project, wanted: now, due, waiting };
        let mut found = Found { entry, is_damaged: false };
        if let Some(item) = self.db.get(TABLE, entry_key(project)).await? {
            found = self.found_entry(project, &item, now)?;
        }
        self.want_again(&found, found.entry.due.min(due), now).await
    }

    /// The entry of a project. One that is damaged is as if nobody had wanted it for long.
    fn found_entry(
        self,
        project: ProjectId,
        item: &Item,
        now: Timestamp,
    ) -> Result<Found, StoreError> {
        let read = self.db.unless_damaged(item, read_entry(item))?;
        let waiting = QueueBacklog { since: now, rows: 0 };
        let old = QueueEntry { project, wanted: now.minus(UNWANTED), due: now, waiting };
        Ok(Found { is_damaged: read.is_none(), entry: read.unwrap_or(old) })
    }

    async fn want_again(
        self,
        found: &Found,
        due: Timestamp,
        now: Timestamp,
    ) -> Result<(), StoreError> {
        let Found { entry, is_damaged } = found;
        let since = if *is_damaged {
            ":now REMOVE waitingRows"
        } else {
            "if_not_exists(waitingSince, :now)"
        };
        let update = self
            .db
            .update(TABLE, entry_key(entry.project))
            .update_expression(format!("SET wanted = :now, due = :due, waitingSince = {since}"))
            .expression_attribute_values(":due", n(due.as_millis()))
            .expression_attribute_values(":now", n(now.as_millis()));
        match self.db.write_if(update).await {
            // Others want it too, and for as long as this nobody removes it.
            Err(StoreError::Contended(_)) if now < entry.wanted.plus(WANTED_AGAIN * 2) => Ok(()),
            written => written.map(drop),
        }
    }

    /// All projects that have rows to pack, or had some lately.
    pub async fn list_packing_queue(self) -> Result<Vec<QueueEntry>, StoreError> {
        let shards = (0..QUEUE_SHARDS).map(|shard| async move {
            let mut items = self
                .db
                .query(TABLE)
                .consistent_read(true)
                .key_condition_expression("pk = :pk")
                .expression_attribute_values(":pk", s(queue_pk(shard)))
                .into_paginator()
                .items()
                .send();
            let mut entries = Vec::new();
            while let Some(item) = items.next().await {
                let item = item?;
                // One that is damaged must not keep all others from being packed.
                entries.extend(self.db.unless_damaged(&item, read_entry(&item))?);
            }
            Ok::<_, StoreError>(entries)
        });
        Ok(try_join_all(shards).await?.concat())
    }

    /// Sets when a project is looked at next.
    pub async fn postpone(
        self,
        entry: &QueueEntry,
        due: Timestamp,
        waiting: QueueBacklog,
    ) -> Result<(), StoreError> {
        let update = self
            .db
            .update(TABLE, entry_key(entry.project))
            // One that was removed stays removed.
            .condition_expression("attribute_exists(pk)")
            .update_expression("SET due = :due, waitingSince = :since, waitingRows = :rows")
            .expression_attribute_values(":due", n(due.as_millis()))
            .expression_attribute_values(":since", n(waiting.since.as_millis()))
            .expression_attribute_values(":rows", count(waiting.rows));
        self.db.write_if(update).await.map(drop)
    }

    /// Removes a project from the queue that had no rows at `now`, if nobody wants it.
    pub async fn leave_queue(self, entry: &QueueEntry) -> Result<(), StoreError> {
        let delete = self
            .db
            .delete(TABLE, entry_key(entry.project))
            .condition_expression("wanted = :wanted")
            .expression_attribute_values(":wanted", n(entry.wanted.as_millis()));
        self.db.write_if(delete).await.map(drop)
    }
}

impl QueueEntry {
    /// From when on a project without rows may leave the queue.
    pub fn may_leave(&self) -> Timestamp {
        self.wanted.plus(UNWANTED)
    }
}

fn queue_pk(shard: u8) -> String {
    format!("packing-queue#{shard:02}")
}

pub(super) fn entry_key(project: ProjectId) -> Item {
    let text = project.to_string();
    let last = text.bytes().next_back().map(char::from).and_then(|digit| digit.to_digit(16));
    let shard = u8::try_from(last.unwrap_or_default()).unwrap_or_default() % QUEUE_SHARDS;
    key(&queue_pk(shard), &text)
}

fn write_entry(entry: &QueueEntry) -> Item {
    let mut item = entry_key(entry.project);
    let times =
        [("wanted", entry.wanted), ("due", entry.due), ("waitingSince", entry.waiting.since)];
    item.extend(times.map(|(name, at)| (name.to_owned(), n(at.as_millis()))));
    item
}

fn read_entry(item: &Item) -> Result<QueueEntry, StoreError> {
    let reader = ItemReader { table: TABLE, item };
    Ok(QueueEntry {
        project: reader.parsed("sk", ProjectId::parse)?,
        wanted: reader.millis("wanted")?,
        due: reader.millis("due")?,
        waiting: QueueBacklog {
            since: reader.millis("waitingSince")?,
            rows: reader.optional_count("waitingRows")?.unwrap_or_default(),
        },
    })
}
