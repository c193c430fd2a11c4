//! What has to be read to count one day of a project.

use crate::error_tracking::log::day::{Day, Hours};
use crate::error_tracking::log::segment::ColumnName;

use super::filter::EventFilters;
use super::time_bucket::{BucketSize, QueryRange};

/// How much of a segment a query needs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SegmentPlan {
    /// Nothing.
    Skipped,
    /// Its totals, for these hours.
    Totals(Hours),
    /// Some of its columns, for these hours.
    Columns(Hours, Vec<ColumnName>),
}

/// What has to be read to count one day of a project: each event once.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DayPlan {
    /// For each segment of the day, in their order, what is needed of it.
    pub segments: Vec<SegmentPlan>,
    /// The hours whose events are counted from rows.
    pub rows: Hours,
}

/// What a query asks of events, as far as it decides what has to be read.
#[derive(Debug, Clone, Copy)]
pub struct Demand<'q> {
    /// Which events, by their time.
    pub range: &'q QueryRange,
    /// Which events, by their attributes.
    pub filters: &'q EventFilters,
    /// Whether every error counts, each with one fingerprint: otherwise totals tell nothing.
    pub every_fingerprint_counts: bool,
}

impl DayPlan {
    /// Plans a day whose segments hold the hours of `segments`, which have none in common. Hours
    /// that got events after they were packed are `dirty`.
    pub fn new(demand: &Demand<'_>, day: Day, segments: &[Hours], dirty: Hours) -> Self {
        let wanted = demand.range.hours_of(day);
        let clean: Vec<Hours> =
            segments.iter().map(|hours| hours.common_with(wanted).without(dirty)).collect();
        let rows = clean.iter().fold(wanted, |rows, hours| rows.without(*hours));
        let is_alone =
            rows.is_empty() && clean.iter().filter(|hours| !hours.is_empty()).count() == 1;
        let plan = |(packed, clean): (&Hours, &Hours)| {
            if clean.is_empty() {
                SegmentPlan::Skipped
            } else if demand.totals_suffice(day, *clean, is_alone && packed == clean) {
                SegmentPlan::Totals(*clean)
            } else {
                SegmentPlan::Columns(*clean, demand.columns(day, *clean))
            }
        };
        Self { segments: segments.iter().zip(&clean).map(plan).collect(), rows }
    }
}

impl Demand<'_> {
    /// Fingerprints of hours do not add up to those of a day: there, the day's events must come
    /// from one segment alone, and from all of it.
    fn totals_suffice(&self, day: Day, hours: Hours, is_whole_and_alone: bool) -> bool {
        let size_allows = match self.range.bucket_size() {
            BucketSize::Day => is_whole_and_alone,
            BucketSize::Hour => true,
            BucketSize::Minute | BucketSize::FiveMinutes | BucketSize::HalfHour => false,
        };
        self.every_fingerprint_counts
            && self.filters.is_empty()
            && size_allows
            && hours.is_within(self.range.whole_hours_of(day))
    }

    fn columns(&self, day: Day, hours: Hours) -> Vec<ColumnName> {
        let minutes = self.range.needs_minutes(day, hours).then_some(ColumnName::Minutes);
        let attributes = self.filters.attributes().map(ColumnName::Attribute);
        std::iter::once(ColumnName::Base).chain(minutes).chain(attributes).collect()
    }
}
