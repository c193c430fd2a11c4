//! Stage 6: texts of open categories (rule 8), taken word for word: `url includes /cart`,
//! `"card declined" in the message`, `errors mentioning out of memory`.

use std::ops::Range;

use crate::interpretation::condition::{Condition, Findings};
use crate::interpretation::context::{Role, Scene};
use crate::interpretation::cue::Class;
use crate::interpretation::element::Element;
use crate::interpretation::model::{Kind, Operator};
use crate::interpretation::token::TokenKind;

/// Finds all texts and marks their elements as used.
pub(crate) fn read(scene: &mut Scene<'_>, findings: &mut Findings) {
    for at in 0..scene.elements.len() {
        if scene.elements.get(at).is_some_and(|element| element.used) {
            continue;
        }
        if let Some(category) = open_label(scene, at) {
            let _ = after_label(scene, at, category, findings)
                || before_label(scene, at, category, findings);
        } else if scene.is(at, Class::Mentions) {
            mentioned(scene, at, findings);
        }
    }
    for at in 0..scene.elements.len() {
        if scene.element(at).is_some_and(|element| element.quoted && !element.used)
            && matches!(scene.role(at), Role::Other)
        {
            lone_quote(scene, at, findings);
        }
    }
}

fn open_label(scene: &Scene<'_>, at: usize) -> Option<usize> {
    match scene.role(at) {
        Role::Label(labels) => labels
            .iter()
            .map(|label| label.category)
            .find(|&category| scene.catalog.is_open(category)),
        _ => None,
    }
}

/// "players with double xp", "flights without a diversion": a part of a label (Player report), or
/// the label of a name, only says who has the value that follows.
fn speaks_of_bearer(scene: &Scene<'_>, label: usize, link: usize) -> bool {
    let open = scene.labels(label).iter().filter(|found| scene.catalog.is_open(found.category));
    let mut open = open.peekable();
    let mut value = scene.next(link);
    // "cases that are not closed"
    while scene.is(value, Class::Not) {
        value = scene.next(value);
    }
    let several = matches!(scene.word(link), "are" | "were" | "arent" | "werent");
    open.peek().is_some()
        && open.all(|found| !found.full || !is_prose(scene, found.category))
        && (several || scene.is_any(link, &[Class::WithPresence, Class::No]))
        && matches!(scene.role(value), Role::Values { .. })
}

/// The operator that a text of this category takes.
fn operator(scene: &Scene<'_>, category: usize, exact: bool, denied: bool) -> Operator {
    let positive = if scene.catalog.kind(category) == Kind::Array || !exact {
        Operator::Contains
    } else {
        Operator::Is
    };
    if denied { positive.negated() } else { positive }
}

