//! Searches the error message for a quoted text that no other rule reads (rule 8).

use super::{Class, Effect, Reading, View};

pub(super) fn read(view: &View<'_>, at: usize) -> Option<Reading> {
    let context = view.context;
    let category =
        context.message_category().filter(|_| context.is_quoted(at) && context.is_free(at))?;
    // In a pasted error, quotes are part of it.
    if super::address::is_pasted(context) {
        return None;
    }
    let exact = context.follows_any(at, &[Class::Eq]);
    let operator = context.text_operator(category, exact, false);
    let texts = context.texts(at);
    let end = texts.last()?.0.end;
    Some(Reading::new(at..end, Effect::state_texts(category, operator, texts)))
}
