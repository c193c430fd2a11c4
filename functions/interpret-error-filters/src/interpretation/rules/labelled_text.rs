//! A label and a text of its category (rule 8).

use super::{Effect, Reading, Rule, View};
use crate::interpretation::context::{Role, Scene};
use crate::interpretation::cue::Class;
use crate::interpretation::element::Element;
use crate::interpretation::model::Kind;
use crate::interpretation::weights;
use crate::interpretation::word::Word;

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
        (
            "message contains timeout but not refused",
            "",
            "message contains timeout; message not_contains refused",
        ),
    ],
};

const COMPARES: [Class; 5] = [Class::Gt, Class::Gte, Class::Lt, Class::Lte, Class::Between];

fn read(view: &View<'_>, at: usize) -> Option<Reading> {
    let scene = view.scene;
    let category = scene.open_label(at)?;
    let mut cursor = at + 1;
    while scene.is(cursor, Class::FilterNoun)
        || scene.says(cursor, Word::TextNoun) && !scene.is(cursor, Class::Contains)
    {
        cursor += 1;
    }
    let before = scene.previous(at);
    // "no promo code was used" is about presence.
    let absent = before.is_some_and(|before| scene.is(before, Class::No));
    if absent && scene.is(cursor, Class::Is) && scene.word(cursor) != ":"
        || counts(scene, at, cursor)
    {
        return None;
    }
    let denied = before.is_some_and(|it| scene.is_any(it, &[Class::Except, Class::Not]));
    let (mut said, first) = operator(scene, at, cursor, category)?;
    said.denied |= denied;
    let texts = if said.exact.is_some() || scene.is_quoted(first) {
        scene.texts(first)
    } else if first == at + 1 && scene.is_identifier_at(first) {
        // Without an operator only a quoted text or an identifier follows.
        let texts = scene.texts(first).into_iter();
        texts.take_while(|(elements, _)| scene.is_identifier_at(elements.start)).collect()
    } else {
        return None;
    };
    let exact = said.exact.unwrap_or(!scene.is_prose(category));
    let mut end = texts.last()?.0.end;
    let state = |denied: bool| {
        let operator = scene.text_operator(category, exact, denied);
        move |(elements, value): (std::ops::Range<usize>, String)| Effect::State {
            at: elements.start,
            category,
            operator,
            value,
        }
    };
    let mut effects: Vec<Effect> = texts.into_iter().map(state(said.denied)).collect();
    // "subject contains invoice but not refund"
    let other = scene.next(end);
    let text_follows = scene.is_quoted(other) || scene.element(other).is_some_and(Element::is_word);
    if !said.denied
        && scene.is(end, Class::Except)
        && text_follows
        && matches!(scene.role(other), Role::Other)
        && let Some(text) = scene.texts(other).into_iter().next()
    {
        end = text.0.end;
        effects.push(state(true)(text));
    }
    Some(Reading::new(at..end, effects, weights::rule::LABELLED_TEXT))
}

/// "users: >50", where the label is a numeric one too.
fn counts(scene: &Scene<'_>, at: usize, cursor: usize) -> bool {
    let numeric =
        scene.labels(at).iter().any(|label| scene.catalog.kind(label.category) == Kind::Numeric);
    let mut amount = cursor;
    while scene.is_any(amount, &[Class::Is, Class::Eq, Class::Ne, Class::Not]) {
        amount += 1;
    }
    numeric
        && (scene.is_any(amount, &COMPARES)
            || scene.element(amount).is_some_and(|element| element.number.is_some()))
}

/// What stands between a label and its text.
struct Said {
    denied: bool,
    /// Whether it is the whole text; none where nothing says so.
    exact: Option<bool>,
}

/// What is said between a label and its text, and where the text begins.
fn operator(
    scene: &Scene<'_>,
    at: usize,
    mut cursor: usize,
    category: usize,
) -> Option<(Said, usize)> {
    let mut said = Said { denied: false, exact: None };
    while cursor < scene.elements.len() {
        if scene.is_any(cursor, &[Class::AfterAbsent, Class::AfterPresent])
            || scene.speaks_of_bearer(at, cursor)
        {
            return None;
        } else if scene.is(cursor, Class::NotContains) {
            said = Said { denied: true, exact: Some(false) };
        } else if scene.is(cursor, Class::Contains) {
            said.exact = Some(false);
        } else if scene.is(cursor, Class::Ne) {
            said = Said { denied: true, exact: Some(true) };
        } else if scene.is_any(cursor, &[Class::Eq, Class::Is]) {
            let colon = scene.word(cursor) == ":";
            if said.exact.is_none() || scene.is(cursor, Class::Eq) {
                said.exact = Some(!(colon && scene.is_prose(category)));
            }
        } else if scene.is(cursor, Class::Not) {
            said.denied = true;
            let next = scene.next(cursor);
            let token = scene.element(next).and_then(|it| scene.tokens.get(it.tokens.start));
            let named = token.is_some_and(|token| token.capital)
                || scene.is_quoted(next)
                || scene.is_identifier_at(next);
            if said.exact.is_none() && (named || scene.says(cursor, Word::Copula)) {
                said.exact = Some(true);
            }
        } else if said.exact.is_none()
            || !scene.says(cursor, Word::Determiner)
            || scene.is_identifier_at(cursor)
        {
            break;
        }
        cursor += 1;
    }
    Some((said, cursor))
}
