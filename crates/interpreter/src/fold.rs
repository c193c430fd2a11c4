//! Folding maps the spellings of a word to one text.
//!
//! Folding decomposes compatibility characters, drops marks and changes letters to lower case. It
//! splits words at punctuation and between letters and digits, and names also at `camelCase`.

use std::borrow::Cow;
use std::cell::OnceCell;
use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};
use std::iter;
use std::ops::Range;
use std::sync::OnceLock;

use rust_stemmers::{Algorithm, Stemmer};
use unicode_normalization::char::{decompose_compatible, is_combining_mark};

/// The kind of a piece of text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum PieceKind {
    /// Letters.
    Word,
    /// Digits, with the dots between them: `12`, `2.5`, `2.4.1`.
    Number,
    /// One other character, except white space.
    Symbol,
}

/// A piece of a text.
#[derive(Debug, Clone)]
pub(crate) struct Piece {
    pub(crate) kind: PieceKind,
    /// The folded text.
    pub(crate) folded: String,
    /// The byte range in the text.
    pub(crate) span: Range<usize>,
    /// `true` if nothing separates it from the previous piece: `p|1`, `OOM|Killed`.
    pub(crate) joint: bool,
}

impl Piece {
    pub(crate) fn is_atom(&self) -> bool {
        self.kind != PieceKind::Symbol
    }
}

/// The treatment of a change of case in a name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum CamelCase {
    Split,
    Keep,
}

