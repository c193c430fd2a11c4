//! Removes the filters of a category that can have any value.

use super::{Effect, Reading, Selection, View};

pub(super) fn read(view: &View<'_>, at: usize) -> Option<Reading> {
    let any = view.context.any_phrase(at)?;
    let removed = any.labels.into_iter().map(|(_, category)| Selection::of(category));
    Some(Reading::new(at..any.end, removed.map(Effect::Remove)))
}
