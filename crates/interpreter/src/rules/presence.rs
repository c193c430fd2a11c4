//! A label has a value, or none (rule 10).

use super::{Effect, Reading, View};

pub(super) fn read(view: &View<'_>, at: usize) -> Option<Reading> {
    let (category, operator, end) = view.context.presence_said(at)?;
    Some(Reading::new(at..end, [Effect::state(at, category, operator, "")]))
}
