//! Reads the events that a query counts, in table `errors`. Reads as little as the result needs, in
//! portions that fit into memory.

use std::ops::RangeInclusive;
use std::sync::Arc;
use std::time::{Duration, Instant};

use futures_util::stream::{self, StreamExt, TryStreamExt};

use shared::dynamodb::StoreError;
use shared::projects::project::ProjectId;
use shared::timestamp::Timestamp;

use super::ErrorStore;
use super::columns::{ColumnRequest, most_bytes_of};
use super::head::{LogHead, LogPosition};
use super::rows::{PAGE_ROWS, RowCategories, RowRange};
use crate::ErrorRecord;
use crate::attribute::Category;
use crate::log::day::Day;
use crate::log::manifest::{Manifest, Run};
use crate::log::run::{ColumnName, Columns};
use crate::log::tombstone::Tombstones;
use crate::query::count::CountedErrors;
use crate::query::day_plan::{Aggregation, QueryNeeds, RunPlan};
use crate::query::errors::{ErrorOutline, RankedError};
use crate::query::event_query::EventQuery;
use crate::query::search::SearchedError;
use crate::query::tally::{DayRun, RowTally, Tally};

/// Projects that are read concurrently, which bounds the memory of a query.
const PROJECTS_AT_ONCE: usize = 5;
/// Maximum events of the runs of a window. One window is in memory while two more are being read.
const WINDOW_EVENTS: u64 = 1_000_000;
/// Maximum runs of a window.
const WINDOW_RUNS: usize = 400;
/// Maximum bytes of the columns of a window, unless a single run has more. Equals the limit of a
/// compacted run.
const WINDOW_BYTES: u64 = 8_000_000;
/// Maximum attempts to read a log that is packed and compacted concurrently.
const MAX_ROUNDS: usize = 8;
/// Maximum age of a head when its runs and rows are read. The older a head, the more often its log
/// was packed, compacted or deleted from since.
const MAX_HEAD_AGE: Duration = Duration::from_secs(1);
/// Maximum time that an event can be received before it occurs, since clocks differ.
pub(super) const EARLIEST_RECEIPT: Duration = Duration::from_mins(5);

/// The data of a project for a query: what was read, and the windows still to read.
struct ProjectEvents<'s, R> {
    store: ErrorStore<'s>,
    project: ProjectId,
    errors: CountedErrors,
    outlines: Vec<ErrorOutline>,
    rows: R,
    tombstones: Tombstones,
    first: Vec<LoadedRun>,
    windows: Vec<Vec<PlannedRun>>,
}

/// A run and the parts of it that a query needs.
pub(super) struct PlannedRun {
    pub(super) day: Day,
    pub(super) run: Run,
    pub(super) plan: RunPlan,
    /// The columns to read.
    pub(super) names: Vec<ColumnName>,
}

/// A run and the columns of it that a query needs.
pub(super) struct LoadedRun {
    pub(super) planned: PlannedRun,
    pub(super) columns: Columns,
}

impl<R: RowTally> ProjectEvents<'_, R> {
    /// Counts the read data, then reads and counts the other windows. Returns the errors by their
    /// numbers if the query counts errors.
    async fn count(
        mut self,
        tally: &mut impl Tally<Rows = R>,
    ) -> Result<Vec<ErrorOutline>, StoreError> {
        let (store, project) = (self.store, self.project);
        let windows = std::mem::take(&mut self.windows);
        let reads: Vec<_> = windows.into_iter().map(|window| store.load(project, window)).collect();
        let mut reads = stream::iter(reads).buffered(2);
        let first = std::mem::take(&mut self.first);
        self.count_window(tally, &first);
        drop(first);
        while let Some(window) = reads.try_next().await? {
            self.count_window(tally, &window);
        }
        tally.end_project(&mut self.errors, std::mem::take(&mut self.rows));
        Ok(self.outlines)
    }

    /// Counts runs and the rows of their days.
    fn count_window(&mut self, tally: &mut impl Tally<Rows = R>, window: &[LoadedRun]) {
        for runs in window.chunk_by(|one, other| one.planned.day == other.planned.day) {
            let Some(day) = runs.first().map(|run| run.planned.day) else { continue };
            let tombstones = &self.tombstones;
            let hidden: Vec<_> = runs
                .iter()
                .map(|loaded| {
                    |fingerprint| tombstones.hide_in_run(fingerprint, &loaded.planned.run)
                })
                .collect();
            let of_day =
                runs.iter().zip(&hidden).map(|(LoadedRun { planned, columns }, is_hidden)| {
                    DayRun { plan: planned.plan, totals: &planned.run.totals, columns, is_hidden }
                });
            let of_day: Vec<DayRun<'_>> = of_day.collect();
            let damaged = tally.add_runs(&mut self.errors, day, &of_day, &mut self.rows);
            for damaged in damaged.into_iter().filter_map(|number| runs.get(number)) {
                self.store.report_damaged_run(self.project, day, &damaged.planned.run);
            }
        }
    }
}

