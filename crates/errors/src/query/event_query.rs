//! The common part of queries that count events: the selection of events
//! (`docs/semantics/error-tracking.md`, "Timeseries").

use shared::json::{Field, FieldError, Fields, JsonPath, ViolationCode, Violations, number, text};
use shared::json_number::JsonNumber;
use shared::timestamp::Timestamp;

use super::error_filter::ErrorFilters;
use super::filter::{EventFilters, QueryFilters};
use super::search::SearchQuery;
use super::time_bucket::{QueryRange, WrittenTime};
use crate::tag::TagKey;
use crate::{ErrorRecord, ErrorStatus};

/// The events that a query counts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EventQuery {
    /// The time range and its buckets.
    pub range: QueryRange,
    /// The current status of the errors. `None` for any.
    pub status: Option<ErrorStatus>,
    /// The search that errors must match.
    pub search: SearchQuery,
    /// The filters that events must pass, including those of the search.
    pub event_filters: EventFilters,
    /// The filters on error IDs.
    pub error_filters: ErrorFilters,
    /// The filters on events without those of the search.
    pub own_filters: EventFilters,
}

impl EventQuery {
    /// Returns a query of all events of a range.
    pub fn all(range: QueryRange) -> Self {
        Self {
            range,
            status: None,
            search: SearchQuery::default(),
            event_filters: EventFilters::default(),
            error_filters: ErrorFilters::default(),
            own_filters: EventFilters::default(),
        }
    }

    /// Reads the search again, in projects with these tags.
    pub fn recognize_tags(&mut self, tags: &[TagKey]) {
        self.search = std::mem::take(&mut self.search).with_tags(tags);
        self.event_filters = self.own_filters.clone();
        self.event_filters.require(self.search.event_filters().clone());
    }

    /// Reads the fields `from`, `to`, `searchQuery`, `status` and `filters` of a query received at
    /// `now`. Also reads the `limit` of buckets, up to `max_buckets` if given.
    pub(super) fn read(
        fields: &Fields<'_, '_, '_>,
        now: Timestamp,
        violations: &mut Violations,
        max_buckets: Option<u16>,
    ) -> Option<Self> {
        let range = read_range(fields, now, violations, max_buckets);
        let search = fields.optional("searchQuery", violations, text(SearchQuery::parse));
        let parse_status = |name: &str| ErrorStatus::parse(name).map(Some);
        let status = fields.optional("status", violations, text(parse_status));
        let filters = fields.optional("filters", violations, QueryFilters::read);
        let search = search.or_default()?;
        let QueryFilters { events: own_filters, errors: error_filters } = filters.or_default()?;
        let mut event_filters = own_filters.clone();
        event_filters.require(search.event_filters().clone());
        let status = status.or_default()?;
        Some(Self { range: range?, status, search, event_filters, error_filters, own_filters })
    }

    /// `true` if all errors match.
    pub fn matches_every_error(&self) -> bool {
        self.status.is_none() && self.search.matches_every_error() && self.error_filters.is_empty()
    }

    /// `true` if a stored error matches, so its events count.
    pub fn matches(&self, error: &ErrorRecord) -> bool {
        self.error_filters.matches(error.id)
            && self.status.is_none_or(|status| status == error.status)
            && self.search.matches(&error.description)
    }
}

fn read_range(
    fields: &Fields<'_, '_, '_>,
    now: Timestamp,
    violations: &mut Violations,
    max_buckets: Option<u16>,
) -> Option<QueryRange> {
    let from = fields.optional("from", violations, number(parse_time)).or_default();
    let to = fields.optional("to", violations, number(parse_time)).or_default();
    let limit = max_buckets.map_or(Field::Absent, |most| read_limit(fields, most, violations));
    let (from, to) = (from?, to?);
    // Check the range even if the limit is invalid: a response lists all violations.
    let is_valid = limit != Field::Invalid;
    let range = QueryRange::new(from.as_ref(), to.as_ref(), limit.valid(), now).map_err(|fault| {
        let later = if to.is_some() { "to" } else { "from" };
        violations.note(&JsonPath::Root.member(later), ViolationCode::OutOfRange, fault);
    });
    range.ok().filter(|_| is_valid)
}

/// Parses a time that is present.
fn parse_time(written: &str) -> Result<Option<WrittenTime>, FieldError> {
    let message = "must be a number of milliseconds since the Unix epoch";
    let fault = || FieldError::new(ViolationCode::InvalidFormat, message);
    JsonNumber::parse(written).map(WrittenTime::new).map(Some).ok_or_else(fault)
}

/// Reads the field `limit`: a whole number from 1 to `most`.
pub(super) fn read_limit(
    fields: &Fields<'_, '_, '_>,
    most: u16,
    violations: &mut Violations,
) -> Field<u16> {
    let parse = |written: &str| {
        let limit = JsonNumber::parse(written).and_then(|limit| limit.as_integer());
        let limit = limit.and_then(|limit| u16::try_from(limit).ok());
        limit.filter(|limit| (1..=most).contains(limit)).ok_or_else(|| {
            let message = format_args!("must be a whole number from 1 to {most}");
            FieldError::new(ViolationCode::OutOfRange, message)
        })
    };
    fields.optional("limit", violations, number(parse))
}
