//! A category has a value or does not have it (rules 4, 7 and 9).

use super::{Effect, Kind, Operator, Reading, Role, View};

pub(super) fn read(view: &View<'_>, at: usize) -> Option<Reading> {
    let catalog = view.context.catalog;
    let Role::Values { category, ref indexes } = *view.context.role(at) else { return None };
    let array = catalog.kind(category) == Kind::Array;
    let operator = if array { Operator::Contains } else { Operator::Is };
    let operator = if view.sense(at).is_denied() { operator.negated() } else { operator };
    let mut values: Vec<&str> =
        indexes.iter().map(|&index| catalog.value(category, index)).collect();
    values.dedup();
    let state = |value: &str| Effect::state(at, category, operator, value);
    Some(Reading::new(at..at + 1, values.into_iter().map(state)))
}
