//! All filters go that were not named.

use super::{Effect, Reading, Rule, View};
use crate::interpretation::cue::Class;
use crate::interpretation::polarity::Force;
use crate::interpretation::weights;

pub(crate) static RULE: Rule = Rule {
    name: "rest",
    read,
    examples: &[("keep the os, lose the rest", "os is iOS; users gt 5", "os is iOS")],
};

fn read(view: &View<'_>, at: usize) -> Option<Reading> {
    let removed = view.sense(at).governor.is_some_and(|it| it.force == Force::Remove);
    let drops = removed && view.scene.is(at, Class::Rest);
    let effects = vec![Effect::DropRest];
    drops.then_some(Reading::new(at..at + 1, effects, weights::rule::EDIT))
}
