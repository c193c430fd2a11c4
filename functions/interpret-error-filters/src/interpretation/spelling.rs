//! Misspelt words: for a word that names nothing, the nearest word of the request (or steering
//! word) within a distance that grows with its length. Also short forms: the first letters of
//! exactly one word.

use crate::interpretation::catalog::Catalog;
use crate::interpretation::fold::{self, Key};
use crate::interpretation::lexicon::Lexicon;
use crate::interpretation::token::{Token, TokenKind};

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
            let token = tokens.get(at)?;
            if is_known(tokens, at, catalog, lexicon) {
                return None;
            }
            nearest(&token.folded, catalog.spellings(lexicon), &mut budget).map(str::to_owned)
        })
        .collect()
}

fn is_known(tokens: &[Token], at: usize, catalog: &Catalog<'_>, lexicon: &Lexicon) -> bool {
    let Some(token) = tokens.get(at) else { return true };
    let word = token.folded.as_str();
    let next_joint = tokens.get(at + 1).is_some_and(|next| next.joint);
    if token.kind != TokenKind::Word
        || token.joint
        || next_joint
        || word.len() < 4
        || word.len() > 32
    {
        return true;
    }
    if lexicon.is_common(word)
        || lexicon.unit(word).is_some()
        || lexicon.comparative(word).is_some()
    {
        return true;
    }
    if lexicon.is_steering_word(word) {
        return true;
    }
    let stem = fold::stem(word);
    let singular = fold::singular(word);
    let forms = [Some(word), Some(stem.as_ref()), singular.as_deref()];
    forms.into_iter().flatten().any(|form| {
        let key = Key::of([form]);
        !catalog.lookup(key).is_empty()
            || lexicon
                .concepts_of(key)
                .iter()
                .any(|&(concept, _)| !catalog.lookup(Key::of_concept(concept)).is_empty())
    })
}

fn letters(word: &str) -> u32 {
    word.bytes()
        .filter(u8::is_ascii_lowercase)
        .fold(0, |letters, byte| letters | 1 << (byte - b'a'))
}

/// The most edits that still make the same word.
fn bound(length: usize) -> usize {
    match length {
        0..=3 => 0,
        4..=7 => 1,
        _ => 2,
    }
}

fn nearest<'c>(word: &str, candidates: &'c [String], budget: &mut usize) -> Option<&'c str> {
    let length = word.chars().count();
    let most = bound(length);
    let &[first, second, ..] = word.as_bytes() else { return None };
    let own = letters(word);
    let mut best: Option<(usize, &str)> = None;
    for candidate in candidates {
        let other = candidate.len();
        if other.abs_diff(word.len()) > most || other < 4 {
            continue;
        }
        let start = candidate.bytes().next().unwrap_or(0);
        if start != first && (length < 5 || start != second) {
            continue;
        }
        if (letters(candidate) ^ own).count_ones() as usize > 2 * most || *budget == 0 {
            continue;
        }
        *budget -= 1;
        let distance = strsim::osa_distance(word, candidate);
        if distance <= most && best.is_none_or(|(least, _)| distance < least) {
            best = Some((distance, candidate));
        }
    }
    if let Some((_, found)) = best {
        return Some(found);
    }
    short_for(word, candidates)
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
