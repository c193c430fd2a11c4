//! Stage 3: which spans of the query name which values and labels. A span matches a form by
//! exact, stemmed or synonymous parts; parts may come in another order (`simplified chinese`
//! names `Chinese (Simplified)`).

mod assess;
mod digits;
mod initialisms;

use std::ops::Range;

use crate::interpretation::catalog::{self, Catalog, Likeness, Posting};
use crate::interpretation::fold::{self, Key};
use crate::interpretation::lexicon::{self, Lexicon};
use crate::interpretation::number::Spelt;
use crate::interpretation::spelling;
use crate::interpretation::token::{Token, TokenKind};
use crate::interpretation::word::Word;

pub(crate) use digits::{digit_families, spelt_values};
pub(crate) use initialisms::initialisms;

/// How sure a match is, best first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Tier {
    Exact,
    Stem,
    Concept,
    VersionPrefix,
    /// By the maker's name.
    Maker,
    Typo,
}

/// A category that a span names.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct LabelLink {
    pub(crate) category: usize,
    /// False where the span says the opposite of a boolean label.
    pub(crate) positive: bool,
    /// The whole label, not a part of it.
    pub(crate) full: bool,
    /// For a boolean label: the part says what is true (`flaky` of Marked flaky).
    pub(crate) telling: bool,
    pub(crate) tier: Tier,
}

/// How much of its values a span names.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Extent {
    /// All of a value.
    Whole,
    /// All of several values that are meant together: `5xx`.
    Family,
    /// A part that no other value has.
    Part,
    /// A part that several values share.
    SharedPart,
}

/// What a span of the query names.
#[derive(Debug, Clone)]
pub(crate) struct Mention {
    /// Categories and their values, in request order.
    pub(crate) values: Vec<(usize, usize)>,
    /// Values that the span names less well than those: by a part, or by another word.
    pub(crate) parts: Vec<(usize, usize)>,
    pub(crate) extent: Extent,
    /// All those values begin with it.
    pub(crate) begins: bool,
    /// Names a value only beside its label: a bare number, an ordinary word.
    pub(crate) needs_label: bool,
    pub(crate) value_tier: Tier,
    pub(crate) labels: Vec<LabelLink>,
}

/// A span and what it names.
#[derive(Debug)]
pub(crate) struct Link {
    pub(crate) tokens: Range<usize>,
    pub(crate) mention: Mention,
    pub(crate) score: f32,
}

/// The one score by which overlapping readings compete: the sum over the span's words, by how
/// sure the match is, and a bonus for each further word, so that the longest match wins.
pub(crate) fn score(per_word: f32, words: usize) -> f32 {
    let words = f32::from(u16::try_from(words).unwrap_or(u16::MAX));
    per_word * words + 3.0 * (words - 1.0)
}

/// The query's words as they are looked up: corrected and stemmed.
pub(crate) struct Words<'t> {
    tokens: &'t [Token],
    /// What is looked up in place of a misspelt token.
    pub(crate) corrected: Vec<Option<String>>,
    stems: Vec<String>,
    /// What is spelt with words: the `ten` of Windows ten.
    spelt: Vec<Spelling>,
}

/// Whether a token spells digits.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Spelling {
    No,
    /// These digits begin here.
    Begins(String),
    /// It goes on spelling them.
    Continues,
}

impl<'t> Words<'t> {
    pub(crate) fn new(
        tokens: &'t [Token],
        catalog: &mut Catalog<'_>,
        spelt: &[Spelt],
        lexicon: &Lexicon,
    ) -> Self {
        let corrected = spelling::corrections(tokens, catalog, lexicon);
        let stems = tokens
            .iter()
            .zip(&corrected)
            .map(|(token, corrected)| {
                fold::stem(corrected.as_ref().unwrap_or(&token.folded)).into_owned()
            })
            .collect();
        let mut spellings = vec![Spelling::No; tokens.len()];
        for spelt in spelt {
            for slot in spellings.get_mut(spelt.tokens.clone()).into_iter().flatten() {
                *slot = Spelling::Continues;
            }
            if let Some(slot) = spellings.get_mut(spelt.tokens.start) {
                *slot = Spelling::Begins(spelt.digits.clone());
            }
        }
        Self { tokens, corrected, stems, spelt: spellings }
    }

    /// Whether all of these tokens spell one number.
    fn spells_all(&self, mut tokens: Range<usize>) -> bool {
        matches!(tokens.next().and_then(|at| self.spelt.get(at)), Some(Spelling::Begins(_)))
            && tokens.all(|at| self.spelt.get(at) == Some(&Spelling::Continues))
    }

