//! Removes all filters that the query does not name.

use super::{Class, CueEffect, Effect, Reading, View};
use crate::polarity::Governor;

pub(super) fn read(view: &View<'_>, at: usize) -> Option<Reading> {
    let direct = view.context.previous(at);
    let removes = |it: Governor| it.force == CueEffect::Remove && direct == Some(it.at);
    let removed = view.sense(at).governor.is_some_and(removes);
    let drops = removed && view.context.is(at, Class::Rest);
    drops.then(|| Reading::new(at..at + 1, [Effect::DropRest]))
}
