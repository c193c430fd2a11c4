//! The mention of a span, given its matches, and the confidence in it.

use std::ops::Range;

use super::{
    Affix, Catalog, Form, Kind, LabelLink, Lexicon, Link, Match, MatchConfidence, Mention, Owner,
    Piece, TokenKind, ValueCoverage, Word, Words, fold, in_order, score, weights,
};

/// The confidence in a match, and the matched value.
type Found = (MatchConfidence, (usize, usize));

impl Words<'_> {
    /// Returns the mention of a span with these matches, or `None` if no match is sure enough.
    pub(super) fn assess(&self, span: Range<usize>, matches: &[Match]) -> Option<Link> {
        let tokens = self.tokens.get(span.clone())?;
        let words = tokens.iter().filter(|token| token.is_content()).count();
        let first = self.word(span.start);
        let single = (words == 1).then_some(first);
        let (mut mention, value_worth) = self.assess_values(matches, &span, single);
        let span = self.signed(span, &mut mention);
        // A category's id can be spelled like a number: `ten` of Tenant.
        let mut label_worth = 0.0;
        if words > 1 || self.spelled_from(span.start).is_none() {
            (mention.labels, label_worth) = self.assess_labels(matches, first, words);
        }
        if mention.values.is_empty() && mention.labels.is_empty() {
            return None;
        }
        let tokens = self.tokens.get(span.clone())?;
        let named = !mention.values.is_empty();
        let whole = named && mention.extent == ValueCoverage::Whole;
        // Signs inside a name count as words, so `over/under` outweighs its cue words.
        let words = tokens.iter().filter(|token| token.kind != TokenKind::Separator).count();
        let glued = tokens.iter().skip(1).all(|token| token.glued)
            && tokens.iter().all(|it| matches!(it.kind, TokenKind::Word | TokenKind::Separator));
        let name = whole && mention.value_tier == MatchConfidence::Exact && glued && words > 1;
        let bonus = if name { weights::NAME_BONUS } else { 0.0 };
        let score = score(value_worth.max(label_worth), words) + bonus;
        Some(Link { tokens: span, mention, score })
    }

    /// Returns the values that a span names, and the weight of each of its words.
    fn assess_values(
        &self,
        matches: &[Match],
        span: &Range<usize>,
        single: Option<&str>,
    ) -> (Mention, f32) {
        let (catalog, lexicon) = (self.catalog, self.tokens.lexicon);
        let nothing = || (Mention::of(Vec::new(), ValueCoverage::Part, MatchConfidence::Typo), 0.0);
        let mut full: Vec<Found> = Vec::new();
        let mut parts: Vec<(Found, bool)> = Vec::new();
        for found in matches {
            let Some(form) = catalog.form(found.form) else { continue };
            let Owner::Value { category, index } = form.owner else { continue };
            let value = (found.tier, (category, index));
            if form.required & !found.cover == 0
                && !matches!(found.tier, MatchConfidence::VersionPrefix | MatchConfidence::Maker)
            {
                full.push(value);
            } else {
                let last = form.atoms.len().saturating_sub(1);
                let ends = form.atoms.last().is_some_and(|atom| atom.folded.contains('.'))
                    && found.cover & (1 << last) != 0;
                parts.push((value, ends && found.tier != MatchConfidence::VersionPrefix));
            }
        }
        let shared_part = is_shared_part(&full, &parts, catalog);
        if let Some(best) = full.iter().map(|found| found.0).min().filter(|_| !shared_part) {
            let values = in_order(full.iter().filter(|found| found.0 == best).map(|found| found.1));
            let shared = catalog.distinct(values.iter().copied()) > 1;
            // London's airports, by their codes: all of them are meant.
            let is_code = |&(category, index): &(usize, usize)| {
                !catalog.value(category, index).contains(char::is_lowercase)
            };
            let family = shared && best == MatchConfidence::Concept && values.iter().all(is_code);
            let extent = if family { ValueCoverage::Family } else { ValueCoverage::Whole };
            let lesser =
                full.iter().filter(|found| found.0 > best && found.0 <= MatchConfidence::Concept);
            let partial =
                parts.iter().map(|it| &it.0).filter(|found| found.0 <= MatchConfidence::Stem);
            let parts = in_order(lesser.chain(partial).map(|found| found.1));
            let penalty = if shared { weights::PART_PENALTY } else { 0.0 };
            let mention = Mention { parts, ..Mention::of(values, extent, best) };
            return (mention, weights::of_tier(best) - penalty);
        }
        let country = single.is_some_and(|word| lexicon.is(word, Word::Us));
        if single.is_some_and(|word| lexicon.is_verb(word)) && !country {
            return nothing();
        }
        let Some(best) = parts.iter().map(|it| group(it.0.0)).min() else { return nothing() };
        let versions =
            parts.iter().map(|it| it.0).filter(|found| found.0 == MatchConfidence::VersionPrefix);
        let lesser = in_order(versions.map(|found| found.1));
        parts.retain(|it| group(it.0.0) == best);
        if parts.iter().any(|it| it.1) {
            parts.retain(|it| it.1);
        }
        let tier = parts.iter().map(|it| it.0.0).min().unwrap_or(MatchConfidence::Typo);
        let values = in_order(parts.iter().map(|it| it.0.1));
        let shared = catalog.distinct(values.iter().copied()) > 1;
        let (extent, penalty) = if shared {
            (ValueCoverage::SharedPart, weights::SHARED_PENALTY)
        } else {
            (ValueCoverage::Part, weights::PART_PENALTY)
        };
        let is = |word: &str, class: Word| {
            let base = fold::singular(word);
            lexicon.is(word, class) || base.is_some_and(|base| lexicon.is(&base, class))
        };
        // "bookings" for Booking.com, "reviewed" for "under review"
        let inflects = |word: &str| {
            let stem = fold::stem(word);
            lexicon.is(&stem, Word::Common) || lexicon.is(&stem, Word::Action)
        };
        let number = single.is_some_and(|word| word.bytes().all(|byte| byte.is_ascii_digit()))
            || self.spelled_from(span.start).is_some_and(|it| it.tokens.end >= span.end);
        let weak = single.is_some_and(|word| word.len() < 2 || is(word, Word::WeakPart));
        // "builds" for a value with "release": an ordinary word that only resembles a part.
        let typo = tier == MatchConfidence::Typo;
        let resembles = tier >= MatchConfidence::Stem
            && single.is_some_and(|word| is(word, Word::Common) || !typo && inflects(word));
        let needs_label = number || weak || shared || resembles || tier == MatchConfidence::Maker;
        // LHR is not another beginning of London Heathrow (LHR), though LHR also means London. PT is
        // a beginning of pt-PT.
        let leads = |found: &Match| {
            let first = |it: &Match| it.form == found.form && it.cover & 1 != 0;
            group(found.tier) != best || matches.iter().any(first)
        };
        let is_value = |found: &&Match| {
            let form = catalog.form(found.form);
            form.is_some_and(|form| matches!(form.owner, Owner::Value { .. }))
        };
        let begins = (!weak || country) && matches.iter().filter(is_value).all(leads);
        let mention = Mention::of(values, extent, tier);
        let mention = Mention { parts: lesser, begins, needs_label, ..mention };
        (mention, weights::of_tier(tier) - penalty)
    }

    /// Narrows values that only a final sign distinguishes (`A`, `A+`, `A-`) to those with the sign
    /// after the span. Returns the span, extended by that sign.
    fn signed(&self, span: Range<usize>, mention: &mut Mention) -> Range<usize> {
        let sign_of = |&(category, index): &(usize, usize)| {
            let name = self.catalog.value(category, index).trim_end();
            name.chars().last().filter(|sign| matches!(sign, '+' | '-'))
        };
        let values = &mut mention.values;
        if mention.extent != ValueCoverage::Whole || values.iter().all(|it| sign_of(it).is_none()) {
            return span;
        }
        let glued = self.tokens.is_glued(span.end);
        let sign = match self.tokens.folded(span.end) {
            "+" if glued => Some('+'),
            "-" if glued => Some('-'),
            _ if self.tokens.says(span.end, Word::Plus) => Some('+'),
            _ if self.tokens.says(span.end, Word::Minus) => Some('-'),
            _ => None,
        };
        let taken = sign.filter(|_| values.iter().any(|it| sign_of(it) == sign));
        if values.iter().any(|it| sign_of(it) == taken) {
            values.retain(|it| sign_of(it) == taken);
        }
        span.start..span.end + usize::from(taken.is_some())
    }

    /// Returns the labels that a span names, and the weight of each of its words.
    fn assess_labels(&self, matches: &[Match], first: &str, words: usize) -> (Vec<LabelLink>, f32) {
        let (catalog, lexicon) = (self.catalog, self.tokens.lexicon);
        let mut labels: Vec<LabelLink> = Vec::new();
        let idle = words == 1
            && (lexicon.is(first, Word::IdleLabel)
                || lexicon.is_verb(first)
                || first.len() < 2
                || first.bytes().all(|byte| byte.is_ascii_digit()));
        for found in matches {
            let Some(form) = catalog.form(found.form) else { continue };
            let Owner::Label { category, positive } = form.owner else { continue };
            let full = form.required & !found.cover == 0;
            if words == 1
                && found.tier > MatchConfidence::Exact
                && lexicon.is(first, Word::Function)
            {
                continue;
            }
            if !full && (idle || found.tier == MatchConfidence::VersionPrefix) {
                continue;
            }
            // "in night mode" is not "in-night mode".
            let apart = words > 1
                && lexicon.is(first, Word::InOpposite)
                && form.atoms.iter().all(|atom| atom.folded != first);
            let opposite = || covers_opposite(form, found.cover, catalog, category);
            if !positive && (apart || !full && !opposite()) {
                continue;
            }
            let boolean = catalog.kind(category) == Kind::Boolean;
            let telling =
                full || !positive || boolean && is_telling(&form.atoms, found.cover, lexicon);
            let link = LabelLink { category, positive, full, telling, tier: found.tier };
            match labels.iter_mut().find(|other| other.category == category) {
                Some(other) if better(&link, other) => *other = link,
                Some(_) => {}
                None => labels.push(link),
            }
        }
        if labels.iter().any(|label| label.full) {
            // Some partial labels stay. With a number, "users" can mean Affected users instead of
            // User. "renewal not allowed" can mean Renewal allowed instead of Renewals.
            let kept = |label: &&LabelLink| match catalog.kind(label.category) {
                Kind::Numeric => !label.full && label.tier <= MatchConfidence::Stem,
                Kind::Boolean => !label.full && !label.telling,
                _ => false,
            };
            let parted: Vec<LabelLink> = labels.iter().filter(kept).copied().collect();
            labels.retain(|label| label.full);
            let best = labels.iter().map(|label| label.tier).min();
            labels.retain(|label| Some(label.tier) == best);
            labels.extend(parted);
        }
        let worth = |label: &LabelLink| {
            let penalty = match words {
                _ if label.full => weights::LABEL_PENALTY,
                1 => weights::LABEL_PART_PENALTY,
                _ => weights::LABEL_PARTS_PENALTY,
            };
            weights::of_tier(label.tier) - penalty
        };
        let worth = labels.iter().map(worth).fold(0.0, f32::max);
        (labels, worth)
    }
}

