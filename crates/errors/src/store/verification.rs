//! Looking once more for rows of a log that came later than they can, in table `errors`.
//!
//! | pk | sk | item |
//! | --- | --- | --- |
//! | `packed-rows#PROJECT` | `ID` | which of the latest rows a step of packing has found |
//!
//! A row that is written between rows which are packed is counted by nobody. None is, unless a clock is
//! wrong, or a function is frozen amid a write for longer than Lambda lets it. So what was received in the
//! last minutes before a step is read once more when these are long over, and rows that the step did not
//! find are packed then.

use std::collections::HashSet;
use std::time::Duration;

use aws_sdk_dynamodb::types::AttributeValue;
use futures_util::stream::TryStreamExt;
use sha2::{Digest, Sha256};

use shared::dynamodb::StoreError;
use shared::dynamodb::item::{Item, ItemReader, b, item, key, n, s};
use shared::projects::project::ProjectId;
use shared::timestamp::Timestamp;

use super::ErrorStore;
use super::errors::TABLE;
use super::head::{LogHead, LogPosition, count};
use super::rows::{LogRow, PAGE_ROWS, RowCategories, RowRange};
use crate::log::manifest::RunId;

/// How long after they were packed rows are looked for once more, and how long before they were packed
/// they were received.
const VERIFIED_AFTER: Duration = Duration::from_mins(10);
/// How long it is kept which rows a step has found.
const KEPT: Duration = Duration::from_hours(24 * 90);
/// The most steps that are looked at by one other: each reads its rows again.
const MOST_AT_ONCE: usize = 10;
/// The bytes that tell a row from others.
const HASH_BYTES: usize = 8;

/// Latest rows that a step of packing has found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct FoundRows {
    /// The step.
    pub(super) step: u64,
    /// Where they begin.
    pub(super) from: LogPosition,
    /// Where they end.
    pub(super) to: LogPosition,
    /// When they were read.
    pub(super) at: Timestamp,
    /// The item that tells which they are; `None` if there were none.
    pub(super) id: Option<RunId>,
}

/// What became of looking once more.
#[derive(Debug, Default)]
pub(super) struct Verified {
    /// The steps that need not be looked at again.
    pub(super) steps: Vec<u64>,
    /// Rows that the last of them did not find.
    pub(super) missed: Vec<LogRow>,
}

