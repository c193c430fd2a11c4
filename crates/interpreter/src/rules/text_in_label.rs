//! A text before its label (rule 8).

use super::{Class, Effect, Reading, View, Word};
use crate::context::trimmed;

const VERBS: [Class; 4] = [Class::Contains, Class::Mentions, Class::NotContains, Class::No];

pub(super) fn read(view: &View<'_>, at: usize) -> Option<Reading> {
    let context = view.context;
    let category = context.open_label(at)?;
    let mut link = at.checked_sub(1)?;
    while link > 0 && context.says(link, Word::Possessive) && !context.is(link, Class::InLabel) {
        link -= 1;
    }
    if !context.is(link, Class::InLabel) {
        return None;
    }
    let is_verb = |at: usize| context.is_any(at, &VERBS);
    let mut start = link;
    let mut verb = None;
    while let Some(before) = start.checked_sub(1) {
        if is_verb(before) {
            verb = Some(before);
            break;
        }
        let ends = context.is_boundary(before) || context.is_any(before, &[Class::And, Class::Or]);
        if ends || context.is_used(before) {
            break;
        }
        start = before;
        if context.is_quoted(before) && !before.checked_sub(1).is_some_and(is_verb) {
            break;
        }
    }
    if start >= link {
        return None;
    }
    let denied = verb.is_some_and(|verb| context.is_any(verb, &[Class::NotContains, Class::No]));
    if verb.is_none() {
        start = link - 1;
        let identifier = context.is_identifier_at(start);
        let text = context.is_quoted(start) || identifier || context.is_word(start);
        if !text || !context.is_other(start) {
            return None;
        }
        if identifier {
            start = context.chunk_start(start);
        }
    }
    let tokens = context.element(start)?.tokens.start..context.element(link)?.tokens.start;
    let value = trimmed(context.text(tokens));
    let operator = context.text_operator(category, false, denied);
    let effect = Effect::state(at, category, operator, value);
    Some(Reading::new(verb.unwrap_or(start)..at + 1, [effect]))
}
