//! A text of the error message: after a verb such as "mentions", or in quotes alone (rule 8).

use super::{Class, Effect, Reading, View};

pub(super) fn read(view: &View<'_>, at: usize) -> Option<Reading> {
    let context = view.context;
    let category = context.message_category()?;
    let mentions = context.is(at, Class::Mentions);
    let start = if mentions { at + 1 } else { at };
    if !(mentions || context.is_quoted(at) && context.is_free(at)) {
        return None;
    }
    // In a pasted error, quotes are part of it.
    if !mentions && super::address::is_pasted(context) {
        return None;
    }
    let next = context.next(at);
    if mentions && !context.is_quoted(next) && context.names_value(next) {
        return None;
    }
    let texts = context.texts(start);
    let end = texts.last()?.0.end;
    let exact = !mentions && context.follows_any(at, cues![Eq]);
    let denied = mentions && context.is(at, Class::NotContains);
    let operator = context.text_operator(category, exact, denied);
    Some(Reading::new(at..end, Effect::state_texts(category, operator, texts)))
}
