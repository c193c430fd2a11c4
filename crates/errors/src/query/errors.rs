//! The request of query-errors and the order of its results
//! (`docs/semantics/error-tracking.md`, "Error queries").

use std::cmp::Reverse;

use serde::Serialize;

use shared::json::{FieldError, Fields, Json, JsonPath, ViolationCode, Violations, boolean, text};
use shared::page::Page;
use shared::timestamp::Timestamp;

use super::counted_run::{Accumulator, CountedRun};
use super::day_plan::Counted;
use super::event_query::{EventQuery, read_limit};
use super::users::DistinctUsers;
use crate::attribute::Attribute;
use crate::log::run::{Damaged, Decoder};
use crate::{ErrorId, ErrorRecord, ShownError};

const DEFAULT_LIMIT: u16 = 50;
const MAX_LIMIT: u16 = 100;
/// Maximum users in memory, summed over all errors: a user of several errors counts several times.
const MAX_USERS: usize = 10_000_000;

shared::named_enum! {
    /// The key by which errors are ordered, the largest first.
    #[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
    pub enum ErrorSort {
        /// The time when the error was last seen.
        #[default]
        LastSeen = "lastSeen",
        /// The time when the error was first seen.
        FirstSeen = "firstSeen",
        /// The number of counted events.
        Count = "count",
        /// The number of users of the counted events.
        Users = "users",
    }
}

/// The end of a page.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Position {
    sort: ErrorSort,
    /// The time of the request for the first page, which fixes ranges without an end.
    requested_at: Timestamp,
    /// The sort key of the last error.
    value: i64,
    /// The last error.
    id: ErrorId,
}

impl Position {
    fn read(text: &str) -> Option<Self> {
        let mut parts = text.split('#');
        let position = Self {
            sort: ErrorSort::named(parts.next()?)?,
            requested_at: Timestamp::from_millis(parts.next()?.parse().ok()?),
            value: parts.next()?.parse().ok()?,
            id: ErrorId::parse(parts.next()?)?,
        };
        parts.next().is_none().then_some(position)
    }

    fn write(self) -> String {
        let Self { sort, requested_at, value, id } = self;
        format!("{sort}#{}#{value}#{id}", requested_at.as_millis())
    }
}

/// A query-errors request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ErrorsQuery {
    /// The events that count, of all buckets.
    pub events: EventQuery,
    /// `true` to also return the events of each error by bucket.
    pub with_series: bool,
    sort: ErrorSort,
    limit: usize,
    requested_at: Timestamp,
    after: Option<Position>,
}

impl ErrorsQuery {
    /// Reads the body of a query-errors request received at `now`. `open` decodes a cursor into a
    /// position.
    pub fn read(
        body: &Json<'_>,
        open: impl Fn(&str) -> Result<String, FieldError>,
        now: Timestamp,
    ) -> Result<Self, Violations> {
        Fields::of_body(body, |fields, violations| {
            let sort = fields.optional("sort", violations, text(ErrorSort::parse)).or_default();
            let limit = read_limit(fields, MAX_LIMIT, violations).or_default_with(|| DEFAULT_LIMIT);
            let with_series = fields.optional("series", violations, boolean).or_default();
            let parse_cursor = |cursor: &str| parse_cursor(&open(cursor)?, sort).map(Some);
            let after = fields.optional("cursor", violations, text(parse_cursor)).or_default();
            let requested_at = after.flatten().map_or(now, |after| after.requested_at);
            let events = EventQuery::read(fields, requested_at, violations, None);
            Some(Self {
                events: events?,
                with_series: with_series?,
                sort: sort?,
                limit: usize::from(limit?),
                requested_at,
                after: after?,
            })
        })
    }

    /// Returns a page of the errors with counted events.
    ///
    /// # Errors
    ///
    /// Violations if the errors have too many users.
    pub fn page(
        &self,
        errors: Vec<ErrorRecord>,
        counts: ErrorCounts,
    ) -> Result<Page<RankedError>, Violations> {
        if counts.has_too_many_users() {
            return Err(too_many_users());
        }
        let counted = errors.into_iter().zip(counts.errors).filter(|(_, count)| count.events > 0);
        let ranked = counted.map(|(error, mut count)| {
            let users = count.users.count();
            let series = self.with_series.then_some(count.series);
            let value = match self.sort {
                ErrorSort::LastSeen => error.last_seen.as_millis(),
                ErrorSort::FirstSeen => error.first_seen.as_millis(),
                ErrorSort::Count => i64::try_from(count.events).unwrap_or(i64::MAX),
                ErrorSort::Users => i64::try_from(users).unwrap_or(i64::MAX),
            };
            ((value, error.id), RankedError { error, count: count.events, users, series })
        });
        let is_left =
            |rank: &(i64, ErrorId)| self.after.is_none_or(|after| *rank < (after.value, after.id));
        let mut ranked: Vec<_> = ranked.filter(|(rank, _)| is_left(rank)).collect();
        ranked.sort_unstable_by_key(|(rank, _)| Reverse(*rank));
        let has_more = ranked.len() > self.limit;
        ranked.truncate(self.limit);
        for (_, error) in &mut ranked {
            // Add the empty buckets after the last event.
            if let Some(series) = &mut error.series {
                series.resize(self.events.range.bucket_count(), 0);
            }
        }
        let end = ranked.last().filter(|_| has_more).map(|((value, id), _)| {
            let (sort, requested_at) = (self.sort, self.requested_at);
            Position { sort, requested_at, value: *value, id: *id }.write()
        });
        Ok(Page { items: ranked.into_iter().map(|(_, ranked)| ranked).collect(), end })
    }
}

