//! Inverts the only current filter.

use super::{Class, Effect, Reading, View};

pub(super) fn read(view: &View<'_>, at: usize) -> Option<Reading> {
    let flips = view.context.is(at, Class::Flip) && !view.context.is_forbidden(at);
    flips.then(|| Reading::new(at..at + 1, [Effect::Flip]))
}
