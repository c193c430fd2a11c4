//! Keeps the filters of a category.

use super::{Class, Reading, Rule, View};

pub(crate) static RULE: Rule = Rule {
    name: "kept-label",
    read,
    examples: &[("leave the browser as is", "browser is Chrome", "browser is Chrome")],
};

fn read(view: &View<'_>, at: usize) -> Option<Reading> {
    let kept = view.context.is_label(at) && view.context.is(at + 1, Class::AfterKeep);
    kept.then(|| Reading::new(at..at + 2, []))
}
