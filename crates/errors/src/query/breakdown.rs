//! The request and the answer of breakdown-errors
//! (`docs/semantics/error-tracking.md`, "Errors that filters lead to").

use std::cmp::Reverse;
use std::collections::{HashMap, HashSet};

use serde::Serialize;

use shared::json::{FieldError, Fields, Json, JsonPath, ViolationCode, Violations, number, text};
use shared::projects::named_project::{NamedProject, read_projects};
use shared::timestamp::Timestamp;

use super::count::CountedErrors;
use super::day_plan::{Aggregation, QueryNeeds};
use super::event_query::{EventQuery, parse_limit};
use super::range_counter::{RangeCounts, RunInRange};
use super::tally::{RowTally, counted_error};
use crate::attribute::{Attribute, Category};
use crate::log::row::EventRow;
use crate::log::run::{Damaged, Decoder};

const DEFAULT_LIMIT: u16 = 10;
const MAX_LIMIT: u16 = 100;
/// The most values that are told apart, and the most errors of all of them. They are in memory together,
/// and who reports events can make up values.
const MAX_VALUES: usize = 200_000;
const MAX_ERRORS_OF_VALUES: usize = 2_000_000;

/// A query of a breakdown.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BreakdownQuery {
    /// The projects, each name once. An id and a slug may still be the same project's.
    pub projects: Vec<NamedProject>,
    /// Which events count. All buckets count.
    pub events: EventQuery,
    /// By what they are divided.
    pub by: Attribute,
    /// How many values are answered by themselves.
    pub limit: usize,
}

impl BreakdownQuery {
    /// Reads the body of breakdown-errors, as it is asked at `now`.
    pub fn read(body: &Json<'_>, now: Timestamp) -> Result<Self, Violations> {
        let mut violations = Violations::default();
        let query = Fields::read(body, &JsonPath::Root, &mut violations, |fields, violations| {
            let projects = fields.required("projectIds", violations, read_projects);
            let by = fields.required("by", violations, text(parse_by));
            let parse = |written: &str| parse_limit(written, MAX_LIMIT);
            let limit = fields.optional("limit", violations, number(parse)).or_default();
            let events = EventQuery::read(fields, now, violations, |_, _| Some(None));
            let limit = usize::from(limit?.unwrap_or(DEFAULT_LIMIT));
            Some(Self { projects: projects?, events: events?, by: by?, limit })
        });
        violations.into_result(query)
    }
}

fn parse_by(name: &str) -> Result<Attribute, FieldError> {
    Attribute::parse(name).ok_or_else(|| {
        let names = Attribute::ALL.map(Attribute::name).join(", ");
        let message = if name == Category::User.name() {
            format!(
                "`user` is kept as a hash, which tells nobody apart by name; use one of {names}"
            )
        } else {
            format!("must be one of {names}")
        };
        FieldError::new(ViolationCode::InvalidValue, message)
    })
}

/// A row of the answer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct BreakdownRow {
    /// The value; `None` for events without one, and for the rest.
    pub value: Option<String>,
    /// Its events.
    pub errors: u64,
    /// Their distinct errors.
    pub unique_errors: u64,
    /// Whether it has all that is not answered by itself.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub other: bool,
}

/// Rows of a project, by value and error; one more than all values may have, where there are too many.
#[derive(Debug, Default)]
pub struct RowShares(HashMap<(Option<Box<str>>, u32), u64>);

impl RowTally for RowShares {
    fn add(&mut self, row: &EventRow, demand: &QueryNeeds<'_>, errors: &mut CountedErrors) {
        let Aggregation::Values(by) = demand.counted else { return };
        if self.0.len() > MAX_ERRORS_OF_VALUES {
            return;
        }
        if let Some(error) = counted_error(row, demand, errors) {
            *self.0.entry((row.attributes.get(by).map(Box::from), error)).or_default() += 1;
        }
    }
}

/// The events and errors of each value of an attribute.
#[derive(Debug)]
pub struct ValueShares {
    by: Attribute,
    /// The number of each value.
    values: HashMap<Option<Box<str>>, u32>,
    /// The events of each value, by its number.
    events: Vec<u64>,
    /// The errors of each value: numbers of both.
    errors: HashSet<(u32, u32)>,
    /// How many errors the projects have that ended.
    errors_before: u32,
}

impl ValueShares {
    /// Those of no events yet.
    pub fn new(by: Attribute) -> Self {
        Self {
            by,
            values: HashMap::new(),
            events: Vec::new(),
            errors: HashSet::new(),
            errors_before: 0,
        }
    }

    /// The answer: `limit` values, the one with the most events first, values with as many in their
    /// order, and what is left. Refused where there are more values than can be told apart.
    pub fn into_shares(self, limit: usize) -> Result<Vec<BreakdownRow>, Violations> {
        if self.has_too_many() {
            let mut violations = Violations::default();
            let message = format_args!(
                "there are more than {MAX_VALUES} values, or {MAX_ERRORS_OF_VALUES} errors of them; ask for \
                 a shorter range, or filter"
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
        // Events without a value come last of those with as many.
        let mut values: Vec<(Option<Box<str>>, u32)> = self.values.into_iter().collect();
        values.sort_unstable_by(|(one, one_number), (other, other_number)| {
            let events = |number: &u32| Reverse(self.events[*number as usize]);
            let place = |number, value: &Option<Box<str>>| (events(number), value.is_none());
            place(one_number, one).cmp(&place(other_number, other)).then_with(|| one.cmp(other))
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

    fn number_of(
        values: &mut HashMap<Option<Box<str>>, u32>,
        events: &mut Vec<u64>,
        value: Option<Box<str>>,
    ) -> u32 {
        let next = u32::try_from(values.len()).unwrap_or(u32::MAX);
        *values.entry(value).or_insert_with(|| {
            events.push(0);
            next
        })
    }
}

impl RangeCounts for ValueShares {
    type Rows = RowShares;

    fn counted(&self) -> Aggregation {
        Aggregation::Values(self.by)
    }

    fn add_run(&mut self, run: &RunInRange<'_>, decoder: &mut Decoder) -> Result<(), Damaged> {
        if self.has_too_many() {
            return Ok(());
        }
        let column = run.columns.attribute(self.by, decoder, run.base())?;
        let of_run: Vec<Option<&str>> = column.values().collect();
        // The numbers of the values that count.
        let mut numbers = vec![None; of_run.len()];
        let mut last = None;
        run.for_each(|error, event| {
            let Some(index) = column.indexes().get(event) else { return };
            let index = *index as usize;
            let Some(number) = numbers.get_mut(index) else { return };
            let value = *number.get_or_insert_with(|| {
                let value = of_run.get(index).copied().flatten().map(Box::from);
                Self::number_of(&mut self.values, &mut self.events, value)
            });
            self.events[value as usize] += 1;
            // Runs have events that are alike side by side.
            let pair = (value, self.errors_before + error);
            if last.replace(pair) != Some(pair) {
                self.errors.insert(pair);
            }
        });
        Ok(())
    }

    fn end_project(&mut self, errors: &mut CountedErrors, rows: RowShares) {
        for ((value, error), events) in rows.0 {
            if self.has_too_many() {
                return;
            }
            let value = Self::number_of(&mut self.values, &mut self.events, value);
            self.events[value as usize] += events;
            self.errors.insert((value, self.errors_before + error));
        }
        self.errors_before += errors.count();
    }
}

#[cfg(test)]
mod tests;
