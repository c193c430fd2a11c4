//! Replaces one value with another, which joins the remaining filters.

use super::{Effect, Reading, Selection, View};

pub(super) fn read(view: &View<'_>, at: usize) -> Option<Reading> {
    let replaced = view.context.replacement(at).filter(|_| !view.context.is_forbidden(at))?;
    let category = replaced.category;
    let values = replaced.indexes.iter().map(|&index| view.context.catalog.value(category, index));
    let removed = values.map(|value| Effect::Remove(Selection::of_value(category, value)));
    Some(Reading::new(at..replaced.end, removed))
}
