//! The request of summarize-error (`docs/semantics/error-tracking.md`, "Error summaries").

use std::collections::BTreeSet;

use shared::json::{Fields, Json, JsonPath, ViolationCode, Violations, array, text};
use shared::timestamp::Timestamp;

use super::breakdown::{MAX_LIMIT, parse_by};
use super::event_query::{EventQuery, read_limit};
use super::time_bucket::{QueryRange, WrittenTime};
use crate::ErrorId;
use crate::category::Category;
use crate::log::day::{minute_of, start_of_minute};

const DEFAULT_LIMIT: u16 = 10;
/// Maximum categories of a request: each is counted separately.
const MAX_CATEGORIES: usize = 6;

/// A summarize-error request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SummaryQuery {
    /// The events that count.
    pub events: EventQuery,
    /// The categories to divide by.
    pub by: Vec<Category>,
    /// Maximum rows with a single value.
    pub limit: usize,
}

impl SummaryQuery {
    /// Reads the body of a request about an error, received at `now`.
    pub fn read(body: &Json<'_>, error: ErrorId, now: Timestamp) -> Result<Self, Violations> {
        Fields::of_body(body, |fields, violations| {
            let by = array(MAX_CATEGORIES, |json, path, violations| {
                text(parse_by)(json, path, violations)
            });
            let by = fields.optional("by", violations, by).or_default();
            let mut seen = BTreeSet::new();
            for (index, category) in by.iter().flatten().enumerate() {
                if !seen.insert(*category) {
                    let path = JsonPath::Root.member("by");
                    let message = "the category is listed twice; remove one";
                    violations.note(&path.item(index), ViolationCode::Duplicate, message);
                }
            }
            let limit = read_limit(fields, MAX_LIMIT, violations).or_default_with(|| DEFAULT_LIMIT);
            let events = EventQuery::read(fields, now, violations, None);
            let limit = usize::from(limit?);
            Some(Self { events: events?.of_error(error), by: by?, limit })
        })
    }
}

/// Returns the query for all events of an error in the minute of `at`. `None` if the minute is no
/// longer counted.
pub fn minute_of_error(error: ErrorId, at: Timestamp, now: Timestamp) -> Option<EventQuery> {
    let minute = minute_of(at);
    let [from, to] = [minute, minute + 1].map(|minute| WrittenTime::from(start_of_minute(minute)));
    let range = QueryRange::new(Some(&from), Some(&to), None, now).ok()?;
    Some(EventQuery::all(range).of_error(error))
}
