//! What the stages find: conditions and edits, each with its place in the query.

use crate::interpretation::model::Operator;
use crate::interpretation::polarity::Sense;
use crate::interpretation::rules::Fired;

/// A condition that the query states.
#[derive(Debug, Clone)]
pub(crate) struct Condition {
    pub(crate) category: usize,
    pub(crate) operator: Operator,
    pub(crate) value: String,
    /// It joins the category's current filters and does not replace them.
    pub(crate) adds: bool,
    /// The element that states it.
    pub(crate) at: usize,
}

/// Filters that the query removes.
#[derive(Debug, Clone)]
pub(crate) struct Removal {
    pub(crate) category: usize,
    /// Only this value's filter.
    pub(crate) value: Option<String>,
    /// Only filters that deny.
    pub(crate) negative_only: bool,
}

impl Removal {
    /// All filters of a category.
    pub(crate) fn of(category: usize) -> Self {
        Self { category, value: None, negative_only: false }
    }

    /// The filters of one value.
    pub(crate) fn of_value(category: usize, value: &str) -> Self {
        Self { value: Some(value.to_owned()), ..Self::of(category) }
    }
}

/// What the query says, before it meets the current filters.
#[derive(Debug, Default)]
pub(crate) struct Findings {
    pub(crate) conditions: Vec<Condition>,
    pub(crate) removals: Vec<Removal>,
    /// The current filters are dropped.
    pub(crate) reset: bool,
    /// What a reset leaves standing: a category, or one value of it.
    pub(crate) kept: Vec<(usize, Option<String>)>,
    /// Elements at which the speaker corrects herself.
    pub(crate) corrections: Vec<usize>,
    /// The current filters are turned into their opposites.
    pub(crate) flips: bool,
    /// Which rules fired on what.
    pub(crate) trace: Vec<Fired>,
    /// How each element is meant.
    pub(crate) senses: Vec<Sense>,
}