/// Rule `label-operator-text`: "message contains timeout", "url: /cart", "ticket ABC-1".
fn after_label(scene: &mut Scene<'_>, at: usize, category: usize, findings: &mut Findings) -> bool {
    let mut cursor = at + 1;
    while scene.is_any(cursor, &[Class::FilterNoun])
        || matches!(
            scene.word(cursor),
            "field"
                | "text"
                | "that"
                | "which"
                | "value"
                | "name"
                | "id"
                | "number"
                | "code"
                | "string"
        ) && !scene.is_any(cursor, &[Class::Contains])
    {
        cursor += 1;
    }
    // "no promo code was used" is about presence.
    if scene.previous(at).is_some_and(|before| scene.is(before, Class::No))
        && scene.is(cursor, Class::Is)
        && scene.word(cursor) != ":"
    {
        return false;
    }
    // "users: >50", where the label is a numeric one too.
    let numeric =
        scene.labels(at).iter().any(|label| scene.catalog.kind(label.category) == Kind::Numeric);
    let mut amount = cursor;
    while scene.is_any(amount, &[Class::Is, Class::Eq, Class::Ne, Class::Not]) {
        amount += 1;
    }
    if numeric
        && (scene.is_any(amount, &[Class::Gt, Class::Gte, Class::Lt, Class::Lte, Class::Between])
            || scene.element(amount).is_some_and(|element| element.number.is_some()))
    {
        return false;
    }
    let mut denied = scene.previous(at).is_some_and(|before| {
        scene.is_any(before, &[Class::Except]) || scene.is(before, Class::Not)
    });
    let mut exact = None;
    while cursor < scene.elements.len() {
        let absent = scene.is(cursor, Class::AfterAbsent);
        if absent || scene.is(cursor, Class::AfterPresent) || speaks_of_bearer(scene, at, cursor) {
            return false;
        } else if scene.is_any(cursor, &[Class::NotContains]) {
            denied = true;
            exact = Some(false);
        } else if scene.is(cursor, Class::Contains) {
            exact = Some(false);
        } else if scene.is(cursor, Class::Ne) {
            denied = true;
            exact = Some(true);
        } else if scene.is_any(cursor, &[Class::Eq, Class::Is]) {
            let colon = scene.word(cursor) == ":";
            if exact.is_none() || scene.is(cursor, Class::Eq) {
                exact = Some(!(colon && is_prose(scene, category)));
            }
        } else if scene.is(cursor, Class::Not) {
            denied = true;
            let next = scene.next(cursor);
            let copula = matches!(scene.word(cursor), "is" | "was" | "are" | "isnt" | "wasnt");
            let capital = scene
                .element(next)
                .and_then(|element| scene.tokens.get(element.tokens.start))
                .is_some_and(|token| token.capital);
            if exact.is_none()
                && (copula
                    || capital
                    || scene.element(next).is_some_and(|element| element.quoted)
                    || is_identifier_at(scene, next))
            {
                exact = Some(true);
            }
        } else if !(exact.is_some() && matches!(scene.word(cursor), "the" | "a" | "an" | "to"))
            || is_identifier_at(scene, cursor)
        {
            break;
        }
        cursor += 1;
    }
    let texts = match exact {
        Some(_) => texts(scene, cursor),
        // Without an operator only a quoted text or an identifier follows.
        None if scene.element(cursor).is_some_and(|element| element.quoted) => texts(scene, cursor),
        None if cursor == at + 1 && is_identifier_at(scene, cursor) => {
            let texts = texts(scene, cursor).into_iter();
            texts.take_while(|(elements, _)| is_identifier_at(scene, elements.start)).collect()
        }
        None => return false,
    };
    let exact = exact.unwrap_or(!is_prose(scene, category));
    let end = texts.last().map_or(at, |(elements, _)| elements.end);
    let found =
        push(scene, at, category, operator(scene, category, exact, denied), texts, findings);
    if found && !denied {
        but_not(scene, end, category, exact, findings);
    }
    found
}

/// Rule `text-but-not`: "subject contains invoice but not refund".
fn but_not(
    scene: &mut Scene<'_>,
    at: usize,
    category: usize,
    exact: bool,
    findings: &mut Findings,
) {
    let start = scene.next(at);
    let text_follows =
        scene.element(start).is_some_and(|element| element.quoted || element.is_word())
            && matches!(scene.role(start), Role::Other);
    if scene.is(at, Class::Except) && text_follows {
        let texts = texts(scene, start).into_iter().take(1).collect();
        push(scene, at, category, operator(scene, category, exact, true), texts, findings);
    }
}

