//! The request of query-errors, and how what it counts is ordered
//! (`docs/semantics/error-tracking.md`, "Errors that filters lead to").

use std::cmp::Reverse;
use std::collections::HashMap;

use serde::Serialize;

use shared::json::{
    FieldError, Fields, Json, JsonPath, ViolationCode, Violations, boolean, number, text,
};
use shared::page::Page;
use shared::timestamp::Timestamp;

use super::count::CountedErrors;
use super::day_plan::{Aggregation, QueryNeeds};
use super::event_query::{EventQuery, parse_limit};
use super::range_counter::{RangeCounts, RunInRange};
use super::tally::{RowTally, counted_error};
use super::users::DistinctUsers;
use crate::attribute::UserHash;
use crate::grouping::Fingerprint;
use crate::log::day::minute_of;
use crate::log::row::EventRow;
use crate::log::run::{Damaged, Decoder};
use crate::{ErrorId, ErrorRecord, ErrorStatus, ShownError};

const DEFAULT_LIMIT: u16 = 50;
const MAX_LIMIT: u16 = 100;
/// The most users of all errors together, who are in memory: those of an error count there, whoever else's
/// they are.
const MAX_USERS: usize = 10_000_000;

/// What errors are ordered by, the largest first.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum ErrorSort {
    /// When they were last seen.
    #[default]
    LastSeen,
    /// When they were first seen.
    FirstSeen,
    /// How many of their events are counted.
    Count,
    /// How many users these events have.
    Users,
}

impl ErrorSort {
    const ALL: [(&str, Self); 4] = [
        ("lastSeen", Self::LastSeen),
        ("firstSeen", Self::FirstSeen),
        ("count", Self::Count),
        ("users", Self::Users),
    ];

    fn parse(name: &str) -> Result<Self, FieldError> {
        let found = Self::ALL.iter().find(|(known, _)| *known == name).map(|(_, sort)| *sort);
        found.ok_or_else(|| {
            let known = Self::ALL.map(|(name, _)| name).join(", ");
            FieldError::new(ViolationCode::InvalidValue, format_args!("must be one of {known}"))
        })
    }

    fn name(self) -> &'static str {
        Self::ALL.iter().find(|(_, sort)| *sort == self).map_or("", |(name, _)| name)
    }
}

/// Where a page ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Position {
    sort: ErrorSort,
    /// When the first page was asked for: ranges without an end stay as they were then.
    asked_at: Timestamp,
    /// By what the last error was ordered.
    value: i64,
    /// The last error.
    id: ErrorId,
}

impl Position {
    fn read(text: &str) -> Option<Self> {
        let mut parts = text.split('#');
        let position = Self {
            sort: ErrorSort::parse(parts.next()?).ok()?,
            asked_at: Timestamp::from_millis(parts.next()?.parse().ok()?),
            value: parts.next()?.parse().ok()?,
            id: ErrorId::parse(parts.next()?)?,
        };
        parts.next().is_none().then_some(position)
    }

    fn write(self) -> String {
        let Self { sort, asked_at, value, id } = self;
        format!("{}#{}#{value}#{id}", sort.name(), asked_at.as_millis())
    }
}

/// A query of errors.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ErrorsQuery {
    /// Which events count. All buckets count.
    pub events: EventQuery,
    /// Whether the events of each error are told by bucket.
    pub with_series: bool,
    sort: ErrorSort,
    limit: usize,
    asked_at: Timestamp,
    after: Option<Position>,
}

impl ErrorsQuery {
    /// Reads the body of query-errors, as it is asked at `now`. A cursor is made a position by `open`.
    pub fn read(
        body: &Json<'_>,
        open: impl Fn(&str) -> Result<String, FieldError>,
        now: Timestamp,
    ) -> Result<Self, Violations> {
        let mut violations = Violations::default();
        let query = Fields::read(body, &JsonPath::Root, &mut violations, |fields, violations| {
            let sort = fields.optional("sort", violations, text(ErrorSort::parse)).or_default();
            let parse = |written: &str| parse_limit(written, MAX_LIMIT);
            let limit = fields.optional("limit", violations, number(parse)).or_default();
            let with_series = fields.optional("series", violations, boolean).or_default();
            let parse_cursor = |cursor: &str| parse_cursor(&open(cursor)?, sort).map(Some);
            let after = fields.optional("cursor", violations, text(parse_cursor)).or_default();
            let asked_at = after.flatten().map_or(now, |after| after.asked_at);
            let events = EventQuery::read(fields, asked_at, violations, |_, _| Some(None));
            Some(Self {
                events: events?,
                with_series: with_series?,
                sort: sort?,
                limit: usize::from(limit?.unwrap_or(DEFAULT_LIMIT)),
                asked_at,
                after: after?,
            })
        });
        violations.into_result(query)
    }