/// Folds a text and keeps its punctuation.
pub(crate) fn fold(text: &str) -> String {
    let mut folded = String::with_capacity(text.len());
    for character in text.chars() {
        // The decomposition of ≠ is the equals sign.
        if character.is_ascii() || character == '≠' {
            folded.push(character.to_ascii_lowercase());
            continue;
        }
        decompose_compatible(character, |part| {
            for lower in part.to_lowercase().filter(|_| !is_combining_mark(part)) {
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
    folded
}

fn is_apostrophe(character: char) -> bool {
    matches!(character, '\'' | '’' | '‘' | 'ʼ' | '`')
}

/// Splits a text into its pieces.
pub(crate) fn pieces(text: &str, camel: CamelCase) -> impl Iterator<Item = Piece> {
    let mut at = 0;
    // The end of the last piece, unless it is a symbol.
    let mut joins = None;
    iter::from_fn(move || {
        loop {
            let rest = text.get(at..)?;
            let character = rest.chars().next()?;
            let (kind, length) = if character.is_whitespace() || character.is_control() {
                at += character.len_utf8();
                continue;
            } else if character.is_ascii_digit() {
                (PieceKind::Number, number_length(rest.as_bytes()))
            } else if character.is_alphanumeric() {
                (PieceKind::Word, word_length(rest, camel))
            } else {
                (PieceKind::Symbol, character.len_utf8())
            };
            let raw = rest.get(..length)?;
            let plain = is_plain(raw);
            let folded = if plain { raw.to_ascii_lowercase() } else { fold_piece(raw, kind) };
            let span = at..at + length;
            at = span.end;
            if !folded.is_empty() {
                let symbol = kind == PieceKind::Symbol;
                let joint = !symbol && joins == Some(span.start);
                joins = Some(at).filter(|_| !symbol);
                return Some(Piece { kind, folded, span, joint });
            }
        }
    })
}

/// Returns the length of a number with its dots and commas. Commas group thousands (`1,000.50`), or
/// dots do and the comma is decimal (`1.000,50`).
fn number_length(text: &[u8]) -> usize {
    let digits = |from: usize| {
        let rest = text.get(from..).unwrap_or_default();
        rest.iter().take_while(|byte| byte.is_ascii_digit()).count()
    };
    let lead = digits(0);
    let mut at = lead;
    while text.get(at) == Some(&b'.') && digits(at + 1) == 3 {
        at += 4;
    }
    let cents = digits(at + 1);
    if lead <= 3 && at > lead && text.get(at) == Some(&b',') && (1..=2).contains(&cents) {
        return at + 1 + cents;
    }
    at = lead;
    let mut grouping = lead <= 3;
    loop {
        match (text.get(at), digits(at + 1)) {
            (Some(b'.'), more @ 1..) => {
                grouping = false;
                at += 1 + more;
            }
            (Some(b','), 3) if grouping => at += 4,
            _ => return at,
        }
    }
}

fn word_length(text: &str, camel: CamelCase) -> usize {
    let first = text.chars().next().map_or(0, char::len_utf8);
    // Most letters are plain and lower case.
    let mut at = text.bytes().take_while(u8::is_ascii_lowercase).count().max(first);
    let (read, rest) = text.split_at(at);
    let mut previous = read.chars().next_back().unwrap_or_default();
    let mut rest = rest.chars();
    loop {
        let character = rest.next().unwrap_or_default();
        let next = || rest.clone().next();
        let letter = character.is_alphanumeric() && !character.is_ascii_digit()
            || is_combining_mark(character)
            || is_apostrophe(character) && next().is_some_and(char::is_alphabetic);
        let hump = || {
            let acronym_ends = previous.is_uppercase()
                && rest.clone().take(2).filter(|it| it.is_lowercase()).count() == 2;
            character.is_uppercase() && (previous.is_lowercase() || acronym_ends)
        };
        if !letter || camel == CamelCase::Split && hump() {
            // Names of programming languages: C#, C++.
            return match (character, next()) {
                ('#', _) if at == first => at + 1,
                ('+', Some('+')) if at == first => at + 2,
                _ => at,
            };
        }
        at += character.len_utf8();
        previous = character;
    }
}

/// `true` if folding neither drops nor decomposes a part of the piece.
fn is_plain(raw: &str) -> bool {
    raw.bytes().all(|byte| byte.is_ascii() && !matches!(byte, b'\'' | b'`' | b','))
}

fn fold_piece(raw: &str, kind: PieceKind) -> String {
    match (kind, raw.find('.'), raw.find(',')) {
        (PieceKind::Number, Some(dot), Some(comma)) if dot < comma => {
            raw.replace('.', "").replace(',', ".")
        }
        (PieceKind::Number, ..) => raw.replace(',', ""),
        (PieceKind::Symbol, ..) => fold(raw),
        (PieceKind::Word, ..) => {
            let owner = raw.strip_suffix(['s', 'S']).and_then(|it| it.strip_suffix(is_apostrophe));
            let word = owner.filter(|owner| !owner.is_empty()).unwrap_or(raw);
            fold(&word.replace(is_apostrophe, ""))
        }
    }
}

/// Returns the words and numbers of a name.
pub(crate) fn atoms(name: &str) -> Vec<Piece> {
    pieces(name, CamelCase::Split).filter(Piece::is_atom).collect()
}

fn has_stem(word: &str) -> bool {
    (3..=40).contains(&word.len()) && word.bytes().all(|byte| byte.is_ascii_lowercase())
}

/// Returns the stem of a folded word, from the Snowball English stemmer. Short words and numbers
/// are their own stems.
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

/// A word of a name and its inflections, ready for keys.
#[derive(Clone, Copy)]
pub(crate) struct Inflections {
    pub(crate) word: Fragment,
    /// The result of [`stem`].
    pub(crate) stem: Fragment,
    /// The result of [`singular`].
    pub(crate) singular: Option<Fragment>,
}

/// The inflections of each word of a request's names, which share words.
#[derive(Default)]
pub(crate) struct Vocabulary(ByKey<Inflections>);

impl Vocabulary {
    pub(crate) fn inflections(&mut self, word: &str) -> Inflections {
        let own = Fragment::of(word);
        let read = || Inflections {
            word: own,
            stem: Fragment::of(&stem(word)),
            singular: singular(word).map(|base| Fragment::of(&base)),
        };
        *self.0.entry(Key::START.then_all(own)).or_insert_with(read)
    }
}

/// Returns the endings of plurals and of their singulars.
fn plurals() -> &'static [(&'static str, &'static str)] {
    static PLURALS: OnceLock<Vec<(&str, &str)>> = OnceLock::new();
    PLURALS.get_or_init(|| {
        let lines = include_str!("../data/en/plurals.txt").lines();
        let pairs = lines.filter_map(|line| line.strip_prefix('-')?.split_once("\t-"));
        pairs.collect()
    })
}

/// Returns the word without its plural ending, or `None` if it has none.
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

/// The hash of a folded text. A collision can only make a request misread its own words: all
/// results are validated against the request.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Key(u64);

pub(crate) type ByKey<T> = HashMap<Key, T, KeyState>;
pub(crate) type KeyState = BuildHasherDefault<KeyHasher>;

/// A hasher for keys, which are hashes already, and for the words of the lexicon.
#[derive(Default)]
pub(crate) struct KeyHasher(u64);

impl Hasher for KeyHasher {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        self.0 = bytes.iter().copied().fold(self.0, hash_byte);
    }

    fn write_u64(&mut self, part: u64) {
        self.0 = part;
    }
}

const BASE: u64 = 0x0000_0100_0000_01b3;

/// A step of a polynomial hash, so the hash of two texts follows from the hashes of each.
fn hash_byte(hash: u64, byte: u8) -> u64 {
    hash.wrapping_mul(BASE).wrapping_add(u64::from(byte) + 1)
}

/// The hash of a part of a text.
#[derive(Clone, Copy)]
pub(crate) struct Fragment {
    hash: u64,
    /// The power of the base by which the part moves the text before it.
    power: u64,
}

impl Fragment {
    fn of(part: &str) -> Self {
        let hash = part.bytes().fold(0, hash_byte);
        let power = part.bytes().fold(1, |power: u64, _| power.wrapping_mul(BASE));
        Self { hash, power }
    }
}

impl Key {
    const START: Self = Self(0xcbf2_9ce4_8422_2325);

    /// Returns the key of the parts, joined without spaces.
    pub(crate) fn of<'a>(parts: impl IntoIterator<Item = &'a str>) -> Self {
        parts.into_iter().fold(Self::START, Self::then)
    }

    /// Returns the key of this text followed by the next part.
    pub(crate) fn then(self, part: &str) -> Self {
        Self(part.bytes().fold(self.0, hash_byte))
    }

    /// Returns the result of [`Key::then`] for a part that is hashed already.
    pub(crate) fn then_all(self, part: Fragment) -> Self {
        Self(self.0.wrapping_mul(part.power).wrapping_add(part.hash))
    }

    /// Returns the key of a lexicon concept, different from the keys of texts.
    pub(crate) fn of_concept(concept: u16) -> Self {
        Self(Self::START.then("\u{0}").0 ^ (u64::from(concept) << 40) ^ u64::from(concept))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn folded(text: &str, camel: CamelCase) -> Vec<String> {
        pieces(text, camel).map(|piece| piece.folded).collect()
    }

    #[test]
    fn cuts_names_at_case_digits_and_punctuation() {
        assert_eq!(folded("OOMKilled", CamelCase::Split), ["oom", "killed"]);
        assert_eq!(folded("web@2.4.1", CamelCase::Keep), ["web", "@", "2.4.1"]);
        assert_eq!(folded("H.264", CamelCase::Keep), ["h", ".", "264"]);
        assert_eq!(folded("Gdańsk", CamelCase::Keep), ["gdansk"]);
    }

    #[test]
    fn fragments_give_the_keys_of_their_texts() {
        let mut vocabulary = Vocabulary::default();
        let lead = Key::of(["lead"]);
        for word in ["crashes", "crashes", "crash", "os", "café", "42"] {
            let found = vocabulary.inflections(word);
            assert_eq!(lead.then_all(found.word), lead.then(word));
            assert_eq!(lead.then_all(found.stem), lead.then(&stem(word)));
            let base = singular(word).map(|base| lead.then(&base));
            assert_eq!(found.singular.map(|base| lead.then_all(base)), base);
        }
    }

    #[test]
    fn drops_apostrophes_and_possessive_endings() {
        assert_eq!(folded("Won't O'Brien Apple's", CamelCase::Keep), ["wont", "obrien", "apple"]);
    }

    #[test]
    fn numbers_include_commas_between_thousands() {
        assert_eq!(folded("1,500", CamelCase::Keep), ["1500"]);
        assert_eq!(folded("1.000,50", CamelCase::Keep), ["1000.50"]);
        assert_eq!(folded("1,2", CamelCase::Keep), ["1", ",", "2"]);
    }

    #[test]
    fn keeps_the_signs_of_language_names() {
        assert_eq!(folded("C# c++ 10+", CamelCase::Keep), ["c#", "c++", "10", "+"]);
    }
}
