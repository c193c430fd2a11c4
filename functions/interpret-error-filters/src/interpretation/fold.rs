//! Folding: what makes two spellings the same word. Compatibility decomposition, no marks, lower
//! case; words are cut at punctuation, between letters and digits, and, in names, at `camelCase`.

use std::borrow::Cow;
use std::cell::OnceCell;
use std::collections::HashMap;
use std::hash::Hasher;
use std::ops::Range;
use std::rc::Rc;
use std::sync::OnceLock;

use rust_stemmers::{Algorithm, Stemmer};
use unicode_normalization::char::{decompose_compatible, is_combining_mark};

/// What a piece of a text is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum PieceKind {
    /// Letters.
    Word,
    /// Digits, with the dots between them: `12`, `2.5`, `2.4.1`.
    Number,
    /// One other character that is no space.
    Symbol,
}

/// A piece of a text.
#[derive(Debug, Clone)]
pub(crate) struct Piece {
    pub(crate) kind: PieceKind,
    /// The folded text.
    pub(crate) folded: String,
    /// Where it stands in the text, in bytes.
    pub(crate) span: Range<usize>,
    /// Whether nothing at all stands between it and the piece before: `p|1`, `OOM|Killed`.
    pub(crate) joint: bool,
}

/// Whether names are cut at a change of case.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum CamelCase {
    Split,
    Keep,
}

/// Appends the folded form of one character.
pub(crate) fn fold_char(character: char, folded: &mut String) {
    if character.is_ascii() {
        folded.push(character.to_ascii_lowercase());
        return;
    }
    // Its decomposition would be the equals sign.
    if character == '≠' {
        folded.push(character);
        return;
    }
    decompose_compatible(character, |part| {
        if is_combining_mark(part) {
            return;
        }
        for lower in part.to_lowercase() {
            match lower {
                'ß' => folded.push_str("ss"),
                'æ' => folded.push_str("ae"),
                'œ' => folded.push_str("oe"),
                'ø' => folded.push('o'),
                'đ' | 'ð' => folded.push('d'),
                'ł' => folded.push('l'),
                'ı' => folded.push('i'),
                'þ' => folded.push_str("th"),
                other if is_combining_mark(other) => {}
                other => folded.push(other),
            }
        }
    });
}

/// Folds a whole text, keeping its punctuation.
pub(crate) fn fold(text: &str) -> String {
    let mut folded = String::with_capacity(text.len());
    text.chars().for_each(|character| fold_char(character, &mut folded));
    folded
}

fn is_apostrophe(character: char) -> bool {
    matches!(character, '\'' | '’' | '‘' | 'ʼ' | '`')
}

/// Cuts a text into pieces.
pub(crate) fn pieces(text: &str, camel: CamelCase) -> Vec<Piece> {
    first_pieces(text, camel, usize::MAX)
}

/// How many pieces most names have at most.
const USUAL_PIECES: usize = 8;

/// Cuts the beginning of a text into at most so many pieces.
fn first_pieces(text: &str, camel: CamelCase, most: usize) -> Vec<Piece> {
    let mut characters: Vec<(usize, char)> = Vec::with_capacity(text.len());
    characters.extend(text.char_indices());
    let mut found: Vec<Piece> = Vec::with_capacity(USUAL_PIECES);
    let mut at = 0;
    let mut last_end = usize::MAX;
    while let Some(&(_, character)) = characters.get(at)
        && found.len() < most
    {
        if character.is_whitespace() || character.is_control() {
            at += 1;
            continue;
        }
        let (kind, end) = if character.is_ascii_digit() {
            (PieceKind::Number, number_end(&characters, at))
        } else if character.is_alphanumeric() {
            (PieceKind::Word, word_end(&characters, at, camel))
        } else {
            (PieceKind::Symbol, at + 1)
        };
        let span = byte_at(&characters, at, text)..byte_at(&characters, end, text);
        let raw = text.get(span.clone()).unwrap_or_default();
        let folded = if is_plain(raw) {
            raw.to_ascii_lowercase()
        } else {
            fold_piece(&characters, at..end, kind)
        };
        let joint = kind != PieceKind::Symbol
            && last_end == at
            && found.last().is_some_and(|piece| piece.kind != PieceKind::Symbol);
        if !folded.is_empty() {
            found.push(Piece { kind, folded, span, joint });
            last_end = end;
        }
        at = end;
    }
    found
}

