//! Plans what to read to count one day of a project.

use crate::category::Category;
use crate::log::day::{Day, Hours};
use crate::log::run::{ColumnName, Totals};

use super::filter::EventFilters;
use super::time_bucket::{BucketSize, QueryRange};

/// The parts of a run that a query needs: totals for some hours, columns for others.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RunPlan {
    /// The hours to count by totals.
    pub totals: Hours,
    /// The hours to count by columns.
    pub columns: Hours,
}

impl RunPlan {
    /// `true` if the query does not need the run.
    pub fn is_empty(&self) -> bool {
        self.totals.is_empty() && self.columns.is_empty()
    }
}

/// The counts of an accumulator.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Counted {
    /// `true` if it counts by bucket.
    pub by_bucket: bool,
    /// `true` if it can add the totals of a run instead of its events.
    pub by_totals: bool,
    /// `true` if only stored errors count, which the result needs.
    pub only_stored: bool,
    /// The categories whose values it counts.
    pub categories: Vec<Category>,
}

/// The parts of a query that decide what to read.
#[derive(Debug, Clone)]
pub struct QueryNeeds<'q> {
    /// The time range of the events.
    pub range: &'q QueryRange,
    /// The filters on the events.
    pub filters: &'q EventFilters,
    /// `true` if every error counts. Totals cannot be used otherwise.
    pub every_fingerprint_counts: bool,
    /// The requested counts.
    pub counted: Counted,
}

impl QueryNeeds<'_> {
    /// Returns what to read of each run of a day. `runs` has the totals of all its runs. Totals
    /// cannot be used if they include events that do not count.
    pub fn plan(&self, day: Day, runs: &[&Totals], are_whole: bool) -> Vec<RunPlan> {
        let requested = self.range.hours_of(day);
        let hours: Vec<Hours> = runs.iter().map(|totals| totals.hours()).collect();
        let plan = |number: usize| {
            let all = hours.get(number).copied().unwrap_or(Hours::NONE);
            let others = hours.iter().enumerate().filter(|(other, _)| *other != number);
            let others = others.fold(Hours::NONE, |others, (_, hours)| others.with(*hours));
            let others = others.common_with(requested);
            let by_totals = are_whole && self.can_use_totals();
            let totals =
                if by_totals { self.hours_of_totals(day, all, others) } else { Hours::NONE };
            RunPlan { totals, columns: all.common_with(requested).without(totals) }
        };
        (0..runs.len()).map(plan).collect()
    }

    fn can_use_totals(&self) -> bool {
        self.counted.by_totals && self.every_fingerprint_counts && self.filters.is_empty()
    }

    /// Returns the hours of a run that its totals can count. Numbers of fingerprints cannot be
    /// added: in a bucket, the run must have all counted events and no others.
    fn hours_of_totals(&self, day: Day, hours: Hours, others: Hours) -> Hours {
        let whole = self.range.whole_hours_of(day);
        match self.range.bucket_size() {
            BucketSize::Day if others.is_empty() && hours.is_within(whole) => hours,
            BucketSize::Hour => hours.common_with(whole).without(others),
            _ => Hours::NONE,
        }
    }

    /// `true` if counting these hours of a day needs the minute of each event.
    pub fn needs_minutes(&self, day: Day, hours: Hours) -> bool {
        self.range.needs_minutes(day, hours, self.counted.by_bucket)
    }

    /// Returns the columns to read of a run to count these hours.
    pub fn columns(&self, day: Day, hours: Hours) -> Vec<ColumnName> {
        let minutes = self.needs_minutes(day, hours).then_some(ColumnName::Minutes);
        let categories = self.categories().into_iter().map(ColumnName::Category);
        std::iter::once(ColumnName::Base).chain(minutes).chain(categories).collect()
    }

    /// Returns the categories that the query filters or counts.
    pub fn categories(&self) -> Vec<Category> {
        let mut categories = self.filters.categories();
        categories.extend(self.counted.categories.iter().copied());
        categories.into_iter().collect()
    }
}
