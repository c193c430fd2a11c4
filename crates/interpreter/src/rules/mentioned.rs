//! A text that the error message contains (rule 8).

use super::{Class, Effect, Reading, Role, View, Word};

pub(super) fn read(view: &View<'_>, at: usize) -> Option<Reading> {
    let context = view.context;
    let category = context.message_category().filter(|_| context.is(at, Class::Mentions))?;
    let next = context.next(at);
    if !context.is_quoted(next) {
        let long = context.element(at).is_some_and(|element| element.tokens.len() > 1);
        let of_label = context.previous(at).is_some_and(|before| {
            matches!(context.role(before), Role::Label | Role::Context(_))
                && !context.is(before, Class::Generic)
                && context.labels(before).iter().any(|label| label.full)
        });
        if of_label || context.names_value(next) || !long && !context.says(at, Word::Mention) {
            return None;
        }
    }
    let denied = context.is(at, Class::NotContains);
    let texts = context.texts(at + 1);
    let end = texts.last()?.0.end;
    let operator = context.text_operator(category, false, denied);
    Some(Reading::new(at..end, Effect::state_texts(category, operator, texts)))
}
