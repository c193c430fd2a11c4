//! Plans what to read to count one day of a project.

use std::sync::Arc;

use crate::attribute::{Category, TextCategory};
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

/// The counts of a query.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Aggregation {
    /// Events and errors by bucket.
    Buckets,
    /// Events and users by error.
    Errors {
        /// `true` to also count events by bucket.
        by_bucket: bool,
    },
    /// Events and errors by the value of a category.
    Values(TextCategory),
    /// Events by the values of each of these categories.
    Categories(Arc<[TextCategory]>),
}

impl Aggregation {
    /// `true` if counting these hours of a day needs the minute of each event.
    pub fn needs_minutes(&self, range: &QueryRange, day: Day, hours: Hours) -> bool {
        match self {
            Self::Buckets | Self::Errors { by_bucket: true } => range.needs_minutes(day, hours),
            Self::Errors { by_bucket: false } | Self::Values(_) | Self::Categories(_) => {
                range.cuts(day, hours)
            }
        }
    }
}

/// The parts of a query that decide what to read.
#[derive(Debug, Clone)]
pub struct QueryNeeds<'q> {
    /// The time range of the events.
    pub range: &'q QueryRange,
    /// The filters on the events.
    pub filters: &'q EventFilters,
    /// `true` if every error counts, each with one fingerprint. Totals cannot be used otherwise.
    pub every_fingerprint_counts: bool,
    /// The requested counts.
    pub counted: Aggregation,
}

impl QueryNeeds<'_> {
    /// Returns what to read of each run of a day. `runs` has the totals of the runs, `rows` the
    /// hours with rows.
    pub fn plan(&self, day: Day, runs: &[&Totals], rows: Hours) -> Vec<RunPlan> {
        let requested = self.range.hours_of(day);
        let hours: Vec<Hours> = runs.iter().map(|totals| totals.hours()).collect();
        let plan = |number: usize| {
            let all = hours.get(number).copied().unwrap_or(Hours::NONE);
            let others = hours.iter().enumerate().filter(|(other, _)| *other != number);
            let others = others.fold(rows, |others, (_, hours)| others.with(*hours));
            let totals = self.hours_of_totals(day, all, others.common_with(requested));
            RunPlan { totals, columns: all.common_with(requested).without(totals) }
        };
        (0..runs.len()).map(plan).collect()
    }

    /// Returns the hours of a run that its totals can count. Numbers of fingerprints cannot be
    /// added: in a bucket, the run must have all counted events and no others.
    fn hours_of_totals(&self, day: Day, hours: Hours, others: Hours) -> Hours {
        let is_by_bucket = self.counted == Aggregation::Buckets;
        if !is_by_bucket || !self.every_fingerprint_counts || !self.filters.is_empty() {
            return Hours::NONE;
        }
        let whole = self.range.whole_hours_of(day);
        match self.range.bucket_size() {
            BucketSize::Day if others.is_empty() && hours.is_within(whole) => hours,
            BucketSize::Hour => hours.common_with(whole).without(others),
            _ => Hours::NONE,
        }
    }

    /// `true` if counting these hours of a day needs the minute of each event.
    pub fn needs_minutes(&self, day: Day, hours: Hours) -> bool {
        self.counted.needs_minutes(self.range, day, hours)
    }

    /// Returns the columns to read of a run to count these hours.
    pub fn columns(&self, day: Day, hours: Hours) -> Vec<ColumnName> {
        let minutes = self.needs_minutes(day, hours).then_some(ColumnName::Minutes);
        let categories = self.categories().into_iter().map(ColumnName::from);
        std::iter::once(ColumnName::Base).chain(minutes).chain(categories).collect()
    }

    /// Returns the categories that the query filters or counts.
    pub fn categories(&self) -> Vec<Category> {
        let mut categories = self.filters.categories();
        match &self.counted {
            Aggregation::Buckets => {}
            Aggregation::Errors { .. } => categories.extend([Category::User]),
            Aggregation::Values(by) => categories.extend([Category::Text(*by)]),
            Aggregation::Categories(all) => {
                categories.extend(all.iter().copied().map(Category::Text));
            }
        }
        categories.into_iter().collect()
    }
}
