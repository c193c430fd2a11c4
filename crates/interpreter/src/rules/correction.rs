//! The speaker corrects herself: of the category that follows, what was said before is dropped.

use super::{Class, Effect, Reading, Rule, View};

pub(crate) static RULE: Rule = Rule {
    name: "correction",
    read,
    examples: &[
        ("staging no sorry production", "", "env is production"),
        ("GET, sorry, put", "", "method is PUT"),
        ("under 5 users, actually make that 3", "", "users lt 3"),
    ],
};

fn read(view: &View<'_>, at: usize) -> Option<Reading> {
    let slip = view.scene.is_interjection(at) || view.scene.is(at, Class::Correction);
    slip.then(|| Reading::new(at..at + 1, [Effect::Correct]))
}
