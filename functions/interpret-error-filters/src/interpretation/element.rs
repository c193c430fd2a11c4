//! Stage 4: the query as a row of elements: mentions, steering phrases, numbers, quoted texts and
//! mere words. Where readings overlap, the row with the highest total score wins.

use std::ops::Range;

use crate::interpretation::cue::{Class, CueSet};
use crate::interpretation::lexicon::{Lexicon, steering_key};
use crate::interpretation::link::{Link, Mention, Words, score};
use crate::interpretation::number::Number;
use crate::interpretation::time;
use crate::interpretation::token::{Token, TokenKind};
use crate::interpretation::word::Word;

/// One element of the query.
#[derive(Debug, Clone)]
pub(crate) struct Element {
    pub(crate) tokens: Range<usize>,
    pub(crate) mention: Option<Mention>,
    pub(crate) cue: CueSet,
    pub(crate) number: Option<Number>,
    pub(crate) quoted: bool,
    /// A time expression, which is ignored (rule 13).
    pub(crate) time: bool,
    /// It has been given its meaning, and is passed over from then on.
    pub(crate) used: bool,
}

impl Element {
    fn bare(tokens: Range<usize>) -> Self {
        Self {
            tokens,
            mention: None,
            cue: CueSet::default(),
            number: None,
            quoted: false,
            time: false,
            used: false,
        }
    }

    pub(crate) fn is(&self, class: Class) -> bool {
        self.cue.has(class)
    }

    pub(crate) fn is_any(&self, classes: &[Class]) -> bool {
        self.cue.has_any(classes)
    }

    /// Whether it is a word that means nothing to the interpreter.
    pub(crate) fn is_word(&self) -> bool {
        self.mention.is_none()
            && self.number.is_none()
            && !self.quoted
            && !self.time
            && self.cue == CueSet::default()
    }

    /// Whether it carries nothing: a polite word, an article, a time expression.
    pub(crate) fn is_idle(&self) -> bool {
        self.time
            || self.mention.is_none()
                && self.number.is_none()
                && !self.quoted
                && self.cue != CueSet::default()
                && self.cue.is_idle()
    }
}

const CUE_WORTH: f32 = 9.5;
const IDLE_CUE_WORTH: f32 = 5.0;
const NUMBER_WORTH: f32 = 9.6;
const TIME_WORTH: f32 = 10.2;
const QUOTED_WORTH: f32 = 6.0;

/// The best row of elements.
pub(crate) fn elements(
    tokens: &[Token],
    words: &Words<'_>,
    links: Vec<Link>,
    numbers: Vec<Number>,
    lexicon: &Lexicon,
    ages: bool,
) -> Vec<Element> {
    let mut readings: Vec<Vec<(f32, Element)>> = vec![Vec::new(); tokens.len()];
    let mut offer = |start: usize, score: f32, element: Element| {
        if let Some(list) = readings.get_mut(start) {
            match list.iter_mut().find(|(_, other)| other.tokens == element.tokens) {
                Some((best, other)) => {
                    *best = best.max(score);
                    other.merge(element);
                }
                None => list.push((score, element)),
            }
        }
    };
    // Where a category holds ages, a span of time is one.
    let is_age = |span: &Range<usize>| {
        let inside = numbers.iter().filter(|number| span.contains(&number.tokens.start));
        ages && inside.clone().any(|number| number.unit.is_some())
    };
    for span in time::expressions(tokens, &numbers, lexicon) {
        if is_age(&span) {
            continue;
        }
        let worth = score(TIME_WORTH, span.len());
        offer(span.start, worth, Element { time: true, ..Element::bare(span) });
    }
    for link in links {
        offer(
            link.tokens.start,
            link.score,
            Element { mention: Some(link.mention), ..Element::bare(link.tokens) },
        );
    }
    for number in numbers {
        let span = number.tokens.clone();
        let worth = score(NUMBER_WORTH, span.len());
        offer(span.start, worth, Element { number: Some(number), ..Element::bare(span) });
    }
    for start in 0..tokens.len() {
        let first = tokens.get(start);
        if first.is_some_and(|token| token.kind == TokenKind::Quoted) {
            offer(start, QUOTED_WORTH, Element { quoted: true, ..Element::bare(start..start + 1) });
            continue;
        }
        let mut key = steering_key([]);
        for end in start + 1..=(start + lexicon.longest_phrase()).min(tokens.len()) {
            let Some(last) = tokens.get(end - 1) else { break };
            if last.kind == TokenKind::Quoted || last.kind == TokenKind::Separator {
                break;
            }
            key = key.then(words.word(end - 1)).then(" ");
            if let Some(cue) = lexicon.phrase(key)
                && stands_as_phrase(tokens, start, end, lexicon)
            {
                let idle = cue.is_idle() && end == start + 1;
                let per_word = if idle { IDLE_CUE_WORTH } else { CUE_WORTH };
                // "clear everything" before "everything except".
                let reset = if cue.has(Class::Reset) { 1.0 } else { 0.0 };
                offer(
                    start,
                    score(per_word, end - start) + reset,
                    Element { cue, ..Element::bare(start..end) },
                );
            }
        }
    }
    best_row(readings, tokens)
}

