//! Merging runs of a day into fewer, so that queries read few items and each event takes few bytes.
//!
//! A merging is one conditional write of one manifest: whoever reads that sees the runs before or the
//! one after, and packing does not disturb it.

use std::time::Duration;

use crate::dynamodb::{Cause, Store, StoreError};
use crate::error_tracking::log::day::Day;
use crate::error_tracking::log::manifest::{Manifest, MergeLimits, Run};
use crate::error_tracking::log::run::{ColumnName, Columns, NotMergeable, merge};
use crate::projects::project::ProjectId;
use crate::timestamp::Timestamp;

use super::columns::WantedColumns;
use super::head::LogHead;
use super::manifest::manifest_key;
use super::packing::{damaged, totals_of};

/// How many days back events may come, and days be merged: the 30 of ingestion, and some for packing
/// that lags.
const DAYS_BACK: Duration = Duration::from_hours(24 * 33);
/// How long runs that were replaced are kept: who has read a manifest reads its runs within seconds.
const REPLACED_RETENTION: Duration = Duration::from_hours(1);

/// What became of merging runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Merging {
    /// One run is in their place, or none where nothing of them is left.
    Done,
    /// Somebody else has replaced one of them.
    Lost,
    /// One of them is damaged.
    Damaged,
}

/// The most runs that are deleted at once: DynamoDB takes 4 kB of an expression that names them.
const MOST_AT_ONCE: usize = 150;

impl Store {
    /// Merges runs of a project: as many as one merging takes, and perhaps some of further days. Removes
    /// some of what is left of deleted errors. Answers whether there may be more to do.
    pub async fn merge_step(
        &self,
        project: ProjectId,
        limits: &MergeLimits,
        now: Timestamp,
    ) -> Result<bool, StoreError> {
        let head = &self.find_log_head(project).await?;
        let has_deleted = self.remove_deleted(project, head, now).await?;
        let (first, last) = (Day::of(now.minus(DAYS_BACK)), Day::of(now).next());
        let mut left = limits.events;
        for manifest in self.list_manifests(project, first, last, now).await? {
            self.delete_replaced(project, &manifest, now).await?;
            let runs = manifest.next_merging(head.readable_steps, limits, now);
            if runs.is_empty() {
                continue;
            }
            let level = manifest.merged_level(&runs, now);
            let merging = self.merge_runs(project, head, manifest.day, &runs, level, now).await?;
            if merging == Merging::Damaged {
                continue;
            }
            let events = runs.iter().map(|run| run.events()).sum::<u64>();
            left = left.saturating_sub(events.max(1));
            if left == 0 {
                return Ok(true);
            }
        }
        Ok(has_deleted || left < limits.events)
    }

    /// Puts one run in the place of some of a day, without what is deleted. Damaged runs stay as they
    /// are, and are in nobody's way.
    pub(super) async fn merge_runs(
        &self,
        project: ProjectId,
        head: &LogHead,
        day: Day,
        runs: &[&Run],
        level: u8,
        now: Timestamp,
    ) -> Result<Merging, StoreError> {
        let replaced = self.replace_by_merged(project, head, day, runs, level, now).await;
        Ok(match self.unless_damaged(&manifest_key(project, day), replaced)? {
            Some(true) => Merging::Done,
            Some(false) => Merging::Lost,
            None => Merging::Damaged,
        })
    }

    /// Answers whether nobody else was faster.
    async fn replace_by_merged(
        &self,
        project: ProjectId,
        head: &LogHead,
        day: Day,
        runs: &[&Run],
        level: u8,
        now: Timestamp,
    ) -> Result<bool, StoreError> {
        let wanted: Vec<WantedColumns<'_>> = runs
            .iter()
            .map(|run| WantedColumns { day, run, names: ColumnName::all().collect() })
            .collect();
        let columns = self.read_columns(project, &wanted).await?;
        let columns: Option<Vec<Columns>> = columns.into_iter().collect();
        let columns = columns.ok_or_else(damaged)?;
        let cannot_be_merged = |error| match error {
            NotMergeable::Damaged(_) => damaged(),
            error @ NotMergeable::TooLarge(_) => {
                StoreError::Refused(Cause::of_step("runs cannot be merged", error))
            }
        };
        let is_hidden = |number: usize, fingerprint| {
            runs.get(number).is_some_and(|run| head.tombstones.hide_in_run(fingerprint, run))
        };
        let columns = merge(&columns, is_hidden).map_err(cannot_be_merged)?;
        let totals = totals_of(&columns)?;
        if totals.whole().events == 0 {
            return self.replace_runs(project, day, runs, None, now).await;
        }
        let (id, form, bytes) = self.put_columns(project, day, &columns).await?;
        let merged = Run {
            id,
            first_step: runs.iter().map(|run| run.first_step).min().unwrap_or_default(),
            last_step: runs.iter().map(|run| run.last_step).max().unwrap_or_default(),
            until: runs.iter().map(|run| run.until).max().unwrap_or(now),
            level,
            bytes,
            form,
            totals,
        };
        let is_replaced = self.replace_runs(project, day, runs, Some(&merged), now).await?;
        if !is_replaced {
            // Nothing names what was written here.
            self.delete_columns(project, day, &[&merged]).await?;
        }
        Ok(is_replaced)
    }

    /// Deletes runs that were replaced so long ago that nobody reads them any more.
    async fn delete_replaced(
        &self,
        project: ProjectId,
        manifest: &Manifest,
        now: Timestamp,
    ) -> Result<(), StoreError> {
        let is_old = |at: Timestamp| now >= at.plus(REPLACED_RETENTION);
        let old = manifest.replaced.iter().filter(|(_, at)| is_old(*at));
        let old: Vec<&Run> = old.map(|(run, _)| run).take(MOST_AT_ONCE).collect();
        if old.is_empty() {
            return Ok(());
        }
        self.delete_columns(project, manifest.day, &old).await?;
        self.forget_replaced(project, manifest.day, &old).await
    }
}
