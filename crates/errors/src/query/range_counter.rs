//! Counts the events of a range by other keys than buckets alone, for example by error or value.

use super::count::CountedErrors;
use super::counted_run::{CountedRun, EventsOfRun};
use super::day_plan::Aggregation;
use super::event_query::EventQuery;
use super::tally::{DayRun, RowTally, Tally, damaged};
use super::time_bucket::QueryRange;
use crate::log::day::{Day, Hours};
use crate::log::run::{Base, Columns, Damaged, Decoder};

/// The counts of the events of a range.
pub trait RangeCounts {
    /// The type that counts rows.
    type Rows: RowTally;

    /// Returns what is counted, which decides what is read.
    fn counted(&self) -> Aggregation;

    /// Adds the events of a run, or nothing or only some if the run is damaged.
    fn add_run(&mut self, run: &RunInRange<'_>, decoder: &mut Decoder) -> Result<(), Damaged>;

    /// Adds the rows of a project, after all of its runs.
    fn end_project(&mut self, errors: &mut CountedErrors, rows: Self::Rows);
}

/// The events of a run in a range that count.
pub struct RunInRange<'r> {
    pub(super) columns: &'r Columns,
    counted: CountedRun,
    range: &'r QueryRange,
    day: Day,
    hours: Hours,
}

impl RunInRange<'_> {
    pub(super) fn base(&self) -> &Base {
        self.counted.base()
    }

    /// Calls `take` with the error and position of each event, in order.
    pub(super) fn for_each(&self, take: impl FnMut(u32, usize)) {
        self.counted.for_each(self.range, self.day, self.hours, take);
    }

    /// Calls `take` with the error, position and bucket of each event, in order. Needs minutes, so
    /// [`RangeCounts::counted`] must request them.
    pub(super) fn for_each_in_buckets(&self, take: impl FnMut(u32, usize, usize)) {
        self.counted.for_each_in_buckets(self.range, self.day, self.hours, take);
    }
}

/// Counts the events of a query.
#[derive(Debug)]
pub struct RangeCounter<'q, C> {
    query: &'q EventQuery,
    counts: C,
    decoder: Decoder,
}

impl<'q, C> RangeCounter<'q, C> {
    /// Returns a counter that adds to `counts`.
    pub fn new(query: &'q EventQuery, counts: C) -> Self {
        Self { query, counts, decoder: Decoder::new() }
    }

    /// Returns the counts.
    pub fn into_counts(self) -> C {
        self.counts
    }
}

impl<C: RangeCounts> RangeCounter<'_, C> {
    fn add_run(
        &mut self,
        errors: &mut CountedErrors,
        day: Day,
        run: &DayRun<'_>,
    ) -> Result<(), Damaged> {
        let EventQuery { range, event_filters, .. } = self.query;
        let (columns, hours) = (run.columns, run.plan.columns);
        let needs_minutes = self.counts.counted().needs_minutes(range, day, hours);
        let events = EventsOfRun { columns, needs_minutes, is_hidden: run.is_hidden };
        let counted = CountedRun::decode(&events, &mut self.decoder, event_filters, errors)?;
        let run = RunInRange { columns, counted, range, day, hours };
        self.counts.add_run(&run, &mut self.decoder)
    }
}

impl<C: RangeCounts> Tally for RangeCounter<'_, C> {
    type Rows = C::Rows;

    fn counted(&self) -> Aggregation {
        self.counts.counted()
    }

    fn add_runs(
        &mut self,
        errors: &mut CountedErrors,
        day: Day,
        runs: &[DayRun<'_>],
        _rows: &mut C::Rows,
    ) -> Vec<usize> {
        damaged(runs, |run| self.add_run(errors, day, run))
    }

    fn end_project(&mut self, errors: &mut CountedErrors, rows: C::Rows) {
        self.counts.end_project(errors, rows);
    }
}
