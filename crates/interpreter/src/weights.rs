//! Weights of competing readings of overlapping spans. The order in `rules.rs` decides which rule
//! reads an element.

use crate::link::MatchConfidence;

/// Weight per word of a cue phrase. The next constants are weights per word, too.
pub(crate) const CUE: f32 = 9.5;
pub(crate) const IDLE_CUE: f32 = 5.0;
/// Prefers "clear everything" to "everything except".
pub(crate) const RESET_BONUS: f32 = 1.0;
pub(crate) const NUMBER: f32 = 9.6;
pub(crate) const TIME: f32 = 10.2;
pub(crate) const QUOTED: f32 = 6.0;
/// For values that are named by their digits, or by the words of an acronym.
pub(crate) const DIGITS: f32 = 9.8;
pub(crate) const INITIALISM: f32 = 9.0;

/// Penalties for names of values and labels, if the query does not name all of one.
pub(crate) const PART_PENALTY: f32 = 2.0;
pub(crate) const SHARED_PENALTY: f32 = 5.0;
pub(crate) const LABEL_PENALTY: f32 = 0.2;
pub(crate) const LABEL_PART_PENALTY: f32 = 3.5;
/// For several words of a label. Together they outweigh one of them that is the whole of another
/// label: `react native` for React Native version, next to Native.
pub(crate) const LABEL_PARTS_PENALTY: f32 = 3.3;
/// For a whole name with several parts, so no cue takes one of them: the `not` of `not_applicable`.
pub(crate) const NAME_BONUS: f32 = 14.0;

/// Returns the weight per word of a name.
pub(crate) fn of_tier(tier: MatchConfidence) -> f32 {
    match tier {
        MatchConfidence::Exact => 10.0,
        MatchConfidence::Stem => 9.4,
        MatchConfidence::Concept => 9.0,
        MatchConfidence::VersionPrefix => 8.2,
        MatchConfidence::Maker => 7.2,
        MatchConfidence::Typo => 7.4,
    }
}

/// Returns the score by which overlapping readings compete. It sums the weights of the words, plus
/// a bonus for each further word, so the longest match wins.
pub(crate) fn score(per_word: f32, words: usize) -> f32 {
    let words = f32::from(u16::try_from(words).unwrap_or(u16::MAX));
    per_word * words + 3.0 * (words - 1.0)
}
