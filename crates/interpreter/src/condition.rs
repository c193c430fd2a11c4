//! What the stages find: conditions and edits, each with its place in the query.

use crate::model::{Filter, Operator, Request};
use crate::polarity::Polarity;
use crate::rules::RuleMatch;

/// A condition that the query states.
#[derive(Clone)]
pub(crate) struct Condition {
    pub(crate) category: usize,
    pub(crate) operator: Operator,
    pub(crate) value: String,
    /// It joins the category's current filters and does not replace them.
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

/// Some of the current filters.
pub(crate) struct Selection {
    pub(crate) category: usize,
    /// Only this value's filter.
    pub(crate) value: Option<String>,
    /// Only filters that deny.
    pub(crate) negative_only: bool,
}

impl Selection {
    /// All filters of a category.
    pub(crate) fn of(category: usize) -> Self {
        Self { category, value: None, negative_only: false }
    }

    /// The filters of one value.
    pub(crate) fn of_value(category: usize, value: &str) -> Self {
        Self { value: Some(value.to_owned()), ..Self::of(category) }
    }

    pub(crate) fn has(&self, category: usize, filter: &Filter) -> bool {
        self.category == category
            && self.value.as_ref().is_none_or(|value| *value == filter.value)
            && (!self.negative_only || filter.operator.is_negative())
    }
}

/// What the query says, before it meets the current filters.
#[derive(Default)]
pub(crate) struct Findings {
    pub(crate) conditions: Vec<Condition>,
    pub(crate) removals: Vec<Selection>,
    /// The current filters are dropped.
    pub(crate) reset: bool,
    /// What a reset leaves standing.
    pub(crate) kept: Vec<Selection>,
    /// Elements at which the speaker corrects herself.
    pub(crate) corrections: Vec<usize>,
    /// The current filters are turned into their opposites.
    pub(crate) flips: bool,
    /// Which rules fired on what.
    pub(crate) trace: Vec<RuleMatch>,
    /// How each element is meant.
    pub(crate) senses: Vec<Polarity>,
}
