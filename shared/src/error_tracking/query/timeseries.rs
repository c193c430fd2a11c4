//! The request and the answer of query-error-timeseries (`docs/semantics/error-tracking.md`,
//! "Timeseries").

use std::collections::HashSet;

use serde::Serialize;

use super::count::Count;
use super::filter::EventFilters;
use super::search::SearchQuery;
use super::time_bucket::{QueryRange, WrittenTime};
use crate::error_tracking::ErrorStatus;
use crate::error_tracking::log::day::Day;
use crate::json::{Fault, Fields, Json, JsonPath, ViolationCode, Violations, array, number, text};
use crate::json_number::JsonNumber;
use crate::projects::project::IdOrSlug;
use crate::timestamp::Timestamp;

const MAX_PROJECTS: usize = 50;
const MAX_LIMIT: u16 = 1_000;

/// A project as a query names it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NamedProject {
    /// The name as it was written, for saying that there is no such project.
    pub written: String,
    /// The id or slug; `None` for a text that can name no project.
    pub name: Option<IdOrSlug>,
}

/// A query of a timeseries.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TimeseriesQuery {
    /// The projects, each name once. An id and a slug may still be the same project's.
    pub projects: Vec<NamedProject>,
    /// The time range and its buckets.
    pub range: QueryRange,
    /// The status that errors must have now; `None` for any.
    pub status: Option<ErrorStatus>,
    /// What errors must contain.
    pub search: SearchQuery,
    /// What events must pass, those of the search included.
    pub event_filters: EventFilters,
}

impl TimeseriesQuery {
    /// Reads the body of query-error-timeseries, as it is asked at `now`.
    pub fn read(body: &Json<'_>, now: Timestamp) -> Result<Self, Violations> {
        let mut violations = Violations::default();
        let query = read_query(body, now, &mut violations);
        violations.into_result(query)
    }
}

fn read_query(
    body: &Json<'_>,
    now: Timestamp,
    violations: &mut Violations,
) -> Option<TimeseriesQuery> {
    Fields::read(body, &JsonPath::Root, violations, |fields, violations| {
        let projects = fields.required("projectIds", violations, read_projects);
        let range = read_range(fields, now, violations);
        let search = fields.optional("searchQuery", violations, text(SearchQuery::parse));
        let parse_status = |name: &str| ErrorStatus::parse(name).map(Some);
        let status = fields.optional("status", violations, text(parse_status));
        let filters = fields.optional("filters", violations, EventFilters::read);
        let search = search.or_default()?;
        let mut event_filters = filters.or_default()?;
        event_filters.require(search.event_filters().clone());
        Some(TimeseriesQuery {
            projects: projects?,
            range: range?,
            status: status.or_default()?,
            search,
            event_filters,
        })
    })
}

fn read_projects(
    json: &Json<'_>,
    path: &JsonPath<'_>,
    violations: &mut Violations,
) -> Option<Vec<NamedProject>> {
    // What is no text is noted, and counts for nothing here.
    let read_name = |json: &Json<'_>, path: &JsonPath<'_>, violations: &mut Violations| {
        Some(text(|name| Ok(name.to_owned()))(json, path, violations))
    };
    let written = array(usize::MAX, read_name)(json, path, violations)?;
    let all_are_texts = written.iter().all(Option::is_some);
    // Duplicates count once, also against the limit.
    let mut seen = HashSet::new();
    let mut projects = Vec::new();
    for written in written.into_iter().flatten() {
        let name = IdOrSlug::parse(&written);
        let identity = name.as_ref().map_or_else(|| written.clone(), IdOrSlug::to_string);
        if seen.insert(identity) {
            projects.push(NamedProject { written, name });
        }
    }
    if projects.is_empty() && all_are_texts {
        violations.note(path, ViolationCode::TooFewItems, "at least one project is needed");
        return None;
    }
    if projects.len() > MAX_PROJECTS {
        let count = projects.len();
        let message =
            format_args!("at most {MAX_PROJECTS} projects are allowed; there are {count}");
        violations.note(path, ViolationCode::TooManyItems, message);
        return None;
    }
    all_are_texts.then_some(projects)
}

fn read_range(
    fields: &Fields<'_, '_, '_>,
    now: Timestamp,
    violations: &mut Violations,
) -> Option<QueryRange> {
    let from = fields.optional("from", violations, number(parse_time)).or_default();
    let to = fields.optional("to", violations, number(parse_time)).or_default();
    let limit = fields.optional("limit", violations, number(parse_limit)).or_default();
    let (from, to) = (from?, to?);
    // A range is also checked beside a wrong limit: all violations are answered at once.
    let shown = limit.flatten();
    let range = QueryRange::new(from.as_ref(), to.as_ref(), shown, now).map_err(|fault| {
        let later = if to.is_some() { "to" } else { "from" };
        violations.note(&JsonPath::Root.member(later), ViolationCode::OutOfRange, fault);
    });
    limit.and(range.ok())
}

/// Reads an optional time, which is there.
fn parse_time(written: &str) -> Result<Option<WrittenTime>, Fault> {
    let message = "must be a number of milliseconds since the Unix epoch";
    let fault = || Fault::new(ViolationCode::InvalidFormat, message);
    JsonNumber::parse(written).map(WrittenTime::new).map(Some).ok_or_else(fault)
}

/// Reads an optional limit, which is there.
fn parse_limit(written: &str) -> Result<Option<u16>, Fault> {
    let limit = JsonNumber::parse(written).and_then(|limit| limit.as_integer());
    let limit = limit.and_then(|limit| u16::try_from(limit).ok());
    limit.filter(|limit| (1..=MAX_LIMIT).contains(limit)).map(Some).ok_or_else(|| {
        let message = format_args!("must be a whole number from 1 to {MAX_LIMIT}");
        Fault::new(ViolationCode::OutOfRange, message)
    })
}

/// One bucket of the answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Bucket {
    /// The calendar day of its start, in UTC.
    pub date: Day,
    /// Its events.
    pub errors: u64,
    /// Its distinct errors.
    pub unique_errors: u64,
    /// Its start.
    pub bucket_start: Timestamp,
}

impl Bucket {
    /// The answer: a bucket for each count of the range, oldest first.
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
