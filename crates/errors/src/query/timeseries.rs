//! The request and response of query-error-timeseries
//! (`docs/semantics/error-tracking.md`, "Timeseries").

use serde::Serialize;

use shared::json::{Fields, Json, Violations};
use shared::projects::named_project::{NamedProject, read_projects};
use shared::timestamp::Timestamp;

use super::count::Count;
use super::event_query::EventQuery;
use super::time_bucket::QueryRange;
use crate::log::day::Day;

/// Maximum buckets of a response.
const MAX_LIMIT: u16 = 1_000;

/// A timeseries query.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TimeseriesQuery {
    /// The projects, each name once. An ID and a slug can still name one project.
    pub projects: Vec<NamedProject>,
    /// The events that count, and their buckets.
    pub events: EventQuery,
}

impl TimeseriesQuery {
    /// Reads the body of a query-error-timeseries request received at `now`.
    pub fn read(body: &Json<'_>, now: Timestamp) -> Result<Self, Violations> {
        Fields::of_body(body, |fields, violations| {
            let projects = fields.required("projectIds", violations, read_projects);
            let events = EventQuery::read(fields, now, violations, Some(MAX_LIMIT));
            Some(Self { projects: projects?, events: events? })
        })
    }
}

/// One bucket of the response.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Bucket {
    /// The calendar day of the start, in UTC.
    pub date: Day,
    /// The number of events.
    pub errors: u64,
    /// The number of distinct errors.
    pub unique_errors: u64,
    /// The start of the bucket.
    pub bucket_start: Timestamp,
}

impl Bucket {
    /// Returns a bucket for each count of the range, oldest first.
    pub fn of_counts(range: &QueryRange, counts: &[Count]) -> Vec<Self> {
        let buckets = range.bucket_starts().zip(counts);
        let bucket = |(bucket_start, count): (Timestamp, &Count)| Self {
            date: Day::of(bucket_start),
            errors: count.events,
            unique_errors: count.errors,
            bucket_start,
        };
        buckets.map(bucket).collect()
    }
}

#[cfg(test)]
mod tests;
