//! Decides whether an ordinary verb, or a word for the searched items, is used as a value.

use super::{Class, CueSet, JOINS, MatchConfidence, Mention, ParseContext, ValueCoverage, Word};

impl ParseContext<'_> {
    /// `true` if an ordinary verb, or a word for the searched items, is not used as a value.
    pub(super) fn is_doubtful(&self, at: usize, mention: &Mention) -> bool {
        let one = self.element(at).filter(|element| element.tokens.len() == 1);
        let (Some(element), Some(token)) = (one, self.first_token(at)) else { return false };
        let part = matches!(mention.extent, ValueCoverage::Part | ValueCoverage::SharedPart);
        let generic = element.is(Class::Generic) && !self.says(at, Word::Severe);
        let function = self.is_function_word(at);
        let verb = self.lexicon.is_verb(&token.folded) || function;
        // "ok thanks"
        if element.is(Class::Polite)
            && at == 0
            && self.element(1).is_some_and(|next| next.is(Class::Polite))
        {
            return true;
        }
        // "radiology can't open images"
        if self.is_action(at, part) {
            return true;
        }
        if !generic && !verb || token.capital {
            return false;
        }
        let lead = self.word_before(at, 1);
        // "the US", "in us", but not "show us".
        let place = verb && self.lexicon.is(lead, Word::Definite)
            || self.says(at, Word::Us)
                && (matches!(lead, "" | ",") || self.lexicon.is(lead, Word::BeforeUs));
        // "not other", "except none and other"
        let next = self.next(at);
        let denied = mention.extent == ValueCoverage::Whole
            && mention.value_tier == MatchConfidence::Exact
            && token.folded.len() > 2
            && self.follows_any(at, cues![Not, Except, Neither, Nor])
            && (self.is_boundary(next) || self.is_any(next, JOINS));
        if place || denied && !generic || self.lists_with_value(at, mention) {
            return false;
        }
        generic || function || !self.is_verb_used_as_value(at)
    }

    /// `true` for a verb that is also a value, after a word that a verb follows: "can't open".
    fn is_action(&self, at: usize, part: bool) -> bool {
        let Some(before) = at.checked_sub(1) else { return false };
        let infinitive = || {
            let verb = before.checked_sub(1);
            self.is(before, Class::To) && (part || verb.is_some_and(|it| self.is_word(it)))
        };
        self.is(before, Class::Inability)
            || self.says(at, Word::Action)
                && (self.lexicon.is(self.word_before(at, 1), Word::Modal)
                    || infinitive()
                    || self.has_object(at))
    }

    /// `true` if a word's object follows, which names nothing: "pass my review".
    fn has_object(&self, at: usize) -> bool {
        let determiner = self.says(at + 1, Word::Definite) || self.says(at + 1, Word::Possessive);
        determiner && self.is_word(at + 2)
    }

    fn is_verb_used_as_value(&self, at: usize) -> bool {
        const GOVERNS: CueSet = cues![
            Not, Except, No, Only, Neither, Nor, Remove, Add, Keep, Switch, Replace, InsteadOf,
            Unexclude
        ];
        let before = self.previous(at);
        let governed = before
            .is_some_and(|before| self.is_any(before, GOVERNS) && !self.is(before, Class::Polite));
        let idle = |&other: &usize| self.is_any(other, cues![Only, Any, Instead]);
        let last = (0..at).rev().find(|it| !idle(it));
        let next = (at + 1..self.elements.len()).find(|it| !idle(it));
        let pauses = |other: Option<usize>| other.is_none_or(|it| self.is(it, Class::Comma));
        let alone = pauses(last) && pauses(next);
        let noun_follows = self.labels(at + 1).iter().any(|label| !label.full)
            || self.is_word(at + 1)
                && self.word(at + 1).len() > 3
                && !self.says(at + 1, Word::Common);
        // "removed post"
        let described = at.checked_sub(1).is_some_and(|it| !self.candidates(it).is_empty())
            && self.is_boundary(at + 1);
        governed
            || alone
            || described
            || noun_follows
            || self.element(at).is_some_and(|it| it.cue == CueSet::default())
                && !self.candidates(at + 1).is_empty()
    }

    /// `true` if a list joins the element with a value of the same category.
    pub(super) fn lists_with_value(&self, at: usize, mention: &Mention) -> bool {
        let joins = |other: usize| self.is_any(other, JOINS);
        let after = self.next(at);
        let mut following = after;
        while joins(following) {
            following = self.next(following);
        }
        if following > after && self.is_mate(following, &mention.values) {
            return true;
        }
        let before = self.previous(at).filter(|&before| joins(before));
        let mut listed = before;
        while let Some(join) = listed.filter(|&join| joins(join)) {
            listed = self.previous(join);
        }
        listed.is_some_and(|listed| self.is_mate(listed, &mention.values))
    }
}
