//! Compares texts without regard to case.

/// Folds a text letter by letter, so that texts which differ only in case are equal, and a part of a
/// text stays a part of it. Converts to upper case first. This also equates letters with two
/// lower-case forms (`σ` and `ς`) and letters whose upper case has two letters (`ß`).
pub(super) fn folded(text: &str) -> String {
    if text.is_ascii() {
        return text.to_ascii_lowercase();
    }
    let upper = text.chars().flat_map(char::to_uppercase);
    upper.flat_map(char::to_lowercase).collect()
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
            assert!(folded(text).contains(&folded(part)), "{text:?} {part:?}");
        }
        assert!(!folded("echec").contains(&folded("échec")));
        assert!(!folded("").contains(&folded("a")));
    }
}
