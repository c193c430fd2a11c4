//! Acronyms that are said in full: `freedom of information` for FOI.

use super::{
    Affix, Key, Link, MatchConfidence, MatchKind, Mention, Owner, TokenKind, ValueCoverage, Word,
    Words, score, weights,
};

/// Minimum letters of such an acronym. Too many pairs of words begin with any two letters.
const LEAST_LETTERS: usize = 3;
const MOST_LETTERS: usize = 5;

impl Words<'_> {
    /// Returns the longest span from `start` whose words begin with the letters of a value in
    /// capitals.
    pub(super) fn initialism(&self, start: usize) -> Option<Link> {
        let (mut all, mut weighty) = (String::new(), String::new());
        let mut words = 0;
        let mut longest = None;
        for (at, token) in self.tokens.iter().enumerate().skip(start) {
            if token.is("-") && !all.is_empty() {
                continue;
            }
            let joins = self.tokens.says(at, Word::Joining) && !all.is_empty();
            if !joins && !self.is_said_in_full(at) || all.len() >= MOST_LETTERS {
                break;
            }
            words += 1;
            let initial = token.folded.chars().next()?;
            all.push(initial);
            if joins {
                continue;
            }
            weighty.push(initial);
            let acronyms = |initials: &String| -> Vec<(usize, usize)> {
                let long = initials.len() >= LEAST_LETTERS;
                self.values_called(initials).filter(|it| long && self.is_in_capitals(*it)).collect()
            };
            let values = [&all, &weighty].map(acronyms).into_iter().find(|it| !it.is_empty());
            longest = values.map(|values| (start..at + 1, words, values)).or(longest);
        }
        let (tokens, words, values) = longest?;
        let mention = Mention::of(values, ValueCoverage::Whole, MatchConfidence::Concept);
        Some(Link { tokens, mention, score: score(weights::INITIALISM, words) })
    }

    /// `true` if a word can belong to an acronym: it is not a cue word and does not name a value.
    fn is_said_in_full(&self, at: usize) -> bool {
        let (word, lexicon) = (self.tokens.folded(at), self.tokens.lexicon);
        self.tokens.kind(at) == Some(TokenKind::Word)
            && !self.tokens.is_joint(at)
            && word.len() >= 3
            && word.bytes().all(|byte| byte.is_ascii_lowercase())
            && (lexicon.has_affix(word, Affix::Opposite)
                || !lexicon.is_cue_word(word) && !lexicon.is_verb(word))
            && self.values_called(word).next().is_none()
    }

    fn is_in_capitals(&self, (category, index): (usize, usize)) -> bool {
        self.catalog.value(category, index).bytes().all(|byte| byte.is_ascii_uppercase())
    }

    /// Returns the values with exactly this name.
    fn values_called(&self, word: &str) -> impl Iterator<Item = (usize, usize)> {
        // Whole forms come first.
        let whole = self.catalog.lookup(Key::of([word])).take_while(|posting| posting.whole);
        let exact = whole.filter(|posting| posting.likeness == MatchKind::Exact);
        exact.filter_map(|posting| match self.catalog.form(posting.form)?.owner {
            Owner::Value { category, index } => Some((category, index)),
            Owner::Label { .. } => None,
        })
    }
}
