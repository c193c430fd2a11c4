//! The request and response of breakdown-errors
//! (`docs/semantics/error-tracking.md`, "Error queries").

use std::cmp::Reverse;
use std::collections::{HashMap, HashSet};

use serde::Serialize;

use shared::json::{FieldError, Fields, Json, JsonPath, ViolationCode, Violations, text};
use shared::projects::named_project::{NamedProject, read_projects};
use shared::timestamp::Timestamp;

use super::counted_run::{Accumulator, CountedRun};
use super::day_plan::Counted;
use super::event_query::{EventQuery, read_limit};
use crate::attribute::Attribute;
use crate::category::Category;
use crate::log::run::{Damaged, Decoder};

const DEFAULT_LIMIT: u16 = 10;
pub(super) const MAX_LIMIT: u16 = 100;
/// Maximum distinct values, and maximum errors of all values together. Both are in memory, and
/// senders of events can invent values.
const MAX_VALUES: usize = 200_000;
const MAX_ERRORS_OF_VALUES: usize = 2_000_000;

/// A breakdown query.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BreakdownQuery {
    /// The projects, each name once. An ID and a slug can still name one project.
    pub projects: Vec<NamedProject>,
    /// The events that count, of all buckets.
    pub events: EventQuery,
    /// The category whose values are counted.
    pub by: Category,
    /// Maximum rows with a single value.
    pub limit: usize,
}

impl BreakdownQuery {
    /// Reads the body of a breakdown-errors request received at `now`.
    pub fn read(body: &Json<'_>, now: Timestamp) -> Result<Self, Violations> {
        Fields::of_body(body, |fields, violations| {
            let projects = fields.required("projectIds", violations, read_projects);
            let by = fields.required("by", violations, text(parse_by));
            let limit = read_limit(fields, MAX_LIMIT, violations).or_default_with(|| DEFAULT_LIMIT);
            let events = EventQuery::read(fields, now, violations, None);
            let limit = usize::from(limit?);
            Some(Self { projects: projects?, events: events?, by: by?, limit })
        })
    }
}

pub(super) fn parse_by(name: &str) -> Result<Category, FieldError> {
    Category::parse(name).filter(Category::has_texts).ok_or_else(|| {
        let names = Attribute::texts().map(Attribute::as_str).collect::<Vec<_>>().join(", ");
        let message = if name == Attribute::User.as_str() {
            format!(
                "`user` is stored only as a hash, which has no name to show; use one of {names}"
            )
        } else {
            format!("must be one of {names}, or `tags.` and the key of a tag")
        };
        FieldError::new(ViolationCode::InvalidValue, message)
    })
}

/// A row of the response.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct BreakdownRow {
    /// The value. `None` for events without a value, and for the row of the other values.
    pub value: Option<String>,
    /// The number of events.
    pub errors: u64,
    /// The number of distinct errors.
    pub unique_errors: u64,
    /// `true` for the row of all other values.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub other: bool,
}

/// The events and errors of each value of a category.
#[derive(Debug)]
pub struct ValueShares {
    by: Category,
    /// The number of each value.
    values: HashMap<Option<Box<str>>, u32>,
    /// The events of each value, by the number of the value.
    events: Vec<u64>,
    /// The pairs of value number and error number.
    errors: HashSet<(u32, u32)>,
    /// The number of errors of the projects that ended.
    errors_before: u32,
}

impl ValueShares {
    /// Returns empty counts.
    pub fn new(by: Category) -> Self {
        Self {
            by,
            values: HashMap::new(),
            events: Vec::new(),
            errors: HashSet::new(),
            errors_before: 0,
        }
    }

    /// Returns the response: the `limit` values with the most events in descending order, then a
    /// row of the other values. Values with equally many events are in ascending order.
    ///
    /// # Errors
    ///
    /// Violations if there are too many values or errors.
    pub fn into_shares(self, limit: usize) -> Result<Vec<BreakdownRow>, Violations> {
        if self.has_too_many() {
            let mut violations = Violations::default();
            let message = format_args!(
                "has more than {MAX_VALUES} values in the range, or {MAX_ERRORS_OF_VALUES} errors \
                 across them; use a shorter range or more filters"
            );
            violations.note(&JsonPath::Root.member("by"), ViolationCode::TooManyItems, message);
            return Err(violations);
        }
        Ok(self.shares(limit))
    }

    fn has_too_many(&self) -> bool {
        self.values.len() > MAX_VALUES || self.errors.len() > MAX_ERRORS_OF_VALUES
    }

    fn shares(self, limit: usize) -> Vec<BreakdownRow> {
        let mut errors_of = vec![0_u64; self.events.len()];
        for (value, _) in &self.errors {
            errors_of[*value as usize] += 1;
        }
        // Events without a value come after values with equally many events.
        let mut values: Vec<(Option<Box<str>>, u32)> = self.values.into_iter().collect();
        values.sort_unstable_by(|(one, one_number), (other, other_number)| {
            let events = |number: &u32| Reverse(self.events[*number as usize]);
            let rank = |number, value: &Option<Box<str>>| (events(number), value.is_none());
            rank(one_number, one).cmp(&rank(other_number, other)).then_with(|| one.cmp(other))
        });
        let rest = values.split_off(limit.min(values.len()));
        let share = |(value, number): (Option<Box<str>>, u32)| BreakdownRow {
            value: value.map(String::from),
            errors: self.events[number as usize],
            unique_errors: errors_of[number as usize],
            other: false,
        };
        let mut shares: Vec<BreakdownRow> = values.into_iter().map(share).collect();
        if !rest.is_empty() {
            let rest: HashSet<u32> = rest.into_iter().map(|(_, number)| number).collect();
            let errors = self.errors.iter().filter(|(value, _)| rest.contains(value));
            let errors: HashSet<u32> = errors.map(|(_, error)| *error).collect();
            shares.push(BreakdownRow {
                value: None,
                errors: rest.iter().map(|number| self.events[*number as usize]).sum(),
                unique_errors: errors.len() as u64,
                other: true,
            });
        }
        shares
    }
}

impl Accumulator for ValueShares {
    fn counted(&self) -> Counted {
        Counted { categories: vec![self.by], ..Counted::default() }
    }

    fn add(&mut self, run: &CountedRun<'_>, decoder: &mut Decoder) -> Result<(), Damaged> {
        if self.has_too_many() {
            return Ok(());
        }
        let column = run.columns.values(self.by, decoder, &run.base)?;
        let of_run: Vec<Option<&str>> = column.values().collect();
        // The numbers of the values that have counted events.
        let mut numbers = vec![None; of_run.len()];
        let mut last = None;
        run.for_each(|error, _, event| {
            let Some(index) = column.indexes().get(event) else { return };
            let index = *index as usize;
            let Some(number) = numbers.get_mut(index) else { return };
            let value = *number.get_or_insert_with(|| {
                let value = of_run.get(index).copied().flatten().map(Box::from);
                let next = u32::try_from(self.values.len()).unwrap_or(u32::MAX);
                *self.values.entry(value).or_insert_with(|| {
                    self.events.push(0);
                    next
                })
            });
            self.events[value as usize] += 1;
            // In runs, similar events are adjacent.
            let pair = (value, self.errors_before + error);
            if last.replace(pair) != Some(pair) {
                self.errors.insert(pair);
            }
        });
        Ok(())
    }

    fn end_project(&mut self, errors: u32) {
        self.errors_before += errors;
    }
}

#[cfg(test)]
mod tests;
