//! A word that says that a category has no value (rule 10).

use super::{Effect, Operator, Reading, View};

pub(super) fn read(view: &View<'_>, at: usize) -> Option<Reading> {
    let category = view.context.absent_category(at).filter(|_| view.context.is_word(at))?;
    let denied = view.sense(at).is_denied();
    let operator = if denied { Operator::IsSet } else { Operator::IsNotSet };
    Some(Reading::new(at..at + 1, [Effect::state(at, category, operator, "")]))
}
