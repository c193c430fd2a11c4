//! What has to be read to count one day of a project.

use crate::attribute::{Attribute, Category};
use crate::log::day::{Day, Hours};
use crate::log::run::{ColumnName, Totals};

use super::filter::EventFilters;
use super::time_bucket::{BucketSize, QueryRange};

/// What a query needs of a run: its totals for some hours, some of its columns for others.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RunPlan {
    /// The hours that its totals tell enough of.
    pub totals: Hours,
    /// The hours that take its columns.
    pub columns: Hours,
}

impl RunPlan {
    /// Whether nothing of it is needed.
    pub fn is_empty(&self) -> bool {
        self.totals.is_empty() && self.columns.is_empty()
    }
}

/// What is counted of events.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Aggregation {
    /// They and their errors, by bucket.
    Buckets,
    /// They and their users, by error.
    Errors {
        /// Whether also by bucket.
        by_bucket: bool,
    },
    /// They and their errors, by the value of an attribute.
    Values(Attribute),
    /// They, by the values of each of some attributes.
    Categories(&'static [Attribute]),
}

impl Aggregation {
    /// Whether counting these hours of a day takes the minute of each event.
    pub fn needs_minutes(self, range: &QueryRange, day: Day, hours: Hours) -> bool {
        match self {
            Self::Buckets | Self::Errors { by_bucket: true } => range.needs_minutes(day, hours),
            Self::Errors { by_bucket: false } | Self::Values(_) | Self::Categories(_) => {
                range.cuts(day, hours)
            }
        }
    }
}

/// What a query asks of events, as far as it decides what has to be read.
#[derive(Debug, Clone, Copy)]
pub struct QueryNeeds<'q> {
    /// Which events, by their time.
    pub range: &'q QueryRange,
    /// Which events, by their attributes.
    pub filters: &'q EventFilters,
    /// Whether every error counts, each with one fingerprint: otherwise totals tell nothing.
    pub every_fingerprint_counts: bool,
    /// What is counted of them.
    pub counted: Aggregation,
}

impl QueryNeeds<'_> {
    /// What has to be read of each run of a day, which have these totals, if the day also has rows in
    /// the hours of `rows`.
    pub fn plan(&self, day: Day, runs: &[&Totals], rows: Hours) -> Vec<RunPlan> {
        let wanted = self.range.hours_of(day);
        let hours: Vec<Hours> = runs.iter().map(|totals| totals.hours()).collect();
        let plan = |number: usize| {
            let all = hours.get(number).copied().unwrap_or(Hours::NONE);
            let others = hours.iter().enumerate().filter(|(other, _)| *other != number);
            let others = others.fold(rows, |others, (_, hours)| others.with(*hours));
            let totals = self.hours_of_totals(day, all, others.common_with(wanted));
            RunPlan { totals, columns: all.common_with(wanted).without(totals) }
        };
        (0..runs.len()).map(plan).collect()
    }

    /// The hours of a run that its totals tell enough of. Fingerprints do not add up: in a bucket, the
    /// run must have all that is counted, and all that it has must be counted.
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

    /// Whether counting these hours of a day takes the minute of each event.
    pub fn needs_minutes(&self, day: Day, hours: Hours) -> bool {
        self.counted.needs_minutes(self.range, day, hours)
    }

    /// The columns of a run that tell what is counted in some of its hours.
    pub fn columns(&self, day: Day, hours: Hours) -> Vec<ColumnName> {
        let minutes = self.needs_minutes(day, hours).then_some(ColumnName::Minutes);
        let categories = self.categories().into_iter().map(|category| match category {
            Category::Attribute(attribute) => ColumnName::Attribute(attribute),
            Category::User => ColumnName::Users,
        });
        std::iter::once(ColumnName::Base).chain(minutes).chain(categories).collect()
    }

    /// The categories of events that are filtered by or counted.
    pub fn categories(&self) -> Vec<Category> {
        let is_counted = |category: &Category| match (self.counted, category) {
            (Aggregation::Errors { .. }, Category::User) => true,
            (Aggregation::Values(by), Category::Attribute(attribute)) => by == *attribute,
            (Aggregation::Categories(all), Category::Attribute(attribute)) => {
                all.contains(attribute)
            }
            _ => false,
        };
        let of_filters: Vec<Category> = self.filters.categories().collect();
        Category::all().filter(|it| of_filters.contains(it) || is_counted(it)).collect()
    }
}
