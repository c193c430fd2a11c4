//! A negated label means no value, or 0 for a number (rules 9 and 10).

use super::{Effect, Kind, Operator, Reading, View};

pub(super) fn read(view: &View<'_>, at: usize) -> Option<Reading> {
    let context = view.context;
    let labels = context.as_labels(at);
    let category = labels.iter().find(|label| label.full).or(labels.first())?.category;
    let (operator, value) = match context.catalog.kind(category) {
        _ if !view.sense(at).is_denied() => return None,
        Kind::Boolean => return None,
        Kind::Numeric => (Operator::Is, "0"),
        Kind::Text | Kind::Array => (Operator::IsNotSet, ""),
    };
    Some(Reading::new(at..at + 1, [Effect::state(at, category, operator, value)]))
}
