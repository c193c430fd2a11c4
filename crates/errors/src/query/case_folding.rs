//! Compares texts without regard to case.

/// A text in which letters that differ only in case are equal.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Folded(String);

impl Folded {
    /// Folds a text letter by letter, so a part of a text stays a part of it. Converts to upper
    /// case first. This also equates letters with two lower-case forms (`σ` and `ς`) and letters
    /// whose upper case has two letters (`ß`).
    pub(super) fn new(text: &str) -> Self {
        if text.is_ascii() {
            return Self(text.to_ascii_lowercase());
        }
        let upper = text.chars().flat_map(char::to_uppercase);
        Self(upper.flat_map(char::to_lowercase).collect())
    }

    /// `true` if the text contains `part`.
    pub(super) fn contains(&self, part: &Self) -> bool {
        self.0.contains(&part.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn letters_match_in_either_case() {
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
