//! A label and a text of its category (rule 8).

use super::{Class, Effect, ParseContext, Reading, Rule, View, Word};

pub(crate) static RULE: Rule = Rule {
    name: "labelled-text",
    read,
    examples: &[
        ("message contains timeout on firefox", "", "message contains timeout; browser is Firefox"),
        ("message is \"Script error.\"", "", "message is Script error."),
        ("ticket id AB-12", "", "ticket is AB-12"),
        ("ticket id r-12 or r-13", "", "ticket is r-12; ticket is r-13"),
        ("ticket id is M. Oliver", "", "ticket is M. Oliver"),
        ("ticket id is no-reply@acme.io", "", "ticket is no-reply@acme.io"),
        ("message doesn't contain timeout", "", "message not_contains timeout"),
        ("without messages containing timeout", "", "message not_contains timeout"),
        (
            "message contains neither \"a\" nor \"b\"",
            "",
            "message not_contains a; message not_contains b",
        ),
        (
            "message does not contain \"a\" or \"b\"",
            "",
            "message not_contains a; message not_contains b",
        ),
        ("link is not /a, /b or /c", "", "link is_not /a; link is_not /b; link is_not /c"),
        ("link is not /a, firefox", "", "link is_not /a; browser is Firefox"),
        (
            "message contains timeout but not refused",
            "",
            "message contains timeout; message not_contains refused",
        ),
    ],
};

fn read(view: &View<'_>, at: usize) -> Option<Reading> {
    let scene = view.scene;
    let category = scene.open_label(at)?;
    let mut cursor = at + 1;
    while scene.is(cursor, Class::FilterNoun)
        || scene.says(cursor, Word::TextNoun) && !scene.is(cursor, Class::Contains)
    {
        cursor += 1;
    }
    // "no promo code was used" is about presence.
    let absent = scene.follows_any(at, &[Class::No]);
    if absent && scene.is(cursor, Class::Is) && scene.word(cursor) != ":"
        || counts(scene, at, cursor)
    {
        return None;
    }
    let (said, first) = operator(scene, at, cursor, category)?;
    let mut texts = scene.texts(first);
    if said.exact.is_none() && !scene.is_quoted(first) {
        // Without an operator only a quoted text or an identifier follows.
        let identifiers = texts.iter().take_while(|text| scene.is_identifier_at(text.0.start));
        let count = identifiers.count();
        texts.truncate(if first == at + 1 { count } else { 0 });
    }
    let exact = said.exact.unwrap_or(!scene.is_prose(category));
    let mut end = texts.last()?.0.end;
    let stated = |denied: bool, texts| {
        Effect::state_texts(category, scene.text_operator(category, exact, denied), texts)
    };
    let mut effects = stated(said.denied, texts);
    // "subject contains invoice but not refund"
    let other = scene.next(end);
    if !said.denied
        && scene.is(end, Class::Except)
        && (scene.is_quoted(other) || scene.is_word(other))
        && scene.is_other(other)
        && let Some(text) = scene.texts(other).into_iter().next()
    {
        end = text.0.end;
        effects.extend(stated(true, vec![text]));
    }
    Some(Reading::new(at..end, effects))
}

/// "users: >50", where the label is a numeric one too.
fn counts(scene: &ParseContext<'_>, at: usize, cursor: usize) -> bool {
    const COMPARES: [Class; 5] = [Class::Gt, Class::Gte, Class::Lt, Class::Lte, Class::Between];
    let mut amount = cursor;
    while scene.is_any(amount, &[Class::Is, Class::Eq, Class::Ne, Class::Not]) {
        amount += 1;
    }
    scene.labels_number(at) && (scene.is_any(amount, &COMPARES) || scene.is_number(amount))
}

/// What stands between a label and its text.
struct TextOperator {
    denied: bool,
    /// Whether it is the whole text; none where nothing says so.
    exact: Option<bool>,
}

/// What is said between a label and its text, and where the text begins.
fn operator(
    scene: &ParseContext<'_>,
    at: usize,
    mut cursor: usize,
    category: usize,
) -> Option<(TextOperator, usize)> {
    let mut said = TextOperator { denied: false, exact: None };
    while cursor < scene.elements.len() {
        if scene.is_any(cursor, &[Class::AfterAbsent, Class::AfterPresent])
            || scene.speaks_of_bearer(at, cursor)
        {
            return None;
        } else if scene.is(cursor, Class::NotContains) {
            said = TextOperator { denied: true, exact: Some(false) };
        } else if scene.is(cursor, Class::Contains) {
            said.exact = Some(false);
        } else if scene.is(cursor, Class::Ne) {
            said = TextOperator { denied: true, exact: Some(true) };
        } else if scene.is_any(cursor, &[Class::Eq, Class::Is]) {
            let colon = scene.word(cursor) == ":";
            if said.exact.is_none() || scene.is(cursor, Class::Eq) {
                said.exact = Some(!(colon && scene.is_prose(category)));
            }
        } else if scene.is_any(cursor, &[Class::Not, Class::Neither]) {
            said.denied = true;
            let next = scene.next(cursor);
            let named = scene.first_token(next).is_some_and(|token| token.capital)
                || scene.is_quoted(next)
                || scene.is_identifier_at(next);
            if said.exact.is_none() && (named || scene.says(cursor, Word::Copula)) {
                said.exact = Some(true);
            }
        } else if said.exact.is_none()
            || !scene.says(cursor, Word::Determiner)
            || scene.is_quoted(cursor)
            || scene.is_identifier_at(cursor)
        {
            break;
        }
        cursor += 1;
    }
    Some((said, cursor))
}
