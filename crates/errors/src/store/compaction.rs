//! Compacts runs of a day into fewer, so queries read few items and each event takes few bytes.
//!
//! A compaction is one conditional write of one manifest. So readers see either the old runs or the
//! new one, and concurrent packing does not interfere.

use std::time::Duration;

use shared::dynamodb::StoreError;
use shared::projects::project::ProjectId;
use shared::timestamp::Timestamp;

use super::ErrorStore;
use super::columns::ColumnRequest;
use super::errors::TABLE;
use super::head::LogHead;
use super::manifest::{manifest_key, step_of};
use super::packing::{damaged, totals_of};
use crate::log::day::Day;
use crate::log::manifest::{CompactionLimits, Manifest, Run};
use crate::log::run::{ColumnName, CompactionError, DecodedRun, Decoder, merge};

/// Maximum age of days to compact: ingestion accepts events up to 30 days old, and packing can lag.
const DAYS_BACK: Duration = Duration::from_hours(24 * 33);
/// Retention of replaced runs: queries read the runs of a manifest within seconds.
const REPLACED_RETENTION: Duration = Duration::from_hours(1);

/// The outcome of a compaction.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum CompactionOutcome {
    /// One run replaced the runs, or none if no events are left.
    Done,
    /// A concurrent packer replaced one of the runs.
    Lost,
    /// Too many of the runs are damaged, or they do not fit into one run.
    Skipped,
}

/// The day and level of a compacted run.
#[derive(Debug, Clone, Copy)]
pub(super) struct Target {
    /// The day of the events.
    pub(super) day: Day,
    /// The number of compactions of the events.
    pub(super) level: u8,
}

/// Runs that one call deletes per manifest: an expression names each of them, and DynamoDB limits
/// it to 4 kB.
const MAX_DELETED_RUNS: usize = 150;

impl ErrorStore<'_> {
    /// Takes one step of removing events of deleted errors or, if there are none, of compaction.
    /// Compacts runs of one or more days with about `limits.events` events. Returns `true` if there
    /// can be more to do.
    pub async fn compact_step(
        self,
        project: ProjectId,
        limits: &CompactionLimits,
        now: Timestamp,
    ) -> Result<bool, StoreError> {
        let head = &self.find_log_head(project).await?;
        let (first, last) = (Day::of(now.minus(DAYS_BACK)), Day::of(now).next());
        let manifests = self.list_manifests(project, first, last).await?;
        // Free space in the manifests first.
        for manifest in &manifests {
            self.delete_replaced(project, manifest, now).await?;
        }
        if self.remove_deleted(project, head, now).await? {
            return Ok(true);
        }
        let mut left = limits.events;
        for manifest in &manifests {
            for runs in manifest.next_compactions(head.readable_steps, limits, now) {
                let level = manifest.compacted_level(&runs, now);
                let target = Target { day: manifest.day, level };
                let outcome = self.compact_runs(project, head, &runs, &target, now).await?;
                if outcome == CompactionOutcome::Skipped {
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

    /// Replaces runs of a day by one run without deleted events. Damaged runs stay unchanged.
    pub(super) async fn compact_runs(
        self,
        project: ProjectId,
        head: &LogHead,
        runs: &[&Run],
        target: &Target,
        now: Timestamp,
    ) -> Result<CompactionOutcome, StoreError> {
        let Target { day, level } = *target;
        let requested = runs.len();
        let (runs, decoded) = self.read_whole_runs(project, day, runs).await?;
        // A single readable run of several needs no compaction.
        if runs.len() < requested.min(2) {
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
                // No manifest references the new columns.
                self.delete_columns(project, day, &[&merged]).await?;
            }
            is_replaced
        };
        Ok(if is_replaced { CompactionOutcome::Done } else { CompactionOutcome::Lost })
    }

    /// Returns the runs whose columns are all readable, and their decoded columns. Reports the
    /// others.
    async fn read_whole_runs<'m>(
        self,
        project: ProjectId,
        day: Day,
        runs: &[&'m Run],
    ) -> Result<(Vec<&'m Run>, Vec<DecodedRun>), StoreError> {
        let names: Vec<ColumnName> = ColumnName::all().collect();
        let requests: Vec<ColumnRequest<'_>> = runs
            .iter()
            .map(|run| ColumnRequest { day, run, names: &names, with_tags: true })
            .collect();
        let columns = self.read_columns(project, &requests).await?;
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

    /// Deletes runs that were replaced so long ago that no query reads them any more.
    async fn delete_replaced(
        self,
        project: ProjectId,
        manifest: &Manifest,
        now: Timestamp,
    ) -> Result<(), StoreError> {
        let is_old = |at: Timestamp| now >= at.plus(REPLACED_RETENTION);
        let old = manifest.replaced.iter().filter(|(_, at)| is_old(*at));
        let old: Vec<&Run> = old.map(|(run, _)| run).take(MAX_DELETED_RUNS).collect();
        if old.is_empty() {
            return Ok(());
        }
        self.delete_columns(project, manifest.day, &old).await?;
        self.remove_replaced(project, manifest.day, &old).await
    }
}
