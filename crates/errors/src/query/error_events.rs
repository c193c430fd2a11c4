//! The request of query-error-events (`docs/semantics/error-tracking.md`, "Events of an error").

use shared::json::{FieldError, Fields, Json, ViolationCode, Violations, text};
use shared::timestamp::Timestamp;

use super::error_filter::{ErrorFilters, ErrorTest};
use super::event_query::{EventQuery, read_limit};
use crate::{ErrorId, EventId};

const DEFAULT_LIMIT: u16 = 1;
const MAX_LIMIT: u16 = 100;

shared::named_enum! {
    /// The order of an error's events.
    #[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
    pub enum EventOrder {
        /// The newest first.
        #[default]
        Newest = "newest",
        /// The oldest first.
        Oldest = "oldest",
    }
}

/// A query-error-events request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ErrorEventsQuery {
    /// The events that match.
    pub events: EventQuery,
    /// The order of the events.
    pub order: EventOrder,
    /// The first event to return.
    pub event: Option<EventId>,
    /// Maximum events of a page.
    pub limit: u32,
    /// The position after which the page begins.
    pub after: Option<String>,
    requested_at: Timestamp,
}

impl ErrorEventsQuery {
    /// Reads the body of a request for the events of an error, received at `now`. `open` decodes a
    /// cursor.
    pub fn read(
        body: &Json<'_>,
        error: ErrorId,
        open: impl Fn(&str) -> Result<String, FieldError>,
        now: Timestamp,
    ) -> Result<Self, Violations> {
        Fields::of_body(body, |fields, violations| {
            let order = fields.optional("order", violations, text(EventOrder::parse)).or_default();
            let event = fields.optional("event", violations, text(parse_event)).or_default();
            let limit = read_limit(fields, MAX_LIMIT, violations).or_default_with(|| DEFAULT_LIMIT);
            let parse_cursor = |cursor: &str| parse_position(&open(cursor)?).map(Some);
            let after = fields.optional("cursor", violations, text(parse_cursor)).or_default();
            let requested_at = after.as_ref().and_then(|it| it.as_ref()).map_or(now, |it| it.0);
            let events = EventQuery::read(fields, requested_at, violations, None);
            Some(Self {
                events: events?.of_error(error),
                order: order?,
                event: event?,
                limit: u32::from(limit?),
                after: after?.map(|(_, after)| after),
                requested_at,
            })
        })
    }

    /// Returns the position of a page that ends at a key. The end of an open range stays the same
    /// on all pages.
    pub fn position(&self, end: &str) -> String {
        format!("{}#{end}", self.requested_at.as_millis())
    }
}

fn parse_event(text: &str) -> Result<Option<EventId>, FieldError> {
    let fault = |error| FieldError::new(ViolationCode::InvalidFormat, error);
    EventId::parse(text).map(Some).map_err(fault)
}

fn parse_position(position: &str) -> Result<(Timestamp, String), FieldError> {
    let read = position.split_once('#').and_then(|(requested_at, after)| {
        Some((Timestamp::from_millis(requested_at.parse().ok()?), after.to_owned()))
    });
    let message = "is not a cursor of this list; send `nextCursor` unchanged";
    read.ok_or_else(|| FieldError::new(ViolationCode::InvalidValue, message))
}

impl EventQuery {
    /// Returns the query for the events of one error.
    #[must_use]
    pub fn of_error(mut self, error: ErrorId) -> Self {
        if self.error_filters.matches(error) {
            self.error_filters = ErrorFilters::new([ErrorTest::Is(error)]);
        } else {
            let tests = [ErrorTest::Is(error), ErrorTest::IsNot(error)];
            self.error_filters = ErrorFilters::new(tests);
        }
        self
    }
}
