//! Reads the events that a query counts, in table `errors`. Reads as little as the result needs, in
//! portions that fit into memory.

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::time::{Duration, Instant};

use futures_util::stream::{self, StreamExt, TryStreamExt};

use shared::dynamodb::StoreError;
use shared::projects::project::ProjectId;
use shared::timestamp::Timestamp;

use super::ErrorStore;
use super::columns::{ColumnRequest, most_bytes_of};
use super::head::{LogHead, LogPosition};
use super::packing::{cannot_be_packed, totals_of};
use super::rows::{LogRow, PAGE_ROWS, RowRange};
use crate::ErrorRecord;
use crate::grouping::Fingerprint;
use crate::log::day::{Day, minute_of};
use crate::log::manifest::{Manifest, Run};
use crate::log::row::EventRow;
use crate::log::run::{ColumnName, Columns, Decoder, Totals, pack_uncompressed};
use crate::log::tombstone::Tombstones;
use crate::query::counted_run::{Accumulator, CountedErrors, CountedRun};
use crate::query::day_plan::{Counted, QueryNeeds, RunPlan};
use crate::query::event_query::EventQuery;

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
const EARLIEST_RECEIPT: Duration = Duration::from_mins(5);

/// The events of a project that a query counts: the runs to read, and the first ones.
pub(super) struct ProjectEvents<'q> {
    project: ProjectId,
    needs: QueryNeeds<'q>,
    counted: CountedProject,
    /// The runs in portions that fit into memory.
    windows: VecDeque<Vec<PlannedRun>>,
}

/// The errors of a project whose events were counted.
#[derive(Debug, Default)]
pub struct CountedProject {
    /// The numbers of the errors.
    pub(super) errors: CountedErrors,
    /// The stored errors by their numbers, if the query depends on them or counts their users.
    pub stored: Vec<ErrorRecord>,
    /// The time of the last unpacked event of each error, counted or not.
    pub last_unpacked: HashMap<Fingerprint, Timestamp>,
    pub(super) tombstones: Tombstones,
}

/// The place of a run.
enum Source {
    /// A run of a manifest.
    Stored(Run),
    /// Unpacked rows.
    Rows(Totals, Columns),
}

/// A run and the parts of it that a query needs.
struct PlannedRun {
    day: Day,
    source: Source,
    plan: RunPlan,
    /// The columns to read.
    names: Vec<ColumnName>,
}

impl Source {
    fn totals(&self) -> &Totals {
        match self {
            Self::Stored(run) => &run.totals,
            Self::Rows(totals, _) => totals,
        }
    }
}

impl ProjectEvents<'_> {
    /// Returns the number of events in the runs and rows of the query's hours, deleted ones
    /// included.
    pub(super) fn at_most(&self) -> u64 {
        let of_run = |run: &PlannedRun| -> u64 {
            let hours = run.plan.totals.with(run.plan.columns);
            hours.iter().map(|hour| u64::from(run.source.totals().hour(hour).events)).sum()
        };
        self.windows.iter().flatten().map(of_run).sum()
    }
}

/// Splits runs into windows, each of which fits into memory.
fn windows(runs: Vec<PlannedRun>) -> VecDeque<Vec<PlannedRun>> {
    let mut windows: VecDeque<Vec<PlannedRun>> = VecDeque::new();
    let (mut events, mut bytes) = (0, 0);
    for planned in runs {
        let (more_events, more_bytes) = match &planned {
            PlannedRun { source: Source::Stored(run), names, .. } if !names.is_empty() => {
                (run.events(), most_bytes_of(run, names))
            }
            _ => (0, 0),
        };
        events += more_events;
        bytes += more_bytes;
        match windows.back_mut() {
            Some(window)
                if events <= WINDOW_EVENTS
                    && bytes <= WINDOW_BYTES
                    && window.len() < WINDOW_RUNS =>
            {
                window.push(planned);
            }
            _ => {
                (events, bytes) = (more_events, more_bytes);
                windows.push_back(vec![planned]);
            }
        }
    }
    windows
}

