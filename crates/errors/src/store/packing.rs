//! Packs the rows of a log into runs.
//!
//! A packer first writes runs that no query counts yet. One transaction then adds them to the
//! manifests and moves the watermark. A last write makes the step readable, which switches counting
//! from the rows to the runs. If the packer dies before it, the next packer does this write. So
//! packers can run concurrently and can be killed at any point: a step applies completely or not at
//! all, and the next packer continues.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use futures_util::future::try_join_all;
use futures_util::stream::{self, StreamExt, TryStreamExt};

use shared::dynamodb::server_clock::clock_difference;
use shared::dynamodb::transaction::Transaction;
use shared::dynamodb::{Cause, StoreError};
use shared::page::PageRequest;
use shared::projects::project::ProjectId;
use shared::timestamp::Timestamp;

use super::ErrorStore;
use super::errors::{SeenEvent, TABLE};
use super::events::EventsOfError;
use super::fingerprints::fingerprint_key;
use super::head::{LogHead, LogPosition};
use super::rows::{LogRow, RowPage, RowRange};
use crate::grouping::Fingerprint;
use crate::ingestion::describe_stored_event;
use crate::log::day::Day;
use crate::log::manifest::{CompactionLimits, Run};
use crate::log::pack_schedule::{Backlog, GRACE};
use crate::log::row::EventRow;
use crate::log::run::{Base, ColumnName, Columns, Decoder, PackError, Totals, pack};
use crate::tag::{OTHER_TAGS_SAMPLE, TagKey};
use crate::{ErrorDescription, ErrorId, ErrorRecord};

/// Maximum difference between the clocks of a packer and of DynamoDB, which [`GRACE`] allows for.
const MAX_CLOCK_DIFFERENCE: Duration = Duration::from_secs(10);
/// Errors that are updated concurrently.
const ERRORS_AT_ONCE: usize = 8;
/// Maximum days of a step: one transaction updates all of their manifests.
const MAX_DAYS: usize = 60;

/// Limits of one pack step, which bound its memory and time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PackingLimits {
    /// Maximum rows.
    pub rows: usize,
    /// Maximum bytes of rows.
    pub bytes: usize,
    /// `true` if few rows stay unpacked until there are more, or they are a day old.
    pub waits: bool,
    /// Limits of compacted runs.
    pub compaction: CompactionLimits,
}

impl Default for PackingLimits {
    fn default() -> Self {
        let compaction = CompactionLimits::default();
        Self { rows: 20_000, bytes: 4_000_000, waits: true, compaction }
    }
}

/// Creates the IDs of errors that turn out to be missing.
pub type NewErrorId<'a> = &'a (dyn Fn() -> ErrorId + Sync);

/// The outcome of a pack step.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PackOutcome {
    /// There are no rows, or too few for a step.
    Left(Backlog),
    /// The rows are packed.
    Packed {
        /// The packed rows.
        backlog: Backlog,
        /// `true` if there can be more rows to pack.
        has_more: bool,
        /// A time by which all packed rows had been received.
        until: Timestamp,
    },
    /// Another packer works on the log concurrently.
    Lost,
    /// The project no longer exists.
    ProjectGone,
}

/// The events of a run: their pack steps, the time by which they had been received, and the number
/// of their compactions.
pub(super) struct Origin {
    pub(super) first_step: u64,
    pub(super) last_step: u64,
    pub(super) until: Timestamp,
    pub(super) level: u8,
}

/// Rows that are packed together.
struct Batch {
    rows: Vec<LogRow>,
    /// The end of the rows.
    end: LogPosition,
    /// `true` if more rows after them can be packed.
    has_more: bool,
}

impl Batch {
    fn backlog(&self) -> Backlog {
        Backlog {
            rows: self.rows.len(),
            bytes: self.rows.iter().map(LogRow::bytes).sum(),
            oldest: self.rows.first().map(|row| row.received_at),
            has_deletions: false,
        }
    }
}

