//! Misspelt words: for a word that names nothing, the nearest word of the request (or steering
//! word) within a distance that grows with its length. Also short forms: the first letters of
//! exactly one word.

use crate::interpretation::catalog::Catalog;
use crate::interpretation::fold::{self, Key};
use crate::interpretation::lexicon::Lexicon;
use crate::interpretation::token::{Token, TokenKind};
use crate::interpretation::word::Word;

/// Bounds the work on hostile requests.
const MOST_COMPARISONS: usize = 20_000;

/// For each token, the word that it is meant for when it is none itself.
pub(crate) fn corrections(
    tokens: &[Token],
    catalog: &mut Catalog<'_>,
    lexicon: &Lexicon,
) -> Vec<Option<String>> {
    let mut budget = MOST_COMPARISONS;
    (0..tokens.len())
        .map(|at| {
            let word = tokens.get(at)?.folded.as_str();
            let knowledge = knowledge(tokens, at, catalog, lexicon);
            if knowledge == Knowledge::Sure {
                return None;
            }
            let spellings = catalog.spellings(lexicon);
            let mut nearest = match knowledge {
                Knowledge::OtherWord => short_for(word, spellings).into_iter().collect(),
                _ => nearest(word, spellings, &mut budget),
            };
            // The plural of a misspelt word: `requsts`.
            if nearest.is_empty()
                && knowledge == Knowledge::None
                && let Some(base) = fold::singular(word).filter(|base| base.len() >= 6)
            {
                nearest = self::nearest(&base, spellings, &mut budget);
            }
            let nearest: Vec<String> = nearest.into_iter().map(str::to_owned).collect();
            let beside = nearest.iter().position(|word| names_beside(tokens, at, word, catalog));
            let meant = match knowledge {
                Knowledge::StemOnly => beside?,
                _ => beside.unwrap_or(0),
            };
            let same_word = |other: &String| {
                knowledge == Knowledge::StemOnly && fold::stem(other) == fold::stem(word)
            };
            nearest.into_iter().nth(meant).filter(|meant| !same_word(meant))
        })
        .collect()
}

/// Whether a word and the one beside it are a name together: of words that are equally near, that
/// one is meant (`smoke detecter`: detector, not detected).
fn names_beside(tokens: &[Token], at: usize, word: &str, catalog: &Catalog<'_>) -> bool {
    let folded = |at: usize| tokens.get(at).map(|token| token.folded.as_str());
    let before = at.checked_sub(1).and_then(folded).map(|before| [before, word]);
    let after = folded(at + 1).map(|after| [word, after]);
    [before, after].into_iter().flatten().any(|pair| catalog.has(Key::of(pair)))
}

/// How sure it is that a word is spelt as it was meant.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Knowledge {
    Sure,
    /// Only its stem is known: `detecter` is of `detected`, unless it is a misspelt `detector`.
    StemOnly,
    /// A word of the language, which can be short for one of the request but not misspelt.
    OtherWord,
    None,
}

fn knowledge(tokens: &[Token], at: usize, catalog: &Catalog<'_>, lexicon: &Lexicon) -> Knowledge {
    let Some(token) = tokens.get(at) else { return Knowledge::Sure };
    let word = token.folded.as_str();
    let next_joint = tokens.get(at + 1).is_some_and(|next| next.joint);
    if token.kind != TokenKind::Word
        || token.joint
        || next_joint
        || word.len() < 4
        || word.len() > 32
    {
        return Knowledge::Sure;
    }
    if lexicon.is(word, Word::Common)
        || fold::singular(word).is_some_and(|base| lexicon.is(&base, Word::Common))
        || lexicon.unit(word).is_some()
        || lexicon.comparative(word).is_some()
    {
        return Knowledge::Sure;
    }
    if lexicon.is_steering_word(word) {
        return Knowledge::Sure;
    }
    let names = |form: &str| {
        let key = Key::of([form]);
        catalog.has(key)
            || lexicon
                .concepts_of(key)
                .iter()
                .any(|&(concept, _)| catalog.has(Key::of_concept(concept)))
    };
    // "audio books" for Audiobook.
    let joins = |before: usize, after: usize| {
        let token = |at: usize| tokens.get(at).filter(|token| token.kind == TokenKind::Word);
        token(before).zip(token(after)).is_some_and(|(before, after)| {
            [Some(after.folded.as_str().into()), fold::singular(&after.folded)]
                .into_iter()
                .flatten()
                .any(|last| names(&format!("{}{last}", before.folded)))
        })
    };
    if joins(at, at + 1) || at.checked_sub(1).is_some_and(|before| joins(before, at)) {
        return Knowledge::Sure;
    }
    let is_word = |form: &str| !lexicon.concepts_of(Key::of([form])).is_empty();
    if names(word) || fold::singular(word).is_some_and(|singular| names(&singular)) {
        Knowledge::Sure
    } else if names(&fold::stem(word)) {
        Knowledge::StemOnly
    } else if is_word(word) || fold::singular(word).is_some_and(|singular| is_word(&singular)) {
        Knowledge::OtherWord
    } else {
        Knowledge::None
    }
}

fn letters(word: &str) -> u32 {
    word.bytes()
        .filter(u8::is_ascii_lowercase)
        .fold(0, |letters, byte| letters | 1 << (byte - b'a'))
}

/// What a word may cost at most to be the same word, by its length: where a misspelling is as likely
/// as an ordinary word that only resembles it (`docs/semantics/error-filters.md`, "How well it reads").
fn bound(length: usize) -> usize {
    match length {
        0..=3 => 0,
        4..=5 => 2,
        6..=8 => 3,
        9..=10 => 4,
        _ => 5,
    }
}

/// How unlike two words are: 2 for each edit, and 1 more for a letter in another's place, which
/// fingers seldom do and ordinary words often; 2 for another last letter, unless it only changed
/// places or was left off: that inflects.
fn cost(word: &str, other: &str) -> usize {
    let mut surplus = [0_i8; 256];
    for (bytes, step) in [(word.bytes(), 1), (other.bytes(), -1)] {
        for byte in bytes {
            if let Some(count) = surplus.get_mut(usize::from(byte)) {
                *count = count.saturating_add(step);
            }
        }
    }
    let own: usize = surplus.iter().map(|count| usize::from(count.unsigned_abs())).sum();
    let replaced = own.saturating_sub(word.len().abs_diff(other.len())) / 2;
    let inflects = word.bytes().next_back() != other.bytes().next_back()
        && own > 0
        && !other.starts_with(word);
    let last = usize::from(inflects);
    2 * strsim::osa_distance(word, other) + replaced + 2 * last
}

/// The words at the least cost, or the one that it is short for.
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
        let cost = cost(word, candidate);
        if cost < least {
            best.clear();
            least = cost;
        }
        if cost == least {
            best.push(candidate);
        }
    }
    if best.is_empty() {
        best.extend(short_for(word, candidates));
    }
    best
}

/// The only word that begins with these letters.
fn short_for<'c>(word: &str, candidates: &'c [String]) -> Option<&'c str> {
    let start = candidates.partition_point(|candidate| candidate.as_str() < word);
    let mut matching =
        candidates.get(start..)?.iter().take_while(|candidate| candidate.starts_with(word));
    let found = matching.next()?;
    // Longer words that only add to the found one (notification, notificationservice) are its own.
    matching.all(|other| other.starts_with(found.as_str())).then_some(found.as_str())
}
