//! The findings of the stages: conditions and edits, each with its place in the query.

use crate::model::{Filter, Operator, Request};
use crate::polarity::Polarity;
use crate::rules::RuleMatch;

/// A condition that the query states.
#[derive(Clone)]
pub(crate) struct Condition {
    pub(crate) category: usize,
    pub(crate) operator: Operator,
    pub(crate) value: String,
    /// `true` if it is added to the category's current filters instead of replacing them.
    pub(crate) adds: bool,
    /// The element that states it.
    pub(crate) at: usize,
}

impl Condition {
    pub(crate) fn filter(&self, request: &Request) -> Option<Filter> {
        let category_id = request.categories.get(self.category)?.id.clone();
        Some(Filter { category_id, operator: self.operator, value: self.value.clone() })
    }
}

/// A selection of current filters.
pub(crate) struct Selection {
    pub(crate) category: usize,
    /// The value of the selected filters. `None`: any value.
    pub(crate) value: Option<String>,
    /// `true` if only negative filters are selected.
    pub(crate) negative_only: bool,
}

impl Selection {
    /// Selects all filters of a category.
    pub(crate) fn of(category: usize) -> Self {
        Self { category, value: None, negative_only: false }
    }

    /// Selects the filters with one value.
    pub(crate) fn of_value(category: usize, value: &str) -> Self {
        Self { value: Some(value.to_owned()), ..Self::of(category) }
    }

    pub(crate) fn has(&self, category: usize, filter: &Filter) -> bool {
        self.category == category
            && self.value.as_ref().is_none_or(|value| *value == filter.value)
            && (!self.negative_only || filter.operator.is_negative())
    }
}

/// The meaning of the query, before it is applied to the current filters.
#[derive(Default)]
pub(crate) struct Findings {
    pub(crate) conditions: Vec<Condition>,
    pub(crate) removals: Vec<Selection>,
    /// `true` if the query drops the current filters.
    pub(crate) reset: bool,
    /// The filters that survive a reset.
    pub(crate) kept: Vec<Selection>,
    /// Elements at which the speaker corrects an earlier condition.
    pub(crate) corrections: Vec<usize>,
    /// `true` if the query inverts the current filters.
    pub(crate) flips: bool,
    /// The rules that matched, with their elements.
    pub(crate) trace: Vec<RuleMatch>,
    /// The polarity of each element.
    pub(crate) senses: Vec<Polarity>,
}
