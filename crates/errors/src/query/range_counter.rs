//! Counting the events of a range as a whole, or by bucket of something else than all of them.

use super::count::CountedErrors;
use super::counted_run::{CountedRun, EventsOfRun};
use super::day_plan::Aggregation;
use super::event_query::EventQuery;
use super::tally::{DayRun, RowTally, Tally, damaged};
use super::time_bucket::QueryRange;
use crate::log::day::{Day, Hours};
use crate::log::run::{Base, Columns, Damaged, Decoder};

/// What is counted of the events of a range.
pub trait RangeCounts {
    /// What is kept of rows.
    type Rows: RowTally;

    /// What has to be read of events.
    fn counted(&self) -> Aggregation;

    /// Adds the events of a run. Of a damaged one it adds nothing, or not all.
    fn add_run(&mut self, run: &RunInRange<'_>, decoder: &mut Decoder) -> Result<(), Damaged>;

    /// Adds the rows of a project, all of whose runs were added.
    fn end_project(&mut self, errors: &mut CountedErrors, rows: Self::Rows);
}

/// The events of a run that lie in a range and count.
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

    /// Takes the error and the position of each event, in order.
    pub(super) fn for_each(&self, take: impl FnMut(u32, usize)) {
        self.counted.for_each(self.range, self.day, self.hours, take);
    }

    /// Takes the error, the position and the bucket of each event, in order: of counts that need the
    /// minutes which that takes.
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
    /// A counter that goes on from these counts.
    pub fn new(query: &'q EventQuery, counts: C) -> Self {
        Self { query, counts, decoder: Decoder::new() }
    }

    /// What it counted.
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
