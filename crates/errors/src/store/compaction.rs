//! Compacts runs of a day into fewer, so queries read few items and each event takes few bytes.
//!
//! A compaction is one conditional write of one manifest. So readers see either the old runs or the
//! new one, and concurrent packing does not interfere.

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::time::Duration;

use shared::dynamodb::StoreError;
use shared::projects::project::ProjectId;
use shared::timestamp::Timestamp;

use super::ErrorStore;
use super::columns::ColumnRequest;
use super::head::LogHead;
use super::packing::Origin;
use crate::log::day::Day;
use crate::log::manifest::{CompactionLimits, Manifest, Run};
use crate::log::row::EventRow;
use crate::log::run::{ColumnName, pack, unpack};
use crate::tag::{MAX_TAG_KEYS, TagKey};

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

impl CompactionOutcome {
    fn of(is_replaced: bool) -> Self {
        if is_replaced { Self::Done } else { Self::Lost }
    }
}

/// The day and level of a compacted run.
#[derive(Debug, Clone, Copy)]
pub(super) struct Target {
    /// The day of the events.
    pub(super) day: Day,
    /// The number of compactions of the events.
    pub(super) level: u8,
}

/// Maximum tags of a compacted run, each of which takes memory for each event. A DSN holder can
/// replace the keys of a project many times a day.
const MAX_TAGS: usize = 2 * MAX_TAG_KEYS;
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
            for (level, runs) in manifest.next_compactions(head.readable_steps, limits, now) {
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
        let (runs, mut rows) = self.unpack_runs(project, head, day, runs).await?;
        // A single readable run of several needs no compaction.
        if runs.len() < requested.min(2) {
            return Ok(CompactionOutcome::Skipped);
        }
        if rows.is_empty() {
            let is_replaced = self.replace_runs(project, day, &runs, None, now).await?;
            return Ok(CompactionOutcome::of(is_replaced));
        }
        drop_rare_tags(&mut rows);
        let Ok(columns) = pack(day, &rows) else { return Ok(CompactionOutcome::Skipped) };
        drop(rows);
        let origin = Origin {
            first_step: runs.iter().map(|run| run.first_step).min().unwrap_or_default(),
            last_step: runs.iter().map(|run| run.last_step).max().unwrap_or_default(),
            until: runs.iter().map(|run| run.until).max().unwrap_or(now),
            level,
        };
        let merged = self.put_run(project, day, &columns, origin).await?;
        let is_replaced = self.replace_runs(project, day, &runs, Some(&merged), now).await?;
        if !is_replaced {
            // No manifest references the new columns.
            self.delete_columns(project, day, &[&merged]).await?;
        }
        Ok(CompactionOutcome::of(is_replaced))
    }

    /// Returns the runs whose columns are all readable, and their events that are not deleted.
    /// Reports the others.
    async fn unpack_runs<'m>(
        self,
        project: ProjectId,
        head: &LogHead,
        day: Day,
        runs: &[&'m Run],
    ) -> Result<(Vec<&'m Run>, Vec<EventRow>), StoreError> {
        let names: Vec<ColumnName> = ColumnName::all().collect();
        let requests: Vec<ColumnRequest<'_>> = runs
            .iter()
            .map(|run| ColumnRequest { day, run, names: &names, with_tags: true })
            .collect();
        let columns = self.read_columns(project, &requests).await?;
        let (mut whole, mut events) = (Vec::new(), Vec::new());
        for (run, columns) in runs.iter().zip(columns) {
            let Some(columns) = columns else { continue };
            if let Ok(mut rows) = unpack(day, &columns) {
                rows.retain(|row| !head.tombstones.hide_in_run(row.fingerprint, run));
                whole.push(*run);
                events.append(&mut rows);
            } else {
                self.report_damaged_run(project, day, run);
            }
        }
        Ok((whole, events))
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

/// Drops tags except the [`MAX_TAGS`] most frequent ones.
fn drop_rare_tags(rows: &mut [EventRow]) {
    let mut counts: BTreeMap<TagKey, usize> = BTreeMap::new();
    for (key, _) in rows.iter().flat_map(|row| row.attributes.tags()) {
        *counts.entry(key).or_default() += 1;
    }
    let mut ranked: Vec<TagKey> = counts.keys().copied().collect();
    ranked.sort_by_key(|key| Reverse(counts.get(key)));
    for key in ranked.iter().skip(MAX_TAGS) {
        for row in rows.iter_mut() {
            row.attributes.remove_tag(*key);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use crate::category::Attributes;
    use crate::grouping::Fingerprint;

    #[test]
    fn the_most_frequent_tags_stay() {
        let row = |number: usize| {
            let mut attributes = Attributes::default();
            let key = TagKey::parse(&format!("k{number:02}")).unwrap();
            attributes.set_tag(key, "x".to_owned());
            let occurred_at = Timestamp::from_millis(0);
            EventRow { occurred_at, fingerprint: Fingerprint([1; 16]), attributes }
        };
        // Two events have the keys from 30 to 49.
        let mut rows: Vec<EventRow> = (0..50).chain(30..60).map(row).collect();
        drop_rare_tags(&mut rows);
        let kept: BTreeSet<String> = rows
            .iter()
            .flat_map(|row| row.attributes.tags())
            .map(|(key, _)| key.to_string())
            .collect();
        let expected = (0..MAX_TAGS - 20).chain(30..50).map(|key| format!("k{key:02}"));
        assert_eq!(kept, expected.collect());
    }
}
