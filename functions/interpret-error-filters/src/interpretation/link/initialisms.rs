//! Acronyms that are said in full: `freedom of information` for FOI.

use super::{Extent, Link, Mention, Tier, score};
use crate::interpretation::catalog::{Catalog, Likeness, Owner};
use crate::interpretation::fold::Key;
use crate::interpretation::lexicon::{Affix, Lexicon};
use crate::interpretation::token::{Token, TokenKind};
use crate::interpretation::word::Word;

/// How many letters such an acronym has. Two words begin with the letters of too many.
const LEAST_LETTERS: usize = 3;
const MOST_LETTERS: usize = 5;

/// All spans whose words begin with the letters of a value that stands in capitals.
pub(crate) fn initialisms(tokens: &[Token], catalog: &Catalog<'_>, lexicon: &Lexicon) -> Vec<Link> {
    (0..tokens.len()).filter_map(|start| initialism(start, tokens, catalog, lexicon)).collect()
}

/// The longest one that begins here.
fn initialism(
    start: usize,
    tokens: &[Token],
    catalog: &Catalog<'_>,
    lexicon: &Lexicon,
) -> Option<Link> {
    let (mut all, mut weighty) = (String::new(), String::new());
    let mut words = 0;
    let mut longest = None;
    for (at, token) in tokens.iter().enumerate().skip(start) {
        if token.is("-") && !all.is_empty() {
            continue;
        }
        let joins = is_joining(token, lexicon) && !all.is_empty();
        if !joins && !is_said_in_full(token, catalog, lexicon) || all.len() >= MOST_LETTERS {
            break;
        }
        words += 1;
        let initial = token.folded.chars().next()?;
        all.push(initial);
        if joins {
            continue;
        }
        weighty.push(initial);
        let mut values: Vec<(usize, usize)> = Vec::new();
        for initials in [&all, &weighty] {
            if initials.len() >= LEAST_LETTERS && values.is_empty() {
                values.extend(acronyms(initials, catalog));
            }
        }
        if !values.is_empty() {
            longest = Some((start..at + 1, words, values));
        }
    }
    let (tokens, words, values) = longest?;
    let mention = Mention {
        values,
        parts: Vec::new(),
        extent: Extent::Whole,
        begins: false,
        needs_label: false,
        value_tier: Tier::Concept,
        labels: Vec::new(),
    };
    Some(Link { tokens, mention, score: score(9.0, words) })
}

fn is_joining(token: &Token, lexicon: &Lexicon) -> bool {
    lexicon.is(&token.folded, Word::Joining)
}

/// Whether a word may be one of an acronym's: none that steers, and none that is a value itself.
fn is_said_in_full(token: &Token, catalog: &Catalog<'_>, lexicon: &Lexicon) -> bool {
    let word = token.folded.as_str();
    token.kind == TokenKind::Word
        && !token.joint
        && word.len() >= 3
        && word.bytes().all(|byte| byte.is_ascii_lowercase())
        && (lexicon.has_affix(word, Affix::Opposite)
            || !lexicon.is_steering_word(word) && !lexicon.is_verb(word))
        && values_called(word, catalog).next().is_none()
}

/// The values that stand in capitals and have these letters.
fn acronyms(initials: &str, catalog: &Catalog<'_>) -> impl Iterator<Item = (usize, usize)> {
    values_called(initials, catalog).filter(|&(category, index)| {
        catalog.value(category, index).bytes().all(|byte| byte.is_ascii_uppercase())
    })
}

/// The values that are wholly called so.
fn values_called(word: &str, catalog: &Catalog<'_>) -> impl Iterator<Item = (usize, usize)> {
    // Whole forms stand first.
    let whole = catalog.lookup(Key::of([word])).take_while(|posting| posting.whole);
    whole.filter(|posting| posting.likeness == Likeness::Exact).filter_map(|posting| match catalog
        .form(posting.form)?
        .owner
    {
        Owner::Value { category, index } => Some((category, index)),
        Owner::Label { .. } => None,
    })
}