fn byte_at(characters: &[(usize, char)], at: usize, text: &str) -> usize {
    characters.get(at).map_or(text.len(), |&(byte, _)| byte)
}

fn char_at(characters: &[(usize, char)], at: usize) -> Option<char> {
    characters.get(at).map(|&(_, character)| character)
}

fn is_digit_at(characters: &[(usize, char)], at: usize) -> bool {
    char_at(characters, at).is_some_and(|character| character.is_ascii_digit())
}

/// Digits, dots between digits, and commas that group thousands.
fn number_end(characters: &[(usize, char)], start: usize) -> usize {
    if let Some(end) = continental_end(characters, start) {
        return end;
    }
    let mut at = start;
    let mut grouping = true;
    loop {
        match char_at(characters, at) {
            Some(digit) if digit.is_ascii_digit() => at += 1,
            Some('.') if is_digit_at(characters, at + 1) => {
                grouping = false;
                at += 1;
            }
            Some(',') if grouping && groups_thousands(characters, start, at) => at += 1,
            _ => return at,
        }
    }
}

/// The end of a number with dots between thousands and a decimal comma: `1.000,50`.
fn continental_end(characters: &[(usize, char)], start: usize) -> Option<usize> {
    let digits = |from: usize| {
        let rest = characters.get(from..).unwrap_or_default();
        rest.iter().take_while(|(_, character)| character.is_ascii_digit()).count()
    };
    let mut at = start + digits(start);
    let mut groups = 0;
    while char_at(characters, at) == Some('.') && digits(at + 1) == 3 {
        at += 4;
        groups += 1;
    }
    let cents = digits(at + 1);
    let lead = digits(start) <= 3;
    (lead && groups > 0 && char_at(characters, at) == Some(',') && (1..=2).contains(&cents))
        .then_some(at + 1 + cents)
}

/// Whether the comma stands between one to three digits (or earlier groups) and exactly three.
fn groups_thousands(characters: &[(usize, char)], start: usize, comma: usize) -> bool {
    let lead = characters
        .get(start..comma)
        .unwrap_or_default()
        .iter()
        .rev()
        .take_while(|(_, character)| character.is_ascii_digit())
        .count();
    let first_group = lead == comma - start;
    (if first_group { lead <= 3 } else { lead == 3 })
        && (1..=3).all(|offset| is_digit_at(characters, comma + offset))
        && !is_digit_at(characters, comma + 4)
}

fn word_end(characters: &[(usize, char)], start: usize, camel: CamelCase) -> usize {
    let mut at = start + 1;
    while let Some(character) = char_at(characters, at) {
        let previous = char_at(characters, at - 1).unwrap_or(' ');
        let next = char_at(characters, at + 1);
        if character.is_ascii_digit() {
            break;
        }
        if is_apostrophe(character) && next.is_some_and(char::is_alphabetic) {
            at += 1;
        } else if character.is_alphanumeric() || is_combining_mark(character) {
            let hump = previous.is_lowercase() && character.is_uppercase();
            let acronym_end = previous.is_uppercase()
                && character.is_uppercase()
                && next.is_some_and(char::is_lowercase)
                && char_at(characters, at + 2).is_some_and(char::is_lowercase);
            if camel == CamelCase::Split && (hump || acronym_end) {
                break;
            }
            at += 1;
        } else {
            break;
        }
    }
    // Names of programming languages: C#, C++.
    if at - start == 1 {
        match (char_at(characters, at), char_at(characters, at + 1)) {
            (Some('#'), _) => return at + 1,
            (Some('+'), Some('+')) => return at + 2,
            _ => {}
        }
    }
    at
}

