//! Ordinary verbs and the thing searched: whether such a word stands as a value would.

use super::Scene;
use crate::interpretation::cue::Class;
use crate::interpretation::element::Element;
use crate::interpretation::link::Mention;
use crate::interpretation::word::Word;

impl Scene<'_> {
    /// Ordinary verbs and the thing searched are values only where they stand as a value would.
    pub(super) fn is_doubtful(&self, at: usize, mention: &Mention) -> bool {
        let Some(element) = self.element(at) else { return false };
        if element.tokens.len() != 1 {
            return false;
        }
        let Some(token) = self.tokens.get(element.tokens.start) else { return false };
        let generic = element.is(Class::Generic) && !self.says(at, Word::Severe);
        let verb = self.lexicon.is_verb(&token.folded) || self.is_function_word(at);
        if !generic && !verb {
            return false;
        }
        if token.capital {
            return false;
        }
        let before = self.previous(at);
        let introduced = before.is_some_and(|before| {
            self.is_any(before, &[Class::Is, Class::Eq, Class::Ne])
                && !self.word(before).chars().all(char::is_alphabetic)
        });
        let raw_before = element
            .tokens
            .start
            .checked_sub(1)
            .and_then(|before| self.tokens.get(before))
            .map_or("", |token| token.folded.as_str());
        // "the US", "in us", but not "show us".
        let place = verb && self.lexicon.is(raw_before, Word::Definite)
            || self.says(at, Word::Us)
                && (matches!(raw_before, "" | ",") || self.lexicon.is(raw_before, Word::BeforeUs));
        if introduced || place || self.lists_with_value(at, mention) {
            return false;
        }
        if verb && !generic && !self.is_function_word(at) {
            let denied = before.is_some_and(|before| {
                self.is_any(
                    before,
                    &[
                        Class::Not,
                        Class::Except,
                        Class::No,
                        Class::Only,
                        Class::Neither,
                        Class::Nor,
                        Class::Remove,
                        Class::Add,
                        Class::Keep,
                        Class::Switch,
                        Class::Replace,
                        Class::InsteadOf,
                        Class::Unexclude,
                    ],
                ) && !self.is_any(before, &[Class::Polite])
            });
            // "bonds, sorry, options"
            let pause = before.filter(|&before| self.is(before, Class::Comma));
            let corrects = pause
                .and_then(|pause| self.previous(pause))
                .or(before)
                .is_some_and(|before| self.is(before, Class::Correction));
            let alone = (0..self.elements.len()).all(|other| {
                other == at || self.is_idle(other) || self.is_any(other, &[Class::Only, Class::Any])
            });
            let counted =
                self.is_any(at + 1, &[Class::Generic]) || self.says(at + 1, Word::Countable);
            let used_in = before.is_some_and(|before| self.says(before, Word::InPlace));
            let label_follows = self.labels(at + 1).iter().any(|label| !label.full);
            let noun_follows = label_follows
                || self.element(at + 1).is_some_and(Element::is_word)
                    && self.word(at + 1).len() > 3
                    && !self.says(at + 1, Word::Common);
            return !(denied
                || corrects
                || alone
                || used_in
                || noun_follows
                || counted && at > 0
                || counted && self.elements.len() > at + 2);
        }
        true
    }

    /// Whether a value of the same category stands beside it in a list.
    pub(super) fn lists_with_value(&self, at: usize, mention: &Mention) -> bool {
        let shares = |other: usize| {
            self.candidates(other)
                .iter()
                .any(|(category, _)| mention.values.iter().any(|(own, _)| own == category))
        };
        let joins =
            |other: usize| self.is_any(other, &[Class::And, Class::Or, Class::Comma, Class::Nor]);
        let after = self.next(at);
        let mut following = after;
        while joins(following)
            || self.is_any(following, &[Class::Not, Class::Except, Class::No, Class::But])
                && following > after
        {
            following = self.next(following);
        }
        if following > after && shares(following) {
            return true;
        }
        let Some(before) = self.previous(at).filter(|&before| joins(before)) else { return false };
        let mut preceding = before;
        while joins(preceding) {
            match self.previous(preceding) {
                Some(earlier) => preceding = earlier,
                None => return false,
            }
        }
        shares(preceding)
    }
}
