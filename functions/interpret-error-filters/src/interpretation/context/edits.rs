//! Phrases that edit the current filters, by themselves: resets, replacements, slips of the
//! tongue; and words that say that there is no value.

use super::{Role, Scene};
use crate::interpretation::catalog::Owner;
use crate::interpretation::cue::Class;
use crate::interpretation::fold::{self, Key};
use crate::interpretation::model::Kind;
use crate::interpretation::word::Word;

/// The values that others take the place of.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Replacement {
    pub(crate) category: usize,
    pub(crate) indexes: Vec<usize>,
    /// The first element after them.
    pub(crate) end: usize,
}

impl Scene<'_> {
    /// Whether all filters go ("clear everything", "start over with firefox", "reset" alone): the
    /// first element after what says so, which is the next one unless an exception follows.
    pub(crate) fn reset_end(&self, at: usize) -> Option<usize> {
        let next = self.next(at);
        let of_label = matches!(self.role(next), Role::Label(_))
            && next == at + 1
            && self.is(at, Class::Remove);
        if self.is(at, Class::Reset) && !of_label {
            let after = self.next(next);
            let named = matches!(self.role(after), Role::Label(_) | Role::Values { .. });
            let but = self.is(next, Class::But)
                && self.word(next) != "."
                && (named || self.is_any(next + 1, &[Class::Not, Class::Keep]));
            let spares = but || self.is(next, Class::Except);
            return Some(if spares { next + 1 } else { at + 1 });
        }
        let mut end = next;
        while self.is(end, Class::FilterNoun) {
            end = self.next(end);
        }
        let alone =
            self.is_boundary(end) || self.is_any(end, &[Class::And, Class::Add, Class::Switch]);
        (self.is(at, Class::ResetVerb) && alone).then_some(at + 1)
    }

    /// "no, firefox", "no wait": said to correct, not to deny.
    pub(crate) fn is_interjection(&self, at: usize) -> bool {
        let bare = self.element(at).is_some_and(|element| element.tokens.len() == 1)
            && self.says(at, Word::Interjection);
        self.is(at, Class::Interjection)
            || bare && self.is_any(at + 1, &[Class::Comma, Class::Correction, Class::Switch])
    }

    /// "replace nina with leo": the values that go.
    pub(crate) fn replacement(&self, at: usize) -> Option<Replacement> {
        if !self.is(at, Class::Replace) {
            return None;
        }
        let mut first: Option<Replacement> = None;
        for other in at + 1..self.elements.len() {
            if let Role::Values { category, indexes } = self.role(other) {
                let Some(replaced) = first else {
                    let indexes = indexes.clone();
                    first = Some(Replacement { category: *category, indexes, end: other + 1 });
                    continue;
                };
                let linked = (replaced.end..other).any(|between| self.is(between, Class::With));
                return (*category == replaced.category && linked).then_some(replaced);
            } else if self.is_boundary(other) {
                return None;
            }
        }
        None
    }

    /// The category of which a word says that it has no value: "unassigned", "anonymous".
    pub(crate) fn absent_category(&self, at: usize) -> Option<usize> {
        let word = self.word(at);
        let mut bases: Vec<&str> = self.lexicon.absences(word).to_vec();
        bases.extend(self.lexicon.absence_base(word));
        let textual =
            |category: usize| !matches!(self.catalog.kind(category), Kind::Numeric | Kind::Boolean);
        bases.into_iter().find_map(|base| {
            let stem = fold::stem(base);
            let concepts = self.lexicon.concepts_of(Key::of([base])).iter();
            let keys = [Key::of([base]), Key::of([stem.as_ref()])];
            let keys = keys.into_iter().chain(concepts.map(|found| Key::of_concept(found.0)));
            keys.flat_map(|key| self.catalog.lookup(key)).find_map(|posting| {
                match self.catalog.form(posting.form)?.owner {
                    Owner::Label { category, positive: true } if textual(category) => {
                        Some(category)
                    }
                    _ => None,
                }
            })
        })
    }
}