impl ErrorStore<'_> {
    /// Counts the events of several projects, each project as soon as it is read.
    pub async fn count_projects(
        self,
        projects: Vec<ProjectId>,
        query: &EventQuery,
        counts: &mut impl Accumulator,
        now: Timestamp,
    ) -> Result<(), StoreError> {
        let counted = &counts.counted();
        // One round trip for all heads. A head has at most 100 kB, and usually less than 1 kB.
        let heads = self.find_log_heads(&projects).await?;
        let read_at = Instant::now();
        let reads: Vec<_> = projects
            .into_iter()
            .zip(heads)
            .map(|(project, head)| async move {
                let head = Some((head, read_at));
                let read = self.read_project(project, head, query, counted.clone(), now).await?;
                self.load_first(read).await
            })
            .collect();
        let mut decoder = Decoder::new();
        let mut reads = stream::iter(reads).buffer_unordered(PROJECTS_AT_ONCE);
        while let Some((read, first)) = reads.try_next().await? {
            self.count(read, first, counts, &mut decoder).await?;
        }
        Ok(())
    }

    /// Counts the events of one project.
    pub async fn count_project(
        self,
        project: ProjectId,
        query: &EventQuery,
        counts: &mut impl Accumulator,
        now: Timestamp,
    ) -> Result<CountedProject, StoreError> {
        let read = self.read_project(project, None, query, counts.counted(), now).await?;
        self.count_read(read, counts).await
    }

    /// Counts the events of a project whose log was read.
    pub(super) async fn count_read(
        self,
        read: ProjectEvents<'_>,
        counts: &mut impl Accumulator,
    ) -> Result<CountedProject, StoreError> {
        let (read, first) = self.load_first(read).await?;
        self.count(read, first, counts, &mut Decoder::new()).await
    }

    /// Reads a consistent view of a project's log: the runs that a query counts, and the rows that
    /// no readable run contains. `head` is the head of the log and the time when it was read, if it
    /// was. Reads it again if it is older than [`MAX_HEAD_AGE`].
    ///
    /// Strongly consistent, except for runs, which never change: acknowledged events are counted.
    pub(super) async fn read_project(
        self,
        project: ProjectId,
        mut head: Option<(LogHead, Instant)>,
        query: &EventQuery,
        counted: Counted,
        now: Timestamp,
    ) -> Result<ProjectEvents<'_>, StoreError> {
        let (range, filters) = (&query.range, &query.event_filters);
        // An error is stored no later than its first event.
        let every_fingerprint_counts = query.matches_every_error() && !counted.only_stored;
        let mut events = ProjectEvents {
            project,
            needs: QueryNeeds { range, filters, every_fingerprint_counts, counted },
            counted: CountedProject::default(),
            windows: VecDeque::new(),
        };
        let (Some(first), Some(last)) = (range.days().next(), range.days().last()) else {
            return Ok(events);
        };
        for _ in 0..MAX_ROUNDS {
            let head = match head.take() {
                Some((head, read_at)) if read_at.elapsed() < MAX_HEAD_AGE => head,
                _ => self.find_log_heads(&[project]).await?.pop().unwrap_or_default(),
            };
            let manifests = self.list_manifests(project, first, last);
            let rows = self.read_rows(project, &head, &events.needs, now);
            // After the head: the packer stores when an error was last seen before it hides rows.
            let stored = async {
                if every_fingerprint_counts {
                    return Ok(None);
                }
                self.find_matching_errors(project, query, now).await.map(Some)
            };
            let (manifests, rows, stored) = tokio::try_join!(manifests, rows, stored)?;
            let Some(manifests) = readable(manifests, &head) else { continue };
            let (rows, last_unpacked) = rows;
            events.windows = windows(plan(&events.needs, manifests, rows, &head.tombstones));
            let counted = &mut events.counted;
            (counted.last_unpacked, counted.tombstones) = (last_unpacked, head.tombstones);
            if let Some(stored) = stored {
                let matching = stored.iter().map(|error| error.description.fingerprint);
                counted.errors = CountedErrors::only(matching);
                let with_unpacked = |error: ErrorRecord| {
                    let last = counted.last_unpacked.get(&error.description.fingerprint);
                    error.with_unpacked(last.copied())
                };
                counted.stored = stored.into_iter().map(with_unpacked).collect();
            }
            return Ok(events);
        }
        Err(StoreError::Contended("the log kept being packed".into()))
    }

    /// Reads the first window of runs of a project.
    async fn load_first(
        self,
        mut read: ProjectEvents<'_>,
    ) -> Result<(ProjectEvents<'_>, Vec<(PlannedRun, Columns)>), StoreError> {
        let first = read.windows.pop_front().unwrap_or_default();
        let first = self.load(read.project, first).await?;
        Ok((read, first))
    }

    /// Counts the first window of runs, then reads and counts the others.
    async fn count(
        self,
        read: ProjectEvents<'_>,
        first: Vec<(PlannedRun, Columns)>,
        counts: &mut impl Accumulator,
        decoder: &mut Decoder,
    ) -> Result<CountedProject, StoreError> {
        let ProjectEvents { project, needs, mut counted, windows } = read;
        let CountedProject { errors, tombstones, .. } = &mut counted;
        let reads: Vec<_> = windows.into_iter().map(|window| self.load(project, window)).collect();
        let mut reads = stream::iter(reads).buffered(2);
        let mut next = Some(first);
        while let Some(window) = next {
            for (PlannedRun { day, source, plan, .. }, columns) in &window {
                counts.add_totals(*day, plan.totals, source.totals());
                if plan.columns.is_empty() {
                    continue;
                }
                let is_hidden = |fingerprint| match source {
                    Source::Stored(run) => tombstones.hide_in_run(fingerprint, run),
                    Source::Rows(..) => false,
                };
                let of_day = (*day, plan.columns);
                let run = CountedRun::decode(columns, of_day, &needs, errors, is_hidden, decoder);
                if let (Err(_), Source::Stored(run)) =
                    (run.and_then(|run| counts.add(&run, decoder)), source)
                {
                    self.report_damaged_run(project, *day, run);
                }
            }
            drop(window);
            next = reads.try_next().await?;
        }
        counts.end_project(errors.count());
        Ok(counted)
    }

    /// Returns the errors that match a query. Strongly consistent.
    async fn find_matching_errors(
        self,
        project: ProjectId,
        query: &EventQuery,
        now: Timestamp,
    ) -> Result<Vec<ErrorRecord>, StoreError> {
        let Some(ids) = query.error_filters.candidates() else {
            return self.find_errors_where(project, |error| query.matches(error), now).await;
        };
        let found = self.find_errors(project, ids.iter().copied(), now).await?;
        Ok(found.into_values().filter(|error| query.matches(error)).collect())
    }

    /// Packs the rows of a log that no readable run contains into runs in memory. Also returns the
    /// time of the last row of each fingerprint.
    async fn read_rows(
        self,
        project: ProjectId,
        head: &LogHead,
        needs: &QueryNeeds<'_>,
        now: Timestamp,
    ) -> Result<(Vec<(Day, Source)>, HashMap<Fingerprint, Timestamp>), StoreError> {
        let categories = needs.categories();
        // Earlier rows cannot have events of the range.
        let earliest = LogPosition::before(needs.range.from().minus(EARLIEST_RECEIPT));
        let range = RowRange {
            project,
            shards: head.shards,
            from: (&earliest).max(&head.readable),
            to: None,
            categories: Some(categories.as_slice()),
            page: PAGE_ROWS,
            now,
        };
        let (mut runs, mut last_unpacked) = (Vec::new(), HashMap::new());
        let mut pages = Box::pin(self.row_pages(&range));
        while let Some(rows) = pages.try_next().await? {
            let mut days: BTreeMap<Day, Vec<EventRow>> = BTreeMap::new();
            for LogRow { row, received_at, .. } in rows {
                if head.tombstones.hide_event(row.fingerprint, received_at) {
                    continue;
                }
                let last = last_unpacked.entry(row.fingerprint).or_insert(row.occurred_at);
                *last = row.occurred_at.max(*last);
                if needs.range.bucket_of(minute_of(row.occurred_at)).is_some() {
                    days.entry(Day::of(row.occurred_at)).or_default().push(row);
                }
            }
            for (day, rows) in days {
                let columns = pack_uncompressed(day, &rows).map_err(cannot_be_packed)?;
                runs.push((day, Source::Rows(totals_of(&columns)?, columns)));
            }
        }
        Ok((runs, last_unpacked))
    }

    /// Reads the planned columns of runs. Damaged runs are reported and left out.
    async fn load(
        self,
        project: ProjectId,
        runs: Vec<PlannedRun>,
    ) -> Result<Vec<(PlannedRun, Columns)>, StoreError> {
        let mut requests = Vec::with_capacity(runs.len());
        for PlannedRun { day, source, names, .. } in &runs {
            if let Source::Stored(run) = source {
                requests.push(ColumnRequest { day: *day, run, names, with_tags: false });
            }
        }
        let mut stored = self.read_columns(project, &requests).await?.into_iter();
        let loaded = runs.into_iter().filter_map(|mut planned| {
            let columns = match &mut planned.source {
                Source::Stored(_) => stored.next().flatten()?,
                Source::Rows(_, columns) => std::mem::take(columns),
            };
            Some((planned, columns))
        });
        Ok(loaded.collect())
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
    Some(manifests)
}

