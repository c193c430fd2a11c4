//! A text that the message has in it (rule 8).

use super::{Class, Effect, Reading, Role, Rule, View, Word};

pub(crate) static RULE: Rule = Rule {
    name: "mentioned",
    read,
    examples: &[
        ("errors mentioning out of memory", "", "message contains out of memory"),
        ("hide errors mentioning timeout", "", "message not_contains timeout"),
    ],
};

fn read(view: &View<'_>, at: usize) -> Option<Reading> {
    let scene = view.scene;
    let category = scene.message_category().filter(|_| scene.is(at, Class::Mentions))?;
    let next = scene.next(at);
    if !scene.is_quoted(next) {
        let long = scene.element(at).is_some_and(|element| element.tokens.len() > 1);
        let of_label = scene.previous(at).is_some_and(|before| {
            matches!(scene.role(before), Role::Label | Role::Context(_))
                && !scene.is(before, Class::Generic)
                && scene.labels(before).iter().any(|label| label.full)
        });
        if of_label || scene.names_value(next) || !long && !scene.says(at, Word::Mention) {
            return None;
        }
    }
    let denied = scene.is(at, Class::NotContains);
    let mut start = at + 1;
    while scene.says(start, Word::BeforeQuote) && scene.is_quoted(start + 1) {
        start += 1;
    }
    let texts = scene.texts(start);
    let end = texts.last()?.0.end;
    let operator = scene.text_operator(category, false, denied);
    Some(Reading::new(at..end, Effect::state_texts(category, operator, texts)))
}
