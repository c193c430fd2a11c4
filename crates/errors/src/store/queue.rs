//! The queue of projects that have rows to pack, in table `errors`.
//!
//! | pk | sk | item |
//! | --- | --- | --- |
//! | `packing-queue#SHARD` | `PROJECT` | when the project got events, and the next check |
//!
//! When a row is written, its project's entry has a `wanted` time of the last twelve hours. An
//! entry is removed only once that time is 25 hours old. So every project with rows has an entry.

use std::time::Duration;

use futures_util::future::try_join_all;

use shared::dynamodb::StoreError;
use shared::dynamodb::item::{Item, ItemReader, count, key, n, s};
use shared::projects::project::ProjectId;
use shared::timestamp::Timestamp;

use super::ErrorStore;
use super::errors::TABLE;
use super::head::head_key;
use super::tags::keys_key;
use crate::log::pack_schedule::SOON;
use crate::tag::TagKey;

/// Number of partitions of the queue: thousands of projects can enter it concurrently.
const QUEUE_SHARDS: u8 = 16;
/// Maximum age of an entry's `wanted` time before the next event refreshes it.
const REFRESH_INTERVAL: Duration = Duration::from_hours(12);
/// Minimum age of the `wanted` time of an entry that is removed.
const IDLE_RETENTION: Duration = Duration::from_hours(25);
/// Delay between the first event of a project and its first check.
const FIRST_CHECK_DELAY: Duration = Duration::from_mins(5);

/// A project in the queue.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct QueueEntry {
    /// The project.
    pub project: ProjectId,
    /// The time of the last refresh by an event or deletion.
    pub wanted: Timestamp,
    /// The time of the next check.
    pub due: Timestamp,
    /// The rows that wait to be packed.
    pub waiting: QueueBacklog,
}

/// The part of a project's log that writers of rows need.
#[derive(Debug, Clone)]
pub struct OpenLog {
    /// The number of partitions of its rows.
    pub shards: u8,
    /// The keys of tags that are categories.
    pub tags: Vec<TagKey>,
}

/// A stored entry, or its replacement if it is damaged.
struct Found {
    entry: QueueEntry,
    /// `true` if the stored entry is damaged and must be rewritten.
    is_damaged: bool,
}

/// The unpacked rows of a project.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct QueueBacklog {
    /// The earliest time from which rows wait.
    pub since: Timestamp,
    /// The number of rows at the last check.
    pub rows: u64,
}

impl ErrorStore<'_> {
    /// Makes sure that a project is queued for packing, with a check no later than `early` if
    /// given. Call it at most a minute before writing a row.
    pub async fn enqueue_for_packing(
        self,
        project: ProjectId,
        early: Option<Timestamp>,
        now: Timestamp,
    ) -> Result<OpenLog, StoreError> {
        let keys = vec![head_key(project), entry_key(project), keys_key(project)];
        let waiting = QueueBacklog { since: now, rows: 0 };
        let (mut log, mut entry) = (OpenLog { shards: 1, tags: Vec::new() }, None::<Found>);
        for item in self.db.get_all(TABLE, keys).await? {
            if item.get("sk") == Some(&s("head")) {
                log.shards = self.shards_of_head(&item)?;
            } else if item.get("sk") == Some(&s("keys")) {
                log.tags = self.read_tag_keys(&item)?;
            } else {
                entry = Some(self.found_entry(project, &item, now)?);
            }
        }
        let is_fresh = |entry: &QueueEntry| {
            now < entry.wanted.plus(REFRESH_INTERVAL)
                && early.is_none_or(|early| entry.due <= early)
        };
        match entry {
            None => {
                let due = early.unwrap_or_else(|| now.plus(FIRST_CHECK_DELAY));
                let entry = QueueEntry { project, wanted: now, due, waiting };
                // A concurrent request's entry is equally recent.
                self.db.put_unless_there(TABLE, "pk", write_entry(&entry)).await?;
            }
            Some(found) if is_fresh(&found.entry) => {}
            Some(found) => {
                let due = early.map_or(found.entry.due, |early| found.entry.due.min(early));
                self.refresh_entry(&found, due, now).await?;
            }
        }
        Ok(log)
    }

    /// Makes sure that a project is queued, with a check once all rows received before `now` can be
    /// packed. Call it before deleting an error: the project stays queued for hours, and until the
    /// error's events are removed.
    pub async fn want_removal(self, project: ProjectId, now: Timestamp) -> Result<(), StoreError> {
        let due = now.plus(SOON);
        let waiting = QueueBacklog { since: now, rows: 0 };
        let entry = QueueEntry { project, wanted: now, due, waiting };
        let mut found = Found { entry, is_damaged: false };
        if let Some(item) = self.db.get(TABLE, entry_key(project)).await? {
            found = self.found_entry(project, &item, now)?;
        }
        self.refresh_entry(&found, found.entry.due.min(due), now).await
    }

    /// Reads the entry of a project. A damaged entry is replaced by one last refreshed 25 hours
    /// ago.
    fn found_entry(
        self,
        project: ProjectId,
        item: &Item,
        now: Timestamp,
    ) -> Result<Found, StoreError> {
        let read = self.db.unless_damaged(item, read_entry(item))?;
        let waiting = QueueBacklog { since: now, rows: 0 };
        let old = QueueEntry { project, wanted: now.minus(IDLE_RETENTION), due: now, waiting };
        Ok(Found { is_damaged: read.is_none(), entry: read.unwrap_or(old) })
    }

    async fn refresh_entry(
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
            // Concurrent requests refresh the entry, and it is not removed for another hour at
            // least.
            Err(StoreError::Contended(_)) if now < entry.wanted.plus(REFRESH_INTERVAL * 2) => {
                Ok(())
            }
            written => written.map(drop),
        }
    }

    /// Returns all projects that have rows to pack, or recently had some.
    pub async fn list_packing_queue(self) -> Result<Vec<QueueEntry>, StoreError> {
        let shards = (0..QUEUE_SHARDS).map(|shard| async move {
            let items = self.db.all(self.db.partition(TABLE, queue_pk(shard))).await?;
            // A damaged entry must not block the packing of other projects.
            self.db.undamaged::<_, Vec<_>>(&items, read_entry)
        });
        Ok(try_join_all(shards).await?.concat())
    }

    /// Sets the next check of a project.
    pub async fn postpone(
        self,
        entry: &QueueEntry,
        due: Timestamp,
        waiting: QueueBacklog,
    ) -> Result<(), StoreError> {
        let update = self
            .db
            .update(TABLE, entry_key(entry.project))
            // Do not recreate an entry that was removed.
            .condition_expression("attribute_exists(pk)")
            .update_expression("SET due = :due, waitingSince = :since, waitingRows = :rows")
            .expression_attribute_values(":due", n(due.as_millis()))
            .expression_attribute_values(":since", n(waiting.since.as_millis()))
            .expression_attribute_values(":rows", count(waiting.rows));
        self.db.write_if(update).await.map(drop)
    }

    /// Removes a project without rows from the queue, unless its entry was refreshed since it was
    /// read.
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
    /// Returns the time from which a project without rows can leave the queue.
    pub fn may_leave(&self) -> Timestamp {
        self.wanted.plus(IDLE_RETENTION)
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
