//! Reading what a query counts, in table `errors`: as little of it as tells the answer, and no more at
//! once than fits into memory.

use std::collections::HashMap;
use std::time::Duration;

use futures_util::stream::{self, StreamExt, TryStreamExt};

use crate::dynamodb::{Store, StoreError};
use crate::error_tracking::ErrorRecord;
use crate::error_tracking::log::day::{Day, Hours};
use crate::error_tracking::log::manifest::{Manifest, Run};
use crate::error_tracking::log::row::Fingerprint;
use crate::error_tracking::log::run::{Base, ColumnName, Columns, Decoder};
use crate::error_tracking::log::visit::GRACE;
use crate::error_tracking::query::count::{CountedErrors, Counter, RowCounts};
use crate::error_tracking::query::day_plan::{Demand, RunPlan};
use crate::error_tracking::query::search::SearchedError;
use crate::error_tracking::query::timeseries::TimeseriesQuery;
use crate::projects::project::ProjectId;
use crate::timestamp::Timestamp;

use super::columns::WantedColumns;
use super::events::EVENT_RETENTION;
use super::head::LogHead;
use super::packing::{NewErrorId, PackingLimits, damaged};
use super::rows::{PAGE_ROWS, RowRange};

/// The events of the runs that are in memory at once, and as many are being read meanwhile.
const WINDOW_EVENTS: u64 = 1_000_000;
/// The most runs of them.
const WINDOW_RUNS: usize = 400;
/// How many rows a query may meet that could have been packed before it packs some: the schedule does
/// the rest.
const MANY_ROWS: usize = 5_000;
/// How long it takes for that, at most.
const PACKING_BUDGET: Duration = Duration::from_secs(3);
/// How often a log is read again because it was packed and merged in between.
const MAX_ROUNDS: usize = 8;

/// What is known of the events of an error.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Activity {
    /// How many can still be listed.
    pub events: u64,
    /// When the latest of these occurred.
    pub latest: Option<Timestamp>,
}

/// What was read of a project to answer a query, and what is still to be read.
pub struct ProjectEvents<'s> {
    store: &'s Store,
    project: ProjectId,
    demand: Demand<'s>,
    errors: CountedErrors,
    rows: RowCounts,
    first: Vec<LoadedRun>,
    windows: Vec<Vec<PlannedRun>>,
}

/// A run, and what a query needs of it.
struct PlannedRun {
    day: Day,
    run: Run,
    plan: RunPlan,
}

/// A run, and the columns of it that a query needs.
struct LoadedRun {
    planned: PlannedRun,
    columns: Columns,
}

impl ProjectEvents<'_> {
    /// Counts what was read, and reads what is left.
    pub async fn count(mut self, counter: &mut Counter<'_>) -> Result<(), StoreError> {
        let (store, project, demand) = (self.store, self.project, self.demand);
        let reads: Vec<_> = std::mem::take(&mut self.windows)
            .into_iter()
            .map(|window| {
                store.load(project, window, |run| demand.columns(run.day, run.plan.columns))
            })
            .collect();
        let mut reads = stream::iter(reads).buffered(2);
        count_window(counter, &mut self.errors, &mut self.rows, &self.first)?;
        self.first.clear();
        while let Some(window) = reads.try_next().await? {
            count_window(counter, &mut self.errors, &mut self.rows, &window)?;
        }
        // Days that have rows only.
        for (day, rows) in self.rows.into_days() {
            counter.day(&mut self.errors, day).add_rows(rows);
        }
        Ok(())
    }
}

/// Counts runs, all of each day together, and the rows of these days.
fn count_window(
    counter: &mut Counter<'_>,
    errors: &mut CountedErrors,
    rows: &mut RowCounts,
    window: &[LoadedRun],
) -> Result<(), StoreError> {
    for runs in window.chunk_by(|one, other| one.planned.day == other.planned.day) {
        let Some(day) = runs.first().map(|run| run.planned.day) else { continue };
        let mut counting = counter.day(errors, day);
        for LoadedRun { planned, columns } in runs {
            counting.add_totals(planned.plan.totals, &planned.run.totals);
            if !planned.plan.columns.is_empty() {
                counting.add_run(planned.plan.columns, columns).map_err(|_| damaged())?;
            }
        }
        counting.add_rows(rows.take_day(day));
    }
    Ok(())
}

