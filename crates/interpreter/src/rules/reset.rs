//! Removes all filters except those named after "except", or all filters that the query does not
//! name.

use super::{Class, CueEffect, Effect, Reading, View};

pub(super) fn read(view: &View<'_>, at: usize) -> Option<Reading> {
    let context = view.context;
    if context.is(at, Class::Rest) {
        // "drop the rest"
        let cue = view.sense(at).governor.filter(|it| it.force == CueEffect::Remove)?;
        let direct = context.previous(at) == Some(cue.at);
        return direct.then(|| Reading::new(at..at + 1, [Effect::DropRest]));
    }
    let end = context.reset_end(at).filter(|_| !context.is_forbidden(at))?;
    Some(Reading::new(at..end, [Effect::Reset]))
}