/// Splits runs into windows, each of which fits into memory.
pub(super) fn windows(runs: Vec<PlannedRun>) -> Vec<Vec<PlannedRun>> {
    let mut windows: Vec<Vec<PlannedRun>> = Vec::new();
    let (mut events, mut bytes) = (0, 0);
    for planned in runs {
        let PlannedRun { run, names, .. } = &planned;
        let is_read = !names.is_empty();
        let (more_events, more_bytes) =
            if is_read { (run.events(), most_bytes_of(run, names)) } else { (0, 0) };
        events += more_events;
        bytes += more_bytes;
        match windows.last_mut() {
            Some(window)
                if events <= WINDOW_EVENTS
                    && bytes <= WINDOW_BYTES
                    && window.len() < WINDOW_RUNS =>
            {
                window.push(planned);
            }
            _ => {
                (events, bytes) = (more_events, more_bytes);
                windows.push(vec![planned]);
            }
        }
    }
    windows
}

impl<'s> ErrorStore<'s> {
    /// Counts the events of several projects, each project as soon as it is read.
    pub async fn count_projects(
        self,
        projects: Vec<ProjectId>,
        query: &EventQuery,
        tally: &mut impl Tally,
        now: Timestamp,
    ) -> Result<(), StoreError> {
        let counted = tally.counted();
        // One round trip for all heads. A head has at most 100 kB, and usually less than 1 kB.
        let heads = self.find_log_heads(&projects).await?;
        let read_at = Instant::now();
        let reads: Vec<_> = projects
            .into_iter()
            .zip(heads)
            .map(|(project, head)| {
                let head = Some((head, read_at));
                self.read_project_events(project, head, query, counted.clone(), now)
            })
            .collect();
        let mut reads = stream::iter(reads).buffer_unordered(PROJECTS_AT_ONCE);
        while let Some(read) = reads.try_next().await? {
            read.count(tally).await?;
        }
        Ok(())
    }

    /// Counts the events of one project. Returns its errors by their numbers if the query counts
    /// errors.
    pub async fn count_project(
        self,
        project: ProjectId,
        query: &EventQuery,
        tally: &mut impl Tally,
        now: Timestamp,
    ) -> Result<Vec<ErrorOutline>, StoreError> {
        let counted = tally.counted();
        let read = self.read_project_events(project, None, query, counted, now);
        let read = read.await?;
        read.count(tally).await
    }

