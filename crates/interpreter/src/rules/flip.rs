//! Inverts the only current filter.

use super::{Class, Effect, Reading, Rule, View};

pub(crate) static RULE: Rule = Rule {
    name: "flip",
    read,
    examples: &[("flip it", "browser is Chrome", "browser is_not Chrome")],
};

fn read(view: &View<'_>, at: usize) -> Option<Reading> {
    let flips = view.context.is(at, Class::Flip) && !view.context.is_forbidden(at);
    flips.then(|| Reading::new(at..at + 1, [Effect::Flip]))
}
