//! The one current filter is turned into its opposite.

use super::{Effect, Reading, Rule, View};
use crate::interpretation::cue::Class;
use crate::interpretation::weights;

pub(crate) static RULE: Rule = Rule {
    name: "flip",
    read,
    examples: &[("flip it", "browser is Chrome", "browser is_not Chrome")],
};

fn read(view: &View<'_>, at: usize) -> Option<Reading> {
    let effects = vec![Effect::Flip];
    let reading = Reading::new(at..at + 1, effects, weights::rule::EDIT);
    view.scene.is(at, Class::Flip).then_some(reading)
}
