//! All weights by which readings of overlapping spans compete. Which rule reads an element, their
//! order in `rules.rs` says.

use crate::link::MatchConfidence;

/// Of a word of a steering phrase, a number, and so on.
pub(crate) const CUE: f32 = 9.5;
pub(crate) const IDLE_CUE: f32 = 5.0;
/// "clear everything" before "everything except".
pub(crate) const RESET_BONUS: f32 = 1.0;
pub(crate) const NUMBER: f32 = 9.6;
pub(crate) const TIME: f32 = 10.2;
pub(crate) const QUOTED: f32 = 6.0;
/// Values that are named by their digits, or by the words that their letters begin.
pub(crate) const DIGITS: f32 = 9.8;
pub(crate) const INITIALISM: f32 = 9.0;

/// What the names of values and labels lose where less is said than all of one.
pub(crate) const PART_PENALTY: f32 = 2.0;
pub(crate) const SHARED_PENALTY: f32 = 5.0;
pub(crate) const LABEL_PENALTY: f32 = 0.2;
pub(crate) const LABEL_PART_PENALTY: f32 = 3.5;
/// Of several words. Together they outweigh one of them that is the whole of another label:
/// `react native` of React Native version, beside Native.
pub(crate) const LABEL_PARTS_PENALTY: f32 = 3.3;
/// Of a whole name in several parts: no cue takes a part of it, `not` out of `not_applicable`.
pub(crate) const NAME_BONUS: f32 = 14.0;

/// Of a word of a name.
pub(crate) fn of_tier(tier: MatchConfidence) -> f32 {
    match tier {
        MatchConfidence::Exact => 10.0,
        MatchConfidence::Stem => 9.4,
        MatchConfidence::Concept => 9.0,
        MatchConfidence::VersionPrefix => 7.0,
        MatchConfidence::Maker => 7.2,
        MatchConfidence::Typo => 7.4,
    }
}

/// The one score by which overlapping readings compete: the sum over the span's words, by how
/// sure the match is, and a bonus for each further word, so that the longest match wins.
pub(crate) fn score(per_word: f32, words: usize) -> f32 {
    let words = f32::from(u16::try_from(words).unwrap_or(u16::MAX));
    per_word * words + 3.0 * (words - 1.0)
}
