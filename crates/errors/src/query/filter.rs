//! Filters on the attributes of events (`docs/semantics/error-tracking.md`, "Filters").

use std::collections::BTreeSet;

use shared::json::{FieldError, Fields, Json, JsonPath, ViolationCode, Violations, array, text};

use super::case_folding::folded;
use super::error_filter::{ErrorFilters, ErrorTest};
use crate::ErrorId;
use crate::attribute::{Attribute, user_hash};
use crate::category::{Attributes, Category};
use crate::tag::ERROR_ID;

/// Maximum filters of a query.
const MAX_FILTERS: usize = 20;

/// A condition on one category of an event. An event without a value passes the negative operators
/// and fails the others. No event has the value `""`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Filter {
    category: Category,
    operator: Operator,
    /// The value that the operator compares: folded for parts, a hash for users.
    value: String,
}

impl Filter {
    /// Returns a filter with the value that a client sent.
    pub fn new(category: impl Into<Category>, operator: Operator, value: &str) -> Self {
        let category = category.into();
        let value = match operator {
            Operator::Contains | Operator::NotContains => folded(value),
            _ if category.has_texts() => value.to_owned(),
            _ => user_hash(value).unwrap_or_default(),
        };
        Self { category, operator, value }
    }

    /// `true` if an event with this value of the filter's category passes.
    pub fn matches(&self, value: Option<&str>) -> bool {
        let contains = || value.is_some_and(|value| folded(value).contains(&self.value));
        match self.operator {
            Operator::Is => value == Some(&self.value),
            Operator::IsNot => value != Some(&self.value),
            Operator::Contains => contains(),
            Operator::NotContains => !contains(),
            Operator::IsSet => value.is_some(),
            Operator::IsNotSet => value.is_none(),
        }
    }

    /// `true` if several such filters on one category are alternatives: an event needs to pass only
    /// one.
    fn is_alternative(&self) -> bool {
        matches!(self.operator, Operator::Is | Operator::Contains)
    }
}

/// The subject of a filter.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Filtered {
    Event(Category),
    /// The error that the event belongs to.
    Error,
}

impl Filtered {
    fn parse(name: &str) -> Result<Self, FieldError> {
        if name == ERROR_ID {
            return Ok(Self::Error);
        }
        Category::parse(name).map(Self::Event).ok_or_else(|| {
            let names = Attribute::ALL.into_iter().map(Attribute::as_str).chain([ERROR_ID]);
            let names = names.collect::<Vec<_>>().join(", ");
            let message = format_args!("must be one of {names}, or `tags.` and the key of a tag");
            FieldError::new(ViolationCode::InvalidValue, message)
        })
    }
}

/// A filter of the request.
#[derive(Debug, Clone, PartialEq, Eq)]
enum ReadFilter {
    OnEvents(Filter),
    OnErrors(ErrorTest),
}

shared::named_enum! {
    /// The operator of a filter.
    #[derive(Debug, Clone, Copy, PartialEq, Eq)]
    pub enum Operator {
        /// The value has exactly these bytes.
        Is = "is",
        /// The value is another one, or there is none.
        IsNot = "is_not",
        /// The value contains this text in any case.
        Contains = "contains",
        /// The value does not contain this text, or there is none.
        NotContains = "not_contains",
        /// There is a value.
        IsSet = "is_set",
        /// There is no value.
        IsNotSet = "is_not_set",
    }
}

impl Operator {
    /// Operators that compare numbers. No category has numbers.
    const NUMERIC: [&str; 4] = ["gt", "gte", "lt", "lte"];

    /// Parses the operator of a filter on `filtered`, which is `None` if it is invalid.
    fn for_filter(name: &str, filtered: Option<Filtered>) -> Result<Self, FieldError> {
        let is_allowed = |operator| match filtered {
            Some(Filtered::Error) => matches!(operator, Self::Is | Self::IsNot),
            Some(Filtered::Event(category)) if !category.has_texts() => {
                !matches!(operator, Self::Contains | Self::NotContains)
            }
            _ => true,
        };
        let found = Self::named(name);
        if let Some(operator) = found.filter(|operator| is_allowed(*operator)) {
            return Ok(operator);
        }
        let allowed = Self::ALL.into_iter().filter(|operator| is_allowed(*operator));
        let allowed = allowed.map(Self::as_str).collect::<Vec<_>>().join(", ");
        let message = if found.is_some() && filtered == Some(Filtered::Error) {
            format!("`errorId` can only be compared as a whole; use {allowed}")
        } else if found.is_some() {
            format!("`user` is stored only as a hash, which cannot be searched; use {allowed}")
        } else if Self::NUMERIC.contains(&name) {
            format!("`{name}` compares numbers, but every category is text; use {allowed}")
        } else {
            format!("must be one of {allowed}")
        };
        Err(FieldError::new(ViolationCode::InvalidValue, message))
    }