/// Rule `text-in-label`: "timeout in the message", "with invoice in the subject".
fn before_label(
    scene: &mut Scene<'_>,
    at: usize,
    category: usize,
    findings: &mut Findings,
) -> bool {
    let Some(link) = at.checked_sub(1).and_then(|_| {
        let mut before = at - 1;
        while matches!(scene.word(before), "the" | "a" | "their" | "its")
            && !scene.is(before, Class::InLabel)
            && before > 0
        {
            before -= 1;
        }
        scene.is(before, Class::InLabel).then_some(before)
    }) else {
        return false;
    };
    let mut start = link;
    let mut verb = None;
    while let Some(before) = start.checked_sub(1) {
        if scene.is_any(before, &[Class::Contains, Class::Mentions, Class::NotContains, Class::No])
        {
            verb = Some(before);
            break;
        }
        let taken = scene.element(before).is_some_and(|element| element.used);
        if taken || scene.is_boundary(before) || scene.is_any(before, &[Class::And, Class::Or]) {
            break;
        }
        start = before;
        if scene.element(before).is_some_and(|element| element.quoted)
            && !before.checked_sub(1).is_some_and(|verb| {
                scene.is_any(
                    verb,
                    &[Class::Contains, Class::Mentions, Class::NotContains, Class::No],
                )
            })
        {
            break;
        }
    }
    if start >= link {
        return false;
    }
    let denied = verb.is_some_and(|verb| {
        scene.is_any(verb, &[Class::NotContains, Class::No])
            || verb.checked_sub(1).is_some_and(|before| scene.is(before, Class::Not))
    });
    if verb.is_none() {
        start = link - 1;
        let sure = scene.element(start).is_some_and(|element| element.quoted)
            || is_identifier_at(scene, start)
            || scene.elements.get(start).is_some_and(Element::is_word);
        if !sure || !matches!(scene.role(start), Role::Other) {
            return false;
        }
        if is_identifier_at(scene, start) {
            start = chunk_start(scene, start);
        }
    }
    let tokens = scene.elements.get(start).map_or(0, |element| element.tokens.start)
        ..scene.elements.get(link).map_or(0, |element| element.tokens.start);
    let text = trimmed(scene.text(tokens.clone()));
    for element in scene.elements.get_mut(verb.unwrap_or(start)..=at).into_iter().flatten() {
        element.used = true;
    }
    add(scene, at, category, operator(scene, category, false, denied), text, findings);
    true
}

fn chunk_start(scene: &Scene<'_>, at: usize) -> usize {
    let mut start = at;
    while start > 0
        && scene
            .elements
            .get(start)
            .and_then(|element| scene.tokens.get(element.tokens.start))
            .is_some_and(|token| token.glued)
    {
        start -= 1;
    }
    start
}

/// Rule `mentioning`: "errors mentioning out of memory" speaks of the message.
fn mentioned(scene: &mut Scene<'_>, at: usize, findings: &mut Findings) {
    let Some(category) = message_category(scene) else { return };
    let quoted = scene.element(scene.next(at)).is_some_and(|element| element.quoted);
    let sure = matches!(
        scene.word(at),
        "mentioning"
            | "mentions"
            | "mention"
            | "mentioned"
            | "saying"
            | "says"
            | "containing"
            | "contains"
            | "contain"
            | "text"
    ) || scene.elements.get(at).is_some_and(|element| element.tokens.len() > 1);
    let value_follows = matches!(scene.role(scene.next(at)), Role::Values { .. });
    if !quoted && (!sure || value_follows) {
        return;
    }
    let before = scene.previous(at);
    if before.is_some_and(|before| {
        matches!(scene.role(before), Role::Label(_) | Role::Context(_))
            && !scene.is(before, Class::Generic)
            && !scene.labels(before).iter().all(|label| !label.full)
    }) && !quoted
    {
        return;
    }
    let denied = before
        .is_some_and(|before| scene.is_any(before, &[Class::Not, Class::Except, Class::No]))
        || scene.is(at, Class::NotContains);
    let mut start = at + 1;
    while matches!(scene.word(start), "the" | "a" | "an" | "text" | "phrase" | "word" | "words")
        && scene.element(start + 1).is_some_and(|element| element.quoted)
    {
        start += 1;
    }
    let texts = texts(scene, start);
    push(scene, at, category, operator(scene, category, false, denied), texts, findings);
}

