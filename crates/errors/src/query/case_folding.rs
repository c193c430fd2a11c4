//! Comparing texts without regard to case.

/// A text in which letters that differ only in case are the same.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Folded(String);

impl Folded {
    /// Folds a text. Upper case first, so that letters with two lower-case forms (`σ` and `ς`), or
    /// with an upper-case form of two letters (`ß`), meet as well; letter by letter, so that a part
    /// of a text stays a part of it.
    pub(super) fn new(text: &str) -> Self {
        if text.is_ascii() {
            return Self(text.to_ascii_lowercase());
        }
        let upper = text.chars().flat_map(char::to_uppercase);
        Self(upper.flat_map(char::to_lowercase).collect())
    }

    /// Whether `part` stands anywhere in it.
    pub(super) fn contains(&self, part: &Self) -> bool {
        self.0.contains(&part.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn letters_of_either_case_are_the_same() {
        for (text, part) in [
            ("TypeError: x is undefined", "typeerror: X"),
            ("ΟΔΟΣ", "οδος"),
            ("οδος", "ΔΟΣ"),
            ("Straße", "STRASSE"),
            ("ÉCHEC", "échec"),
            ("anything", ""),
        ] {
            assert!(Folded::new(text).contains(&Folded::new(part)), "{text:?} {part:?}");
        }
        assert!(!Folded::new("echec").contains(&Folded::new("échec")));
        assert!(!Folded::new("").contains(&Folded::new("a")));
    }
}
