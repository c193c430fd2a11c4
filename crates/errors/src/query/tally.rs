//! Interfaces for counting events, one day of a project after the other.

use super::count::CountedErrors;
use super::day_plan::{Aggregation, QueryNeeds, RunPlan};
use crate::grouping::Fingerprint;
use crate::log::day::{Day, Hours, minute_of};
use crate::log::row::EventRow;
use crate::log::run::{Columns, Damaged, Totals};

/// A run of a day, and the hours to count.
pub struct DayRun<'r> {
    /// The hours to count by totals and by columns.
    pub plan: RunPlan,
    /// The totals of the run.
    pub totals: &'r Totals,
    /// The columns that were requested.
    pub columns: &'r Columns,
    /// Returns `true` for deleted fingerprints.
    pub is_hidden: &'r dyn Fn(Fingerprint) -> bool,
}

/// The counts of a project's rows until its runs are counted. They must not take more memory than
/// the result needs.
pub trait RowTally: Default {
    /// Adds a row, if it counts.
    fn add(&mut self, row: &EventRow, needs: &QueryNeeds<'_>, errors: &mut CountedErrors);

    /// Returns the hours of a day that have rows. Only needed if totals of runs are counted.
    fn hours_of(&self, _day: Day) -> Hours {
        Hours::NONE
    }
}

/// Counts events. The numbers of errors are valid within one project, until
/// [`end_project`](Self::end_project).
pub trait Tally {
    /// The type that counts rows.
    type Rows: RowTally;

    /// Returns what is counted, which decides what is read.
    fn counted(&self) -> Aggregation;

    /// Adds runs of a day of a project, and optionally takes some of `rows`. All runs of a day come
    /// before those of the next day. Skips damaged runs and returns their indexes.
    fn add_runs(
        &mut self,
        errors: &mut CountedErrors,
        day: Day,
        runs: &[DayRun<'_>],
        rows: &mut Self::Rows,
    ) -> Vec<usize>;

    /// Adds the remaining rows of a project, after all of its runs.
    fn end_project(&mut self, errors: &mut CountedErrors, rows: Self::Rows);
}

/// Adds runs, and returns the indexes of the runs that fail.
pub(super) fn damaged(
    runs: &[DayRun<'_>],
    mut add: impl FnMut(&DayRun<'_>) -> Result<(), Damaged>,
) -> Vec<usize> {
    let numbered = runs.iter().enumerate();
    numbered.filter_map(|(number, run)| add(run).is_err().then_some(number)).collect()
}

/// Returns the number of a row's error, if the row counts.
pub(super) fn counted_error(
    row: &EventRow,
    needs: &QueryNeeds<'_>,
    errors: &mut CountedErrors,
) -> Option<u32> {
    let is_within = needs.range.bucket_of(minute_of(row.occurred_at)).is_some();
    let counts = is_within && needs.filters.matches(&row.attributes);
    if counts { errors.number_of(row.fingerprint) } else { None }
}
