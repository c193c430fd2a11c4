//! Stage 4: reads the query as a sequence of elements: mentions, cue phrases, numbers, quoted texts
//! and plain words. If readings overlap, the sequence with the highest total score wins.

use std::collections::HashSet;
use std::ops::Range;

use crate::cue::{Class, CueSet};
use crate::lexicon::cue_key;
use crate::link::{Link, Mention, Words};
use crate::number::Number;
use crate::token::{TokenKind, Tokens};
use crate::weights::{self, score};
use crate::word::Word;

/// One element of the query.
#[derive(Debug, Clone, Default)]
pub(crate) struct Element {
    pub(crate) tokens: Range<usize>,
    pub(crate) mention: Option<Mention>,
    pub(crate) cue: CueSet,
    pub(crate) number: Option<Number>,
    pub(crate) quoted: bool,
    /// A time expression, which is ignored (rule 13).
    pub(crate) time: bool,
    /// `true` if a rule has read the element. Later rules skip it.
    pub(crate) used: bool,
}

impl Element {
    fn bare(tokens: Range<usize>) -> Self {
        Self { tokens, ..Self::default() }
    }

    /// Merges another reading of the same tokens.
    fn merge(&mut self, other: Self) {
        self.mention = self.mention.take().or(other.mention);
        self.number = self.number.take().or(other.number);
        if self.cue == CueSet::default() {
            self.cue = other.cue;
        }
        self.quoted |= other.quoted;
        self.time |= other.time;
    }

    pub(crate) fn is(&self, class: Class) -> bool {
        self.cue.has(class)
    }

    pub(crate) fn is_any(&self, classes: CueSet) -> bool {
        self.cue.has_any(classes)
    }

    /// `true` if it is a word without a meaning for the interpreter.
    pub(crate) fn is_word(&self) -> bool {
        !self.time && self.is_mere_cue() && self.cue == CueSet::default()
    }

    /// `true` if it has no meaning: a polite word, a time expression.
    pub(crate) fn is_idle(&self) -> bool {
        self.time || self.is_mere_cue() && self.cue != CueSet::default() && self.cue.is_idle()
    }

    fn is_mere_cue(&self) -> bool {
        self.mention.is_none() && self.number.is_none() && !self.quoted
    }
}

/// Comparators that follow their number: "and over", "or less".
const SUFFIXES: CueSet = cues![AfterGte, AfterLte];

/// Returns the best sequence of elements. If a category contains ages, a time span is a number and
/// not a time expression.
pub(crate) fn elements(
    words: &Words<'_>,
    links: Vec<Link>,
    numbers: Vec<Number>,
    ages: bool,
) -> Vec<Element> {
    let tokens = words.tokens;
    let mut readings: Vec<Vec<(f32, Element)>> = vec![Vec::new(); tokens.len()];
    let mut offer = |score: f32, element: Element| {
        if let Some(list) = readings.get_mut(element.tokens.start) {
            match list.iter_mut().find(|(_, other)| other.tokens == element.tokens) {
                Some((best, other)) => {
                    *best = best.max(score);
                    other.merge(element);
                }
                None => list.push((score, element)),
            }
        }
    };
    for span in tokens.times(&numbers) {
        let mut inside = numbers.iter().filter(|number| span.contains(&number.tokens.start));
        if !(ages && inside.any(|number| number.unit.is_some())) {
            let worth = score(weights::TIME, span.len());
            offer(worth, Element { time: true, ..Element::bare(span) });
        }
    }
    for link in links {
        offer(link.score, Element { mention: Some(link.mention), ..Element::bare(link.tokens) });
    }
    let begins_number: HashSet<usize> = numbers.iter().map(|it| it.tokens.start).collect();
    for number in numbers {
        let span = number.tokens.clone();
        let worth = score(weights::NUMBER, span.len());
        offer(worth, Element { number: Some(number), ..Element::bare(span) });
    }
    for (start, first) in tokens.iter().enumerate() {
        if first.kind == TokenKind::Quoted {
            let quoted = Element { quoted: true, ..Element::bare(start..start + 1) };
            offer(weights::QUOTED, quoted);
        }
        // "chrome and over 10 users": "over" compares the next number.
        let joins = tokens.lexicon.phrase(cue_key([words.word(start)]));
        let joins = joins.is_some_and(|cue| cue.has_any(cues![And, Or]));
        let mut key = cue_key([]);
        let longest = tokens.iter().enumerate().skip(start).take(tokens.lexicon.longest_phrase);
        for (last, token) in longest {
            if matches!(token.kind, TokenKind::Quoted | TokenKind::Separator) {
                break;
            }
            key = key.then(words.word(last)).then(" ");
            let span = start..last + 1;
            // "not under dual control" compares nothing.
            let compares = |cue: CueSet| {
                span.len() == 1
                    || !cue.has_any(cues![Gt, Gte, Lt, Lte])
                    || !tokens
                        .lexicon
                        .phrase(cue_key([words.word(start)]))
                        .is_some_and(|it| it.has(Class::Not))
                    || (span.end..span.end + 3).any(|at| begins_number.contains(&at))
            };
            if let Some(cue) = tokens.lexicon.phrase(key)
                && compares(cue)
                && is_cue_phrase(tokens, &span)
                && !(joins && cue.has_any(SUFFIXES) && begins_number.contains(&span.end))
            {
                let idle = cue.is_idle() && span.len() == 1;
                let worth = score(if idle { weights::IDLE_CUE } else { weights::CUE }, span.len());
                let bonus = if cue.has(Class::Reset) { weights::RESET_BONUS } else { 0.0 };
                offer(worth + bonus, Element { cue, ..Element::bare(span) });
            }
        }
    }
    best_row(readings, tokens)
}

