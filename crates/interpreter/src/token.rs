//! Stage 1: splits the query into tokens with their positions.
//!
//! A quoted text is one token, and so are some symbols of several characters. Signs inside a word,
//! such as dots and hyphens, only split it.

use std::ops::{Deref, Range};

use crate::fold::{self, CamelCase, Piece, PieceKind};
use crate::lexicon::{Lexicon, Unit};
use crate::word::Word;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum TokenKind {
    Word,
    Number,
    /// One or more other characters: `>=`, `:`, `,`.
    Symbol,
    /// A text between quotes.
    Quoted,
    /// A hyphen, dot or similar sign inside a word. It separates and has no meaning of its own.
    Separator,
}

#[derive(Debug, Clone)]
pub(crate) struct Token {
    pub(crate) kind: TokenKind,
    /// The folded text. For a quoted text: its words and numbers without spaces.
    pub(crate) folded: String,
    /// The byte range in the query, without quotes.
    pub(crate) span: Range<usize>,
    /// `true` if no space precedes it.
    pub(crate) glued: bool,
    /// `true` if it continues an alphanumeric run: the `1` of `p1`.
    pub(crate) joint: bool,
    /// `true` if its capitals stand out from the rest of the query.
    pub(crate) capital: bool,
}

impl Token {
    pub(crate) fn is(&self, text: &str) -> bool {
        self.folded == text
    }

    pub(crate) fn is_content(&self) -> bool {
        matches!(self.kind, TokenKind::Word | TokenKind::Number | TokenKind::Quoted)
    }
}

/// The tokens of a query, and the lexicon with the classes of their words.
pub(crate) struct Tokens {
    all: Vec<Token>,
    pub(crate) lexicon: &'static Lexicon,
}

impl Deref for Tokens {
    type Target = [Token];

    fn deref(&self) -> &[Token] {
        &self.all
    }
}

impl Tokens {
    /// Returns the folded text of a token, or `""` if there is no such token.
    pub(crate) fn folded(&self, at: usize) -> &str {
        self.get(at).map_or("", |token| token.folded.as_str())
    }

    pub(crate) fn kind(&self, at: usize) -> Option<TokenKind> {
        self.get(at).map(|token| token.kind)
    }

    pub(crate) fn is(&self, at: usize, text: &str) -> bool {
        self.folded(at) == text
    }

    pub(crate) fn is_glued(&self, at: usize) -> bool {
        self.get(at).is_some_and(|token| token.glued)
    }

    pub(crate) fn is_joint(&self, at: usize) -> bool {
        self.get(at).is_some_and(|token| token.joint)
    }

    /// `true` if a token is a word of the class.
    pub(crate) fn says(&self, at: usize, class: Word) -> bool {
        self.lexicon.is(self.folded(at), class)
    }

    pub(crate) fn unit(&self, at: usize) -> Option<Unit> {
        self.lexicon.unit(self.folded(at))
    }

    /// Replaces misspelled words with the intended ones.
    pub(crate) fn correct(&mut self, corrected: Vec<Option<String>>) {
        for (token, word) in self.all.iter_mut().zip(corrected) {
            token.folded = word.unwrap_or_else(|| std::mem::take(&mut token.folded));
        }
    }
}

const LONG_SYMBOLS: [&str; 20] = [
    "=/=", "!==", "===", ">==", "...", ">=", "<=", "=>", "=<", "!=", "<>", "==", "&&", "||", "->",
    "..", "!~", "=~", "*=", "~=",
];

/// Splits a query into tokens.
pub(crate) fn tokenize(query: &str) -> Tokens {
    let lexicon = Lexicon::get();
    let mut tokens = Vec::new();
    let mut rest = 0;
    for (quote, span) in quotes(query) {
        push_plain(query, rest..quote.start, lexicon, &mut tokens);
        let atoms = fold::atoms(query.get(span.clone()).unwrap_or_default());
        let folded = atoms.iter().map(|piece| piece.folded.as_str()).collect();
        let glued = quote.start == rest && rest != 0 || ends_glued(query, quote.start);
        let (kind, joint, capital) = (TokenKind::Quoted, false, false);
        tokens.push(Token { kind, folded, span, glued, joint, capital });
        rest = quote.end;
    }
    push_plain(query, rest..query.len(), lexicon, &mut tokens);
    drop_version_prefixes(&mut tokens);
    read_leading_hyphens(&mut tokens);
    mark_capitals(query, &mut tokens);
    Tokens { all: tokens, lexicon }
}

