//! Merging runs of a day into fewer, so that queries read few items and each event takes few bytes.
//!
//! A merging is one conditional write of one manifest: whoever reads that sees the runs before or the
//! one after, and packing does not disturb it.

use std::time::Duration;

use crate::dynamodb::{Cause, Store, StoreError};
use crate::error_tracking::log::day::Day;
use crate::error_tracking::log::manifest::{Manifest, MergeLimits, Run};
use crate::error_tracking::log::run::{ColumnName, merge};
use crate::projects::project::ProjectId;
use crate::timestamp::Timestamp;

use super::columns::WantedColumns;
use super::packing::totals_of;

/// How many days back events may come, and days be merged: the 30 of ingestion, and some for packing
/// that lags.
const DAYS_BACK: Duration = Duration::from_hours(24 * 33);
/// How long runs that were replaced are kept: who has read a manifest reads its runs within seconds.
const REPLACED_RETENTION: Duration = Duration::from_hours(1);

/// The most runs that are deleted at once: DynamoDB takes 4 kB of an expression that names them.
const MOST_AT_ONCE: usize = 150;

impl Store {
    /// Merges runs of a project: as many as one merging takes, and perhaps some of further days.
    /// Answers whether there may be more to merge.
    pub async fn merge_step(
        &self,
        project: ProjectId,
        limits: &MergeLimits,
        now: Timestamp,
    ) -> Result<bool, StoreError> {
        let readable = self.find_log_head(project).await?.readable_steps;
        let (first, last) = (Day::of(now.minus(DAYS_BACK)), Day::of(now).next());
        let mut left = limits.events;
        for manifest in self.list_manifests(project, first, last, now).await? {
            self.delete_replaced(project, &manifest, now).await?;
            let runs = manifest.next_merging(readable, limits, now);
            if runs.is_empty() {
                continue;
            }
            self.merge_runs(project, &manifest, &runs, now).await?;
            let events = runs.iter().map(|run| run.events()).sum::<u64>();
            left = left.saturating_sub(events.max(1));
            if left == 0 {
                return Ok(true);
            }
        }
        Ok(left < limits.events)
    }

    async fn merge_runs(
        &self,
        project: ProjectId,
        manifest: &Manifest,
        runs: &[&Run],
        now: Timestamp,
    ) -> Result<(), StoreError> {
        let day = manifest.day;
        let wanted: Vec<WantedColumns<'_>> = runs
            .iter()
            .map(|run| WantedColumns { day, run, names: ColumnName::all().collect() })
            .collect();
        let columns = self.read_columns(project, &wanted).await?;
        let cannot_be_merged =
            |error| StoreError::Refused(Cause::of_step("runs cannot be merged", error));
        let columns = merge(&columns, |_, _| false).map_err(cannot_be_merged)?;
        let totals = totals_of(&columns)?;
        let (id, form, bytes) = self.put_columns(project, day, &columns).await?;
        let merged = Run {
            id,
            first_step: runs.iter().map(|run| run.first_step).min().unwrap_or_default(),
            last_step: runs.iter().map(|run| run.last_step).max().unwrap_or_default(),
            until: runs.iter().map(|run| run.until).max().unwrap_or(now),
            level: manifest.merged_level(runs, now),
            bytes,
            form,
            totals,
        };
        if !self.replace_runs(project, day, runs, Some(&merged), now).await? {
            // Somebody else merged some of them: nothing names what was written here.
            self.delete_columns(project, day, &[&merged]).await?;
        }
        Ok(())
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
