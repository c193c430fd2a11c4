//! What a span with its matches names, and how sure that is.

use std::ops::Range;

use super::{Extent, LabelLink, Link, Match, Mention, Spelling, Tier, Words, score};
use crate::interpretation::catalog::{Catalog, Form, Owner};
use crate::interpretation::fold::{self, Piece};
use crate::interpretation::lexicon::{Affix, Lexicon};
use crate::interpretation::model::Kind;
use crate::interpretation::token::{Token, TokenKind};
use crate::interpretation::word::Word;

const PART_PENALTY: f32 = 2.0;
pub(super) const SHARED_PENALTY: f32 = 5.0;
/// Of a whole name in several parts: no cue takes a part of it, `not` out of `not_applicable`.
const NAME_BONUS: f32 = 14.0;
const LABEL_PENALTY: f32 = 0.2;
const LABEL_PART_PENALTY: f32 = 3.5;
/// Of several words. Together they outweigh one of them that is the whole of another label:
/// `react native` of React Native version, beside Native.
const LABEL_PARTS_PENALTY: f32 = 3.3;

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

/// What a span with these matches names; none when nothing, or nothing sure enough.
pub(super) fn assess(
    span: Range<usize>,
    matches: &[Match],
    words: &Words<'_>,
    catalog: &Catalog<'_>,
    lexicon: &Lexicon,
) -> Option<Link> {
    let content: Vec<usize> =
        span.clone().filter(|&at| words.tokens.get(at).is_some_and(Token::is_content)).collect();
    let single = (content.len() == 1).then(|| words.word(span.start));
    let (mut values, value_worth) = assess_values(matches, &content, words, catalog, lexicon);
    let span = signed(span, &mut values, words, catalog, lexicon);
    // A category's id may be spelt like a number: `ten` of Tenant.
    let (labels, label_worth) =
        if matches!(words.spelt.get(span.start), Some(Spelling::Begins(_))) && content.len() == 1 {
            (Vec::new(), 0.0)
        } else {
            let lead = (content.len() > 1).then(|| words.word(span.start));
            assess_labels(matches, single, lead, catalog, lexicon)
        };
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
        begins: values.begins,
        needs_label: values.needs_label,
        value_tier: values.tier,
        labels,
    };
    let tokens = words.tokens.get(span.clone()).unwrap_or_default();
    let glued = !mention.values.is_empty()
        && tokens.iter().skip(1).all(|token| token.glued)
        && tokens.iter().all(|it| matches!(it.kind, TokenKind::Word | TokenKind::Separator));
    // Signs inside a name count as words: `over/under` outweighs its steering words.
    let words = span
        .clone()
        .filter(|&at| words.tokens.get(at).is_some_and(|token| token.kind != TokenKind::Separator))
        .count();
    let name = mention.extent == Extent::Whole && mention.value_tier == Tier::Exact;
    let bonus = if name && glued && words > 1 { NAME_BONUS } else { 0.0 };
    Some(Link { tokens: span, mention, score: score(per_word, words) + bonus })
}

