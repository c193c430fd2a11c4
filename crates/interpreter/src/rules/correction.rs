//! A correction drops earlier conditions on the category that follows it.

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
    let slip = view.context.is_interjection(at) || view.context.is(at, Class::Correction);
    slip.then(|| Reading::new(at..at + 1, [Effect::Correct]))
}