    /// The errors of a page, of those that have events that count. Refused where they have more users than
    /// can be told apart.
    pub fn page(
        &self,
        errors: &[ErrorOutline],
        counts: ErrorCounts,
    ) -> Result<Page<RankedError>, Violations> {
        if counts.has_too_many_users() {
            let mut violations = Violations::default();
            let message = format_args!(
                "the errors have more than {MAX_USERS} users; ask for a shorter range, or filter"
            );
            violations.note(&JsonPath::Root, ViolationCode::TooManyItems, message);
            return Err(violations);
        }
        Ok(self.first_page(errors, counts))
    }

    fn first_page(&self, errors: &[ErrorOutline], counts: ErrorCounts) -> Page<RankedError> {
        let ErrorCounts { errors: counts, unpacked, .. } = counts;
        let counted = errors.iter().zip(counts).filter(|(_, count)| count.events > 0);
        let ranked = counted.map(|(error, mut count)| {
            let ranked = RankedError {
                id: error.id,
                last_seen: unpacked
                    .get(&error.fingerprint)
                    .map_or(error.last_seen, |at| error.last_seen.max(*at)),
                count: count.events,
                users: count.users.count(),
                series: self.with_series.then_some(count.series),
            };
            let value = match self.sort {
                ErrorSort::LastSeen => ranked.last_seen.as_millis(),
                ErrorSort::FirstSeen => error.first_seen.as_millis(),
                ErrorSort::Count => i64::try_from(ranked.count).unwrap_or(i64::MAX),
                ErrorSort::Users => i64::try_from(ranked.users).unwrap_or(i64::MAX),
            };
            ((value, ranked.id), ranked)
        });
        let is_left = |place: &(i64, ErrorId)| {
            self.after.is_none_or(|after| *place < (after.value, after.id))
        };
        let mut ranked: Vec<_> = ranked.filter(|(place, _)| is_left(place)).collect();
        ranked.sort_unstable_by_key(|(place, _)| Reverse(*place));
        let has_more = ranked.len() > self.limit;
        ranked.truncate(self.limit);
        for (_, error) in &mut ranked {
            // Buckets after the last of its events.
            if let Some(series) = &mut error.series {
                series.resize(self.events.range.bucket_count(), 0);
            }
        }
        let end = ranked.last().filter(|_| has_more).map(|((value, id), _)| {
            let (sort, asked_at) = (self.sort, self.asked_at);
            Position { sort, asked_at, value: *value, id: *id }.write()
        });
        Page { items: ranked.into_iter().map(|(_, ranked)| ranked).collect(), end }
    }
}

fn parse_cursor(position: &str, sort: Option<ErrorSort>) -> Result<Position, FieldError> {
    let fault = |message| FieldError::new(ViolationCode::InvalidValue, message);
    let position = Position::read(position).ok_or_else(|| fault("is not a cursor of this list"))?;
    if sort.is_some_and(|sort| sort != position.sort) {
        return Err(fault(
            "is of a list in another order; send the `sort` that it was answered to",
        ));
    }
    Ok(position)
}

/// What is known of an error before its events are counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ErrorOutline {
    /// What its events have in common.
    pub fingerprint: Fingerprint,
    /// Its identifier.
    pub id: ErrorId,
    /// Its status.
    pub status: ErrorStatus,
    /// When the first of its events occurred.
    pub first_seen: Timestamp,
    /// When the last of its packed events occurred.
    pub last_seen: Timestamp,
}

impl From<&ErrorRecord> for ErrorOutline {
    fn from(error: &ErrorRecord) -> Self {
        let fingerprint = error.description.fingerprint;
        let ErrorRecord { id, status, first_seen, last_seen, .. } = *error;
        Self { fingerprint, id, status, first_seen, last_seen }
    }
}

/// An error of a page, and what was counted of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RankedError {
    /// Its identifier.
    pub id: ErrorId,
    /// When the last of all its events occurred.
    pub last_seen: Timestamp,
    /// Its events.
    pub count: u64,
    /// Their distinct users.
    pub users: u64,
    /// How many of them each bucket of the range has, oldest first; `None` where nobody asked.
    pub series: Option<Vec<u64>>,
}

impl RankedError {
    /// Returns the error as responses show it.
    pub fn shown<'e>(&'e self, error: &'e ErrorRecord) -> MatchingError<'e> {
        let error = error.shown(self.count, Some(self.last_seen));
        MatchingError { error, users: self.users, series: self.series.as_deref() }
    }
}

