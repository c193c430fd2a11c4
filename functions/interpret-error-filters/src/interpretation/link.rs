//! Stage 3: which spans of the query name which values and labels. A span matches a form by
//! exact, stemmed or synonymous parts; parts may come in another order (`simplified chinese`
//! names `Chinese (Simplified)`).

use std::ops::Range;

use crate::interpretation::catalog::{Catalog, Likeness, Owner, Posting};
use crate::interpretation::fold::{self, Key};
use crate::interpretation::lexicon::{self, Lexicon};
use crate::interpretation::model::Kind;
use crate::interpretation::number::Number;
use crate::interpretation::spelling;
use crate::interpretation::token::{Token, TokenKind};

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

const PART_PENALTY: f32 = 2.0;
const SHARED_PENALTY: f32 = 5.0;
const LABEL_PENALTY: f32 = 0.2;
const LABEL_PART_PENALTY: f32 = 3.5;

fn worth(tier: Tier) -> f32 {
    match tier {
        Tier::Exact => 10.0,
        Tier::Stem => 9.4,
        Tier::Concept => 9.0,
        Tier::VersionPrefix => 7.0,
        Tier::Maker => 7.2,
        Tier::Typo => 7.4,
    }
}

/// The query's words as they are looked up: corrected and stemmed.
pub(crate) struct Words<'t> {
    tokens: &'t [Token],
    /// What is looked up in place of a misspelt token.
    pub(crate) corrected: Vec<Option<String>>,
    stems: Vec<String>,
    /// The digits of spoken numbers: `ten` of Windows ten.
    digits: Vec<Option<String>>,
}