struct Values {
    named: Vec<(usize, usize)>,
    parts: Vec<(usize, usize)>,
    extent: Extent,
    begins: bool,
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
        begins: false,
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
    let shared_part = is_shared_part(&full, &parts, catalog);
    if let Some(best) = full.iter().map(|found| found.0).min().filter(|_| !shared_part) {
        let values =
            in_order(full.iter().filter(|found| found.0 == best).map(|found| (found.1, found.2)));
        let shared = distinct(&values, catalog) > 1;
        let worth = worth(best) - if shared { PART_PENALTY } else { 0.0 };
        let lesser = full.iter().filter(|found| found.0 > best && found.0 <= Tier::Concept);
        let lesser = lesser.map(|found| (found.1, found.2));
        let partial = parts.iter().filter(|found| found.0 <= Tier::Stem);
        let parts = in_order(lesser.chain(partial.map(|found| (found.2, found.3))));
        // London's airports, by their codes: all are meant.
        let codes = || {
            let mut names = values.iter().map(|&(category, index)| catalog.value(category, index));
            names.all(|name| !name.contains(char::is_lowercase))
        };
        let family = shared && best == Tier::Concept && codes();
        let extent = if family { Extent::Family } else { Extent::Whole };
        return (
            Values { named: values, parts, extent, begins: false, needs_label: false, tier: best },
            worth,
        );
    }
    let single = (content.len() == 1).then(|| content.first().map_or("", |&at| words.word(at)));
    if single.is_some_and(|word| lexicon.is_verb(word)) {
        return (none, 0.0);
    }
    let Some(best) = parts.iter().map(|found| group(found.0)).min() else { return (none, 0.0) };
    let versions = parts.iter().filter(|found| found.0 == Tier::VersionPrefix);
    let lesser = in_order(versions.map(|found| (found.2, found.3)));
    parts.retain(|found| group(found.0) == best);
    if parts.iter().any(|found| found.1) {
        parts.retain(|found| found.1);
    }
    let tier = parts.iter().map(|found| found.0).min().unwrap_or(Tier::Typo);
    let values = in_order(parts.iter().map(|found| (found.2, found.3)));
    let shared = distinct(&values, catalog) > 1;
    let number = single.is_some_and(|word| word.bytes().all(|byte| byte.is_ascii_digit()))
        || content.first().is_some_and(|&at| words.spells_all(at..at + content.len()));
    let weak = single.is_some_and(|word| {
        word.len() < 2
            || lexicon.is(word, Word::WeakPart)
            || fold::singular(word).is_some_and(|base| lexicon.is(&base, Word::WeakPart))
    });
    let (extent, penalty) =
        if shared { (Extent::SharedPart, SHARED_PENALTY) } else { (Extent::Part, PART_PENALTY) };
    // "builds" for a value with release in it: an ordinary word that only resembles a part.
    let resembles = tier >= Tier::Stem
        && single.is_some_and(|word| {
            let base = fold::singular(word);
            [Some(word), base.as_deref()]
                .into_iter()
                .flatten()
                .any(|it| lexicon.is(it, Word::Common))
        });
    let needs_label = number || weak || shared || resembles || tier == Tier::Maker;
    // LHR is no other beginning of London Heathrow (LHR), though it means London too.
    let leads = |found: &Match| found.cover & 1 != 0 || group(found.tier) != best;
    let begins = matches.iter().all(|found| leads(found) || !names_value(found, catalog)) && !weak;
    (
        Values { named: values, parts: lesser, extent, begins, needs_label, tier },
        worth(tier) - penalty,
    )
}

fn names_value(found: &Match, catalog: &Catalog<'_>) -> bool {
    catalog.form(found.form).is_some_and(|form| matches!(form.owner, Owner::Value { .. }))
}

/// Of values that only a sign at their end tells apart (`A`, `A+`, `A-`), leaves those that have the
/// sign that follows, and takes it into the span.
fn signed(
    span: Range<usize>,
    values: &mut Values,
    words: &Words<'_>,
    catalog: &Catalog<'_>,
    lexicon: &Lexicon,
) -> Range<usize> {
    let sign_of = |&(category, index): &(usize, usize)| {
        catalog.value(category, index).trim_end().chars().last().filter(|c| matches!(c, '+' | '-'))
    };
    if values.extent != Extent::Whole || values.named.iter().all(|value| sign_of(value).is_none()) {
        return span;
    }
    let sign = words.tokens.get(span.end).and_then(|token| match token.folded.as_str() {
        "+" if token.glued => Some('+'),
        "-" if token.glued => Some('-'),
        word if lexicon.is(word, Word::Plus) => Some('+'),
        word if lexicon.is(word, Word::Minus) => Some('-'),
        _ => None,
    });
    let taken = sign.filter(|_| values.named.iter().any(|value| sign_of(value) == sign));
    if values.named.iter().any(|value| sign_of(value) == taken) {
        values.named.retain(|value| sign_of(value) == taken);
    }
    span.start..span.end + usize::from(taken.is_some())
}