fn ends_glued(query: &str, at: usize) -> bool {
    let before = query.get(..at).and_then(|before| before.chars().next_back());
    before.is_some_and(|it| !it.is_whitespace())
}

/// Returns the quoted texts, with and without their quotes. A single quote opens only before a word
/// and closes only after one, so apostrophes stay.
fn quotes(query: &str) -> Vec<(Range<usize>, Range<usize>)> {
    let outside = |next: Option<char>| next.is_none_or(|it| !it.is_alphanumeric());
    let mut found = Vec::new();
    let mut rest = 0;
    while let Some((at, open)) = query.get(rest..).and_then(|it| it.char_indices().next()) {
        let start = rest + at;
        rest = start + open.len_utf8();
        let before = query.get(..start).and_then(|it| it.chars().next_back());
        let Some(close) = closing(open).filter(|_| open == '"' || outside(before)) else {
            continue;
        };
        let text = query.get(rest..).unwrap_or_default();
        let ends = |&(at, it): &(usize, char)| {
            let after = text.get(at + it.len_utf8()..).and_then(|it| it.chars().next());
            close.contains(it) && (open == '"' || open == '“' || outside(after))
        };
        if let Some((length, it)) = text.char_indices().find(ends).filter(|end| end.0 > 0) {
            let inner = rest..rest + length;
            rest = inner.end + it.len_utf8();
            found.push((start..rest, inner));
        }
    }
    found
}

fn closing(open: char) -> Option<&'static str> {
    Some(match open {
        '"' => "\"",
        '“' | '„' => "”“\"",
        '\'' => "'",
        '‘' => "’'",
        '`' => "`",
        '«' => "»",
        _ => return None,
    })
}

fn push_plain(query: &str, range: Range<usize>, lexicon: &Lexicon, tokens: &mut Vec<Token>) {
    let text = query.get(range.clone()).unwrap_or_default();
    let offset = range.start;
    let pieces: Vec<Piece> = fold::pieces(text, CamelCase::Keep).collect();
    let mut at = 0;
    while let Some(piece) = pieces.get(at) {
        let start = offset + piece.span.start;
        let glued = ends_glued(query, start);
        let (folded, kind, used) = if let Some((word, used)) = slashed(&pieces, at, text, lexicon) {
            (word.to_owned(), TokenKind::Word, used)
        } else if piece.kind == PieceKind::Symbol {
            let (symbol, used) = symbol(piece, text);
            let kind = symbol_kind(&symbol, &pieces, at, used, glued);
            (symbol, kind, used)
        } else {
            let kind =
                if piece.kind == PieceKind::Word { TokenKind::Word } else { TokenKind::Number };
            (piece.folded.clone(), kind, 1)
        };
        let end = pieces.get(at + used - 1).map_or(start, |last| offset + last.span.end);
        let (joint, capital) = (piece.joint, false);
        tokens.push(Token { kind, folded, span: start..end, glued, joint, capital });
        at += used;
    }
}

fn slashed<'l>(
    pieces: &[Piece],
    at: usize,
    text: &str,
    lexicon: &'l Lexicon,
) -> Option<(&'l str, usize)> {
    let piece = pieces.get(at)?;
    let start = piece.span.start;
    let before = at.checked_sub(1).and_then(|before| pieces.get(before));
    if piece.joint || before.is_some_and(|before| before.span.end == start) {
        return None;
    }
    lexicon.slashed.iter().find_map(|&word| {
        let end = start + word.len();
        let found = text.get(start..end)?.eq_ignore_ascii_case(word);
        let used = pieces.get(at..)?.iter().take_while(|piece| piece.span.end <= end).count();
        let ends = !text.get(end..)?.starts_with(char::is_alphanumeric) || word.ends_with('/');
        (found && ends && used > 0).then_some((word, used))
    })
}

fn symbol(piece: &Piece, text: &str) -> (String, usize) {
    let rest = text.get(piece.span.start..).unwrap_or_default();
    if let Some(long) = LONG_SYMBOLS.into_iter().find(|&long| rest.starts_with(long)) {
        return (long.to_owned(), long.len());
    }
    let symbol = match piece.folded.as_str() {
        "–" | "—" | "−" | "‐" | "‑" => "-",
        "’" | "‘" => "'",
        "“" | "”" => "\"",
        other => other,
    };
    (symbol.to_owned(), 1)
}