/// Runs in parts that are in memory together: days are never divided.
fn windows(runs: Vec<PlannedRun>) -> Vec<Vec<PlannedRun>> {
    let mut windows: Vec<Vec<PlannedRun>> = Vec::new();
    let mut events = 0;
    for run in runs {
        let is_read = !run.plan.columns.is_empty();
        let more = if is_read { run.run.events() } else { 0 };
        match windows.last_mut() {
            Some(window)
                if window.last().is_some_and(|last| last.day == run.day)
                    || events + more <= WINDOW_EVENTS && window.len() < WINDOW_RUNS =>
            {
                events += more;
                window.push(run);
            }
            _ => {
                events = more;
                windows.push(vec![run]);
            }
        }
    }
    windows
}

impl Store {
    /// Reads what a query counts of a project. Strongly consistent, but for runs, which never change:
    /// what was acknowledged is counted.
    pub async fn read_project_events<'s>(
        &'s self,
        project: ProjectId,
        query: &'s TimeseriesQuery,
        new_error_id: NewErrorId<'_>,
        now: Timestamp,
    ) -> Result<ProjectEvents<'s>, StoreError> {
        let range = &query.range;
        let every_fingerprint_counts = query.status.is_none() && query.search.matches_every_error();
        let demand = Demand { range, filters: &query.event_filters, every_fingerprint_counts };
        let mut events = ProjectEvents {
            store: self,
            project,
            demand,
            errors: CountedErrors::default(),
            rows: RowCounts::default(),
            first: Vec::new(),
            windows: Vec::new(),
        };
        let (Some(first), Some(last)) = (range.days().next(), range.days().last()) else {
            return Ok(events);
        };
        for _ in 0..MAX_ROUNDS {
            let head = self.find_log_head(project).await?;
            let read_rows = async {
                let mut errors = CountedErrors::default();
                if !every_fingerprint_counts {
                    let wanted = |error: &ErrorRecord| is_wanted(error, query);
                    errors = CountedErrors::only(self.find_errors_that(project, wanted).await?);
                }
                let (rows, packable) =
                    self.count_rows(project, &head, &demand, &mut errors, now).await?;
                Ok::<_, StoreError>((errors, rows, packable))
            };
            let (manifests, (errors, rows, packable)) =
                tokio::try_join!(self.list_manifests(project, first, last, now), read_rows)?;
            let Some(manifests) = readable(manifests, &head) else { continue };
            if packable > MANY_ROWS {
                let limits =
                    PackingLimits { rows: MANY_ROWS, waits: false, ..PackingLimits::default() };
                let packing = self.pack_step(project, &limits, new_error_id, now);
                // What is not packed in time is counted from rows, as it was now.
                let _ = tokio::time::timeout(PACKING_BUDGET, packing).await;
            }
            (events.errors, events.rows) = (errors, rows);
            let mut windows = windows(plan(&demand, manifests, &events.rows)).into_iter();
            if let Some(window) = windows.next() {
                let columns = |run: &PlannedRun| demand.columns(run.day, run.plan.columns);
                events.first = self.load(project, window, columns).await?;
            }
            events.windows = windows.collect();
            return Ok(events);
        }
        Err(StoreError::Contended("the log kept being packed".into()))
    }

    /// Counts the rows of a log that readers count as rows. Answers also how many of them could have
    /// been packed.
    async fn count_rows(
        &self,
        project: ProjectId,
        head: &LogHead,
        demand: &Demand<'_>,
        errors: &mut CountedErrors,
        now: Timestamp,
    ) -> Result<(RowCounts, usize), StoreError> {
        let (mut counts, mut packable) = (RowCounts::default(), 0);
        let closed = now.minus(GRACE);
        let range = readable_rows(project, head, now);
        let mut pages = Box::pin(self.row_pages(&range));
        while let Some(rows) = pages.try_next().await? {
            for row in rows {
                packable += usize::from(row.received_at().is_some_and(|at| at < closed));
                counts.add(&row.row, demand.range, demand.filters, errors);
            }
        }
        Ok((counts, packable))
    }

    /// Reads the columns of runs that are wanted of each.
    async fn load(
        &self,
        project: ProjectId,
        runs: Vec<PlannedRun>,
        names: impl Fn(&PlannedRun) -> Vec<ColumnName>,
    ) -> Result<Vec<LoadedRun>, StoreError> {
        let wanted = runs.iter().map(|run| {
            let names = if run.plan.columns.is_empty() { Vec::new() } else { names(run) };
            WantedColumns { day: run.day, run: &run.run, names }
        });
        let columns = self.read_columns(project, &wanted.collect::<Vec<_>>()).await?;
        let loaded = runs.into_iter().zip(columns);
        Ok(loaded.map(|(planned, columns)| LoadedRun { planned, columns }).collect())
    }

    /// What is known of the events of an error.
    pub async fn find_activity(
        &self,
        project: ProjectId,
        error: &ErrorRecord,
        now: Timestamp,
    ) -> Result<Activity, StoreError> {
        let fingerprint = error.description.fingerprint;
        let (counts, latest) = tokio::try_join!(
            self.count_events_by_error(project, now),
            self.latest_events(project, std::iter::once(fingerprint), now)
        )?;
        Ok(Activity {
            events: counts.get(&fingerprint).copied().unwrap_or_default(),
            latest: latest.get(&fingerprint).copied(),
        })
    }

    /// How many events each error of a project has that can still be listed.
    pub async fn count_events_by_error(
        &self,
        project: ProjectId,
        now: Timestamp,
    ) -> Result<HashMap<Fingerprint, u64>, StoreError> {
        let (first, last) = (Day::of(now.minus(EVENT_RETENTION)), Day::of(now).next());
        for _ in 0..MAX_ROUNDS {
            let mut counts = HashMap::new();
            let head = self.find_log_head(project).await?;
            let (manifests, ()) = tokio::try_join!(
                self.list_manifests(project, first, last, now),
                self.count_rows_by_error(project, &head, &mut counts, now)
            )?;
            let Some(manifests) = readable(manifests, &head) else { continue };
            let plan = RunPlan { totals: Hours::NONE, columns: Hours::ALL };
            let planned = manifests.into_iter().flat_map(|manifest| {
                let day = manifest.day;
                manifest.runs.into_iter().map(move |run| PlannedRun { day, run, plan })
            });
            let reads: Vec<_> = windows(planned.collect())
                .into_iter()
                .map(|window| self.load(project, window, |_| vec![ColumnName::Base]))
                .collect();
            let mut reads = stream::iter(reads).buffered(2);
            let mut decoder = Decoder::new();
            while let Some(window) = reads.try_next().await? {
                for run in window {
                    let base = run.columns.get(ColumnName::Base).map_err(|_| damaged())?;
                    let base = Base::decode(&mut decoder, base).map_err(|_| damaged())?;
                    for (fingerprint, events) in base.events_by_fingerprint(Hours::ALL) {
                        *counts.entry(fingerprint).or_default() += events;
                    }
                }
            }
            return Ok(counts);
        }
        Err(StoreError::Contended("the log kept being packed".into()))
    }

    async fn count_rows_by_error(
        &self,
        project: ProjectId,
        head: &LogHead,
        counts: &mut HashMap<Fingerprint, u64>,
        now: Timestamp,
    ) -> Result<(), StoreError> {
        let range = readable_rows(project, head, now);
        let mut pages = Box::pin(self.row_pages(&range));
        while let Some(rows) = pages.try_next().await? {
            for row in rows {
                *counts.entry(row.row.fingerprint).or_default() += 1;
            }
        }
        Ok(())
    }
}

