//! Texts of open categories (rule 8): where one begins and ends, and which category holds which.

use std::ops::Range;

use super::{Role, Scene};
use crate::interpretation::cue::Class;
use crate::interpretation::element::Element;
use crate::interpretation::model::{Kind, Operator};
use crate::interpretation::token::TokenKind;
use crate::interpretation::word::Word;

const BETWEEN_TEXTS: [Class; 4] = [Class::Or, Class::And, Class::Comma, Class::Nor];
const COMPARES: [Class; 4] = [Class::Gt, Class::Gte, Class::Lt, Class::Lte];

/// A text and the elements that it takes.
pub(crate) type Text = (Range<usize>, String);

impl Scene<'_> {
    /// The open category that a label names.
    pub(crate) fn open_label(&self, at: usize) -> Option<usize> {
        let Role::Label(labels) = self.role(at) else { return None };
        labels.iter().map(|label| label.category).find(|&category| self.catalog.is_open(category))
    }

    /// "players with double xp", "flights without a diversion": a part of a label (Player report),
    /// or the label of a name, only says who has the value that follows.
    pub(crate) fn speaks_of_bearer(&self, label: usize, link: usize) -> bool {
        let labels = self.labels(label).iter();
        let mut open = labels.filter(|found| self.catalog.is_open(found.category)).peekable();
        let mut value = self.next(link);
        // "cases that are not closed"
        while self.is(value, Class::Not) {
            value = self.next(value);
        }
        open.peek().is_some()
            && open.all(|found| !found.full || !self.label_is(found.category, Word::Prose))
            && (self.says(link, Word::Several)
                || self.is_any(link, &[Class::WithPresence, Class::No]))
            && matches!(self.role(value), Role::Values { .. })
    }

    /// The operator that a text of a category takes.
    pub(crate) fn text_operator(&self, category: usize, exact: bool, denied: bool) -> Operator {
        let array = self.catalog.kind(category) == Kind::Array;
        let operator = if array || !exact { Operator::Contains } else { Operator::Is };
        if denied { operator.negated() } else { operator }
    }

    /// The first open category whose label has a word of the earliest of these classes.
    pub(crate) fn open_category(&self, classes: &[Word]) -> Option<usize> {
        classes.iter().find_map(|&class| {
            (0..self.catalog.request.categories.len()).find(|&category| {
                self.catalog.is_open(category)
                    && self.catalog.kind(category) == Kind::Text
                    && self.label_is(category, class)
            })
        })
    }

    /// The open category that holds what an error says.
    pub(crate) fn message_category(&self) -> Option<usize> {
        self.open_category(&[Word::Message, Word::ProseTitle, Word::ProseNote])
    }

    /// Whether the category holds running text, in which one searches.
    pub(crate) fn is_prose(&self, category: usize) -> bool {
        !self.label_is(category, Word::Code) && self.label_is(category, Word::Prose)
    }

    pub(crate) fn is_quoted(&self, at: usize) -> bool {
        self.element(at).is_some_and(|element| element.quoted)
    }

    /// Whether an element is read by no rule and names nothing.
    pub(crate) fn is_free(&self, at: usize) -> bool {
        matches!(self.role(at), Role::Other)
            && self.element(at).is_some_and(|element| !element.used)
    }

    /// The texts of a list that begins at an element.
    pub(crate) fn texts(&self, start: usize) -> Vec<Text> {
        let mut found = Vec::new();
        let mut at = start;
        while let Some((elements, text)) = self.one_text(at).filter(|text| !text.1.is_empty()) {
            at = elements.end;
            found.push((elements, text));
            let mut next = at;
            while self.is_any(next, &BETWEEN_TEXTS) && !self.is(next, Class::Add) {
                next += 1;
            }
            let joined =
                (at..next).any(|join| self.is_any(join, &[Class::Or, Class::And, Class::Nor]));
            let word =
                self.element(next).is_some_and(Element::is_word) || self.is_identifier_at(next);
            let word = word && matches!(self.role(next), Role::Other);
            if next == at || !(self.is_quoted(next) || joined && word) {
                break;
            }
            at = next;
        }
        found
    }

    fn one_text(&self, at: usize) -> Option<Text> {
        let first = self.element(at)?;
        if self.tokens.get(first.tokens.start)?.kind == TokenKind::Quoted {
            return Some((at..at + 1, self.text(first.tokens.clone()).to_owned()));
        }
        let chunk = self.is_identifier_at(at);
        let glued = |token: usize| self.tokens.get(token).is_some_and(|token| token.glued);
        let mut end = at + 1;
        while let Some(element) = self.elements.get(end) {
            // The dot of an initial ends nothing: "M. Oliver".
            let before = self.elements.get(end - 1)?;
            let initial = self.word(end) == "." && is_capital(self.text(before.tokens.clone()));
            let punctuation = !initial
                && self.is_any(end, &[Class::Comma, Class::Stop, Class::But])
                && !glued(element.tokens.end);
            let apart = !glued(element.tokens.start);
            if punctuation || apart && (chunk || self.ends_text(end)) {
                break;
            }
            end += 1;
        }
        // A sign that begins the text: the @ of "@gmail.com".
        let sign = first.tokens.start.checked_sub(1).filter(|&before| {
            self.tokens.get(before).is_some_and(|token| {
                token.kind == TokenKind::Separator
                    && matches!(token.folded.as_str(), "@" | "_" | "." | "\\")
            }) && glued(first.tokens.start)
        });
        let tokens = sign.unwrap_or(first.tokens.start)..self.elements.get(end - 1)?.tokens.end;
        Some((at..end, trimmed(self.text(tokens))))
    }

    /// Whether running text stops before this element.
    fn ends_text(&self, at: usize) -> bool {
        const STEERS: [Class; 8] = [
            Class::Comma,
            Class::And,
            Class::Or,
            Class::But,
            Class::Stop,
            Class::Except,
            Class::Neither,
            Class::AfterAdd,
        ];
        let timed = self.element(at).is_some_and(|element| element.time);
        if self.is_any(at, &STEERS) && !self.is(at, Class::InLabel)
            || timed
            || self.says(at, Word::EndsText)
        {
            return true;
        }
        let next = self.next(at);
        self.says(at, Word::BeforePlace)
            && (!matches!(self.role(next), Role::Other)
                || self.is_any(next, &COMPARES)
                || self.is_any(next, &[Class::No, Class::Not])
                || self.element(next).is_some_and(|element| element.number.is_some()))
    }

    /// The word of the query that begins at an element, with its signs and digits.
    pub(crate) fn chunk_at(&self, at: usize) -> &str {
        let token = self.element(at).and_then(|element| self.tokens.get(element.tokens.start));
        let rest = token.and_then(|token| self.query.get(token.span.start..)).unwrap_or_default();
        let word = rest.split_whitespace().next().unwrap_or_default();
        word.trim_end_matches([',', '.', ';', '?', '!', ')'])
    }

    /// That word with a sign before it that belongs to it: the slash of `/cart`.
    pub(crate) fn chunk_from(&self, at: usize) -> &str {
        let chunk = self.chunk_at(at);
        let start = chunk.as_ptr() as usize - self.query.as_ptr() as usize;
        let before = self.query.get(..start).unwrap_or_default();
        let sign = before.len() - before.trim_end_matches(['/', '@']).len();
        self.query.get(start - sign..start + chunk.len()).unwrap_or(chunk)
    }

    /// Whether an element stands in the word that begins at another.
    pub(crate) fn is_in_chunk(&self, start: usize, at: usize) -> bool {
        at == start || at > start && self.chunk_start(at) == self.chunk_start(start)
    }

    /// The open category whose label has a word of a class, if there is one alone.
    pub(crate) fn only_open_category(&self, class: Word) -> Option<usize> {
        let all = 0..self.catalog.request.categories.len();
        let mut open = all.filter(|&it| self.catalog.is_open(it) && self.label_is(it, class));
        let first = open.next();
        first.filter(|_| open.next().is_none())
    }

    /// Whether a word with signs, digits or capitals in it begins here: a path, a name, a code.
    pub(crate) fn is_identifier_at(&self, at: usize) -> bool {
        let word = self.chunk_at(at);
        let signs = word.chars().any(|c| matches!(c, '/' | '_' | '.' | '@' | '#' | '\\'))
            || word.contains('-') && word.len() > 1
            || word.contains("::");
        let digits = word.chars().any(|c| c.is_ascii_digit());
        let camel = word.chars().skip(1).any(char::is_uppercase);
        word.chars().any(char::is_alphanumeric) && (signs || digits || camel)
    }

    /// The first element of the word that an element belongs to.
    pub(crate) fn chunk_start(&self, at: usize) -> usize {
        let glued = |at: usize| {
            let token = self.element(at).and_then(|element| self.tokens.get(element.tokens.start));
            token.is_some_and(|token| token.glued)
        };
        (1..=at).rev().find(|&at| !glued(at)).unwrap_or_default()
    }
}

fn is_capital(text: &str) -> bool {
    let mut characters = text.chars();
    characters.next().is_some_and(char::is_uppercase) && characters.next().is_none()
}

/// A text without the punctuation after it.
pub(crate) fn trimmed(text: &str) -> String {
    text.trim().trim_end_matches([',', ';', '?', '!', '.']).trim().to_owned()
}
