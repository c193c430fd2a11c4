//! Labels whose rest is separate: "returns are not allowed".

use super::{Class, ParseContext, fold};

impl ParseContext<'_> {
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