impl ErrorStore<'_> {
    /// Packs as many rows of a project's log as fit into one step, if they are worth a step.
    pub async fn pack_step(
        self,
        project: ProjectId,
        limits: &PackingLimits,
        new_error_id: NewErrorId<'_>,
        now: Timestamp,
    ) -> Result<PackOutcome, StoreError> {
        // `now` precedes the read of the head: rows in shards that the head does not list yet are
        // later than the packed rows.
        let Some(head) = self.recover_log_head(project).await? else {
            return Ok(PackOutcome::Lost);
        };
        let difference = clock_difference();
        if difference > MAX_CLOCK_DIFFERENCE {
            let seconds = difference.as_secs();
            return Err(StoreError::Rejected(
                format!("the clock is {seconds} s from DynamoDB's: rows might be left out").into(),
            ));
        }
        // No step spans a deletion: all events of a run are from before it, or all from after it.
        let closed = now.minus(GRACE);
        let deletion = head.tombstones.first_between(head.watermark.time(), closed);
        let to = LogPosition::before(deletion.unwrap_or(closed));
        let batch = self.read_batch(project, &head, limits, to, now).await;
        if matches!(batch, Err(StoreError::Throttled { .. })) {
            self.add_log_shards(project, head.shards).await?;
        }
        let mut batch = batch?;
        let backlog = Backlog { has_deletions: !head.tombstones.0.is_empty(), ..batch.backlog() };
        let is_worth_it = match deletion {
            Some(_) => true,
            None if batch.rows.is_empty() => false,
            None => !limits.waits || backlog.is_worth_packing(now),
        };
        batch.has_more |= deletion.is_some();
        if !is_worth_it {
            return Ok(PackOutcome::Left(backlog));
        }
        batch.rows.retain(|row| !head.tombstones.hide_event(row.row.fingerprint, row.received_at));
        // Before the commit: the next packer does not read these rows.
        self.upsert_errors(project, &batch.rows, new_error_id, now).await?;
        let tags = events_by_tag(&batch.rows);
        let mut days: BTreeMap<Day, Vec<EventRow>> = BTreeMap::new();
        for LogRow { row, .. } in batch.rows {
            days.entry(Day::of(row.occurred_at)).or_default().push(row);
        }
        let mut runs = Vec::with_capacity(days.len());
        let number = head.steps.saturating_add(1);
        for (day, rows) in days {
            let columns = pack(day, &rows).map_err(cannot_be_packed)?;
            let until = batch.end.time();
            let origin = Origin { first_step: number, last_step: number, until, level: 0 };
            runs.push((day, self.put_run(project, day, &columns, origin).await?));
        }
        // No manifest references the columns of a failed or killed attempt: they expire.
        let failure = self.commit_step(project, &head, &batch.end, &runs).await?;
        if failure.is_none() && !tags.is_empty() {
            match self.rank_tag_keys(project, &tags, now).await {
                // Only the ranking lacks these events.
                Err(failure) if failure.may_pass() => {}
                ranked => ranked?,
            }
        }
        let until = batch.end.time();
        Ok(failure.unwrap_or(PackOutcome::Packed { backlog, has_more: batch.has_more, until }))
    }

    /// Adds events of a day that have no rows as a separate run, and returns its bytes. Use it to
    /// import events that were counted elsewhere. Not idempotent: events added twice count twice.
    pub async fn backfill_events(
        self,
        project: ProjectId,
        day: Day,
        rows: &[EventRow],
    ) -> Result<u64, StoreError> {
        let columns = pack(day, rows).map_err(cannot_be_packed)?;
        let until = LogPosition::start().time();
        let origin = Origin { first_step: 0, last_step: 0, until, level: 0 };
        let run = self.put_run(project, day, &columns, origin).await?;
        self.db.commit_all(vec![self.add_run(project, day, &run)?]).await?;
        Ok(run.bytes)
    }

    /// Finishes the last pack step and returns the head of the log. `None` if another packer is
    /// working on the log.
    async fn recover_log_head(self, project: ProjectId) -> Result<Option<LogHead>, StoreError> {
        let head = self.find_log_head(project).await?;
        if head.readable_steps == head.steps {
            return Ok(Some(head));
        }
        if !self.finish_step_of_others(project, &head).await? {
            return Ok(None);
        }
        let head = self.find_log_head(project).await?;
        Ok((head.readable_steps == head.steps).then_some(head))
    }

    /// Stores the columns of a run of a day. No manifest lists it yet.
    pub(super) async fn put_run(
        self,
        project: ProjectId,
        day: Day,
        columns: &Columns,
        origin: Origin,
    ) -> Result<Run, StoreError> {
        let totals = totals_of(columns)?;
        let values = columns.values_bytes().map_err(|_| damaged())?;
        let (id, form, bytes) = self.put_columns(project, day, columns).await?;
        let Origin { first_step, last_step, until, level } = origin;
        Ok(Run { id, first_step, last_step, until, level, bytes, values, form, totals })
    }

    /// Commits a step: from then on, its runs count instead of its rows. Returns the outcome of the
    /// step if the commit fails.
    async fn commit_step(
        self,
        project: ProjectId,
        head: &LogHead,
        end: &LogPosition,
        runs: &[(Day, Run)],
    ) -> Result<Option<PackOutcome>, StoreError> {
        let mut transaction = Transaction::default();
        transaction.add("watermark", self.move_watermark(project, head, end, runs)?)?;
        if head.steps == 0 {
            // A deleted project must not get a log again.
            transaction.add("project", self.db.check_project(project)?)?;
        }
        for (day, run) in runs {
            transaction.add("run", self.add_run(project, *day, run)?)?;
        }
        if let Some(cancelled) = self.db.commit_all(transaction).await? {
            let is_gone = cancelled.failed("project");
            return Ok(Some(if is_gone { PackOutcome::ProjectGone } else { PackOutcome::Lost }));
        }
        let head = LogHead { steps: head.steps.saturating_add(1), ..head.clone() };
        // If this fails, another packer has already finished the step.
        self.finish_step(project, &head).await?;
        Ok(None)
    }

    /// Returns the rows between the watermark and `to` in log order, as many as a step takes. No
    /// new rows arrive in this range.
    async fn read_batch(
        self,
        project: ProjectId,
        head: &LogHead,
        limits: &PackingLimits,
        to: LogPosition,
        now: Timestamp,
    ) -> Result<Batch, StoreError> {
        if to <= head.watermark {
            let end = head.watermark.clone();
            return Ok(Batch { rows: Vec::new(), end, has_more: false });
        }
        let page = limits.rows.div_ceil(usize::from(head.shards)).max(1);
        let range = RowRange {
            project,
            shards: head.shards,
            from: &head.watermark,
            to: Some(&to),
            categories: None,
            page,
            now,
        };
        let first = (0..head.shards).map(|shard| self.read_row_page(&range, shard, None));
        let mut shards: Vec<RowPage> = try_join_all(first).await?;
        // Rows are complete up to the smallest key that a shard was read to.
        let bound = loop {
            let unread =
                (0..).zip(&shards).filter_map(|(shard, page)| Some((page.next.clone()?, shard)));
            let Some((bound, shard)) = unread.min() else { break None };
            let complete = shards.iter().flat_map(|page| &page.rows).filter(|row| row.sk <= bound);
            let (rows, bytes) =
                complete.fold((0, 0), |(rows, bytes), row| (rows + 1, bytes + row.bytes()));
            if rows >= limits.rows || bytes >= limits.bytes {
                break Some(bound);
            }
            let next = self.read_row_page(&range, shard, Some(&bound)).await?;
            if let Some(page) = shards.get_mut(usize::from(shard)) {
                page.rows.extend(next.rows);
                page.next = next.next;
            }
        };
        let mut rows: Vec<LogRow> = shards.into_iter().flat_map(|page| page.rows).collect();
        if let Some(bound) = &bound {
            rows.retain(|row| row.sk <= *bound);
        }
        rows.sort_unstable_by(|one, other| one.sk.cmp(&other.sk));
        let fitting = fitting(&rows, limits);
        let end = if fitting < rows.len() {
            rows.truncate(fitting);
            rows.last().map(|row| LogPosition::after(&row.sk))
        } else {
            bound.map(|bound| LogPosition::after(&bound))
        };
        let has_more = end.is_some();
        Ok(Batch { rows, end: end.unwrap_or(to), has_more })
    }

    /// Stores when the errors of rows were last seen. Also finishes ingestion that was interrupted
    /// after it counted an event. Afterwards, each error exists, and is open if an event came after
    /// its resolution.
    async fn upsert_errors(
        self,
        project: ProjectId,
        rows: &[LogRow],
        new_error_id: NewErrorId<'_>,
        now: Timestamp,
    ) -> Result<(), StoreError> {
        let mut seen: BTreeMap<Fingerprint, SeenRows> = BTreeMap::new();
        for row in rows {
            let (at, received_at) = (row.row.occurred_at, row.received_at);
            let seen = seen.entry(row.row.fingerprint).or_insert(SeenRows {
                first: at,
                last: at,
                received_at,
            });
            seen.first = seen.first.min(at);
            seen.last = seen.last.max(at);
            seen.received_at = seen.received_at.max(received_at);
        }
        let known = self.find_errors_of(project, seen.keys().copied(), now).await?;
        let updates = seen.into_iter().map(|(fingerprint, rows)| {
            let error = known.get(&fingerprint);
            async move {
                let seen =
                    self.see_rows(project, fingerprint, error, rows, new_error_id, now).await;
                // A damaged error must not block the others.
                self.db.unless_damaged(&fingerprint_key(project, fingerprint), seen).map(drop)
            }
        });
        let updates: Vec<_> = updates.collect();
        stream::iter(updates).buffer_unordered(ERRORS_AT_ONCE).try_collect().await
    }

    async fn see_rows(
        self,
        project: ProjectId,
        fingerprint: Fingerprint,
        error: Option<&ErrorRecord>,
        rows: SeenRows,
        new_error_id: NewErrorId<'_>,
        now: Timestamp,
    ) -> Result<(), StoreError> {
        let SeenRows { first, last, received_at } = rows;
        let is_stored = |error: &ErrorRecord| {
            !error.is_changed_by(first, None) && error.has_seen(last, received_at)
        };
        if error.is_some_and(is_stored) {
            return Ok(());
        }
        let mut known = error.map(|error| error.id);
        let description = match error {
            Some(error) => Some(error.description.clone()),
            None => self.describe_error(project, fingerprint, now).await?,
        };
        let Some(description) = description else { return Ok(()) };
        for (occurred_at, is_packed) in [(first, false), (last, true)] {
            // Only ingestion knows releases, and reopens errors that are resolved in the next one.
            let release_seen = None;
            let seen = SeenEvent { occurred_at, received_at, release_seen, is_packed, now };
            known = self.see_error(project, known, &description, &seen, new_error_id()).await?;
        }
        Ok(())
    }

    /// Returns the description of an error, taken from one of its events.
    async fn describe_error(
        self,
        project: ProjectId,
        fingerprint: Fingerprint,
        now: Timestamp,
    ) -> Result<Option<ErrorDescription>, StoreError> {
        let one = PageRequest { limit: 1, after: None };
        let entry = self.find_fingerprint(project, fingerprint, now).await?;
        let shards = self.log_shards(project).await?;
        let of_error = EventsOfError { fingerprint, shards, since: entry.deleted_at };
        let events = self.list_error_events(project, &of_error, &one, now).await?;
        let Some(event) = events.items.first() else { return Ok(None) };
        // Use `fingerprint`: the event's own differs if it counts under the overflow error.
        Ok(describe_stored_event(event.event.get().as_bytes(), fingerprint))
    }
}