/// Rule `lone-quote`: a quoted text that names nothing is looked for in the message.
fn lone_quote(scene: &mut Scene<'_>, at: usize, findings: &mut Findings) {
    let Some(category) = message_category(scene) else { return };
    let denied = scene
        .previous(at)
        .is_some_and(|before| scene.is_any(before, &[Class::Not, Class::Except, Class::No]));
    let exact = scene.previous(at).is_some_and(|before| scene.is(before, Class::Eq));
    let texts = texts(scene, at);
    push(scene, at, category, operator(scene, category, exact, denied), texts, findings);
}

/// The open category that holds what an error says.
fn message_category(scene: &Scene<'_>) -> Option<usize> {
    const PROSE: [&[&str]; 3] = [
        &["message", "msg"],
        &[
            "text",
            "title",
            "error",
            "exception",
            "description",
            "summary",
            "body",
            "content",
            "subject",
        ],
        &[
            "note",
            "notes",
            "comment",
            "comments",
            "log",
            "reason",
            "details",
            "stack",
            "trace",
            "stacktrace",
            "output",
        ],
    ];
    PROSE.iter().find_map(|words| {
        (0..scene.catalog.request.categories.len()).find(|&category| {
            scene.catalog.is_open(category)
                && scene.catalog.kind(category) == Kind::Text
                && scene.label_has(category, words)
        })
    })
}

/// Whether the category holds running text, in which one searches.
fn is_prose(scene: &Scene<'_>, category: usize) -> bool {
    !scene.label_has(category, &["id", "code", "number", "ref", "key", "name"])
        && scene.label_has(
            category,
            &[
                "message",
                "msg",
                "text",
                "title",
                "description",
                "note",
                "notes",
                "comment",
                "comments",
                "body",
                "content",
                "subject",
                "summary",
                "url",
                "path",
                "stack",
                "log",
                "query",
                "trace",
                "stacktrace",
                "details",
            ],
        )
}

/// The texts that begin at an element, and the elements that they take.
fn texts(scene: &Scene<'_>, start: usize) -> Vec<(Range<usize>, String)> {
    let mut found = Vec::new();
    let mut at = start;
    while let Some((elements, text)) = one_text(scene, at) {
        if text.is_empty() {
            break;
        }
        at = elements.end;
        found.push((elements, text));
        let mut next = at;
        while scene.is_any(next, &[Class::Or, Class::And, Class::Comma, Class::Nor])
            && !scene.is(next, Class::Add)
        {
            next += 1;
        }
        let joined = next > at
            && (at..next).any(|join| scene.is_any(join, &[Class::Or, Class::And, Class::Nor]));
        let quoted = scene.element(next).is_some_and(|element| element.quoted);
        let word = scene
            .element(next)
            .is_some_and(|element| element.is_word() || is_identifier_at(scene, next))
            && matches!(scene.role(next), Role::Other);
        if next == at || !(quoted || joined && word) {
            break;
        }
        at = next;
    }
    found
}

fn one_text(scene: &Scene<'_>, at: usize) -> Option<(Range<usize>, String)> {
    let first = scene.element(at)?;
    if scene.tokens.get(first.tokens.start)?.kind == TokenKind::Quoted {
        return Some((at..at + 1, scene.text(first.tokens.clone()).to_owned()));
    }
    let chunk = is_identifier_at(scene, at);
    let mut end = at + 1;
    while end < scene.elements.len() {
        let element = scene.elements.get(end)?;
        let glued = scene.tokens.get(element.tokens.start).is_some_and(|token| token.glued);
        // The dot of an initial ends nothing: "M. Oliver".
        let before = scene.elements.get(end - 1)?;
        let initial = scene.word(end) == "." && is_capital(scene.text(before.tokens.clone()));
        let punctuation = !initial
            && scene.is_any(end, &[Class::Comma, Class::Stop, Class::But])
            && !scene.tokens.get(element.tokens.end).is_some_and(|token| token.glued);
        if punctuation || !glued && (chunk || ends_text(scene, end)) {
            break;
        }
        end += 1;
    }
    // A sign that begins the text: the @ of "@gmail.com".
    let sign = first.tokens.start.checked_sub(1).filter(|&before| {
        scene.tokens.get(before).is_some_and(|token| {
            token.kind == TokenKind::Separator
                && matches!(token.folded.as_str(), "@" | "_" | "." | "\\")
        }) && scene.tokens.get(first.tokens.start).is_some_and(|token| token.glued)
    });
    let tokens = sign.unwrap_or(first.tokens.start)..scene.elements.get(end - 1)?.tokens.end;
    Some((at..end, trimmed(scene.text(tokens))))
}