    /// Reads the events that a query counts of a project. `head` is the head of its log and the
    /// time when it was read, if it was.
    ///
    /// Strongly consistent, except for runs, which never change: acknowledged events are counted.
    async fn read_project_events<R: RowTally>(
        self,
        project: ProjectId,
        head: Option<(LogHead, Instant)>,
        query: &'s EventQuery,
        counted: Aggregation,
        now: Timestamp,
    ) -> Result<ProjectEvents<'s, R>, StoreError> {
        let range = &query.range;
        // A response with errors needs their outlines. An error is stored no later than its first event.
        let every_fingerprint_counts =
            query.matches_every_error() && !matches!(counted, Aggregation::Errors { .. });
        let filters = &query.event_filters;
        let needs = QueryNeeds { range, filters, every_fingerprint_counts, counted };
        let mut events = ProjectEvents {
            store: self,
            project,
            errors: CountedErrors::default(),
            outlines: Vec::new(),
            rows: R::default(),
            tombstones: Tombstones::default(),
            first: Vec::new(),
            windows: Vec::new(),
        };
        let (Some(first), Some(last)) = (range.days().next(), range.days().last()) else {
            return Ok(events);
        };
        let needs = &needs;
        let read_rows = |head: Arc<LogHead>| async move {
            let (mut errors, mut outlines) = (CountedErrors::default(), Vec::new());
            if !every_fingerprint_counts {
                outlines = self.find_matching_errors(project, query, now).await?;
                let matching = outlines.iter().map(|error| (error.fingerprint, error.id));
                errors = CountedErrors::only(matching);
            }
            let rows = self.count_rows(project, &head, needs, &mut errors, now).await?;
            Ok::<_, StoreError>((errors, outlines, rows))
        };
        let (head, manifests, read) = self.read_log(project, head, first..=last, read_rows).await?;
        (events.errors, events.outlines, events.rows) = read;
        let planned = plan(needs, manifests, &events.rows, &head.tombstones);
        events.tombstones = head.tombstones.clone();
        let mut windows = windows(planned).into_iter();
        if let Some(window) = windows.next() {
            events.first = self.load(project, window).await?;
        }
        events.windows = windows.collect();
        Ok(events)
    }

    /// Reads a consistent view of a log: the head, and the manifests of these days with the runs
    /// that readers of the head count. Also returns the result of `read_rows`, which reads the rows
    /// that they count. A passed `head` is read again if it is older than [`MAX_HEAD_AGE`].
    pub(super) async fn read_log<T, R: Future<Output = Result<T, StoreError>>>(
        &self,
        project: ProjectId,
        mut head: Option<(LogHead, Instant)>,
        days: RangeInclusive<Day>,
        read_rows: impl Fn(Arc<LogHead>) -> R,
    ) -> Result<(Arc<LogHead>, Vec<Manifest>, T), StoreError> {
        for _ in 0..MAX_ROUNDS {
            let head = match head.take() {
                Some((head, read_at)) if read_at.elapsed() < MAX_HEAD_AGE => head,
                _ => self.find_log_heads(&[project]).await?.pop().unwrap_or_default(),
            };
            let head = Arc::new(head);
            let manifests = self.list_manifests(project, *days.start(), *days.end());
            let (manifests, rows) = tokio::try_join!(manifests, read_rows(head.clone()))?;
            if let Some(manifests) = readable(manifests, &head) {
                return Ok((head, manifests, rows));
            }
        }
        Err(StoreError::Contended("the log kept being packed".into()))
    }

    /// Returns the errors that match a query. Strongly consistent.
    async fn find_matching_errors(
        self,
        project: ProjectId,
        query: &EventQuery,
        now: Timestamp,
    ) -> Result<Vec<ErrorOutline>, StoreError> {
        let matches = |error: &ErrorOutline, texts: &SearchedError<'_>| query.matches(error, texts);
        let Some(ids) = query.error_filters.candidates() else {
            let with_texts = query.needs_texts();
            return self.find_errors_where(project, with_texts, matches, now).await;
        };
        let found = self.find_errors(project, ids.iter().copied(), now).await?;
        let outlines = found.values().map(|error| (ErrorOutline::from(error), &error.description));
        let matching = outlines.filter(|(outline, texts)| matches(outline, &(*texts).into()));
        Ok(matching.map(|(outline, _)| outline).collect())
    }

    /// Counts the rows of a log that no readable run contains.
    async fn count_rows<R: RowTally>(
        self,
        project: ProjectId,
        head: &LogHead,
        needs: &QueryNeeds<'_>,
        errors: &mut CountedErrors,
        now: Timestamp,
    ) -> Result<R, StoreError> {
        let mut counts = R::default();
        let categories = needs.categories();
        let range = readable_rows(project, head, &head.readable, &categories, now);
        let mut pages = Box::pin(self.row_pages(&range));
        while let Some(rows) = pages.try_next().await? {
            for row in rows {
                let received_at = row.received_at().unwrap_or(now);
                if !head.tombstones.hide_event(row.row.fingerprint, received_at) {
                    counts.add(&row.row, needs, errors);
                }
            }
        }
        Ok(counts)
    }

    /// Reads the planned columns of runs.
    pub(super) async fn load(
        self,
        project: ProjectId,
        runs: Vec<PlannedRun>,
    ) -> Result<Vec<LoadedRun>, StoreError> {
        let requests: Vec<_> = runs
            .iter()
            .map(|run| ColumnRequest {
                day: run.day,
                run: &run.run,
                names: &run.names,
                with_tags: false,
            })
            .collect();
        let columns = self.read_columns(project, &requests).await?;
        let loaded = runs.into_iter().zip(columns);
        Ok(loaded
            .filter_map(|(planned, columns)| Some(LoadedRun { planned, columns: columns? }))
            .collect())
    }

    /// Returns the stored errors of a page of query-errors, without errors that were deleted since.
    /// Strongly consistent.
    pub async fn find_ranked_errors(
        self,
        project: ProjectId,
        ranked: Vec<RankedError>,
        now: Timestamp,
    ) -> Result<Vec<(RankedError, ErrorRecord)>, StoreError> {
        let ids = ranked.iter().map(|error| error.id);
        let mut records = self.find_errors(project, ids, now).await?;
        let found = ranked.into_iter().filter_map(|error| {
            let record = records.remove(&error.id)?;
            Some((error, record))
        });
        Ok(found.collect())
    }
}