/// `true` if a synonym of whole values is also a part that other values share: "card" for Credit
/// card, next to Debit card.
fn is_shared_part(full: &[Found], parts: &[(Found, bool)], catalog: &Catalog<'_>) -> bool {
    let exact = parts.iter().map(|it| it.0).filter(|found| found.0 == MatchConfidence::Exact);
    let sharers = in_order(exact.map(|found| found.1));
    !full.is_empty()
        && full
            .iter()
            .all(|found| found.0 == MatchConfidence::Concept && sharers.contains(&found.1))
        && catalog.distinct(sharers) > 1
}

/// Returns the rank of a confidence. Exact and stemmed parts have equal ranks.
fn group(tier: MatchConfidence) -> u8 {
    match tier {
        MatchConfidence::Exact | MatchConfidence::Stem => 0,
        MatchConfidence::VersionPrefix => 1,
        MatchConfidence::Concept => 2,
        MatchConfidence::Maker => 3,
        MatchConfidence::Typo => 4,
    }
}

fn better(one: &LabelLink, other: &LabelLink) -> bool {
    (!one.full, one.tier) < (!other.full, other.tier)
}

/// `true` if a part of an opposite contains the word that makes it one.
fn covers_opposite(form: &Form, cover: u64, catalog: &Catalog<'_>, category: usize) -> bool {
    let label = catalog.category(category).map(|facts| fold::atoms(&facts.label));
    let pairs = form.atoms.iter().zip(label.iter().flatten()).enumerate();
    pairs.into_iter().any(|(at, (atom, own))| cover & (1 << at) != 0 && own.folded != atom.folded)
}

/// `true` if the covered part of a boolean label is its predicate: a participle or adjective, or
/// else the first word.
fn is_telling(atoms: &[Piece], cover: u64, lexicon: &Lexicon) -> bool {
    let polar = |word: &str| lexicon.is(word, Word::IdleLabel);
    let predicate = |word: &str| {
        lexicon.is(word, Word::Participle)
            || word.len() > 3 && lexicon.has_affix(word, Affix::Participle) && !polar(word)
    };
    let covered = |&at: &usize| cover & (1 << at) != 0;
    let all = |telling: &dyn Fn(&str) -> bool| -> Vec<usize> {
        (0..).zip(atoms).filter(|(_, atom)| telling(&atom.folded)).map(|(at, _)| at).collect()
    };
    let predicates = all(&predicate);
    if !predicates.is_empty() {
        return predicates.iter().any(covered);
    }
    all(&|word| !polar(word)).first().is_some_and(covered)
}