    pub(crate) fn word(&self, at: usize) -> &str {
        let raw = self.tokens.get(at).map_or("", |token| token.folded.as_str());
        self.corrected.get(at).and_then(Option::as_deref).unwrap_or(raw)
    }
}

#[derive(Debug, Clone, Copy)]
struct Match {
    form: u32,
    cover: u64,
    tier: Tier,
}

/// The plural of a number: `500s`.
const PLURAL_SIGN: &str = "s";
const LONGEST_SPAN: usize = 8;
/// A part that more forms than this share can only help to name one of them in full.
const COMMONEST: usize = 20;
/// Bounds the search for names whose parts stand in another order.
const MOST_STATES: usize = 2_000;

/// All spans that name something.
pub(crate) fn links(words: &Words<'_>, catalog: &Catalog<'_>, lexicon: &Lexicon) -> Vec<Link> {
    let tokens = words.tokens;
    let mut spans: Vec<Vec<(usize, Vec<Match>)>> = Vec::with_capacity(tokens.len());
    for start in 0..tokens.len() {
        spans.push(spans_from(start, words, catalog, lexicon));
    }
    let mut budget = MOST_STATES;
    let mut links = Vec::new();
    for start in 0..tokens.len() {
        let mut by_end: Vec<(usize, Vec<Match>)> = spans.get(start).cloned().unwrap_or_default();
        combine(start, words, &spans, catalog, lexicon, &mut by_end, &mut budget);
        for (end, matches) in by_end {
            if let Some(link) = assess::assess(start..end, &matches, words, catalog, lexicon) {
                links.push(link);
            }
        }
    }
    links
}

fn is_start(tokens: &[Token], at: usize) -> bool {
    tokens.get(at).is_some_and(|token| token.is_content() && !token.joint)
}

/// `500s`, `P1s`: the letter is the plural's.
fn is_plural_s(tokens: &[Token], at: usize) -> bool {
    tokens.get(at).is_some_and(|token| token.joint && token.is(PLURAL_SIGN))
        && at
            .checked_sub(1)
            .and_then(|before| tokens.get(before))
            .is_some_and(|token| token.kind == TokenKind::Number)
        && tokens.get(at + 1).is_none_or(|token| !token.joint)
}

fn is_end(tokens: &[Token], end: usize) -> bool {
    tokens.get(end).is_none_or(|token| !token.joint)
}

fn spans_from(
    start: usize,
    words: &Words<'_>,
    catalog: &Catalog<'_>,
    lexicon: &Lexicon,
) -> Vec<(usize, Vec<Match>)> {
    let tokens = words.tokens;
    let mut found = Vec::new();
    if !is_start(tokens, start) {
        return found;
    }
    let mut raw = Key::of([]);
    let mut stemmed = raw;
    let mut counted = raw;
    let mut seen = 0;
    let mut typo = false;
    let mut end = start;
    while let Some(token) = tokens.get(end) {
        if token.kind == TokenKind::Separator
            || seen > 0 && matches!(token.folded.as_str(), "/" | "-" | "&" | ".")
        {
            end += 1;
            continue;
        }
        if token.kind == TokenKind::Symbol || seen >= LONGEST_SPAN {
            break;
        }
        let before = (raw, stemmed);
        if !is_plural_s(tokens, end) {
            raw = raw.then(words.word(end));
            counted = match words.spelt.get(end) {
                Some(Spelling::Begins(digits)) => counted.then(digits),
                Some(Spelling::Continues) => counted,
                _ => counted.then(words.word(end)),
            };
            stemmed = stemmed.then(words.stems.get(end).map_or("", String::as_str));
        }
        typo |= words.corrected.get(end).is_some_and(Option::is_some);
        seen += 1;
        end += 1;
        if !is_end(tokens, end) && !is_plural_s(tokens, end) {
            continue;
        }
        if is_plural_s(tokens, end) {
            continue;
        }
        let last = words.word(end - 1);
        let singular = fold::singular(last).map(|base| before.0.then(&base));
        let keys = Keys { raw, stemmed, singular };
        let mut matches = lookup(&keys, typo, catalog, lexicon);
        let spelt_out = words.spelt.get(end) != Some(&Spelling::Continues)
            && words.spelt.get(start) != Some(&Spelling::Continues);
        if matches.is_empty() && counted != raw && spelt_out {
            for key in [counted, catalog::without_dots(counted)] {
                matches.extend(lookup(
                    &Keys { raw: key, stemmed: key, singular: None },
                    typo,
                    catalog,
                    lexicon,
                ));
            }
        }
        if !matches.is_empty() {
            found.push((end, matches));
        }
        if token.kind == TokenKind::Quoted {
            break;
        }
    }
    found
}

