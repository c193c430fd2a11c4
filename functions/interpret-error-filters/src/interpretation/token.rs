//! Stage 1: the query as tokens with their places. Quotes become one token, symbols of several
//! characters too; dots, hyphens and the like inside a word only cut it.

use std::ops::Range;

use crate::interpretation::fold::{self, CamelCase, Piece, PieceKind};
use crate::interpretation::lexicon::Lexicon;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum TokenKind {
    Word,
    Number,
    /// One or more other characters: `>=`, `:`, `,`.
    Symbol,
    /// A text between quotes.
    Quoted,
    /// A hyphen, slash or the like inside a word: it cuts, and means nothing by itself.
    Separator,
}

#[derive(Debug, Clone)]
pub(crate) struct Token {
    pub(crate) kind: TokenKind,
    /// The folded text; of a quoted one, its words and numbers without spaces.
    pub(crate) folded: String,
    /// Where it stands in the query, in bytes; of a quoted one, without the quotes.
    pub(crate) span: Range<usize>,
    /// No space before it.
    pub(crate) glued: bool,
    /// Part of one alphanumeric run with the token before: `p|1`.
    pub(crate) joint: bool,
    /// It stands in capitals, in a query that does not.
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

const LONG_SYMBOLS: [&str; 20] = [
    "=/=", "!==", "===", ">==", "...", ">=", "<=", "=>", "=<", "!=", "<>", "==", "&&", "||", "->",
    "..", "!~", "=~", "*=", "~=",
];

/// Cuts a query into tokens.
pub(crate) fn tokenise(query: &str) -> Vec<Token> {
    let mut tokens = Vec::new();
    let mut rest = 0;
    for quote in quotes(query) {
        push_plain(query, rest..quote.start, &mut tokens);
        let inner = inner(&quote, query);
        let folded = fold::atoms(query.get(inner.clone()).unwrap_or_default())
            .iter()
            .map(|piece| piece.folded.as_str())
            .collect();
        let glued = quote.start == rest && rest != 0 || ends_glued(query, quote.start);
        tokens.push(Token {
            kind: TokenKind::Quoted,
            folded,
            span: inner,
            glued,
            joint: false,
            capital: false,
        });
        rest = quote.end;
    }
    push_plain(query, rest..query.len(), &mut tokens);
    drop_version_prefixes(&mut tokens);
    read_leading_hyphens(&mut tokens);
    mark_capitals(query, &mut tokens);
    tokens
}

fn inner(quote: &Range<usize>, query: &str) -> Range<usize> {
    let text = query.get(quote.clone()).unwrap_or_default();
    let open = text.chars().next().map_or(0, char::len_utf8);
    let close = text.chars().next_back().map_or(0, char::len_utf8);
    quote.start + open..quote.end.saturating_sub(close).max(quote.start + open)
}

fn ends_glued(query: &str, at: usize) -> bool {
    query
        .get(..at)
        .and_then(|before| before.chars().next_back())
        .is_some_and(|c| !c.is_whitespace())
}

/// The texts in quotes, with their quotes. A single quote opens only before a word and closes
/// only after one, so that apostrophes stay what they are.
fn quotes(query: &str) -> Vec<Range<usize>> {
    let characters: Vec<(usize, char)> = query.char_indices().collect();
    let mut found = Vec::new();
    let mut at = 0;
    while let Some(&(start, open)) = characters.get(at) {
        let before = at.checked_sub(1).and_then(|before| characters.get(before)).map(|&(_, c)| c);
        if let Some(close) = closing(open)
            && (open == '"' || before.is_none_or(|c| !c.is_alphanumeric()))
            && let Some(offset) = characters.get(at + 1..).and_then(|rest| {
                rest.iter().enumerate().position(|(index, &(_, c))| {
                    close.contains(c) && (open == '"' || open == '“' || closes(rest.get(index + 1)))
                })
            })
            && offset > 0
        {
            let end = at + 1 + offset;
            let past = characters.get(end + 1).map_or(query.len(), |&(byte, _)| byte);
            found.push(start..past);
            at = end + 1;
        } else {
            at += 1;
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

fn closes(next: Option<&(usize, char)>) -> bool {
    next.is_none_or(|&(_, c)| !c.is_alphanumeric())
}

fn push_plain(query: &str, range: Range<usize>, tokens: &mut Vec<Token>) {
    let text = query.get(range.clone()).unwrap_or_default();
    let offset = range.start;
    let pieces = fold::pieces(text, CamelCase::Keep);
    let mut at = 0;
    while let Some(piece) = pieces.get(at) {
        let start = offset + piece.span.start;
        let glued = ends_glued(query, start);
        let (folded, kind, used) = if let Some((word, used)) = slashed(&pieces, at, text) {
            (word.to_owned(), TokenKind::Word, used)
        } else if let Some((code, used)) = flag_code(&pieces, at) {
            (code, TokenKind::Word, used)
        } else if piece.kind == PieceKind::Symbol {
            let (symbol, used) = symbol(&pieces, at, text);
            let kind = symbol_kind(&symbol, &pieces, at, used, glued);
            (symbol, kind, used)
        } else {
            let kind =
                if piece.kind == PieceKind::Word { TokenKind::Word } else { TokenKind::Number };
            (piece.folded.clone(), kind, 1)
        };
        let end = pieces.get(at + used - 1).map_or(start, |last| offset + last.span.end);
        let capital = is_flag(piece);
        tokens.push(Token { kind, folded, span: start..end, glued, joint: piece.joint, capital });
        at += used;
    }
}

fn slashed(pieces: &[Piece], at: usize, text: &str) -> Option<(&'static str, usize)> {
    let start = pieces.get(at)?.span.start;
    if pieces.get(at)?.joint
        || at > 0 && pieces.get(at - 1).is_some_and(|before| before.span.end == start)
    {
        return None;
    }
    Lexicon::get().slashed().iter().find_map(|&word| {
        let end = start + word.len();
        let found = text.get(start..end)?.eq_ignore_ascii_case(word);
        let used = pieces.get(at..)?.iter().take_while(|piece| piece.span.end <= end).count();
        let ends = text.get(end..)?.chars().next().is_none_or(|c| !c.is_alphanumeric())
            || word.ends_with('/');
        (found && ends && used > 0).then_some((word, used))
    })
}

fn is_flag(piece: &Piece) -> bool {
    piece.folded.chars().next().is_some_and(|c| ('\u{1F1E6}'..='\u{1F1FF}').contains(&c))
}

/// Two regional indicators are a country's code.
fn flag_code(pieces: &[Piece], at: usize) -> Option<(String, usize)> {
    let letter = |piece: &Piece| {
        let indicator = u32::from(piece.folded.chars().next()?).checked_sub(0x1F1E6)?;
        u8::try_from(indicator)
            .ok()
            .filter(|index| *index < 26)
            .map(|index| char::from(b'a' + index))
    };
    let code = [letter(pieces.get(at)?)?, letter(pieces.get(at + 1)?)?];
    Some((code.iter().collect(), 2))
}

fn symbol(pieces: &[Piece], at: usize, text: &str) -> (String, usize) {
    let Some(piece) = pieces.get(at) else { return (String::new(), 1) };
    for long in LONG_SYMBOLS {
        let end = piece.span.start + long.len();
        if text.get(piece.span.start..end) == Some(long) {
            return (long.to_owned(), long.chars().count());
        }
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
    let last = pieces.get(at + used - 1);
    let next = pieces.get(at + used);
    let tight_after = match (last, next) {
        (Some(last), Some(next)) => {
            last.span.end == next.span.start && next.kind != PieceKind::Symbol
        }
        _ => false,
    };
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

/// `v2.4.1` is the version 2.4.1.
fn drop_version_prefixes(tokens: &mut Vec<Token>) {
    let mut at = 0;
    while at + 1 < tokens.len() {
        let prefixed = matches!(
            (&tokens.get(at), &tokens.get(at + 1)),
            (Some(prefix), Some(number)) if prefix.is("v") && !prefix.joint && number.joint && number.folded.contains('.')
        );
        if prefixed {
            let start = tokens.remove(at).span.start;
            if let Some(number) = tokens.get_mut(at) {
                number.span.start = start;
                number.joint = false;
            }
        }
        at += 1;
    }
}

/// `-safari` takes Safari out, as search engines read it.
fn read_leading_hyphens(tokens: &mut [Token]) {
    for at in 0..tokens.len() {
        let word_follows = tokens.get(at + 1).is_some_and(|next| {
            next.glued && matches!(next.kind, TokenKind::Word | TokenKind::Quoted)
        });
        if let Some(token) = tokens.get_mut(at)
            && token.is("-")
            && !token.glued
            && word_follows
        {
            token.kind = TokenKind::Symbol;
            "!".clone_into(&mut token.folded);
        }
    }
}

fn mark_capitals(query: &str, tokens: &mut [Token]) {
    // One word in capitals is no shouting: `POST 502`.
    let words = query.split_whitespace().filter(|word| word.chars().any(char::is_alphabetic));
    let shouting = !query.chars().any(char::is_lowercase) && words.count() > 1;
    for token in tokens {
        let text = query.get(token.span.clone()).unwrap_or_default();
        let upper = text.chars().any(char::is_uppercase) && !text.chars().any(char::is_lowercase);
        let capitalised =
            token.span.start > 0 && text.chars().next().is_some_and(char::is_uppercase);
        token.capital |= (upper || capitalised) && !shouting && token.kind == TokenKind::Word;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn folded(query: &str) -> Vec<String> {
        tokenise(query).into_iter().map(|token| token.folded).collect()
    }

    #[test]
    fn reads_symbols_of_several_characters_as_one() {
        assert_eq!(folded("users>=10"), ["users", ">=", "10"]);
        assert_eq!(folded("env!=prod"), ["env", "!=", "prod"]);
    }

    #[test]
    fn reads_a_quoted_text_as_one_token_and_keeps_its_place() {
        let query = "message is \"Out of memory\" don't";
        let tokens = tokenise(query);
        let quoted = tokens.iter().find(|token| token.kind == TokenKind::Quoted).unwrap();
        assert_eq!(&query[quoted.span.clone()], "Out of memory");
        assert_eq!(tokens.last().unwrap().folded, "dont");
    }

    #[test]
    fn reads_apostrophes_inside_single_quotes() {
        let query = "subject is 'can't log in' please";
        let tokens = tokenise(query);
        let quoted = tokens.iter().find(|token| token.kind == TokenKind::Quoted).unwrap();
        assert_eq!(&query[quoted.span.clone()], "can't log in");
    }

    #[test]
    fn drops_the_letter_before_a_version() {
        assert_eq!(folded("v2.4.1"), ["2.4.1"]);
    }

    #[test]
    fn keeps_a_hyphen_between_numbers() {
        assert_eq!(tokenise("10-50")[1].kind, TokenKind::Symbol);
        assert_eq!(tokenise("us-east")[1].kind, TokenKind::Separator);
    }
}