impl ErrorStore<'_> {
    /// Notes which of the rows of a step were received so short before it that others may still come
    /// between; `None` if none were.
    pub(super) async fn note_found(
        self,
        project: ProjectId,
        head: &LogHead,
        rows: &[LogRow],
        end: &LogPosition,
        now: Timestamp,
    ) -> Result<Option<FoundRows>, StoreError> {
        let from = LogPosition::before(now.minus(VERIFIED_AFTER)).max(head.watermark.clone());
        if *end <= from {
            return Ok(None);
        }
        let from_key = from.to_string();
        let hashes: Vec<u8> =
            rows.iter().filter(|row| row.sk >= from_key).flat_map(|row| hash(&row.sk)).collect();
        let id = (!hashes.is_empty()).then(RunId::random);
        if let Some(id) = id {
            let mut item = found_key(project, id);
            item.insert("hashes".to_owned(), b(&hashes));
            item.insert("expiresAt".to_owned(), n(now.plus(KEPT).as_seconds()));
            self.db.put_unless_there(TABLE, "pk", item).await?;
        }
        let step = head.steps.saturating_add(1);
        Ok(Some(FoundRows { step, from, to: end.clone(), at: now, id }))
    }

    /// What steps have found, of a head's attributes, the first step first. What cannot be read is left
    /// out: the rows of that step are not looked at once more.
    pub(super) fn read_found(self, head: &Item) -> Result<Vec<FoundRows>, StoreError> {
        let found = head.iter().filter(|(name, _)| name.starts_with(FOUND));
        let found = found.map(|(_, value)| self.db.unless_damaged(head, read_found_rows(value)));
        let mut found: Vec<FoundRows> =
            found.filter_map(Result::transpose).collect::<Result<_, _>>()?;
        found.sort_by_key(|found| found.step);
        Ok(found)
    }

    /// Looks for rows that steps some time ago have not found, step by step until there are some.
    pub(super) async fn verify_steps(
        self,
        project: ProjectId,
        head: &LogHead,
        now: Timestamp,
    ) -> Result<Verified, StoreError> {
        let mut verified = Verified::default();
        let old = |found: &&FoundRows| now >= found.at.plus(VERIFIED_AFTER);
        for found in head.found.iter().filter(old).take(MOST_AT_ONCE) {
            verified.missed = self.missed_rows(project, head, found, now).await?;
            verified.steps.push(found.step);
            if !verified.missed.is_empty() {
                break;
            }
        }
        Ok(verified)
    }

    /// The rows of an interval that its step has not found, in their order.
    async fn missed_rows(
        self,
        project: ProjectId,
        head: &LogHead,
        found: &FoundRows,
        now: Timestamp,
    ) -> Result<Vec<LogRow>, StoreError> {
        let mut known: HashSet<[u8; HASH_BYTES]> = HashSet::new();
        if let Some(id) = found.id {
            let Some(item) = self.db.get(TABLE, found_key(project, id)).await? else {
                return Ok(Vec::new());
            };
            let reader = ItemReader { table: TABLE, item: &item };
            let hashes = reader.blob("hashes").and_then(|bytes| match bytes.as_chunks() {
                (hashes, []) => Ok(hashes),
                _ => Err(reader.damaged("hashes")),
            });
            // What nobody can tell any more must not keep the log from being packed.
            let Some(hashes) = self.db.unless_damaged(&item, hashes)? else {
                return Ok(Vec::new());
            };
            known.extend(hashes);
        }
        let (from, to) = (&found.from, Some(&found.to));
        let range = RowRange {
            project,
            shards: head.shards,
            from,
            to,
            categories: RowCategories::All,
            page: PAGE_ROWS,
            now,
        };
        let mut pages = Box::pin(self.row_pages(&range));
        let mut missed = Vec::new();
        while let Some(rows) = pages.try_next().await? {
            missed.extend(rows.into_iter().filter(|row| !known.contains(&hash(&row.sk))));
        }
        missed.sort_unstable_by(|one: &LogRow, other| one.sk.cmp(&other.sk));
        Ok(missed)
    }
}

fn found_key(project: ProjectId, id: RunId) -> Item {
    key(&format!("packed-rows#{project}"), &id.to_string())
}

fn hash(sk: &str) -> [u8; HASH_BYTES] {
    let hash = Sha256::digest(sk.as_bytes());
    hash.first_chunk().copied().unwrap_or_default()
}

/// The attribute of the head that names what a step has found.
pub(super) fn found_attribute(step: u64) -> String {
    format!("{FOUND}{step}")
}

/// What such attributes begin with.
const FOUND: &str = "found_";

pub(super) fn write_found(found: &FoundRows) -> Item {
    let mut members = item([
        ("from", s(&found.from)),
        ("to", s(&found.to)),
        ("at", n(found.at.as_millis())),
        ("step", count(found.step)),
    ]);
    if let Some(id) = found.id {
        members.insert("id".to_owned(), s(id));
    }
    members
}

fn read_found_rows(value: &AttributeValue) -> Result<FoundRows, StoreError> {
    let damaged = |_| StoreError::Damaged { table: TABLE, attribute: FOUND };
    let reader = ItemReader { table: TABLE, item: value.as_m().map_err(damaged)? };
    Ok(FoundRows {
        step: reader.count("step")?,
        from: LogPosition::read(reader.text("from")?),
        to: LogPosition::read(reader.text("to")?),
        at: reader.millis("at")?,
        id: reader.optional_parsed("id", RunId::parse)?,
    })
}
