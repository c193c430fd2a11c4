//! What queries that count events have in common: which events count
//! (`docs/semantics/error-tracking.md`, "Timeseries").

use shared::json::{FieldError, Fields, JsonPath, ViolationCode, Violations, number, text};
use shared::json_number::JsonNumber;
use shared::timestamp::Timestamp;

use super::error_filter::ErrorFilters;
use super::errors::ErrorOutline;
use super::filter::{EventFilters, QueryFilters};
use super::search::{SearchQuery, SearchedError};
use super::time_bucket::{QueryRange, WrittenTime};
use crate::ErrorStatus;

/// Which events a query counts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EventQuery {
    /// The time range and its buckets.
    pub range: QueryRange,
    /// The status that errors must have now; `None` for any.
    pub status: Option<ErrorStatus>,
    /// What errors must contain.
    pub search: SearchQuery,
    /// What events must pass, those of the search included.
    pub event_filters: EventFilters,
    /// Which errors count, by their identifiers.
    pub error_filters: ErrorFilters,
}

/// Reads how many buckets are shown, where a query has any; `None` if that is invalid.
pub(super) type ReadBucketLimit = fn(&Fields<'_, '_, '_>, &mut Violations) -> Option<Option<u16>>;

impl EventQuery {
    /// All events of a range.
    pub fn all(range: QueryRange) -> Self {
        Self {
            range,
            status: None,
            search: SearchQuery::default(),
            event_filters: EventFilters::default(),
            error_filters: ErrorFilters::default(),
        }
    }

    /// Reads the members `from`, `to`, `searchQuery`, `status` and `filters` of a query, as it is asked
    /// at `now`.
    pub(super) fn read(
        fields: &Fields<'_, '_, '_>,
        now: Timestamp,
        violations: &mut Violations,
        read_bucket_limit: ReadBucketLimit,
    ) -> Option<Self> {
        let range = read_range(fields, now, violations, read_bucket_limit);
        let search = fields.optional("searchQuery", violations, text(SearchQuery::parse));
        let parse_status = |name: &str| ErrorStatus::parse(name).map(Some);
        let status = fields.optional("status", violations, text(parse_status));
        let filters = fields.optional("filters", violations, QueryFilters::read);
        let search = search.or_default()?;
        let QueryFilters { events: mut event_filters, errors: error_filters } =
            filters.or_default()?;
        event_filters.require(search.event_filters().clone());
        let status = status.or_default()?;
        Some(Self { range: range?, status, search, event_filters, error_filters })
    }

    /// Whether every error counts, whatever is known of it.
    pub fn wants_every_error(&self) -> bool {
        self.status.is_none() && !self.asks_for_texts() && self.error_filters.is_empty()
    }

    /// Whether the texts of an error tell whether it counts.
    pub fn asks_for_texts(&self) -> bool {
        !self.search.matches_every_error()
    }

    /// Whether the events of an error count.
    pub fn wants(&self, error: &ErrorOutline, texts: &SearchedError<'_>) -> bool {
        self.error_filters.matches(error.id)
            && self.status.is_none_or(|status| status == error.status)
            && self.search.matches(texts)
    }
}

fn read_range(
    fields: &Fields<'_, '_, '_>,
    now: Timestamp,
    violations: &mut Violations,
    read_bucket_limit: ReadBucketLimit,
) -> Option<QueryRange> {
    let from = fields.optional("from", violations, number(parse_time)).or_default();
    let to = fields.optional("to", violations, number(parse_time)).or_default();
    let limit = read_bucket_limit(fields, violations);
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
fn parse_time(written: &str) -> Result<Option<WrittenTime>, FieldError> {
    let message = "must be a number of milliseconds since the Unix epoch";
    let fault = || FieldError::new(ViolationCode::InvalidFormat, message);
    JsonNumber::parse(written).map(WrittenTime::new).map(Some).ok_or_else(fault)
}

/// Reads an optional limit, which is there: a whole number from 1 on.
pub(super) fn parse_limit(written: &str, most: u16) -> Result<Option<u16>, FieldError> {
    let limit = JsonNumber::parse(written).and_then(|limit| limit.as_integer());
    let limit = limit.and_then(|limit| u16::try_from(limit).ok());
    limit.filter(|limit| (1..=most).contains(limit)).map(Some).ok_or_else(|| {
        let message = format_args!("must be a whole number from 1 to {most}");
        FieldError::new(ViolationCode::OutOfRange, message)
    })
}
