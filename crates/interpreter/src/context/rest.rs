//! Names whose rest is separate: "sensio one but not the plus", "returns are not allowed".

use super::{Class, Element, Mention, ParseContext, ValueCoverage, Word, fold};

impl ParseContext<'_> {
    /// Returns the only value that continues the preceding value's name with this part: "sensio one
    /// but not the plus".
    pub(super) fn continued_name(&self, at: usize, mention: &Mention) -> Option<(usize, usize)> {
        const DENIES: [Class; 2] = [Class::Not, Class::Except];
        let part = matches!(mention.extent, ValueCoverage::Part | ValueCoverage::SharedPart);
        // "not the plus one"
        if !part && !self.says(at + 1, Word::Counting)
            || self.is_number(at + 1)
            || !mention.labels.is_empty()
        {
            return None;
        }
        let is_any = |at: usize, classes: &[Class]| {
            self.element(at).is_some_and(|element| element.is_any(classes))
        };
        let steps = |at: usize| {
            self.element(at).is_some_and(Element::is_idle)
                || is_any(at, &[Class::But, Class::Comma])
                || is_any(at, &DENIES)
                || self.says(at, Word::Article)
        };
        let before = (0..at).rev().find(|&at| !self.candidates(at).is_empty())?;
        let denied = (before + 1..at).any(|at| is_any(at, &DENIES));
        if at - before > 4 || !(before + 1..at).all(steps) {
            return None;
        }
        // "ottos but not the 1500"
        let stem = self.mention(before).filter(|_| denied)?;
        let continues = match stem.extent {
            ValueCoverage::Whole => &stem.parts,
            ValueCoverage::SharedPart => &stem.values,
            _ => return None,
        };
        let mut longer =
            mention.values.iter().chain(&mention.parts).filter(|value| continues.contains(value));
        let found = longer.next().copied()?;
        longer.next().is_none().then_some(found)
    }

    /// Returns the last element of a negated rest of a label, after the part at `at`: "index not
    /// used", "returns are not allowed".
    pub(crate) fn denied_rest_of_label(&self, at: usize, category: usize) -> Option<usize> {
        let mut cursor = at + 1;
        while self.is(cursor, Class::Is) && !self.is_boundary(cursor) {
            cursor += 1;
        }
        // "not allowed" is a single phrase.
        let own = self.element(cursor).filter(|element| element.tokens.len() > 1);
        let last = own.and_then(|element| self.tokens.get(element.tokens.end - 1));
        if self.is_any(cursor, &[Class::AfterNot, Class::AfterAbsent])
            && last.is_some_and(|token| self.label_means(category, &token.folded))
        {
            return Some(cursor);
        }
        let denied =
            self.is(cursor, Class::Not) && self.label_means(category, self.word(cursor + 1));
        denied.then_some(cursor + 1)
    }

    /// `true` if a category's label contains a word or one of its synonyms.
    pub(super) fn label_means(&self, category: usize, word: &str) -> bool {
        let mut concepts = self.lexicon.concepts_of(fold::Key::of([word])).iter();
        self.label_has(category, &[word])
            || concepts.any(|found| self.label_has(category, self.lexicon.members(found.0)))
    }
}
