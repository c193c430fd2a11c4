//! Removes all filters, except those named after "except".

use super::{Effect, Reading, View};

pub(super) fn read(view: &View<'_>, at: usize) -> Option<Reading> {
    let end = view.context.reset_end(at).filter(|_| !view.context.is_forbidden(at))?;
    Some(Reading::new(at..end, [Effect::Reset]))
}
