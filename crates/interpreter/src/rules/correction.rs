//! A correction drops earlier conditions on the category that follows it.

use super::{Class, Effect, Reading, View};

pub(super) fn read(view: &View<'_>, at: usize) -> Option<Reading> {
    let slip = view.context.is_interjection(at) || view.context.is(at, Class::Correction);
    slip.then(|| Reading::new(at..at + 1, [Effect::Correct]))
}
