//! A label and a text of its category, after or before it (rule 8).

use super::{COMPARES, Class, CueSet, Effect, ParseContext, Reading, View, Word};
use crate::context::trimmed;

pub(super) fn read(view: &View<'_>, at: usize) -> Option<Reading> {
    text_after(view, at).or_else(|| text_in_label(view, at))
}

/// Reads a text after its label: "message contains timeout".
fn text_after(view: &View<'_>, at: usize) -> Option<Reading> {
    let context = view.context;
    let category = context.open_label(at)?;
    let mut cursor = at + 1;
    while context.is(cursor, Class::FilterNoun)
        || context.says(cursor, Word::TextNoun) && !context.is(cursor, Class::Contains)
    {
        cursor += 1;
    }
    // "no promo code was used" is about presence.
    let absent = context.follows_any(at, cues![No]);
    if absent && context.is(cursor, Class::Is) && context.word(cursor) != ":"
        || counts(context, at, cursor)
    {
        return None;
    }
    let (said, first) = operator(context, at, cursor, category)?;
    let mut texts = context.texts(first);
    if said.exact.is_none() && !context.is_quoted(first) {
        // Without an operator, only a quoted text or an identifier can follow.
        let identifiers = texts.iter().take_while(|text| context.is_identifier_at(text.0.start));
        let count = identifiers.count();
        texts.truncate(if first == at + 1 { count } else { 0 });
    }
    let exact = said.exact.unwrap_or(!context.is_prose(category));
    let mut end = texts.last()?.0.end;
    let stated = |denied: bool, texts| {
        Effect::state_texts(category, context.text_operator(category, exact, denied), texts)
    };
    let mut effects = stated(said.denied, texts);
    // "subject contains invoice but not refund"
    let other = context.next(end);
    if !said.denied
        && context.is(end, Class::Except)
        && (context.is_quoted(other) || context.is_word(other))
        && context.is_other(other)
        && let Some(text) = context.texts(other).into_iter().next()
    {
        end = text.0.end;
        effects.extend(stated(true, vec![text]));
    }
    Some(Reading::new(at..end, effects))
}

/// `true` if a number follows a label that is also numeric: "users: >50".
fn counts(context: &ParseContext<'_>, at: usize, cursor: usize) -> bool {
    let mut amount = cursor;
    while context.is_any(amount, cues![Is, Eq, Ne, Not]) {
        amount += 1;
    }
    context.labels_number(at) && (context.is_any(amount, COMPARES) || context.is_number(amount))
}

/// The operator between a label and its text.
struct TextOperator {
    denied: bool,
    /// `true` if the text is the whole value. `None` if nothing says so.
    exact: Option<bool>,
}

/// Returns the operator between a label and its text, and the first element of the text.
fn operator(
    context: &ParseContext<'_>,
    at: usize,
    mut cursor: usize,
    category: usize,
) -> Option<(TextOperator, usize)> {
    let mut said = TextOperator { denied: false, exact: None };
    while cursor < context.elements.len() {
        if context.is_any(cursor, cues![AfterAbsent, AfterPresent])
            || context.speaks_of_bearer(at, cursor)
        {
            return None;
        } else if context.is(cursor, Class::NotContains) {
            said = TextOperator { denied: true, exact: Some(false) };
        } else if context.is(cursor, Class::Contains) {
            said.exact = Some(false);
        } else if context.is(cursor, Class::Ne) {
            said = TextOperator { denied: true, exact: Some(true) };
        } else if context.is_any(cursor, cues![Eq, Is]) {
            let colon = context.word(cursor) == ":";
            if said.exact.is_none() || context.is(cursor, Class::Eq) {
                said.exact = Some(!(colon && context.is_prose(category)));
            }
        } else if context.is_any(cursor, cues![Not, Neither]) {
            said.denied = true;
            let next = context.next(cursor);
            let named = context.first_token(next).is_some_and(|token| token.capital)
                || context.is_quoted(next)
                || context.is_identifier_at(next);
            if said.exact.is_none() && (named || context.says(cursor, Word::Copula)) {
                said.exact = Some(true);
            }
        } else if said.exact.is_none()
            || !context.says(cursor, Word::Determiner)
            || context.is_quoted(cursor)
            || context.is_identifier_at(cursor)
        {
            break;
        }
        cursor += 1;
    }
    Some((said, cursor))
}

const VERBS: CueSet = cues![Contains, Mentions, NotContains, No];

/// Reads a text before its label: "timeout in the message".
fn text_in_label(view: &View<'_>, at: usize) -> Option<Reading> {
    let context = view.context;
    let category = context.open_label(at)?;
    let mut link = at.checked_sub(1)?;
    while link > 0 && context.says(link, Word::Possessive) && !context.is(link, Class::InLabel) {
        link -= 1;
    }
    if !context.is(link, Class::InLabel) {
        return None;
    }
    let is_verb = |at: usize| context.is_any(at, VERBS);
    let mut start = link;
    let mut verb = None;
    while let Some(before) = start.checked_sub(1) {
        if is_verb(before) {
            verb = Some(before);
            break;
        }
        let ends = context.is_boundary(before) || context.is_any(before, cues![And, Or]);
        if ends || context.is_used(before) {
            break;
        }
        start = before;
        if context.is_quoted(before) && !before.checked_sub(1).is_some_and(is_verb) {
            break;
        }
    }
    let denied = verb.is_some_and(|verb| context.is_any(verb, cues![NotContains, No]));
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