/// Whether running text stops before this element.
fn ends_text(scene: &Scene<'_>, at: usize) -> bool {
    let element = scene.element(at);
    let steering = [
        Class::Comma,
        Class::And,
        Class::Or,
        Class::But,
        Class::Stop,
        Class::Except,
        Class::Neither,
        Class::AfterAdd,
    ];
    if scene.is_any(at, &steering) && !scene.is(at, Class::InLabel) {
        return true;
    }
    if element.is_some_and(|element| element.time)
        || matches!(scene.word(at), "please" | "pls" | "plz" | "thanks")
    {
        return true;
    }
    let preposition = matches!(
        scene.word(at),
        "on" | "in"
            | "from"
            | "for"
            | "with"
            | "by"
            | "at"
            | "during"
            | "where"
            | "when"
            | "while"
            | "via"
            | "under"
            | "over"
            | "only"
            | "w/"
    );
    preposition && {
        let next = scene.next(at);
        matches!(scene.role(next), Role::Values { .. } | Role::Label(_) | Role::Context(_))
            || scene.is_any(
                next,
                &[Class::Gt, Class::Gte, Class::Lt, Class::Lte, Class::No, Class::Not],
            )
            || scene.element(next).is_some_and(|element| element.number.is_some())
    }
}

/// Whether a word with signs, digits or capitals in it begins here: a path, a name, a code.
fn is_identifier_at(scene: &Scene<'_>, at: usize) -> bool {
    let Some(element) = scene.element(at) else { return false };
    let Some(token) = scene.tokens.get(element.tokens.start) else { return false };
    let rest = scene.query.get(token.span.start..).unwrap_or_default();
    let word = rest
        .split_whitespace()
        .next()
        .unwrap_or_default()
        .trim_end_matches([',', '.', ';', '?', '!', ')']);
    let signs = word.chars().any(|c| matches!(c, '/' | '_' | '.' | '@' | '#' | '\\'))
        || word.contains('-') && word.len() > 1
        || word.contains("::");
    let digits = word.chars().any(|c| c.is_ascii_digit());
    let camel = word.chars().skip(1).any(char::is_uppercase);
    word.chars().any(char::is_alphanumeric) && (signs || digits || camel)
}

fn is_capital(text: &str) -> bool {
    let mut characters = text.chars();
    characters.next().is_some_and(char::is_uppercase) && characters.next().is_none()
}

fn trimmed(text: &str) -> String {
    text.trim().trim_end_matches([',', ';', '?', '!', '.']).trim().to_owned()
}

fn push(
    scene: &mut Scene<'_>,
    at: usize,
    category: usize,
    operator: Operator,
    texts: Vec<(Range<usize>, String)>,
    findings: &mut Findings,
) -> bool {
    if texts.is_empty() {
        return false;
    }
    for (elements, text) in texts {
        for element in scene.elements.get_mut(at..elements.end).into_iter().flatten() {
            element.used = true;
        }
        add(scene, elements.start, category, operator, text, findings);
    }
    true
}

fn add(
    _scene: &Scene<'_>,
    at: usize,
    category: usize,
    operator: Operator,
    value: String,
    findings: &mut Findings,
) {
    if !value.is_empty() {
        findings.conditions.push(Condition { category, operator, value, adds: false, at });
    }
}
