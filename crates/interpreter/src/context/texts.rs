//! Texts of open categories (rule 8): where each begins and ends, and its category.

use std::ops::Range;

use super::{Class, CueSet, JOINS, Kind, Operator, ParseContext, TokenKind, Word};

/// A text and its elements.
pub(crate) type Text = (Range<usize>, String);

impl ParseContext<'_> {
    /// Returns the open category that a label names.
    pub(crate) fn open_label(&self, at: usize) -> Option<usize> {
        let mut categories = self.as_labels(at).iter().map(|label| label.category);
        categories.find(|&category| self.catalog.is_open(category))
    }

    /// `true` if a label only names the owner of the next value: "players with double xp", "flights
    /// without a diversion". The label is partial (Player report), or its category is not prose.
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
            && (self.says(link, Word::Several) || self.is_any(link, cues![WithPresence, No]))
            && self.names_value(value)
    }

    /// Returns the operator for a text of a category.
    pub(crate) fn text_operator(&self, category: usize, exact: bool, denied: bool) -> Operator {
        let array = self.catalog.kind(category) == Kind::Array;
        let operator = if array || !exact { Operator::Contains } else { Operator::Is };
        if denied { operator.negated() } else { operator }
    }

    /// Returns the open categories whose labels contain a word of the class.
    fn open_categories(&self, class: Word) -> impl Iterator<Item = usize> {
        let all = 0..self.catalog.request.categories.len();
        all.filter(move |&it| self.catalog.is_open(it) && self.label_is(it, class))
    }

    /// Returns the open category whose label contains a word of the class, if it is the only one.
    pub(crate) fn only_open_category(&self, class: Word) -> Option<usize> {
        let mut open = self.open_categories(class);
        open.next().filter(|_| open.next().is_none())
    }

    /// Returns the open category with the error message.
    pub(crate) fn message_category(&self) -> Option<usize> {
        let classes = [Word::Message, Word::ProseTitle, Word::ProseNote];
        let mut open = classes.into_iter().flat_map(|class| self.open_categories(class));
        open.find(|&category| self.catalog.kind(category) == Kind::Text)
    }

    /// `true` if the category contains running text, which is searched for parts.
    pub(crate) fn is_prose(&self, category: usize) -> bool {
        !self.label_is(category, Word::Code) && self.label_is(category, Word::Prose)
    }

    pub(crate) fn is_quoted(&self, at: usize) -> bool {
        self.element(at).is_some_and(|element| element.quoted)
    }

    /// `true` if no rule has read the element and it names nothing.
    pub(crate) fn is_free(&self, at: usize) -> bool {
        self.is_other(at) && self.element(at).is_some_and(|element| !element.used)
    }

    /// Returns the texts of a list that begins at an element.
    pub(crate) fn texts(&self, start: usize) -> Vec<Text> {
        let mut found = Vec::new();
        let mut at = start;
        while let Some(text) = self.one_text(at).filter(|text| !text.1.is_empty()) {
            let end = text.0.end;
            found.push(text);
            at = end;
            while self.is_any(at, JOINS) && !self.is(at, Class::Add) {
                at += 1;
            }
            let joined = (end..at).any(|join| self.is_any(join, cues![Or, And, Nor]));
            let word = self.is_free(at) && (self.is_word(at) || self.is_identifier_at(at));
            let alike =
                self.address_sign(start).is_some_and(|it| Some(it) == self.address_sign(at));
            if at == end || !(self.is_quoted(at) || joined && word || alike) {
                break;
            }
        }
        found
    }

    /// Returns the sign that makes the word at an element a path or an email address.
    fn address_sign(&self, at: usize) -> Option<char> {
        let word = self.chunk_from(at);
        let own = self.chunk_start(at) == at;
        let sign = if word.starts_with('/') { '/' } else { '@' };
        (own && word.contains(sign)).then_some(sign)
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
            // The dot of an initial does not end a text: "M. Oliver".
            let before = self.elements.get(end - 1)?;
            let initial = self.word(end) == "." && is_capital(self.text(before.tokens.clone()));
            let punctuation =
                !initial && self.is_any(end, cues![Comma, Stop, But]) && !glued(element.tokens.end);
            let apart = !glued(element.tokens.start);
            if punctuation || apart && (chunk || self.ends_text(end)) {
                break;
            }
            end += 1;
        }
        // A leading sign belongs to the text: the @ of "@gmail.com".
        let sign = first.tokens.start.checked_sub(1).filter(|&before| {
            glued(first.tokens.start)
                && self.tokens.get(before).is_some_and(|token| {
                    token.kind == TokenKind::Separator
                        && matches!(token.folded.as_str(), "@" | "_" | "." | "\\")
                })
        });
        let tokens = sign.unwrap_or(first.tokens.start)..self.elements.get(end - 1)?.tokens.end;
        Some((at..end, trimmed(self.text(tokens))))
    }

    /// `true` if running text ends before this element.
    fn ends_text(&self, at: usize) -> bool {
        const STEERS: CueSet = cues![Comma, And, Or, But, Stop, Except, Neither, AfterAdd];
        let timed = self.element(at).is_some_and(|element| element.time);
        if self.is_any(at, STEERS) && !self.is(at, Class::InLabel) || timed {
            return true;
        }
        let next = self.next(at);
        self.says(at, Word::BeforePlace) && (!self.is_other(next) || self.is_number(next))
    }

    /// Returns the word of the query that begins at an element, with its signs and digits.
    pub(crate) fn chunk_at(&self, at: usize) -> &str {
        let rest = self.query.get(self.chunk_place(at)..).unwrap_or_default();
        let word = rest.split_whitespace().next().unwrap_or_default();
        word.trim_end_matches([',', '.', ';', '?', '!', ')'])
    }

    fn chunk_place(&self, at: usize) -> usize {
        self.first_token(at).map_or(self.query.len(), |token| token.span.start)
    }

    /// Returns the word at an element with its leading sign: the slash of `/cart`.
    pub(crate) fn chunk_from(&self, at: usize) -> &str {
        let chunk = self.chunk_at(at);
        let start = self.chunk_place(at);
        let before = self.query.get(..start).unwrap_or_default();
        let sign = before.len() - before.trim_end_matches(['/', '@']).len();
        self.query.get(start - sign..start + chunk.len()).unwrap_or(chunk)
    }

    /// Returns the first element after the word that begins at an element.
    pub(crate) fn chunk_end(&self, at: usize) -> usize {
        let end = self.chunk_place(at) + self.chunk_at(at).len();
        let inside = (at + 1..self.elements.len()).take_while(|&it| self.chunk_place(it) < end);
        at + 1 + inside.count()
    }

    /// `true` if a word with signs, digits or capitals begins here: a path, a name, a code.
    pub(crate) fn is_identifier_at(&self, at: usize) -> bool {
        let word = self.chunk_at(at);
        let signs =
            word.contains(['/', '_', '.', '@', '#', '\\']) || word.contains('-') && word.len() > 1;
        let digits = word.contains(|c: char| c.is_ascii_digit());
        let camel = word.chars().skip(1).any(char::is_uppercase);
        word.contains(char::is_alphanumeric) && (signs || digits || camel)
    }

    /// Returns the first element of the word that contains an element.
    pub(crate) fn chunk_start(&self, at: usize) -> usize {
        let glued = |at: usize| self.first_token(at).is_some_and(|token| token.glued);
        (1..=at).rev().find(|&at| !glued(at)).unwrap_or_default()
    }
}

fn is_capital(text: &str) -> bool {
    let mut characters = text.chars();
    characters.next().is_some_and(char::is_uppercase) && characters.next().is_none()
}

/// Returns a text without its trailing punctuation.
pub(crate) fn trimmed(text: &str) -> String {
    text.trim().trim_end_matches([',', ';', '?', '!', '.']).trim().to_owned()
}
