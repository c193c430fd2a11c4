//! Stage 3: finds spans of the query that name values and labels.
//!
//! A span matches a form by exact, stemmed or synonymous parts. The parts can have another order:
//! `simplified chinese` names `Chinese (Simplified)`.

mod assess;
mod digits;
mod initialisms;

use std::iter;
use std::ops::Range;

use crate::catalog::{self, Catalog, Form, MatchKind, Owner, Posting, in_order};
use crate::fold::{self, Key, Piece};
use crate::lexicon::{Affix, Lexicon, Role};
use crate::model::Kind;
use crate::number::SpelledNumber;
use crate::token::{TokenKind, Tokens};
use crate::weights::{self, score};
use crate::word::Word;

/// The confidence in a match, best first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum MatchConfidence {
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
    /// `false` if the span is the opposite of a boolean label.
    pub(crate) positive: bool,
    /// `true` if the span is the whole label.
    pub(crate) full: bool,
    /// `true` if the span is the predicate of a boolean label: `flaky` of Marked flaky.
    pub(crate) telling: bool,
    pub(crate) tier: MatchConfidence,
}

/// The part of a value that a span names.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ValueCoverage {
    /// A whole value.
    Whole,
    /// Several whole values that are meant together: `5xx`.
    Family,
    /// A part of only one value.
    Part,
    /// A part that several values share.
    SharedPart,
}

/// The values and labels that a span of the query names.
#[derive(Debug, Clone)]
pub(crate) struct Mention {
    /// Categories and indexes of values, in request order.
    pub(crate) values: Vec<(usize, usize)>,
    /// Values that the span names less well: by a part, or by another word.
    pub(crate) parts: Vec<(usize, usize)>,
    pub(crate) extent: ValueCoverage,
    /// `true` if all the values begin with the span.
    pub(crate) begins: bool,
    /// `true` if the span names a value only next to its label: a bare number, an ordinary word.
    pub(crate) needs_label: bool,
    pub(crate) value_tier: MatchConfidence,
    pub(crate) labels: Vec<LabelLink>,
}

impl Mention {
    /// Creates a mention of values only.
    fn of(values: Vec<(usize, usize)>, extent: ValueCoverage, value_tier: MatchConfidence) -> Self {
        let (parts, labels) = (Vec::new(), Vec::new());
        Self { values, parts, extent, begins: false, needs_label: false, value_tier, labels }
    }
}

/// A span and its mention.
#[derive(Debug)]
pub(crate) struct Link {
    pub(crate) tokens: Range<usize>,
    pub(crate) mention: Mention,
    pub(crate) score: f32,
}

/// The query's words for lookups: corrected and stemmed.
pub(crate) struct Words<'t> {
    pub(crate) tokens: &'t Tokens,
    catalog: &'t Catalog<'t>,
    /// The corrected word of each misspelled token.
    pub(crate) corrected: Vec<Option<String>>,
    stems: Vec<String>,
    /// Spelled-out numbers: the `ten` of Windows ten.
    spelled: &'t [SpelledNumber],
}

impl<'t> Words<'t> {
    pub(crate) fn new(
        tokens: &'t Tokens,
        catalog: &'t Catalog<'t>,
        spelled: &'t [SpelledNumber],
    ) -> Self {
        let corrected = catalog.corrections(tokens);
        let words = tokens.iter().zip(&corrected);
        let stem = |word: &str| fold::stem(word).into_owned();
        let stems = words.map(|(token, meant)| stem(meant.as_ref().unwrap_or(&token.folded)));
        let stems = stems.collect();
        Self { tokens, catalog, corrected, stems, spelled }
    }

    pub(crate) fn word(&self, at: usize) -> &str {
        let corrected = self.corrected.get(at).and_then(Option::as_deref);
        corrected.unwrap_or(self.tokens.folded(at))
    }