    fn with_value(
        self,
        filtered: Option<Filtered>,
        value: &str,
    ) -> Result<Option<ReadFilter>, FieldError> {
        if matches!(self, Self::IsSet | Self::IsNotSet) && !value.is_empty() {
            let message = "must be \"\" for `is_set` and `is_not_set`";
            return Err(FieldError::new(ViolationCode::InvalidValue, message));
        }
        Ok(match filtered {
            Some(Filtered::Event(category)) => {
                Some(ReadFilter::OnEvents(Filter::new(category, self, value)))
            }
            Some(Filtered::Error) => self.error_test(value)?,
            None => None,
        })
    }

    fn error_test(self, value: &str) -> Result<Option<ReadFilter>, FieldError> {
        let message = "must be an error ID, which is a UUID";
        let fault = || FieldError::new(ViolationCode::InvalidFormat, message);
        let id = ErrorId::parse(value).ok_or_else(fault)?;
        Ok(match self {
            Self::Is => Some(ReadFilter::OnErrors(ErrorTest::Is(id))),
            Self::IsNot => Some(ReadFilter::OnErrors(ErrorTest::IsNot(id))),
            Self::Contains | Self::NotContains | Self::IsSet | Self::IsNotSet => None,
        })
    }
}

fn read_filter(
    json: &Json<'_>,
    path: &JsonPath<'_>,
    violations: &mut Violations,
) -> Option<ReadFilter> {
    Fields::read(json, path, violations, |fields, violations| {
        let filtered = fields.required("categoryId", violations, text(Filtered::parse));
        let parse_operator = |name: &str| Operator::for_filter(name, filtered);
        let operator = fields.required("operator", violations, text(parse_operator));
        match operator {
            Some(operator) => {
                let filter = |value: &str| operator.with_value(filtered, value);
                fields.required("value", violations, text(filter)).flatten()
            }
            // Also report violations of the value.
            None => fields.required("value", violations, text(|_| Ok(()))).and(None),
        }
    })
}

/// The filters of a query.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct QueryFilters {
    /// The filters on events.
    pub(super) events: EventFilters,
    /// The filters on the errors of events.
    pub(super) errors: ErrorFilters,
}

impl QueryFilters {
    /// Reads the field `filters` of a query: at most 20 of `{categoryId, operator, value}`.
    pub(super) fn read(
        json: &Json<'_>,
        path: &JsonPath<'_>,
        violations: &mut Violations,
    ) -> Option<Self> {
        let (mut events, mut errors) = (Vec::new(), Vec::new());
        for filter in array(MAX_FILTERS, read_filter)(json, path, violations)? {
            match filter {
                ReadFilter::OnEvents(filter) => events.push(filter),
                ReadFilter::OnErrors(test) => errors.push(test),
            }
        }
        Some(Self { events: EventFilters::new(events), errors: ErrorFilters::new(errors) })
    }
}

/// The filters on events. A counted event must pass one filter of each group.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct EventFilters {
    groups: Vec<Alternatives>,
}

/// Filters on one category. An event must pass one of them.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Alternatives {
    category: Category,
    filters: Vec<Filter>,
}

impl EventFilters {
    /// Combines the filters of a query: `is` and `contains` of one category are alternatives, all
    /// others must hold.
    pub fn new(filters: Vec<Filter>) -> Self {
        let mut event_filters = Self::default();
        let (alternatives, others): (Vec<_>, Vec<_>) =
            filters.into_iter().partition(Filter::is_alternative);
        let categories: BTreeSet<Category> =
            alternatives.iter().map(|filter| filter.category).collect();
        for category in categories {
            let of_category = alternatives.iter().filter(|filter| filter.category == category);
            event_filters.require_one_of(category, of_category.cloned().collect());
        }
        for filter in others {
            event_filters.require_one_of(filter.category, vec![filter]);
        }
        event_filters
    }

    /// Adds the filters of another part of the query.
    pub fn require(&mut self, others: Self) {
        self.groups.extend(others.groups);
    }

    /// Requires that events pass one of these filters on a category. Requires nothing if there are
    /// no filters.
    pub(super) fn require_one_of(&mut self, category: Category, filters: Vec<Filter>) {
        if !filters.is_empty() {
            self.groups.push(Alternatives { category, filters });
        }
    }

    /// `true` if every event passes.
    pub fn is_empty(&self) -> bool {
        self.groups.is_empty()
    }

    /// Returns the categories that the filters need.
    pub fn categories(&self) -> BTreeSet<Category> {
        self.groups.iter().map(|group| group.category).collect()
    }

    /// `true` if an event with this value of a category passes the filters on that category.
    pub fn match_value(&self, category: Category, value: Option<&str>) -> bool {
        let mut groups = self.groups.iter().filter(|group| group.category == category);
        groups.all(|group| group.filters.iter().any(|filter| filter.matches(value)))
    }

    /// `true` if an event passes.
    pub fn matches(&self, attributes: &Attributes) -> bool {
        self.groups.iter().all(|Alternatives { category, filters }| {
            let value = attributes.text(*category);
            filters.iter().any(|filter| filter.matches(value))
        })
    }
}

#[cfg(test)]
mod tests;