fn symbol_kind(symbol: &str, pieces: &[Piece], at: usize, used: usize, glued: bool) -> TokenKind {
    let before = at.checked_sub(1).and_then(|before| pieces.get(before));
    let next = pieces.get(at + used);
    let last = pieces.get(at + used - 1).map(|last| last.span.end);
    let tight_after =
        next.is_some_and(|next| Some(next.span.start) == last && next.kind != PieceKind::Symbol);
    let tight_before = glued && before.is_some_and(|piece| piece.kind != PieceKind::Symbol);
    let numbers = before.is_some_and(|piece| piece.kind == PieceKind::Number)
        && next.is_some_and(|piece| piece.kind == PieceKind::Number);
    match symbol {
        "-" if tight_before && tight_after && !numbers => TokenKind::Separator,
        "." | "_" | "@" | "'" | "\\" if tight_after => TokenKind::Separator,
        "\"" | "(" | ")" | "[" | "]" | "{" | "}" | "_" | "'" => TokenKind::Separator,
        _ => TokenKind::Symbol,
    }
}

/// Drops the `v` of a version: `v2.4.1` is 2.4.1.
fn drop_version_prefixes(tokens: &mut Vec<Token>) {
    for at in (1..tokens.len()).rev() {
        let (Some(prefix), Some(number)) = (tokens.get(at - 1), tokens.get(at)) else { continue };
        if prefix.is("v") && !prefix.joint && number.joint && number.folded.contains('.') {
            let start = tokens.remove(at - 1).span.start;
            if let Some(number) = tokens.get_mut(at - 1) {
                number.span.start = start;
                number.joint = false;
            }
        }
    }
}

/// Turns `-safari` into an exclusion, as search engines do.
fn read_leading_hyphens(tokens: &mut [Token]) {
    for at in 0..tokens.len() {
        let word_follows = tokens.get(at + 1).is_some_and(|next| {
            next.glued && matches!(next.kind, TokenKind::Word | TokenKind::Quoted)
        });
        let hyphen = |token: &&mut Token| token.is("-") && !token.glued && word_follows;
        if let Some(token) = tokens.get_mut(at).filter(hyphen) {
            token.kind = TokenKind::Symbol;
            "!".clone_into(&mut token.folded);
        }
    }
}

fn mark_capitals(query: &str, tokens: &mut [Token]) {
    // One word in capitals is not shouting: `POST 502`.
    let words = query.split_whitespace().filter(|word| word.chars().any(char::is_alphabetic));
    let shouting = !query.chars().any(char::is_lowercase) && words.count() > 1;
    for token in tokens {
        let text = query.get(token.span.clone()).unwrap_or_default();
        let upper = text.chars().any(char::is_uppercase) && !text.chars().any(char::is_lowercase);
        let capitalized = token.span.start > 0 && text.starts_with(char::is_uppercase);
        token.capital = (upper || capitalized) && !shouting && token.kind == TokenKind::Word;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn folded(query: &str) -> Vec<String> {
        tokenize(query).iter().map(|token| token.folded.clone()).collect()
    }

    #[test]
    fn reads_symbols_of_several_characters_as_one() {
        assert_eq!(folded("users>=10"), ["users", ">=", "10"]);
        assert_eq!(folded("env!=prod"), ["env", "!=", "prod"]);
    }

    #[test]
    fn quoted_texts_are_one_token() {
        for (query, text, last) in [
            ("message is \"Out of memory\" don't", "Out of memory", "dont"),
            ("subject is 'can't log in' please", "can't log in", "please"),
        ] {
            let tokens = tokenize(query);
            let quoted = tokens.iter().find(|token| token.kind == TokenKind::Quoted).unwrap();
            assert_eq!(&query[quoted.span.clone()], text);
            assert_eq!(tokens.last().unwrap().folded, last);
        }
    }

    #[test]
    fn drops_the_letter_before_a_version() {
        assert_eq!(folded("v2.4.1"), ["2.4.1"]);
    }

    #[test]
    fn keeps_a_hyphen_between_numbers() {
        assert_eq!(tokenize("10-50")[1].kind, TokenKind::Symbol);
        assert_eq!(tokenize("us-east")[1].kind, TokenKind::Separator);
    }
}
