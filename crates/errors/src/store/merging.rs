//! Merging runs of a day into fewer, so that queries read few items and each event takes few bytes.
//!
//! A merging is one conditional write of one manifest: whoever reads that sees the runs before or the
//! one after, and packing does not disturb it.

use std::time::Duration;

use shared::dynamodb::StoreError;
use shared::projects::project::ProjectId;
use shared::timestamp::Timestamp;

use super::ErrorStore;
use super::columns::WantedColumns;
use super::errors::TABLE;
use super::head::LogHead;
use super::manifest::{manifest_key, step_of};
use super::packing::{damaged, totals_of};
use crate::log::day::Day;
use crate::log::manifest::{CompactionLimits, Manifest, Run};
use crate::log::run::{ColumnName, CompactionError, DecodedRun, Decoder, merge};

/// How many days back events may come, and days be merged: the 30 of ingestion, and some for packing
/// that lags.
const DAYS_BACK: Duration = Duration::from_hours(24 * 33);
/// How long runs that were replaced are kept: who has read a manifest reads its runs within seconds.
const REPLACED_RETENTION: Duration = Duration::from_hours(1);

/// What became of merging runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum CompactionOutcome {
    /// One run is in their place, or none where nothing of them is left.
    Done,
    /// Somebody else has replaced one of them.
    Lost,
    /// Too many of them are damaged, or one run does not hold them.
    Skipped,
}

/// What runs are merged into.
#[derive(Debug, Clone, Copy)]
pub(super) struct Target {
    /// The day of their events.
    pub(super) day: Day,
    /// How often these were merged then.
    pub(super) level: u8,
}

/// The most runs that are deleted at once: DynamoDB takes 4 kB of an expression that names them.
const MOST_AT_ONCE: usize = 150;

impl ErrorStore<'_> {
    /// Merges runs of a project: as many as one merging takes, and perhaps some of further days. Removes
    /// some of what is left of deleted errors. Answers whether there may be more to do.
    pub async fn merge_step(
        self,
        project: ProjectId,
        limits: &CompactionLimits,
        now: Timestamp,
    ) -> Result<bool, StoreError> {
        let head = &self.find_log_head(project).await?;
        let (first, last) = (Day::of(now.minus(DAYS_BACK)), Day::of(now).next());
        let manifests = self.list_manifests(project, first, last).await?;
        // It makes room for what follows.
        for manifest in &manifests {
            self.delete_replaced(project, manifest, now).await?;
        }
        if self.remove_deleted(project, head, now).await? {
            return Ok(true);
        }
        let mut left = limits.events;
        for manifest in &manifests {
            for runs in manifest.next_mergings(head.readable_steps, limits, now) {
                let level = manifest.merged_level(&runs, now);
                let target = Target { day: manifest.day, level };
                let merging = self.merge_runs(project, head, &runs, &target, now).await?;
                if merging == CompactionOutcome::Skipped {
                    continue;
                }
                let events = runs.iter().map(|run| run.events()).sum::<u64>();
                left = left.saturating_sub(events.max(1));
                if left == 0 {
                    return Ok(true);
                }
                break;
            }
        }
        Ok(left < limits.events)
    }

    /// Puts one run in the place of some of a day, without what is deleted. Damaged runs stay as they
    /// are, and are in nobody's way.
    pub(super) async fn merge_runs(
        self,
        project: ProjectId,
        head: &LogHead,
        runs: &[&Run],
        target: &Target,
        now: Timestamp,
    ) -> Result<CompactionOutcome, StoreError> {
        let Target { day, level } = *target;
        let wanted = runs.len();
        let (runs, decoded) = self.read_whole_runs(project, day, runs).await?;
        // What is left of several is merged already.
        if runs.len() < wanted.min(2) {
            return Ok(CompactionOutcome::Skipped);
        }
        let is_hidden = |number: usize, fingerprint| {
            runs.get(number).is_some_and(|run| head.tombstones.hide_in_run(fingerprint, run))
        };
        let columns = match merge(&decoded, is_hidden) {
            Ok(columns) => columns,
            Err(CompactionError::TooLarge(_)) => return Ok(CompactionOutcome::Skipped),
            Err(CompactionError::Damaged(_)) => {
                let key = manifest_key(project, day, step_of(&runs));
                self.db.report_damaged(TABLE, &key, "bytes");
                return Ok(CompactionOutcome::Skipped);
            }
        };
        drop(decoded);
        let values = columns.values_bytes().map_err(|_| damaged())?;
        let totals = totals_of(&columns)?;
        let is_replaced = if totals.whole().events == 0 {
            self.replace_runs(project, day, &runs, None, now).await?
        } else {
            let (id, form, bytes) = self.put_columns(project, day, &columns).await?;
            let merged = Run {
                id,
                first_step: runs.iter().map(|run| run.first_step).min().unwrap_or_default(),
                last_step: runs.iter().map(|run| run.last_step).max().unwrap_or_default(),
                until: runs.iter().map(|run| run.until).max().unwrap_or(now),
                level,
                bytes,
                values,
                form,
                totals,
            };
            let is_replaced = self.replace_runs(project, day, &runs, Some(&merged), now).await?;
            if !is_replaced {
                // Nothing names what was written here.
                self.delete_columns(project, day, &[&merged]).await?;
            }
            is_replaced
        };
        Ok(if is_replaced { CompactionOutcome::Done } else { CompactionOutcome::Lost })
    }

    /// Those of some runs of a day of which all columns are there and can be read. The others are reported.
    async fn read_whole_runs<'m>(
        self,
        project: ProjectId,
        day: Day,
        runs: &[&'m Run],
    ) -> Result<(Vec<&'m Run>, Vec<DecodedRun>), StoreError> {
        let names: Vec<ColumnName> = ColumnName::all().collect();
        let wanted: Vec<WantedColumns<'_>> =
            runs.iter().map(|run| WantedColumns { day, run, names: &names }).collect();
        let columns = self.read_columns(project, &wanted).await?;
        let mut decoder = Decoder::new();
        let (mut whole, mut contents) = (Vec::new(), Vec::new());
        for (run, columns) in runs.iter().zip(columns) {
            let Some(columns) = columns else { continue };
            match DecodedRun::decode(&mut decoder, &columns) {
                Ok(content) => {
                    whole.push(*run);
                    contents.push(content);
                }
                Err(_) => self.report_damaged_run(project, day, run),
            }
        }
        Ok((whole, contents))
    }

    /// Deletes runs that were replaced so long ago that nobody reads them any more.
    async fn delete_replaced(
        self,
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