struct Keys {
    raw: Key,
    stemmed: Key,
    singular: Option<Key>,
}

fn lookup(keys: &Keys, typo: bool, catalog: &Catalog<'_>, lexicon: &Lexicon) -> Vec<Match> {
    let mut matches: Vec<Match> = Vec::new();
    let mut add = |posting: Posting, tier: Tier| {
        let tier = if typo { Tier::Typo } else { tier };
        let cover = posting.cover();
        match matches.iter_mut().find(|other| other.form == posting.form && other.cover == cover) {
            Some(other) => other.tier = other.tier.min(tier),
            None => matches.push(Match { form: posting.form, cover, tier }),
        }
    };
    // Whole forms stand first.
    let whole_only = catalog.lookup(keys.raw).nth(COMMONEST).is_some();
    let raw = catalog.lookup(keys.raw).take(COMMONEST);
    for posting in raw.take_while(|posting| !whole_only || posting.whole) {
        match posting.likeness {
            Likeness::Exact => add(posting, Tier::Exact),
            Likeness::Stem => add(posting, Tier::Stem),
            Likeness::Initials => add(posting, Tier::Concept),
            Likeness::VersionPrefix => add(posting, Tier::VersionPrefix),
            Likeness::Concept => {}
        }
    }
    for key in
        [Some(keys.stemmed).filter(|key| *key != keys.raw), keys.singular].into_iter().flatten()
    {
        for posting in catalog.lookup(key).take(COMMONEST) {
            if matches!(posting.likeness, Likeness::Exact | Likeness::Stem) {
                add(posting, Tier::Stem);
            }
        }
    }
    let mut concepts = lexicon.concepts_of(keys.raw);
    if concepts.is_empty()
        && let Some(singular) = keys.singular
    {
        concepts = lexicon.concepts_of(singular);
    }
    for &(concept, role) in concepts {
        let tier = if role == lexicon::Role::Maker { Tier::Maker } else { Tier::Concept };
        for posting in catalog.lookup(Key::of_concept(concept)).take(COMMONEST) {
            add(posting, tier);
        }
    }
    matches
}

/// Words that may stand between the parts of a name.
fn is_connective(token: &Token, lexicon: &Lexicon) -> bool {
    let joins = matches!(token.folded.as_str(), "&" | "-" | "/" | "'")
        || lexicon.is(&token.folded, Word::Connective);
    joins && token.kind != TokenKind::Quoted || token.kind == TokenKind::Separator
}

/// Adds the spans that name a form by several parts in another order or with words between.
fn combine(
    start: usize,
    words: &Words<'_>,
    spans: &[Vec<(usize, Vec<Match>)>],
    catalog: &Catalog<'_>,
    lexicon: &Lexicon,
    by_end: &mut Vec<(usize, Vec<Match>)>,
    budget: &mut usize,
) {
    let tokens = words.tokens;
    let mut queue: Vec<(usize, Match, u8)> = Vec::new();
    for (end, matches) in by_end.iter() {
        queue.extend(matches.iter().map(|found| (*end, *found, 1)));
    }
    while let Some((end, state, parts)) = queue.pop() {
        let partial =
            catalog.form(state.form).is_some_and(|form| form.required & !state.cover != 0);
        if !partial || parts >= 4 || *budget == 0 {
            continue;
        }
        let mut next = end;
        while tokens.get(next).is_some_and(|token| is_connective(token, lexicon)) {
            next += 1;
        }
        let starts = [Some(end), (next != end).then_some(next)];
        for from in starts.into_iter().flatten() {
            for (to, matches) in spans.get(from).map_or(&[][..], Vec::as_slice) {
                for found in matches {
                    if found.form != state.form || found.cover & state.cover != 0 {
                        continue;
                    }
                    *budget = budget.saturating_sub(1);
                    let joined = Match {
                        form: state.form,
                        cover: state.cover | found.cover,
                        tier: state.tier.max(found.tier),
                    };
                    match by_end.iter_mut().find(|(other, _)| other == to) {
                        Some((_, list)) => list.push(joined),
                        None => by_end.push((*to, vec![joined])),
                    }
                    queue.push((*to, joined, parts + 1));
                }
            }
        }
    }
    debug_assert!(start <= tokens.len());
}
