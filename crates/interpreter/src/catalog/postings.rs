//! The postings of one request: the parts of all names, by the keys of their texts.

use crate::fold::Key;

/// The way in which a stored key matches a part of a form.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum MatchKind {
    /// The same folded text.
    Exact,
    /// The same stem.
    Stem,
    /// A word with the same meaning.
    Concept,
    /// The initials.
    Initials,
    /// The first numbers of a version.
    VersionPrefix,
}

/// A part of a form: its atoms `start..start + len`.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Posting {
    pub(crate) form: u32,
    pub(crate) start: u8,
    pub(crate) len: u8,
    pub(crate) likeness: MatchKind,
    /// `true` if the part covers all required atoms of the form.
    pub(crate) whole: bool,
}

impl Posting {
    pub(crate) fn cover(self) -> u64 {
        ((1_u64 << self.len) - 1) << self.start
    }
}

/// All postings of a request.
#[derive(Default)]
pub(super) struct Postings(Vec<(Key, Posting)>);

impl Postings {
    pub(super) fn push(&mut self, key: Key, posting: Posting) {
        self.0.push((key, posting));
    }

    /// Groups the postings by key, whole forms first, otherwise in insertion order.
    pub(super) fn sort(&mut self) {
        self.0.sort_by_key(|&(key, posting)| (key, !posting.whole));
    }

    /// Returns the postings under a key.
    pub(super) fn of(&self, key: Key) -> impl Iterator<Item = Posting> {
        let start = self.0.partition_point(|found| found.0 < key);
        let rest = self.0.get(start..).unwrap_or_default();
        rest.iter().take_while(move |found| found.0 == key).map(|&(_, posting)| posting)
    }

    /// Returns all postings with their keys.
    pub(super) fn all(&self) -> impl Iterator<Item = (Key, Posting)> {
        self.0.iter().copied()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn postings_of_a_key_start_with_whole_forms() {
        let mut postings = Postings::default();
        let words = ["red", "green", "blue"].map(|word| Key::of([word]));
        for form in 0..300 {
            let posting =
                |whole| Posting { form, start: 0, len: 1, likeness: MatchKind::Exact, whole };
            postings.push(words[form as usize % 3], posting(form % 2 == 0));
        }
        postings.sort();
        let forms: Vec<u32> = postings.of(words[0]).map(|posting| posting.form).collect();
        let whole = (0..300).step_by(6);
        let parts = (3..300).step_by(6);
        assert_eq!(forms, whole.chain(parts).collect::<Vec<_>>());
        assert_eq!(postings.all().count(), 300);
        assert!(postings.of(Key::of(["yellow"])).next().is_none());
    }
}