/// `true` if a span is a cue phrase. A symbol can belong to something else: the dot of an
/// abbreviation, the slash of a path, the hyphen of a negative number.
fn is_cue_phrase(tokens: &Tokens, span: &Range<usize>) -> bool {
    let (start, end) = (span.start, span.end);
    let Some(token) = tokens.get(start) else { return false };
    let next = tokens.get(end);
    if span.len() > 1 {
        // "not A" is not "not a", and the `no` of "is no-reply" belongs to the next word.
        let letter = tokens.get(end - 1).is_some_and(|last| last.capital && last.folded.len() == 1);
        // The `a` of "not a@b.com" belongs to the address.
        let sign = next.is_some_and(|next| {
            next.kind == TokenKind::Separator && (next.is("-") || next.is("@") && next.glued)
        });
        return !letter && !sign;
    }
    let glued_after = next.is_some_and(|next| next.glued);
    match token.folded.as_str() {
        "." => {
            let before = start.checked_sub(1);
            !glued_after && !before.is_some_and(|it| tokens.says(it, Word::Abbreviation))
        }
        "/" => token.glued && start > 0 && glued_after,
        "~" | "!" => next.is_none() || glued_after,
        _ => !token.joint || token.kind == TokenKind::Symbol,
    }
}

fn best_row(mut readings: Vec<Vec<(f32, Element)>>, tokens: &Tokens) -> Vec<Element> {
    let mut best: Vec<(f32, Option<usize>)> = vec![(0.0, None); tokens.len() + 1];
    let total_from = |best: &[(f32, Option<usize>)], at: usize| best.get(at).map_or(0.0, |it| it.0);
    for (start, list) in readings.iter().enumerate().rev() {
        let mut chosen = (total_from(&best, start + 1), None);
        for (index, (worth, element)) in list.iter().enumerate() {
            let total = worth + total_from(&best, element.tokens.end);
            if total > chosen.0 {
                chosen = (total, Some(index));
            }
        }
        if let Some(slot) = best.get_mut(start) {
            *slot = chosen;
        }
    }
    let mut row = Vec::new();
    let mut at = 0;
    while let Some(list) = readings.get_mut(at) {
        match best.get(at).and_then(|found| found.1).filter(|&index| index < list.len()) {
            Some(index) => row.push(list.swap_remove(index).1),
            None if tokens.kind(at) == Some(TokenKind::Separator) => {}
            None => row.push(Element::bare(at..at + 1)),
        }
        let read = row.last().map_or(0, |last| last.tokens.end);
        at = read.max(at + 1);
    }
    row
}