/// The rows that readers of a head count, since no run that they count has them.
fn readable_rows(project: ProjectId, head: &LogHead, now: Timestamp) -> RowRange<'_> {
    RowRange { project, shards: head.shards, from: &head.readable, to: None, page: PAGE_ROWS, now }
}

/// The manifests with the runs that readers of a head count; `None` if the head is too old for them:
/// some of what was rows then was merged with what was not.
fn readable(mut manifests: Vec<Manifest>, head: &LogHead) -> Option<Vec<Manifest>> {
    let readable = head.readable_steps;
    let is_mixed = |run: &Run| run.first_step <= readable && readable < run.last_step;
    if manifests.iter().flat_map(|manifest| &manifest.runs).any(is_mixed) {
        return None;
    }
    for manifest in &mut manifests {
        manifest.runs.retain(|run| run.last_step <= readable);
    }
    Some(manifests)
}

/// What a query needs of each run.
fn plan(demand: &Demand<'_>, manifests: Vec<Manifest>, rows: &RowCounts) -> Vec<PlannedRun> {
    let mut planned = Vec::new();
    for Manifest { day, runs, .. } in manifests {
        let totals: Vec<_> = runs.iter().map(|run| &run.totals).collect();
        let plans = demand.plan(day, &totals, rows.hours_of(day));
        let of_day = runs.into_iter().zip(plans).filter(|(_, plan)| !plan.is_empty());
        planned.extend(of_day.map(|(run, plan)| PlannedRun { day, run, plan }));
    }
    planned
}

fn is_wanted(error: &ErrorRecord, query: &TimeseriesQuery) -> bool {
    let description = &error.description;
    query.status.is_none_or(|status| status == error.status)
        && query.search.matches(&SearchedError {
            error_type: &description.error_type,
            message: &description.message,
            title: &description.title,
            culprit: &description.culprit,
        })
}
