//! A category has a value, or none: 0 for a number (rules 9 and 10).

use super::{Effect, Kind, Operator, Reading, View};

pub(super) fn read(view: &View<'_>, at: usize) -> Option<Reading> {
    let context = view.context;
    let denied = view.sense(at).is_denied();
    let (category, operator, end) = if denied && context.is_label(at) {
        let category = context.best_label(at)?.category;
        (category, Operator::IsNotSet, at + 1)
    } else if let Some(category) = context.absent_category(at).filter(|_| context.is_word(at)) {
        // "unassigned", "isn't unassigned"
        (category, if denied { Operator::IsSet } else { Operator::IsNotSet }, at + 1)
    } else {
        context.presence_said(at)?
    };
    let (operator, value) = match context.catalog.kind(category) {
        Kind::Boolean => return None,
        Kind::Numeric => (Operator::Is, "0"),
        Kind::Text | Kind::Array => (operator, ""),
    };
    Some(Reading::new(at..end, [Effect::state(at, category, operator, value)]))
}
