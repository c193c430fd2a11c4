//! Removes all filters that the query does not name.

use super::{Class, CueEffect, Effect, Reading, Rule, View};

pub(crate) static RULE: Rule = Rule { name: "rest", read };

fn read(view: &View<'_>, at: usize) -> Option<Reading> {
    let removed = view.sense(at).governor.is_some_and(|it| it.force == CueEffect::Remove);
    let drops = removed && view.context.is(at, Class::Rest);
    drops.then(|| Reading::new(at..at + 1, [Effect::DropRest]))
}
