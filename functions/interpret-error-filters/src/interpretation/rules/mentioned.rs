//! A text that the message has in it (rule 8).

use super::{Effect, Reading, Rule, View};
use crate::interpretation::context::Role;
use crate::interpretation::cue::Class;
use crate::interpretation::weights;
use crate::interpretation::word::Word;

pub(crate) static RULE: Rule = Rule {
    name: "mentioned",
    read,
    examples: &[("errors mentioning out of memory", "", "message contains out of memory")],
};

fn read(view: &View<'_>, at: usize) -> Option<Reading> {
    let scene = view.scene;
    let category = scene.message_category().filter(|_| scene.is(at, Class::Mentions))?;
    let next = scene.next(at);
    let quoted = scene.is_quoted(next);
    let long = scene.element(at).is_some_and(|element| element.tokens.len() > 1);
    let sure = long || scene.says(at, Word::Mention);
    if !quoted && (!sure || matches!(scene.role(next), Role::Values { .. })) {
        return None;
    }
    let before = scene.previous(at);
    let of_label = before.is_some_and(|before| {
        matches!(scene.role(before), Role::Label(_) | Role::Context(_))
            && !scene.is(before, Class::Generic)
            && !scene.labels(before).iter().all(|label| !label.full)
    });
    if of_label && !quoted {
        return None;
    }
    let denied = scene.is(at, Class::NotContains)
        || before.is_some_and(|it| scene.is_any(it, &[Class::Not, Class::Except, Class::No]));
    let mut start = at + 1;
    while scene.says(start, Word::BeforeQuote) && scene.is_quoted(start + 1) {
        start += 1;
    }
    let texts = scene.texts(start);
    let end = texts.last()?.0.end;
    let operator = scene.text_operator(category, false, denied);
    let state = |(elements, value): (std::ops::Range<usize>, String)| Effect::State {
        at: elements.start,
        category,
        operator,
        value,
    };
    let effects = texts.into_iter().map(state).collect();
    Some(Reading::new(at..end, effects, weights::rule::MENTIONED))
}