/// Whether what leads to whole values by another word is a part of them that others have too: the
/// "card" of Credit card, beside Debit card.
fn is_shared_part(
    full: &[(Tier, usize, usize)],
    parts: &[(Tier, bool, usize, usize)],
    catalog: &Catalog<'_>,
) -> bool {
    if full.is_empty() || full.iter().any(|found| found.0 != Tier::Concept) {
        return false;
    }
    let sharers = parts.iter().filter(|found| found.0 == Tier::Exact);
    let sharers = in_order(sharers.map(|found| (found.2, found.3)));
    full.iter().all(|found| sharers.contains(&(found.1, found.2)))
        && distinct(&sharers, catalog) > 1
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

pub(super) fn in_order(values: impl Iterator<Item = (usize, usize)>) -> Vec<(usize, usize)> {
    let mut values: Vec<_> = values.collect();
    values.sort_unstable();
    values.dedup();
    values
}

/// How many different values these are; one value in two categories counts once.
fn distinct(values: &[(usize, usize)], catalog: &Catalog<'_>) -> usize {
    let mut spellings: Vec<&str> =
        values.iter().map(|&(category, index)| catalog.value(category, index)).collect();
    spellings.sort_unstable();
    spellings.dedup();
    let mut names: Vec<String> = spellings.into_iter().map(fold::fold).collect();
    names.sort_unstable();
    names.dedup();
    names.len()
}

fn assess_labels(
    matches: &[Match],
    single: Option<&str>,
    lead: Option<&str>,
    catalog: &Catalog<'_>,
    lexicon: &Lexicon,
) -> (Vec<LabelLink>, f32) {
    let mut labels: Vec<LabelLink> = Vec::new();
    let idle = single.is_some_and(|word| {
        lexicon.is(word, Word::IdleLabel)
            || lexicon.is_verb(word)
            || word.len() < 2
            || word.bytes().all(|byte| byte.is_ascii_digit())
    });
    for found in matches {
        let Some(form) = catalog.form(found.form) else { continue };
        let Owner::Label { category, positive } = form.owner else { continue };
        let full = form.required & !found.cover == 0;
        if !full && (idle || found.tier == Tier::VersionPrefix) {
            continue;
        }
        // "in night mode" is not "in-night mode".
        if !positive
            && lead.is_some_and(|lead| {
                lexicon.is(lead, Word::InOpposite) && form.atoms.iter().all(|it| it.folded != lead)
            })
        {
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
        // "renewal not allowed" beside Renewals.
        let untold =
            |label: &LabelLink| catalog.kind(label.category) == Kind::Boolean && !label.telling;
        let kept = |label: &&LabelLink| !label.full && (numeric(label) || untold(label));
        let parted: Vec<LabelLink> = labels.iter().filter(kept).copied().collect();
        labels.retain(|label| label.full);
        let best = labels.iter().map(|label| label.tier).min().unwrap_or(Tier::Typo);
        labels.retain(|label| label.tier == best);
        labels.extend(parted);
    } else if labels.iter().any(|label| label.tier < Tier::Typo) {
        labels.retain(|label| label.tier < Tier::Typo);
    }
    let part_penalty = if single.is_some() { LABEL_PART_PENALTY } else { LABEL_PARTS_PENALTY };
    let worth = labels
        .iter()
        .map(|label| worth(label.tier) - if label.full { LABEL_PENALTY } else { part_penalty })
        .fold(0.0, f32::max);
    (labels, worth)
}

fn better(one: &LabelLink, other: &LabelLink) -> bool {
    (one.full, one.tier, one.positive) != (other.full, other.tier, other.positive)
        && (one.full && !other.full || one.full == other.full && one.tier < other.tier)
}

/// A part of an opposite counts only when it holds the word that makes it one.
fn covers_opposite(form: &Form, cover: u64, catalog: &Catalog<'_>, category: usize) -> bool {
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
fn is_telling(atoms: &[Piece], cover: u64, lexicon: &Lexicon) -> bool {
    let polar = |word: &str| lexicon.is(word, Word::IdleLabel);
    let predicate = |word: &str| {
        lexicon.is(word, Word::Participle)
            || word.len() > 3 && lexicon.has_affix(word, Affix::Participle) && !polar(word)
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