/// Returns the runs that a query needs, with the parts that it needs of each.
fn plan(
    needs: &QueryNeeds<'_>,
    manifests: Vec<Manifest>,
    rows: Vec<(Day, Source)>,
    tombstones: &Tombstones,
) -> Vec<PlannedRun> {
    // The plan of a run depends on all runs of the day, which can have several manifests.
    let mut days: BTreeMap<Day, Vec<Source>> = BTreeMap::new();
    for Manifest { day, runs, .. } in manifests {
        days.entry(day).or_default().extend(runs.into_iter().map(Source::Stored));
    }
    for (day, run) in rows {
        days.entry(day).or_default().push(run);
    }
    let mut planned = Vec::new();
    for (day, runs) in days {
        // Totals cannot be used if they include deleted events.
        let may_hide =
            |run: &Source| matches!(run, Source::Stored(run) if tombstones.may_hide_in(day, run));
        let totals: Vec<_> = runs.iter().map(Source::totals).collect();
        let plans = needs.plan(day, &totals, !runs.iter().any(may_hide));
        let of_day = runs.into_iter().zip(plans).filter(|(_, plan)| !plan.is_empty());
        planned.extend(of_day.map(|(source, plan)| {
            let hours = plan.columns;
            let names = if hours.is_empty() { Vec::new() } else { needs.columns(day, hours) };
            PlannedRun { day, source, plan, names }
        }));
    }
    planned
}