fn too_many_users() -> Violations {
    let mut violations = Violations::default();
    let message = format_args!(
        "the errors have more than {MAX_USERS} users; use a shorter range or more filters"
    );
    violations.note(&JsonPath::Root, ViolationCode::TooManyItems, message);
    violations
}

fn parse_cursor(position: &str, sort: Option<ErrorSort>) -> Result<Position, FieldError> {
    let fault = |message| FieldError::new(ViolationCode::InvalidValue, message);
    let position = Position::read(position)
        .ok_or_else(|| fault("is not a cursor of this list; send `nextCursor` unchanged"))?;
    if sort.is_some_and(|sort| sort != position.sort) {
        return Err(fault(
            "belongs to a list with another `sort`; send the `sort` of the first page",
        ));
    }
    Ok(position)
}

/// An error of a page and its counts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RankedError {
    /// The error.
    pub error: ErrorRecord,
    /// The number of counted events.
    pub count: u64,
    /// The number of their distinct users.
    pub users: u64,
    /// The number of counted events of each bucket, oldest first. `None` if not requested.
    pub series: Option<Vec<u64>>,
}

impl RankedError {
    /// Returns the error as responses show it.
    pub fn shown(&self) -> MatchingError<'_> {
        let error = self.error.shown(self.count);
        MatchingError { error, users: self.users, series: self.series.as_deref() }
    }
}

/// An error in the response of query-errors.
#[derive(Debug, Clone, Serialize)]
pub struct MatchingError<'e> {
    /// The error, with its number of counted events.
    #[serde(flatten)]
    pub error: ShownError<'e>,
    /// The number of distinct users of these events.
    pub users: u64,
    /// The number of counted events of each bucket.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub series: Option<&'e [u64]>,
}

/// The counts of each error, by its number.
#[derive(Debug, Clone)]
pub struct ErrorCounts {
    errors: Vec<ErrorCount>,
    /// The number of users in memory, summed over all errors.
    users: usize,
    only_stored: bool,
    with_users: bool,
    by_bucket: bool,
}

#[derive(Debug, Clone, Default)]
struct ErrorCount {
    events: u64,
    users: DistinctUsers,
    /// The events of each bucket up to the last one with events, if buckets are counted. At most 32
    /// MB for all errors: a project has about 10,000 errors at most, and a range 401 buckets.
    series: Vec<u64>,
}

impl ErrorCounts {
    /// Counts events, optionally by bucket.
    pub fn of_events(by_bucket: bool) -> Self {
        let (only_stored, with_users) = (false, false);
        Self { errors: Vec::new(), users: 0, only_stored, with_users, by_bucket }
    }

    /// Counts the events of stored errors.
    pub fn of_stored() -> Self {
        Self { only_stored: true, ..Self::of_events(false) }
    }

    /// Counts the events and users of stored errors, and optionally the events by bucket.
    pub fn of_users(by_bucket: bool) -> Self {
        Self { with_users: true, by_bucket, ..Self::of_stored() }
    }

    /// Returns the events of an error.
    pub fn events_of(&self, error: u32) -> u64 {
        self.errors.get(error as usize).map_or(0, |count| count.events)
    }

    /// Returns the events of an error in each bucket, up to the last one with events.
    pub fn series_of(&self, error: u32) -> &[u64] {
        self.errors.get(error as usize).map_or(&[], |count| &count.series)
    }

    /// Returns the events of all errors.
    pub fn all_events(&self) -> u64 {
        self.errors.iter().map(|count| count.events).sum()
    }

    /// Returns the users of the only counted error.
    ///
    /// # Errors
    ///
    /// Violations if it has too many users.
    pub fn users_of_single(mut self) -> Result<u64, Violations> {
        if self.has_too_many_users() {
            return Err(too_many_users());
        }
        Ok(self.errors.iter_mut().map(|count| count.users.count()).sum())
    }

    fn has_too_many_users(&self) -> bool {
        self.users > MAX_USERS
    }

    fn add_events(&mut self, error: u32, bucket: usize, events: u32) -> &mut ErrorCount {
        let index = error as usize;
        if index >= self.errors.len() {
            self.errors.resize_with(index + 1, ErrorCount::default);
        }
        let count = &mut self.errors[index];
        count.events += u64::from(events);
        if self.by_bucket {
            if bucket >= count.series.len() {
                count.series.resize(bucket + 1, 0);
            }
            count.series[bucket] += u64::from(events);
        }
        count
    }

    fn add_event(&mut self, error: u32, bucket: usize, user: Option<u64>) {
        let count = self.add_events(error, bucket, 1);
        if let Some(user) = user {
            let before = count.users.kept();
            count.users.add(user);
            let after = count.users.kept();
            self.users = (self.users + after).saturating_sub(before);
        }
    }
}

impl Accumulator for ErrorCounts {
    fn counted(&self) -> Counted {
        let Self { only_stored, by_bucket, with_users, .. } = *self;
        let categories = if with_users { vec![Attribute::User.into()] } else { Vec::new() };
        Counted { by_bucket, only_stored, categories, ..Counted::default() }
    }

    fn add(&mut self, run: &CountedRun<'_>, decoder: &mut Decoder) -> Result<(), Damaged> {
        if self.has_too_many_users() {
            return Ok(());
        }
        if !self.with_users {
            run.for_each_part(|error, bucket, events| {
                self.add_events(error, bucket, events);
            });
            return Ok(());
        }
        let users = run.columns.users(decoder, &run.base)?;
        run.for_each(|error, bucket, event| {
            self.add_event(error, bucket, users.get(event).copied().flatten());
        });
        Ok(())
    }
}

#[cfg(test)]
mod tests;