    /// Returns the spelled-out number that contains the token.
    fn spelled_at(&self, at: usize) -> Option<&'t SpelledNumber> {
        self.spelled.iter().rev().find(|spelled| spelled.tokens.contains(&at))
    }

    /// Returns the spelled-out number that begins at the token.
    fn spelled_from(&self, at: usize) -> Option<&'t SpelledNumber> {
        self.spelled_at(at).filter(|spelled| spelled.tokens.start == at)
    }

    /// `true` if the token continues a spelled-out number.
    fn continues_spelling(&self, at: usize) -> bool {
        self.spelled_at(at).is_some_and(|spelled| spelled.tokens.start != at)
    }
}

#[derive(Debug, Clone, Copy)]
struct Match {
    form: u32,
    cover: u64,
    tier: MatchConfidence,
}

/// The plural ending of a number: `500s`.
const PLURAL_SIGN: &str = "s";
const LONGEST_SPAN: usize = 8;
/// Maximum forms of a part that can name each of them. A more common part only helps to name one of
/// them in full.
const COMMONEST: usize = 20;
/// Maximum states in the search for names whose parts have another order.
const MOST_STATES: usize = 2_000;

type Spans = Vec<(usize, Vec<Match>)>;

impl Words<'_> {
    /// Returns all spans that name something.
    pub(crate) fn links(&self) -> Vec<Link> {
        let mut links = Vec::new();
        let spans: Vec<Spans> =
            (0..self.tokens.len()).map(|start| self.spans_from(start)).collect();
        let mut budget = MOST_STATES;
        for (start, own) in spans.iter().enumerate() {
            let by_end = self.combined(own, &spans, &mut budget);
            links.extend(by_end.iter().filter_map(|(end, it)| self.assess(start..*end, it)));
        }
        links.extend(self.digit_families());
        links.extend((0..self.tokens.len()).filter_map(|start| self.initialism(start)));
        links
    }

    /// `true` if the token is the plural ending of a number: `500s`, `P1s`.
    fn is_plural_s(&self, at: usize) -> bool {
        let number = at.checked_sub(1).and_then(|before| self.tokens.kind(before));
        self.tokens.is(at, PLURAL_SIGN)
            && self.tokens.is_joint(at)
            && number == Some(TokenKind::Number)
            && !self.tokens.is_joint(at + 1)
    }

    fn spans_from(&self, start: usize) -> Spans {
        let tokens = self.tokens;
        let mut found = Vec::new();
        if !tokens.get(start).is_some_and(|token| token.is_content() && !token.joint) {
            return found;
        }
        let mut raw = Key::of([]);
        let (mut stemmed, mut counted) = (raw, raw);
        let mut seen = 0;
        let mut typo = false;
        for (at, token) in tokens.iter().enumerate().skip(start) {
            if token.kind == TokenKind::Separator
                || seen > 0 && matches!(token.folded.as_str(), "/" | "-" | "&" | ".")
            {
                continue;
            }
            if token.kind == TokenKind::Symbol || seen >= LONGEST_SPAN {
                break;
            }
            let lead = raw;
            if !self.is_plural_s(at) {
                raw = raw.then(self.word(at));
                counted = match self.spelled_from(at) {
                    Some(spelled) => counted.then(&spelled.digits),
                    None if self.continues_spelling(at) => counted,
                    None => counted.then(self.word(at)),
                };
                stemmed = stemmed.then(self.stems.get(at).map_or("", String::as_str));
            }
            typo |= self.corrected.get(at).is_some_and(Option::is_some);
            seen += 1;
            let end = at + 1;
            if tokens.is_joint(end) {
                continue;
            }
            // Two letters are a code, but not at the end of a name: "how-tos".
            let short = || self.word(at).strip_suffix(PLURAL_SIGN).filter(|_| seen > 1);
            let base = fold::singular(self.word(at)).or_else(|| short().map(Into::into));
            let singular = base.map(|base| lead.then(&base));
            let mut matches = self.lookup(raw, stemmed, singular, typo);
            let spelled_out = !self.continues_spelling(end) && !self.continues_spelling(start);
            // "3 9 0" for 3.9.0
            let spaced =
                seen > 2 && (start..end).all(|it| tokens.kind(it) == Some(TokenKind::Number));
            if matches.is_empty() && (counted != raw || spaced) && spelled_out {
                for raw in [counted, catalog::without_dots(counted)] {
                    matches.extend(self.lookup(raw, raw, None, typo));
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

    fn lookup(&self, raw: Key, stemmed: Key, singular: Option<Key>, typo: bool) -> Vec<Match> {
        let (catalog, lexicon) = (self.catalog, self.tokens.lexicon);
        let mut matches: Vec<Match> = Vec::new();
        let mut add = |posting: Posting, tier: MatchConfidence| {
            let tier = if typo { MatchConfidence::Typo } else { tier };
            let (form, cover) = (posting.form, posting.cover());
            match matches.iter_mut().find(|other| other.form == form && other.cover == cover) {
                Some(other) => other.tier = other.tier.min(tier),
                None => matches.push(Match { form, cover, tier }),
            }
        };
        // Whole forms come first.
        let whole_only = catalog.lookup(raw).nth(COMMONEST).is_some();
        let found = catalog.lookup(raw).take(COMMONEST);
        for posting in found.take_while(|posting| !whole_only || posting.whole) {
            match posting.likeness {
                MatchKind::Exact => add(posting, MatchConfidence::Exact),
                MatchKind::Stem => add(posting, MatchConfidence::Stem),
                MatchKind::Initials => add(posting, MatchConfidence::Concept),
                MatchKind::VersionPrefix => add(posting, MatchConfidence::VersionPrefix),
                MatchKind::Concept => {}
            }
        }
        let stemmed = Some(stemmed).filter(|key| *key != raw);
        for key in stemmed.into_iter().chain(singular) {
            for posting in catalog.lookup(key).take(COMMONEST) {
                if matches!(posting.likeness, MatchKind::Exact | MatchKind::Stem) {
                    add(posting, MatchConfidence::Stem);
                }
            }
        }
        let known = |key| Some(lexicon.concepts_of(key)).filter(|concepts| !concepts.is_empty());
        let concepts = known(raw).or_else(|| known(singular?)).unwrap_or_default();
        for &(concept, role) in concepts {
            let tier =
                if role == Role::Maker { MatchConfidence::Maker } else { MatchConfidence::Concept };
            for posting in catalog.lookup(Key::of_concept(concept)).take(COMMONEST) {
                add(posting, tier);
            }
        }
        matches
    }

    /// `true` if a token can appear between the parts of a name.
    fn is_connective(&self, at: usize) -> bool {
        let sign = matches!(self.tokens.folded(at), "&" | "-" | "/" | "'");
        match self.tokens.kind(at) {
            Some(TokenKind::Separator) => true,
            Some(TokenKind::Quoted) | None => false,
            _ => sign || self.tokens.says(at, Word::Connective),
        }
    }

    /// Returns these spans, and those that name a form by several parts: in another order, or with
    /// connectives between them.
    fn combined(&self, own: &Spans, spans: &[Spans], budget: &mut usize) -> Spans {
        let mut by_end = own.clone();
        let mut queue: Vec<(usize, Match, u8)> = Vec::new();
        for (end, matches) in own {
            queue.extend(matches.iter().map(|found| (*end, *found, 1)));
        }
        while let Some((end, state, parts)) = queue.pop() {
            let form = self.catalog.form(state.form);
            let partial = form.is_some_and(|form| form.required & !state.cover != 0);
            if !partial || parts >= 4 || *budget == 0 {
                continue;
            }
            let mut next = end;
            while self.is_connective(next) {
                next += 1;
            }
            let starts = iter::once(end).chain((next != end).then_some(next));
            for (to, matches) in starts.filter_map(|from| spans.get(from)).flatten() {
                for found in matches {
                    if found.form != state.form || found.cover & state.cover != 0 {
                        continue;
                    }
                    *budget = budget.saturating_sub(1);
                    let cover = state.cover | found.cover;
                    let joined = Match { cover, tier: state.tier.max(found.tier), ..state };
                    match by_end.iter_mut().find(|(other, _)| other == to) {
                        Some((_, list)) => list.push(joined),
                        None => by_end.push((*to, vec![joined])),
                    }
                    queue.push((*to, joined, parts + 1));
                }
            }
        }
        by_end
    }
}