/// An error as query-errors answers it.
#[derive(Debug, Clone, Serialize)]
pub struct MatchingError<'e> {
    /// The error, with the count of its events that are counted.
    #[serde(flatten)]
    pub error: ShownError<'e>,
    /// The distinct users of these events.
    pub users: u64,
    /// How many of them each bucket has.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub series: Option<&'e [u64]>,
}

/// What is counted of each error, by its number.
#[derive(Debug, Clone, Default)]
pub struct ErrorCounts {
    errors: Vec<ErrorCount>,
    /// When the last unpacked event of an error occurred, whether it is counted or not.
    unpacked: HashMap<Fingerprint, Timestamp>,
    /// How many users are kept of all errors.
    users: usize,
    by_bucket: bool,
}

#[derive(Debug, Clone, Default)]
struct ErrorCount {
    events: u64,
    users: DistinctUsers,
    /// The events of each bucket up to the last that has any, where these are counted. A project has at
    /// most some 10,000 errors and a range 401 buckets, so those of all errors take 32 MB at most.
    series: Vec<u64>,
}

impl ErrorCount {
    fn add_in_bucket(&mut self, bucket: usize, events: u64) {
        if bucket >= self.series.len() {
            self.series.resize(bucket + 1, 0);
        }
        if let Some(count) = self.series.get_mut(bucket) {
            *count += events;
        }
    }
}

impl ErrorCounts {
    /// Counts of no events yet, with what a query asks for.
    pub fn new(query: &ErrorsQuery) -> Self {
        Self { by_bucket: query.with_series, ..Self::default() }
    }

    fn has_too_many_users(&self) -> bool {
        self.users > MAX_USERS
    }

    fn count_of(&mut self, error: u32) -> Option<&mut ErrorCount> {
        let index = error as usize;
        if index >= self.errors.len() {
            self.errors.resize_with(index + 1, ErrorCount::default);
        }
        self.errors.get_mut(index)
    }

    fn add_in_bucket(&mut self, error: u32, bucket: usize, events: u64) {
        if let Some(count) = self.count_of(error) {
            count.add_in_bucket(bucket, events);
        }
    }

    fn add(&mut self, error: u32, events: u64, users: impl IntoIterator<Item = UserHash>) {
        let Some(count) = self.count_of(error) else { return };
        count.events += events;
        let before = count.users.kept();
        for user in users {
            count.users.add(user);
        }
        let after = count.users.kept();
        self.users = (self.users + after).saturating_sub(before);
    }
}

impl RowTally for ErrorCounts {
    fn add(&mut self, row: &EventRow, demand: &QueryNeeds<'_>, errors: &mut CountedErrors) {
        let last = self.unpacked.entry(row.fingerprint).or_insert(row.occurred_at);
        *last = row.occurred_at.max(*last);
        if let Some(error) = counted_error(row, demand, errors) {
            self.add(error, 1, row.attributes.user());
            if demand.counted == (Aggregation::Errors { by_bucket: true })
                && let Some(bucket) = demand.range.bucket_of(minute_of(row.occurred_at))
            {
                self.add_in_bucket(error, bucket, 1);
            }
        }
    }
}

impl RangeCounts for ErrorCounts {
    type Rows = Self;

    fn counted(&self) -> Aggregation {
        Aggregation::Errors { by_bucket: self.by_bucket }
    }

    fn add_run(&mut self, run: &RunInRange<'_>, decoder: &mut Decoder) -> Result<(), Damaged> {
        if self.has_too_many_users() {
            return Ok(());
        }
        let users = run.columns.users(decoder, run.base())?;
        let user_of = |event: usize| users.of_events().get(event).copied().flatten();
        if self.by_bucket {
            run.for_each_in_buckets(|error, event, bucket| {
                self.add(error, 1, user_of(event));
                self.add_in_bucket(error, bucket, 1);
            });
        } else {
            run.for_each(|error, event| self.add(error, 1, user_of(event)));
        }
        Ok(())
    }

    fn end_project(&mut self, _errors: &mut CountedErrors, rows: Self) {
        self.unpacked = rows.unpacked;
        for (error, count) in (0..).zip(rows.errors) {
            if count.events > 0 {
                self.add(error, count.events, count.users);
                for (bucket, events) in count.series.into_iter().enumerate() {
                    self.add_in_bucket(error, bucket, events);
                }
            }
        }
    }
}

#[cfg(test)]
mod tests;
