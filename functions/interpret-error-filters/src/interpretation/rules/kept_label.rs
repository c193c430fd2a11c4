//! A category's filters stay as they are.

use super::{Reading, Rule, View};
use crate::interpretation::context::Role;
use crate::interpretation::cue::Class;
use crate::interpretation::weights;

pub(crate) static RULE: Rule = Rule {
    name: "kept-label",
    read,
    examples: &[("leave the browser as is", "browser is Chrome", "browser is Chrome")],
};

fn read(view: &View<'_>, at: usize) -> Option<Reading> {
    let label = matches!(view.scene.role(at), Role::Label(_));
    let kept = label && view.scene.is(at + 1, Class::AfterKeep);
    let effects = Vec::new();
    kept.then_some(Reading::new(at..at + 2, effects, weights::rule::KEPT))
}