/// A symbol that is a sign of something else is no phrase: the dot of an abbreviation, the slash
/// that begins a path, the hyphen of a negative number.
fn stands_as_phrase(tokens: &[Token], start: usize, end: usize, lexicon: &Lexicon) -> bool {
    let Some(token) = tokens.get(start) else { return false };
    let next = tokens.get(end);
    // "not A" is no "not a".
    let letter = end.checked_sub(1).and_then(|last| tokens.get(last));
    if end - start > 1 && letter.is_some_and(|last| last.capital && last.folded.len() == 1) {
        return false;
    }
    if end - start > 1 {
        // The `no` of "is no-reply" belongs to what follows.
        return next.is_none_or(|next| next.kind != TokenKind::Separator || !next.is("-"));
    }
    match token.folded.as_str() {
        "." => {
            next.is_none_or(|next| !next.glued)
                && !start
                    .checked_sub(1)
                    .and_then(|at| tokens.get(at))
                    .is_some_and(|before| lexicon.is(&before.folded, Word::Abbreviation))
        }
        "/" => token.glued && start > 0 && next.is_some_and(|next| next.glued),
        "*" | "~" | "!" => next.is_none_or(|next| next.glued) || token.is("*"),
        _ => !token.joint || token.kind == TokenKind::Symbol,
    }
}

impl Element {
    fn merge(&mut self, other: Self) {
        if self.mention.is_none() {
            self.mention = other.mention;
        }
        if self.number.is_none() {
            self.number = other.number;
        }
        if self.cue == CueSet::default() {
            self.cue = other.cue;
        }
        self.quoted |= other.quoted;
        self.time |= other.time;
    }
}

fn best_row(mut readings: Vec<Vec<(f32, Element)>>, tokens: &[Token]) -> Vec<Element> {
    let count = tokens.len();
    let mut best: Vec<(f32, Option<usize>)> = vec![(0.0, None); count + 1];
    for start in (0..count).rev() {
        let skip = best.get(start + 1).map_or(0.0, |next| next.0);
        let mut chosen = (skip, None);
        for (index, (worth, element)) in
            readings.get(start).map_or(&[][..], Vec::as_slice).iter().enumerate()
        {
            let total = worth + best.get(element.tokens.end).map_or(0.0, |next| next.0);
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
    while at < count {
        let choice = best.get(at).and_then(|(_, choice)| *choice);
        let element = match (choice, readings.get_mut(at)) {
            (Some(index), Some(list)) if index < list.len() => list.swap_remove(index).1,
            _ => {
                at += 1;
                let token = tokens.get(at - 1);
                if token.is_some_and(|token| token.kind != TokenKind::Separator) {
                    row.push(Element::bare(at - 1..at));
                }
                continue;
            }
        };
        at = element.tokens.end.max(at + 1);
        row.push(element);
    }
    row
}
