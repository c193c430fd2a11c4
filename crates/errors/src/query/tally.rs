//! What is counted of events, one project's day after the other.

use super::count::CountedErrors;
use super::day_plan::{Aggregation, QueryNeeds, RunPlan};
use crate::grouping::Fingerprint;
use crate::log::day::{Day, Hours, minute_of};
use crate::log::row::EventRow;
use crate::log::run::{Columns, Damaged, Totals};

/// A run of a day, and what is to be counted of it.
pub struct DayRun<'r> {
    /// Which of its hours are counted how.
    pub plan: RunPlan,
    /// What it has in each hour.
    pub totals: &'r Totals,
    /// The columns that were asked for.
    pub columns: &'r Columns,
    /// Which fingerprints are deleted.
    pub is_hidden: &'r dyn Fn(Fingerprint) -> bool,
}

/// What is kept of the rows of a project until its runs are counted: no more than what is answered of
/// them.
pub trait RowTally: Default {
    /// Adds a row, if it counts.
    fn add(&mut self, row: &EventRow, demand: &QueryNeeds<'_>, errors: &mut CountedErrors);

    /// The hours of a day that have rows, where totals of runs are counted.
    fn hours_of(&self, _day: Day) -> Hours {
        Hours::NONE
    }
}

/// Counts events. Errors have numbers, which are those of one project until that ends.
pub trait Tally {
    /// What it keeps of rows.
    type Rows: RowTally;

    /// What it counts of events, which decides what is read of them.
    fn counted(&self) -> Aggregation;

    /// Adds runs of a day of a project; of rows as many as it likes. All runs of a day come before those of
    /// the next. Answers the numbers of those runs that are damaged, which are left out.
    fn add_runs(
        &mut self,
        errors: &mut CountedErrors,
        day: Day,
        runs: &[DayRun<'_>],
        rows: &mut Self::Rows,
    ) -> Vec<usize>;

    /// Adds the rows that are left of a project, all of whose days were added.
    fn end_project(&mut self, errors: &mut CountedErrors, rows: Self::Rows);
}

/// The numbers of the runs that cannot be added.
pub(super) fn damaged(
    runs: &[DayRun<'_>],
    mut add: impl FnMut(&DayRun<'_>) -> Result<(), Damaged>,
) -> Vec<usize> {
    let numbered = runs.iter().enumerate();
    numbered.filter_map(|(number, run)| add(run).is_err().then_some(number)).collect()
}

/// The number of a row's error, if the row counts.
pub(super) fn counted_error(
    row: &EventRow,
    demand: &QueryNeeds<'_>,
    errors: &mut CountedErrors,
) -> Option<u32> {
    let is_within = demand.range.bucket_of(minute_of(row.occurred_at)).is_some();
    let counts = is_within && demand.filters.matches(&row.attributes);
    if counts { errors.number_of(row.fingerprint) } else { None }
}