impl<'t> Words<'t> {
    pub(crate) fn new(
        tokens: &'t [Token],
        catalog: &mut Catalog<'_>,
        numbers: &[Number],
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
        let mut digits = vec![None; tokens.len()];
        for number in numbers.iter().filter(|number| !number.written && number.tokens.len() == 1) {
            if let Some(slot) = digits.get_mut(number.tokens.start) {
                *slot = Some(number.digits.clone());
            }
        }
        Self { tokens, corrected, stems, digits }
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
        combine(start, tokens, &spans, catalog, &mut by_end, &mut budget);
        for (end, matches) in by_end {
            if let Some(link) = assess(start..end, &matches, words, catalog, lexicon) {
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
    tokens.get(at).is_some_and(|token| token.joint && token.is("s"))
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
            counted = counted
                .then(words.digits.get(end).and_then(Option::as_deref).unwrap_or(words.word(end)));
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
        if matches.is_empty() && counted != raw && seen > 1 {
            matches = lookup(
                &Keys { raw: counted, stemmed: counted, singular: None },
                typo,
                catalog,
                lexicon,
            );
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
    let raw = catalog.lookup(keys.raw);
    // Whole forms stand first.
    let whole_only = raw.len() > COMMONEST;
    for (_, posting) in
        raw.iter().take(COMMONEST).take_while(|(_, posting)| !whole_only || posting.whole)
    {
        match posting.likeness {
            Likeness::Exact => add(*posting, Tier::Exact),
            Likeness::Stem => add(*posting, Tier::Stem),
            Likeness::Initials => add(*posting, Tier::Concept),
            Likeness::VersionPrefix => add(*posting, Tier::VersionPrefix),
            Likeness::Concept => {}
        }
    }
    for key in
        [Some(keys.stemmed).filter(|key| *key != keys.raw), keys.singular].into_iter().flatten()
    {
        let found = catalog.lookup(key);
        for (_, posting) in found.iter().take(COMMONEST) {
            if matches!(posting.likeness, Likeness::Exact | Likeness::Stem) {
                add(*posting, Tier::Stem);
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
        for (_, posting) in catalog.lookup(Key::of_concept(concept)).iter().take(COMMONEST) {
            add(*posting, tier);
        }
    }
    matches
}

/// Words that may stand between the parts of a name.
fn is_connective(token: &Token) -> bool {
    matches!(token.folded.as_str(), "and" | "of" | "the" | "&" | "-" | "/" | "," | "'")
        && token.kind != TokenKind::Quoted
        && !token.is(",")
        || token.kind == TokenKind::Separator
}

/// Adds the spans that name a form by several parts in another order or with words between.
fn combine(
    start: usize,
    tokens: &[Token],
    spans: &[Vec<(usize, Vec<Match>)>],
    catalog: &Catalog<'_>,
    by_end: &mut Vec<(usize, Vec<Match>)>,
    budget: &mut usize,
) {
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
        while tokens.get(next).is_some_and(is_connective) {
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

/// What a span with these matches names; none when nothing, or nothing sure enough.
fn assess(
    span: Range<usize>,
    matches: &[Match],
    words: &Words<'_>,
    catalog: &Catalog<'_>,
    lexicon: &Lexicon,
) -> Option<Link> {
    let content: Vec<usize> =
        span.clone().filter(|&at| words.tokens.get(at).is_some_and(Token::is_content)).collect();
    let single = (content.len() == 1).then(|| words.word(span.start));
    let (values, value_worth) = assess_values(matches, &content, words, catalog, lexicon);
    let (labels, label_worth) = assess_labels(matches, single, catalog, lexicon);
    if values.named.is_empty() && labels.is_empty() {
        return None;
    }
    let per_word = value_worth.max(label_worth);
    let quoted = words.tokens.get(span.start).is_some_and(|token| token.kind == TokenKind::Quoted);
    if quoted && (values.named.is_empty() || values.extent != Extent::Whole) {
        return None;
    }
    let mention = Mention {
        values: values.named,
        parts: values.parts,
        extent: values.extent,
        needs_label: values.needs_label,
        value_tier: values.tier,
        labels,
    };
    // Signs inside a name count as words: `over/under` outweighs its steering words.
    let words = span
        .clone()
        .filter(|&at| words.tokens.get(at).is_some_and(|token| token.kind != TokenKind::Separator))
        .count();
    Some(Link { tokens: span, mention, score: score(per_word, words) })
}

struct Values {
    named: Vec<(usize, usize)>,
    parts: Vec<(usize, usize)>,
    extent: Extent,
    needs_label: bool,
    tier: Tier,
}

fn assess_values(
    matches: &[Match],
    content: &[usize],
    words: &Words<'_>,
    catalog: &Catalog<'_>,
    lexicon: &Lexicon,
) -> (Values, f32) {
    let none = Values {
        named: Vec::new(),
        parts: Vec::new(),
        extent: Extent::Part,
        needs_label: false,
        tier: Tier::Typo,
    };
    let mut full: Vec<(Tier, usize, usize)> = Vec::new();
    let mut parts: Vec<(Tier, bool, usize, usize)> = Vec::new();
    for found in matches {
        let Some(form) = catalog.form(found.form) else { continue };
        let Owner::Value { category, index } = form.owner else { continue };
        if form.required & !found.cover == 0
            && !matches!(found.tier, Tier::VersionPrefix | Tier::Maker)
        {
            full.push((found.tier, category, index));
        } else {
            let last = form.atoms.len().saturating_sub(1);
            let ends = form.atoms.last().is_some_and(|atom| atom.folded.contains('.'))
                && found.cover & (1 << last) != 0;
            let whole_version = ends && found.tier != Tier::VersionPrefix;
            parts.push((found.tier, whole_version, category, index));
        }
    }
    if let Some(best) = full.iter().map(|found| found.0).min() {
        let values =
            in_order(full.iter().filter(|found| found.0 == best).map(|found| (found.1, found.2)));
        let shared = distinct(&values, catalog) > 1;
        let worth = worth(best) - if shared { PART_PENALTY } else { 0.0 };
        let lesser = full.iter().filter(|found| found.0 > best && found.0 <= Tier::Concept);
        let lesser = lesser.map(|found| (found.1, found.2));
        let partial = parts.iter().filter(|found| found.0 <= Tier::Stem);
        let parts = in_order(lesser.chain(partial.map(|found| (found.2, found.3))));
        return (
            Values { named: values, parts, extent: Extent::Whole, needs_label: false, tier: best },
            worth,
        );
    }
    let single = (content.len() == 1).then(|| content.first().map_or("", |&at| words.word(at)));
    if single.is_some_and(|word| lexicon.is_verb(word)) {
        return (none, 0.0);
    }
    let Some(best) = parts.iter().map(|found| group(found.0)).min() else { return (none, 0.0) };
    parts.retain(|found| group(found.0) == best);
    if parts.iter().any(|found| found.1) {
        parts.retain(|found| found.1);
    }
    let tier = parts.iter().map(|found| found.0).min().unwrap_or(Tier::Typo);
    let values = in_order(parts.iter().map(|found| (found.2, found.3)));
    let shared = distinct(&values, catalog) > 1;
    let number = single.is_some_and(|word| word.bytes().all(|byte| byte.is_ascii_digit()));
    let weak = single.is_some_and(|word| {
        word.len() < 2
            || lexicon.is_weak_part(word)
            || fold::singular(word).is_some_and(|base| lexicon.is_weak_part(&base))
    });
    let (extent, penalty) =
        if shared { (Extent::SharedPart, SHARED_PENALTY) } else { (Extent::Part, PART_PENALTY) };
    let needs_label = number || weak || shared || tier == Tier::Maker;
    (Values { named: values, parts: Vec::new(), extent, needs_label, tier }, worth(tier) - penalty)
}

/// Exact and stemmed parts compete on equal terms.
fn group(tier: Tier) -> u8 {
    match tier {
        Tier::Exact | Tier::Stem => 0,
        Tier::VersionPrefix => 1,
        Tier::Concept => 2,
        Tier::Maker => 3,
        Tier::Typo => 4,
    }
}

fn in_order(values: impl Iterator<Item = (usize, usize)>) -> Vec<(usize, usize)> {
    let mut values: Vec<_> = values.collect();
    values.sort_unstable();
    values.dedup();
    values
}

/// How many different values these are; one value in two categories counts once.
fn distinct(values: &[(usize, usize)], catalog: &Catalog<'_>) -> usize {
    let mut names: Vec<String> = values
        .iter()
        .map(|&(category, index)| fold::fold(catalog.value(category, index)))
        .collect();
    names.sort_unstable();
    names.dedup();
    names.len()
}

fn assess_labels(
    matches: &[Match],
    single: Option<&str>,
    catalog: &Catalog<'_>,
    lexicon: &Lexicon,
) -> (Vec<LabelLink>, f32) {
    let mut labels: Vec<LabelLink> = Vec::new();
    let idle = single.is_some_and(|word| {
        lexicon.is_generic_label(word) || lexicon.is_verb(word) || word.len() < 2
    });
    for found in matches {
        let Some(form) = catalog.form(found.form) else { continue };
        let Owner::Label { category, positive } = form.owner else { continue };
        let full = form.required & !found.cover == 0;
        if !full && (idle || found.tier == Tier::VersionPrefix) {
            continue;
        }
        if !full && !positive && !covers_opposite(form, found.cover, catalog, category) {
            continue;
        }
        let telling = full
            || !positive
            || catalog.kind(category) == Kind::Boolean
                && is_telling(&form.atoms, found.cover, lexicon);
        let link = LabelLink { category, positive, full, telling, tier: found.tier };
        match labels.iter_mut().find(|other| other.category == category) {
            Some(other) if better(&link, other) => *other = link,
            Some(_) => {}
            None => labels.push(link),
        }
    }
    if labels.iter().any(|label| label.full) {
        // "users" is the whole of User and a part of Affected users: a number tells which.
        let numeric = |label: &LabelLink| {
            catalog.kind(label.category) == Kind::Numeric && label.tier <= Tier::Stem
        };
        let parted: Vec<LabelLink> =
            labels.iter().copied().filter(|label| !label.full && numeric(label)).collect();
        labels.retain(|label| label.full);
        let best = labels.iter().map(|label| label.tier).min().unwrap_or(Tier::Typo);
        labels.retain(|label| label.tier == best);
        labels.extend(parted);
    } else if labels.iter().any(|label| label.tier < Tier::Typo) {
        labels.retain(|label| label.tier < Tier::Typo);
    }
    let worth = labels
        .iter()
        .map(|label| {
            worth(label.tier) - if label.full { LABEL_PENALTY } else { LABEL_PART_PENALTY }
        })
        .fold(0.0, f32::max);
    (labels, worth)
}

fn better(one: &LabelLink, other: &LabelLink) -> bool {
    (one.full, one.tier, one.positive) != (other.full, other.tier, other.positive)
        && (one.full && !other.full || one.full == other.full && one.tier < other.tier)
}

/// A part of an opposite counts only when it holds the word that makes it one.
fn covers_opposite(
    form: &crate::interpretation::catalog::Form,
    cover: u64,
    catalog: &Catalog<'_>,
    category: usize,
) -> bool {
    let Some(label) = catalog.category(category).map(|facts| fold::atoms(&facts.label)) else {
        return false;
    };
    form.atoms.iter().enumerate().any(|(index, atom)| {
        cover & (1 << index) != 0
            && label.get(index).is_some_and(|original| original.folded != atom.folded)
    })
}

/// Whether the covered part of a boolean label says what is true: its participle or adjective,
/// or else its first word.
fn is_telling(atoms: &[crate::interpretation::fold::Piece], cover: u64, lexicon: &Lexicon) -> bool {
    let polar = |word: &str| lexicon.is_generic_label(word);
    let predicate = |word: &str| {
        lexicon.is_participle(word)
            || word.len() > 3
                && ["ed", "ing", "able", "ible", "ive", "ous", "en"]
                    .iter()
                    .any(|ending| word.ends_with(ending))
                && !polar(word)
    };
    let telling: Vec<usize> = atoms
        .iter()
        .enumerate()
        .filter(|(_, atom)| predicate(&atom.folded))
        .map(|(index, _)| index)
        .collect();
    if !telling.is_empty() {
        return telling.iter().any(|index| cover & (1 << index) != 0);
    }
    let content: Vec<usize> = atoms
        .iter()
        .enumerate()
        .filter(|(_, atom)| !polar(&atom.folded))
        .map(|(index, _)| index)
        .collect();
    match content[..] {
        [] => false,
        [first, ..] => cover & (1 << first) != 0,
    }
}

/// `5xx`, `40x`: all values of three digits that begin so.
pub(crate) fn digit_families(tokens: &[Token], catalog: &Catalog<'_>) -> Vec<Link> {
    let mut links = Vec::new();
    for (at, token) in tokens.iter().enumerate() {
        let Some(rest) = tokens
            .get(at + 1)
            .filter(|rest| rest.joint && rest.folded.bytes().all(|byte| byte == b'x'))
        else {
            continue;
        };
        if token.kind != TokenKind::Number
            || token.joint
            || token.folded.len() + rest.folded.len() != 3
        {
            continue;
        }
        let values =
            in_order(catalog.forms.iter().filter_map(|form| match (form.owner, &form.atoms[..]) {
                (Owner::Value { category, index }, [number])
                    if number.folded.len() == 3 && number.folded.starts_with(&token.folded) =>
                {
                    Some((category, index))
                }
                _ => None,
            }));
        if !values.is_empty() {
            let mention = Mention {
                values,
                parts: Vec::new(),
                extent: Extent::Family,
                needs_label: false,
                value_tier: Tier::Exact,
                labels: Vec::new(),
            };
            links.push(Link { tokens: at..at + 2, mention, score: score(9.8, 2) });
        }
    }
    links
}

/// Spoken or written numbers that name a value by its digits: `twelve oh six` is `1206`.
pub(crate) fn spoken_numbers(numbers: &[Number], catalog: &Catalog<'_>) -> Vec<Link> {
    let mut links = Vec::new();
    for number in numbers.iter().filter(|number| !number.written && !number.weak) {
        let mut values = Vec::new();
        let mut parts = Vec::new();
        for digits in [number.digits.as_str(), number.value.to_string().as_str()] {
            for (_, posting) in catalog.lookup(Key::of([digits])) {
                let Some(form) = catalog.form(posting.form) else { continue };
                let full = form.required & !posting.cover() == 0;
                if let Owner::Value { category, index } = form.owner
                    && posting.likeness == Likeness::Exact
                {
                    if full {
                        values.push((category, index));
                    } else {
                        parts.push((category, index));
                    }
                }
            }
        }
        // "terminal two" for T2: a part, which counts only beside its label.
        let whole = !values.is_empty();
        let (values, extent, worth) = if whole {
            (in_order(values.into_iter()), Extent::Whole, 9.8)
        } else {
            (in_order(parts.into_iter()), Extent::SharedPart, 9.8 - SHARED_PENALTY)
        };
        if !values.is_empty() {
            let mention = Mention {
                values,
                parts: Vec::new(),
                extent,
                needs_label: !whole,
                value_tier: Tier::Exact,
                labels: Vec::new(),
            };
            links.push(Link {
                tokens: number.tokens.clone(),
                mention,
                score: score(worth, number.tokens.len()),
            });
        }
    }
    links
}
