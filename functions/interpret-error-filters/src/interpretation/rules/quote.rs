//! A quoted text that nothing else reads is looked for in the message (rule 8).

use super::{Effect, Reading, Rule, View};
use crate::interpretation::cue::Class;
use crate::interpretation::weights;

pub(crate) static RULE: Rule = Rule {
    name: "quote",
    read,
    examples: &[
        ("\"out of memory\" on firefox", "", "message contains out of memory; browser is Firefox"),
        ("not \"out of memory\"", "", "message not_contains out of memory"),
    ],
};

fn read(view: &View<'_>, at: usize) -> Option<Reading> {
    let scene = view.scene;
    let category = scene.message_category().filter(|_| scene.is_quoted(at) && scene.is_free(at))?;
    let said =
        |classes: &[Class]| scene.previous(at).is_some_and(|before| scene.is_any(before, classes));
    let denied = said(&[Class::Not, Class::Except, Class::No]);
    let operator = scene.text_operator(category, said(&[Class::Eq]), denied);
    let texts = scene.texts(at);
    let end = texts.last()?.0.end;
    let state = |(elements, value): (std::ops::Range<usize>, String)| Effect::State {
        at: elements.start,
        category,
        operator,
        value,
    };
    let effects = texts.into_iter().map(state).collect();
    Some(Reading::new(at..end, effects, weights::rule::QUOTE))
}
