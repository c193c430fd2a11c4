//! Names whose rest stands apart: "sensio one but not the plus", "returns are not allowed".

use super::Scene;
use crate::interpretation::cue::Class;
use crate::interpretation::fold;
use crate::interpretation::link::{Extent, Mention};
use crate::interpretation::word::Word;

impl Scene<'_> {
    /// The one value that goes on from the name of the value before, by the part that stands here:
    /// "sensio one but not the plus".
    pub(super) fn continued_name(&self, at: usize, mention: &Mention) -> Option<(usize, usize)> {
        if !matches!(mention.extent, Extent::Part | Extent::SharedPart)
            || self.is_number(at + 1)
            || !mention.labels.is_empty()
        {
            return None;
        }
        let mut denied = false;
        let mut before = at.checked_sub(1)?;
        while self.candidates(before).is_empty() {
            let steps = self.element(before).is_some_and(|element| {
                element.is_idle() || element.is_any(&[Class::But, Class::Not, Class::Except])
            }) || self.says(before, Word::Article);
            if !steps || at - before > 3 {
                return None;
            }
            denied |= self
                .element(before)
                .is_some_and(|element| element.is_any(&[Class::Not, Class::Except]));
            before = before.checked_sub(1)?;
        }
        let stem = self.mention(before).filter(|stem| denied && stem.extent == Extent::Whole)?;
        let mut longer = mention.values.iter().filter(|value| stem.parts.contains(value));
        let found = longer.next().copied()?;
        longer.next().is_none().then_some(found)
    }

    /// Whether the rest of a label is denied after the part of it that stands here: the last
    /// element of "index not used", "returns are not allowed".
    pub(crate) fn denied_rest_of_label(&self, at: usize, category: usize) -> Option<usize> {
        let mut cursor = at + 1;
        while self.is(cursor, Class::Is) && !self.is_boundary(cursor) {
            cursor += 1;
        }
        // "not allowed" is a phrase of its own.
        let last = self.element(cursor).and_then(|element| element.tokens.end.checked_sub(1));
        let last = last.and_then(|last| self.tokens.get(last)).map(|token| token.folded.as_str());
        if self.is_any(cursor, &[Class::AfterNot, Class::AfterAbsent])
            && self.element(cursor).is_some_and(|element| element.tokens.len() > 1)
            && last.is_some_and(|word| self.label_means(category, word))
        {
            return Some(cursor);
        }
        let denied =
            self.is(cursor, Class::Not) && self.label_means(category, self.word(cursor + 1));
        denied.then_some(cursor + 1)
    }

    /// Whether a word, or one of the same meaning, stands in a category's label.
    pub(super) fn label_means(&self, category: usize, word: &str) -> bool {
        self.label_has(category, &[word])
            || self
                .lexicon
                .concepts_of(fold::Key::of([word]))
                .iter()
                .any(|&(concept, _)| self.label_has(category, self.lexicon.members(concept)))
    }
}
