//! Corrects misspelled words.
//!
//! A word that names nothing becomes the nearest word of the request, or the nearest cue word. The
//! maximum distance grows with the word's length. Short forms are expanded too: the first letters
//! of exactly one word.

use crate::catalog::Catalog;
use crate::fold::{self, Key};
use crate::token::{TokenKind, Tokens};
use crate::word::Word;

/// Maximum comparisons per query, which bounds the work on hostile requests.
const MOST_COMPARISONS: usize = 20_000;

/// The confidence that a word is spelled as intended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum SpellingConfidence {
    Sure,
    /// A word of the language. It can abbreviate a word of the request, but is not misspelled.
    OtherWord,
    None,
}

/// `true` if the condition holds for a word or its singular.
fn in_any_number(word: &str, holds: impl Fn(&str) -> bool) -> bool {
    holds(word) || fold::singular(word).is_some_and(|base| holds(&base))
}

impl Catalog<'_> {
    /// Returns the intended word for each misspelled token.
    pub(crate) fn corrections(&self, tokens: &Tokens) -> Vec<Option<String>> {
        let mut budget = MOST_COMPARISONS;
        (0..tokens.len()).map(|at| self.correction(tokens, at, &mut budget)).collect()
    }

    fn correction(&self, tokens: &Tokens, at: usize, budget: &mut usize) -> Option<String> {
        let word = tokens.folded(at);
        let confidence = self.confidence(tokens, at);
        if confidence == SpellingConfidence::Sure {
            return None;
        }
        let spellings = self.spellings();
        let mut meant = match confidence {
            SpellingConfidence::OtherWord => short_for(word, spellings).into_iter().collect(),
            _ => nearest(word, spellings, budget),
        };
        // The plural of a misspelt word: `requsts`.
        if meant.is_empty()
            && confidence == SpellingConfidence::None
            && let Some(base) = fold::singular(word).filter(|base| base.len() >= 6)
        {
            meant = nearest(&base, spellings, budget);
        }
        // "unacknowledged" for a value Acknowledged: polarity negates it.
        let base = tokens.lexicon.opposite_base(word).filter(|&base| self.has(Key::of([base])));
        meant.first().copied().or(base).map(str::to_owned)
    }

    /// `true` if a word or a synonym names something.
    fn knows(&self, tokens: &Tokens, word: &str) -> bool {
        let key = Key::of([word]);
        let mut concepts = tokens.lexicon.concepts_of(key).iter();
        self.has(key) || concepts.any(|found| self.has(Key::of_concept(found.0)))
    }

    fn confidence(&self, tokens: &Tokens, at: usize) -> SpellingConfidence {
        let (word, lexicon) = (tokens.folded(at), tokens.lexicon);
        let is_word = |at: usize| tokens.kind(at) == Some(TokenKind::Word);
        let whole = is_word(at) && !tokens.is_joint(at) && !tokens.is_joint(at + 1);
        // "audio books" for Audiobook.
        let joins = |before: usize, after: usize| {
            let pair = |last: &str| self.knows(tokens, &format!("{}{last}", tokens.folded(before)));
            is_word(before) && is_word(after) && in_any_number(tokens.folded(after), pair)
        };
        if !whole
            || !(4..=32).contains(&word.len())
            || in_any_number(word, |word| lexicon.is(word, Word::Common))
            || lexicon.unit(word).is_some()
            || lexicon.comparative(word).is_some()
            || lexicon.is_cue_word(word)
            || joins(at, at + 1)
            || at.checked_sub(1).is_some_and(|before| joins(before, at))
            || in_any_number(word, |word| self.knows(tokens, word))
            || self.knows(tokens, &fold::stem(word))
        {
            SpellingConfidence::Sure
        } else if in_any_number(word, |word| !lexicon.concepts_of(Key::of([word])).is_empty()) {
            SpellingConfidence::OtherWord
        } else {
            SpellingConfidence::None
        }
    }
}

fn letters(word: &str) -> u32 {
    let letters = word.bytes().filter(u8::is_ascii_lowercase);
    letters.fold(0, |letters, byte| letters | 1 << (byte - b'a'))
}

/// Returns the maximum cost of a correction for a word's length. There, a misspelling is as likely
/// as an ordinary word that only resembles it (`docs/semantics/error-filters.md`, "Accuracy").
fn bound(length: usize) -> usize {
    match length {
        0..=3 => 0,
        4..=5 => 2,
        6..=8 => 3,
        9..=10 => 4,
        _ => 5,
    }
}

/// Returns the difference between two words, or `None` if it is more than `most`.
///
/// Each edit costs 2. A replaced letter costs 1 more: typing errors seldom replace letters, but
/// different words often do. A different last letter costs 2 more, since it inflects, unless it was
/// only moved or left off.
fn cost(word: &str, other: &str, most: usize) -> Option<usize> {
    let mut surplus = [0_i8; 256];
    for (bytes, step) in [(word.bytes(), 1), (other.bytes(), -1)] {
        for byte in bytes {
            if let Some(count) = surplus.get_mut(usize::from(byte)) {
                *count = count.saturating_add(step);
            }
        }
    }
    let own: usize = surplus.iter().map(|count| usize::from(count.unsigned_abs())).sum();
    let longer = word.len().abs_diff(other.len());
    let replaced = own.saturating_sub(longer) / 2;
    let inflects = word.bytes().next_back() != other.bytes().next_back()
        && own > 0
        && !other.starts_with(word);
    let extra = replaced + 2 * usize::from(inflects);
    let edits = if word.is_ascii() && other.is_ascii() { longer + replaced } else { 0 };
    let cost = |edits: usize| Some(2 * edits + extra).filter(|&cost| cost <= most);
    // The letters alone rule out most words.
    cost(edits).and_then(|_| cost(strsim::osa_distance(word, other)))
}

/// Returns the words with the least cost, or the word that `word` abbreviates.
fn nearest<'c>(word: &str, candidates: &'c [String], budget: &mut usize) -> Vec<&'c str> {
    let length = word.chars().count();
    let most = bound(length);
    let &[first, second, ..] = word.as_bytes() else { return Vec::new() };
    let own = letters(word);
    let mut least = most;
    let mut best: Vec<&str> = Vec::new();
    for candidate in candidates {
        let other = candidate.len();
        if 2 * other.abs_diff(word.len()) > most || other < 4 {
            continue;
        }
        let start = candidate.bytes().next().unwrap_or(0);
        if start != first && (length < 5 || start != second) {
            continue;
        }
        if (letters(candidate) ^ own).count_ones() as usize > most || *budget == 0 {
            continue;
        }
        *budget -= 1;
        let Some(cost) = cost(word, candidate, least) else { continue };
        if cost < least {
            best.clear();
            least = cost;
        }
        best.push(candidate);
    }
    if best.is_empty() {
        best.extend(short_for(word, candidates));
    }
    best
}

/// Returns the only word that begins with these letters.
fn short_for<'c>(word: &str, candidates: &'c [String]) -> Option<&'c str> {
    let start = candidates.partition_point(|candidate| candidate.as_str() < word);
    let mut matching =
        candidates.get(start..)?.iter().take_while(|candidate| candidate.starts_with(word));
    let found = matching.next()?;
    // Longer words that only extend the found one (notification, notificationservice) do not
    // compete.
    matching.all(|other| other.starts_with(found.as_str())).then_some(found.as_str())
}
