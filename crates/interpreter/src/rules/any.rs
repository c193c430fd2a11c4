//! Removes the filters of categories that can have any value, or that do not matter.

use super::{Effect, Reading, Selection, View};

pub(super) fn read(view: &View<'_>, at: usize) -> Option<Reading> {
    let any = view.context.any_phrase(at)?;
    let removed = any.labels.into_iter().map(|(_, category)| Selection::of(category));
    Some(Reading::new(at..any.end, removed.map(Effect::Remove)))
}