/// The rows of one error.
#[derive(Debug, Clone, Copy)]
struct SeenRows {
    first: Timestamp,
    last: Timestamp,
    /// The time of receipt of the last row.
    received_at: Timestamp,
}

/// Returns the number of events of each tag key. Keys that are not categories are in a sample of the rows.
fn events_by_tag(rows: &[LogRow]) -> BTreeMap<TagKey, u64> {
    let mut events = BTreeMap::new();
    for attributes in rows.iter().map(|row| &row.row.attributes) {
        let others = attributes.other_tags().iter().map(|key| (*key, OTHER_TAGS_SAMPLE));
        for (key, count) in attributes.tags().map(|(key, _)| (key, 1)).chain(others) {
            *events.entry(key).or_default() += u64::from(count);
        }
    }
    events
}

/// Returns how many of the sorted rows fit into a step, at least one.
fn fitting(rows: &[LogRow], limits: &PackingLimits) -> usize {
    let (mut bytes, mut days) = (0, BTreeSet::new());
    let fits = |(number, row): &(usize, &LogRow)| {
        bytes += row.bytes();
        days.insert(Day::of(row.row.occurred_at));
        *number == 0 || *number < limits.rows && bytes <= limits.bytes && days.len() <= MAX_DAYS
    };
    rows.iter().enumerate().take_while(fits).count()
}

pub(super) fn cannot_be_packed(error: PackError) -> StoreError {
    StoreError::Rejected(Cause::of_step("rows cannot be packed", error))
}

/// Returns the totals of a run.
pub(super) fn totals_of(columns: &Columns) -> Result<Totals, StoreError> {
    let base = columns.get(ColumnName::Base).map_err(|_| damaged())?;
    let base = Base::decode(&mut Decoder::new(), base).map_err(|_| damaged())?;
    Ok(base.totals())
}

fn damaged() -> StoreError {
    StoreError::Damaged { table: TABLE, attribute: "bytes" }
}