/// Whether nothing of a piece is dropped or decomposed.
fn is_plain(raw: &str) -> bool {
    raw.bytes().all(|byte| byte.is_ascii() && !matches!(byte, b'\'' | b'`' | b','))
}

fn fold_piece(characters: &[(usize, char)], range: Range<usize>, kind: PieceKind) -> String {
    let slice = characters.get(range).unwrap_or_default();
    let mut folded = String::with_capacity(slice.len());
    let possessive = kind == PieceKind::Word
        && slice.len() > 2
        && slice.get(slice.len() - 2).is_some_and(|&(_, character)| is_apostrophe(character))
        && slice.last().is_some_and(|&(_, character)| matches!(character, 's' | 'S'));
    let kept = if possessive { slice.len() - 2 } else { slice.len() };
    let continental = kind == PieceKind::Number && {
        let dot = slice.iter().position(|&(_, character)| character == '.');
        let comma = slice.iter().position(|&(_, character)| character == ',');
        matches!((dot, comma), (Some(dot), Some(comma)) if dot < comma)
    };
    for &(_, character) in slice.iter().take(kept) {
        if continental && !character.is_ascii_digit() {
            if character == ',' {
                folded.push('.');
            }
            continue;
        }
        let dropped = (kind == PieceKind::Word && is_apostrophe(character))
            || (kind == PieceKind::Number && character == ',');
        if !dropped {
            fold_char(character, &mut folded);
        }
    }
    folded
}

/// The words and numbers of a name.
pub(crate) fn atoms(name: &str) -> Vec<Piece> {
    first_atoms(name, usize::MAX)
}

/// The first words and numbers of a name, out of at most so many pieces.
pub(crate) fn first_atoms(name: &str, most: usize) -> Vec<Piece> {
    let mut atoms = first_pieces(name, CamelCase::Split, most);
    atoms.retain(|piece| piece.kind != PieceKind::Symbol);
    atoms
}

fn has_stem(word: &str) -> bool {
    (3..=40).contains(&word.len()) && word.bytes().all(|byte| byte.is_ascii_lowercase())
}

/// The stem of a folded word, by the Snowball English stemmer. Short words and numbers are their
/// own stems.
pub(crate) fn stem(word: &str) -> Cow<'_, str> {
    thread_local!(static STEMMER: OnceCell<Stemmer> = const { OnceCell::new() });
    if !has_stem(word) {
        return Cow::Borrowed(word);
    }
    STEMMER
        .with(|stemmer| {
            stemmer.get_or_init(|| Stemmer::create(Algorithm::English)).stem(word).into_owned()
        })
        .into()
}

/// The stems of words that come again and again, each found once.
#[derive(Default)]
pub(crate) struct Stems(HashMap<Box<str>, Option<Rc<str>>>);

impl Stems {
    /// What [`stem`] gives; none where it is the word itself.
    pub(crate) fn of(&mut self, word: &str) -> Option<Rc<str>> {
        if !has_stem(word) {
            return None;
        }
        if let Some(known) = self.0.get(word) {
            return known.clone();
        }
        let stem = stem(word);
        let found = (stem != word).then(|| Rc::from(stem));
        self.0.insert(word.into(), found.clone());
        found
    }
}

/// Endings of plurals, and of their singulars.
fn plurals() -> &'static [(&'static str, &'static str)] {
    static PLURALS: OnceLock<Vec<(&str, &str)>> = OnceLock::new();
    PLURALS.get_or_init(|| {
        let lines = include_str!("../../data/en/plurals.txt").lines();
        let pairs = lines.filter_map(|line| line.strip_prefix('-')?.split_once("\t-"));
        pairs.collect()
    })
}