/// Returns the range of the rows from `from` on, which no readable run of the head contains. `from`
/// is `head.readable` or later.
pub(super) fn readable_rows<'h>(
    project: ProjectId,
    head: &'h LogHead,
    from: &'h LogPosition,
    categories: &'h [Category],
    now: Timestamp,
) -> RowRange<'h> {
    RowRange {
        project,
        shards: head.shards,
        from,
        to: None,
        categories: RowCategories::Only(categories),
        page: PAGE_ROWS,
        now,
    }
}

/// Returns the manifests with the runs that readers of a head count. `None` if the head is too old:
/// a compacted run mixes events that the head counts in runs and as rows.
fn readable(mut manifests: Vec<Manifest>, head: &LogHead) -> Option<Vec<Manifest>> {
    let readable = head.readable_steps;
    let is_mixed = |run: &Run| run.first_step <= readable && readable < run.last_step;
    if manifests.iter().flat_map(|manifest| &manifest.runs).any(is_mixed) {
        return None;
    }
    for manifest in &mut manifests {
        manifest.runs.retain(|run| run.last_step <= readable);
    }
    // Join the parts of a day: the plan of a run depends on all runs of the day.
    manifests.dedup_by(|part, day| {
        let is_same = part.day == day.day;
        if is_same {
            day.runs.append(&mut part.runs);
        }
        is_same
    });
    Some(manifests)
}

/// Returns the runs that a query needs, with the parts that it needs of each.
fn plan(
    needs: &QueryNeeds<'_>,
    manifests: Vec<Manifest>,
    rows: &impl RowTally,
    tombstones: &Tombstones,
) -> Vec<PlannedRun> {
    let mut planned = Vec::new();
    for Manifest { day, runs, .. } in manifests {
        // Totals cannot be used if they include deleted events.
        let is_whole = !runs.iter().any(|run| tombstones.may_hide_in(day, run));
        let every_fingerprint_counts = needs.every_fingerprint_counts && is_whole;
        let needs = QueryNeeds { every_fingerprint_counts, ..needs.clone() };
        let totals: Vec<_> = runs.iter().map(|run| &run.totals).collect();
        let plans = needs.plan(day, &totals, rows.hours_of(day));
        let of_day = runs.into_iter().zip(plans).filter(|(_, plan)| !plan.is_empty());
        planned.extend(of_day.map(|(run, plan)| {
            let hours = plan.columns;
            let names = if hours.is_empty() { Vec::new() } else { needs.columns(day, hours) };
            PlannedRun { day, run, plan, names }
        }));
    }
    planned
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;
    use crate::attribute::{Attribute, Attributes};
    use crate::grouping::Fingerprint;
    use crate::log::day::Hours;
    use crate::log::manifest::{RunId, RunLayout};
    use crate::log::row::EventRow;
    use crate::log::run::pack;
    use crate::store::packing::totals_of;

    fn day() -> Day {
        Day::of(Timestamp::parse_rfc3339("2026-11-21T00:00:00Z").unwrap())
    }

    /// Returns a run with one event, whose column `url` has `url_parts` items.
    fn planned(bytes: u64, url_parts: usize, names: &[ColumnName]) -> PlannedRun {
        let occurred_at = day().start();
        let (fingerprint, attributes) = (Fingerprint([0; 16]), Attributes::default());
        let columns = pack(day(), &[EventRow { occurred_at, fingerprint, attributes }]).unwrap();
        let totals = totals_of(&columns).unwrap();
        let url = ColumnName::Text(Attribute::Url.into());
        let form = RunLayout::Columns(BTreeMap::from([(ColumnName::Base, 1), (url, url_parts)]));
        let (first_step, last_step, until, level) = (1, 1, occurred_at, 0);
        let (id, values) = (RunId::random(), 0);
        let run = Run { id, first_step, last_step, until, level, bytes, values, form, totals };
        let plan = RunPlan { totals: Hours::NONE, columns: Hours::ALL };
        PlannedRun { day: day(), run, plan, names: names.to_vec() }
    }

    #[test]
    fn windows_hold_no_more_than_fits_into_memory() {
        let all = [ColumnName::Base, ColumnName::Text(Attribute::Url.into())];
        let runs = |bytes, parts, names: &[ColumnName], count| {
            let runs = std::iter::repeat_with(|| planned(bytes, parts, names)).take(count);
            windows(runs.collect()).iter().map(Vec::len).collect::<Vec<_>>()
        };
        assert_eq!(runs(3_000_000, 20, &all, 5), [2, 2, 1], "all columns exceed the bytes");
        assert_eq!(runs(3_000_000, 20, &all[..1], 5), [5], "small columns fit");
        assert_eq!(runs(9_000_000, 40, &all, 2), [1, 1], "a single large run is read");
        assert_eq!(runs(9_000_000, 40, &[], 5), [5], "no columns are read");
        assert_eq!(runs(1_000, 1, &all, 401), [400, 1]);
    }
}
