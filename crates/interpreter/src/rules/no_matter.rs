//! Removes the filters of a category that does not matter.

use super::{Effect, Reading, Selection, View};

pub(super) fn read(view: &View<'_>, at: usize) -> Option<Reading> {
    let (category, end) = view.context.label_of_no_matter(at)?;
    Some(Reading::new(at..end, [Effect::Remove(Selection::of(category))]))
}