/// The word without its plural ending; none when it has none.
pub(crate) fn singular(word: &str) -> Option<Cow<'_, str>> {
    if word.len() < 3 {
        return None;
    }
    let endings = plurals().iter().filter_map(|(plural, singular)| {
        Some((plural.len(), word.strip_suffix(plural)?, *singular))
    });
    let (_, base, singular) = endings.max_by_key(|ending| ending.0)?;
    if base.len() + singular.len() == word.len() {
        return None;
    }
    if !singular.is_empty() {
        return Some(format!("{base}{singular}").into());
    }
    // Two letters are a code, not the singular of a word.
    (base.len() > 2).then_some(Cow::Borrowed(base))
}

/// A folded text as a number that two equal texts share. A collision can only make one request
/// misread its own words: every answer is checked against the request afterwards.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Key(u64);

/// Hashes keys, which are hashes already, by themselves.
#[derive(Default)]
pub(crate) struct KeyHasher(u64);

impl Hasher for KeyHasher {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.write_u64(u64::from(*byte));
        }
    }

    fn write_u64(&mut self, part: u64) {
        self.0 = self.0.rotate_left(8) ^ part;
    }
}

impl Key {
    const START: Self = Self(0xcbf2_9ce4_8422_2325);

    /// The key of the parts, written without spaces.
    pub(crate) fn of<'a>(parts: impl IntoIterator<Item = &'a str>) -> Self {
        parts.into_iter().fold(Self::START, Self::then)
    }

    /// The key of this text and the next part (FNV-1a).
    pub(crate) fn then(self, part: &str) -> Self {
        Self(part.bytes().fold(self.0, |hash, byte| {
            (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3)
        }))
    }

    /// Which of so many equal shares of all keys it falls into.
    pub(crate) fn share_of(self, shares: usize) -> usize {
        let share = (u128::from(self.0) * shares as u128) >> 64;
        usize::try_from(share).unwrap_or_default()
    }

    /// The key of a concept of the lexicon, apart from all texts.
    pub(crate) fn of_concept(concept: u16) -> Self {
        Self(Self::START.then("\u{0}").0 ^ (u64::from(concept) << 40) ^ u64::from(concept))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn folded(text: &str, camel: CamelCase) -> Vec<String> {
        pieces(text, camel).into_iter().map(|piece| piece.folded).collect()
    }

    #[test]
    fn cuts_names_at_case_digits_and_punctuation() {
        assert_eq!(folded("OOMKilled", CamelCase::Split), ["oom", "killed"]);
        assert_eq!(folded("web@2.4.1", CamelCase::Keep), ["web", "@", "2.4.1"]);
        assert_eq!(folded("H.264", CamelCase::Keep), ["h", ".", "264"]);
        assert_eq!(folded("Gdańsk", CamelCase::Keep), ["gdansk"]);
    }

    #[test]
    fn finds_the_same_stem_each_time() {
        let mut stems = Stems::default();
        for word in ["crashes", "crashes", "crash", "os", "café", "42"] {
            assert_eq!(stems.of(word).as_deref().unwrap_or(word), stem(word));
        }
    }

    #[test]
    fn drops_apostrophes_and_possessive_endings() {
        assert_eq!(folded("Won't O'Brien Apple's", CamelCase::Keep), ["wont", "obrien", "apple"]);
    }

    #[test]
    fn reads_commas_between_groups_of_three_digits_as_part_of_the_number() {
        assert_eq!(folded("1,500", CamelCase::Keep), ["1500"]);
        assert_eq!(folded("1,2", CamelCase::Keep), ["1", ",", "2"]);
    }

    #[test]
    fn keeps_the_signs_of_language_names() {
        assert_eq!(folded("C# c++ 10+", CamelCase::Keep), ["c#", "c++", "10", "+"]);
    }
}
