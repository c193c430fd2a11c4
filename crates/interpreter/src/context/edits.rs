//! Phrases that edit the current filters: resets, replacements and corrections. Also words that say
//! that a value is absent.

use crate::condition::Selection;

use super::{Class, Key, Kind, Owner, ParseContext, Role, Word, fold};

/// The values that are replaced.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Replacement {
    pub(crate) category: usize,
    pub(crate) indexes: Vec<usize>,
    /// The first element after the values.
    pub(crate) end: usize,
}

impl ParseContext<'_> {
    /// Returns the first element after a phrase that removes all filters: "clear everything",
    /// "start over with firefox", "reset" alone. An exception word after the phrase belongs to it.
    pub(crate) fn reset_end(&self, at: usize) -> Option<usize> {
        let next = self.next(at);
        // "get rid of everything resolved"
        let last = self.element(at).and_then(|element| element.tokens.end.checked_sub(1));
        let all = last
            .and_then(|it| self.tokens.get(it))
            .is_some_and(|it| self.lexicon.is(&it.folded, Word::Head))
            || self.says(at + 1, Word::Head);
        // "on firefox", "that isn't German"
        let links = |it: usize| {
            self.says(it, Word::Preposition) && !self.is(it, Class::WithPresence)
                || self.says(it, Word::Head)
                || self.is(it, Class::Not)
        };
        let mut object = at + 1;
        while links(object) {
            object = self.next(object);
        }
        let described = self.names_value(object) && all;
        if self.is(at, Class::Reset) && !described {
            let after = self.next(next);
            let named = self.is_label(after) || self.names_value(after);
            let but = self.is(next, Class::But) && self.word(next) != "." && named;
            let spares = but || self.is(next, Class::Except);
            return Some(if spares { next + 1 } else { at + 1 });
        }
        let mut end = next;
        while self.is(end, Class::FilterNoun) {
            end = self.next(end);
        }
        let alone = self.is_boundary(end) || self.is_any(end, cues![And, Add, Switch]);
        (self.is(at, Class::ResetVerb) && alone).then_some(at + 1)
    }

    /// `true` if the preceding word negates an edit: "don't remove chrome", "no reset".
    pub(crate) fn is_forbidden(&self, at: usize) -> bool {
        self.follows_any(at, cues![Not, No, Inability])
    }

    /// `true` if a word corrects instead of negating: "no, firefox", "no wait".
    pub(crate) fn is_interjection(&self, at: usize) -> bool {
        let bare = self.is_other(at)
            && self.element(at).is_some_and(|element| element.tokens.len() == 1)
            && self.says(at, Word::Interjection);
        self.is(at, Class::Interjection)
            || bare && self.is_any(at + 1, cues![Comma, Correction, Switch])
    }

    /// Returns the values that "replace nina with leo" removes.
    pub(crate) fn replacement(&self, at: usize) -> Option<Replacement> {
        let mut first: Option<Replacement> = None;
        for other in (at + 1..self.elements.len()).filter(|_| self.is(at, Class::Replace)) {
            match (self.role(other), first.as_ref()) {
                (Role::Values { category, indexes }, None) => {
                    let (category, indexes) = (*category, indexes.clone());
                    first = Some(Replacement { category, indexes, end: other + 1 });
                }
                (Role::Values { category, .. }, Some(replaced)) => {
                    let linked = (replaced.end..other).any(|it| self.is(it, Class::With));
                    return first.filter(|it| it.category == *category && linked);
                }
                _ if self.is_boundary(other) => return None,
                _ => {}
            }
        }
        None
    }

    /// Returns the negative current filters with a value that an element can name.
    pub(crate) fn excluded(&self, at: usize) -> Vec<Selection> {
        let named = self.mention(at).into_iter().flat_map(|it| it.values.iter().chain(&it.parts));
        let negative = |&&(category, index): &&(usize, usize)| {
            let value = self.catalog.value(category, index);
            self.catalog.current(category).any(|it| it.value == value && it.operator.is_negative())
        };
        let lifted = named.filter(negative).map(|&(category, index)| Selection {
            negative_only: true,
            ..Selection::of_value(category, self.catalog.value(category, index))
        });
        lifted.collect()
    }

    /// Returns the category that a word says has no value: "unassigned", "anonymous".
    pub(crate) fn absent_category(&self, at: usize) -> Option<usize> {
        let word = self.word(at);
        let bases = self.lexicon.absences(word).iter().copied();
        bases.chain(self.lexicon.absence_base(word)).find_map(|base| {
            let stem = fold::stem(base);
            let concepts = self.lexicon.concepts_of(Key::of([base])).iter();
            let keys = [Key::of([base]), Key::of([stem.as_ref()])];
            let keys = keys.into_iter().chain(concepts.map(|found| Key::of_concept(found.0)));
            keys.flat_map(|key| self.catalog.lookup(key)).find_map(|posting| {
                match self.catalog.form(posting.form)?.owner {
                    Owner::Label { category, positive: true } => {
                        let kind = self.catalog.kind(category);
                        matches!(kind, Kind::Text | Kind::Array).then_some(category)
                    }
                    _ => None,
                }
            })
        })
    }
}
