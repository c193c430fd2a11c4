//! Stage 7: the rules that read the query, in rounds. At each element the first rule with a reading
//! wins. Later rules skip the elements of that reading.
//!
//! A rule is a pure function from a view of the elements to a reading. How to add one:
//! CONTRIBUTING.md, "Adding a rule".

mod address;
mod any;
mod boolean;
mod correction;
mod edited;
mod flip;
mod http_class;
mod labelled_text;
mod message;
mod number;
mod ordinal;
mod presence;
mod replacement;
mod reset;
mod value;

use std::ops::Range;

use crate::condition::{Condition, Findings, Selection};
use crate::context::{COMPARES, ParseContext, Role, Text};
use crate::cue::{Class, CueSet};
use crate::lexicon::is_enabled;
use crate::model::{Filter, Kind, Operator};
use crate::polarity::{self, CueEffect, Polarity};
use crate::word::Word;

/// A way to read some elements of a query: its name in traces and tests, and a function. The function
/// returns the reading that begins at an element, or `None` if the rule does not apply.
type Rule = (&'static str, fn(&View<'_>, usize) -> Option<Reading>);

/// Returns the name of each rule.
pub fn rule_names() -> impl Iterator<Item = &'static str> {
    ROUNDS.into_iter().flatten().map(|rule| rule.0)
}

/// The input of a rule.
pub(crate) struct View<'a> {
    pub(crate) context: &'a ParseContext<'a>,
    /// The polarity of each element. Empty before the last round.
    pub(crate) senses: &'a [Polarity],
    /// The findings so far.
    pub(crate) findings: &'a Findings,
}

impl View<'_> {
    pub(crate) fn sense(&self, at: usize) -> Polarity {
        self.senses.get(at).copied().unwrap_or_default()
    }
}

/// The meaning of some elements.
pub(crate) struct Reading {
    /// The elements.
    pub(crate) span: Range<usize>,
    /// A label outside the span that the reading depends on.
    pub(crate) besides: Option<usize>,
    pub(crate) effects: Vec<Effect>,
}

impl Reading {
    pub(crate) fn new(span: Range<usize>, effects: impl IntoIterator<Item = Effect>) -> Self {
        Self { span, besides: None, effects: effects.into_iter().collect() }
    }
}

/// An effect of a reading.
pub(crate) enum Effect {
    State(Condition),
    Remove(Selection),
    /// A reset keeps these filters.
    Keep(Selection),
    Reset,
    /// Removes all filters that the query does not name.
    DropRest,
    Flip,
    /// The previous words were a mistake.
    Correct,
}

impl Effect {
    /// Creates a condition that the element `at` states.
    pub(crate) fn state(
        at: usize,
        category: usize,
        operator: Operator,
        value: impl Into<String>,
    ) -> Self {
        Self::State(Condition { category, operator, value: value.into(), adds: false, at })
    }

    /// Creates a condition for each text, stated by the text's first element.
    pub(crate) fn state_texts(category: usize, operator: Operator, texts: Vec<Text>) -> Vec<Self> {
        let state = |(at, text): Text| Self::state(at.start, category, operator, text);
        texts.into_iter().map(state).collect()
    }
}

/// A rule that matched.
#[derive(Debug)]
pub(crate) struct RuleMatch {
    pub(crate) rule: &'static str,
    /// The elements that it matched.
    pub(crate) elements: Range<usize>,
    /// A label outside these elements that it depends on.
    pub(crate) besides: Option<usize>,
    /// The conditions that it stated.
    pub(crate) filters: Vec<Filter>,
}

/// The rules of each round. Each round reads the whole query from left to right. The first rule
/// that can read an element wins, so special rules come before plain ones.
///
/// Polarity is determined before the last round. It then negates or removes the texts and numbers
/// that were read.
static ROUNDS: [&[Rule]; 4] = [
    &[("labelled-text", labelled_text::read), ("address", address::read)],
    &[("message", message::read)],
    &[("number", number::read), ("ordinal", ordinal::read), ("http-class", http_class::read)],
    &[
        ("reset", reset::read),
        ("any", any::read),
        ("correction", correction::read),
        ("replacement", replacement::read),
        ("flip", flip::read),
        ("edited", edited::read),
        ("boolean", boolean::read),
        ("presence", presence::read),
        ("value", value::read),
    ],
];

/// Applies all rules to a query.
pub(crate) fn read(context: &mut ParseContext<'_>) -> Findings {
    let mut findings = Findings::default();
    let [before @ .., last] = ROUNDS;
    for rules in before {
        round(rules, context, &[], &mut findings);
    }
    let senses = polarity::senses(context, &findings);
    turn(&mut findings, context, &senses);
    round(last, context, &senses, &mut findings);
    findings.senses = senses;
    findings
}

/// Applies polarity to texts and numbers. Drops conditions that are ambiguous or that no filter can
/// express: a negated range, a double negation. Their words count as unread.
fn turn(findings: &mut Findings, context: &ParseContext<'_>, senses: &[Polarity]) {
    let mut stated = std::mem::take(&mut findings.conditions);
    for mut fired in std::mem::take(&mut findings.trace) {
        let own = |condition: &Condition| fired.elements.contains(&condition.at);
        let (mut conditions, rest): (Vec<_>, Vec<_>) = stated.into_iter().partition(own);
        stated = rest;
        let range = conditions.len() > 1 && conditions.iter().any(|it| it.operator.is_bound());
        let removals = findings.removals.len();
        conditions.retain_mut(|condition| {
            let sense = senses.get(condition.at).copied().unwrap_or_default();
            let (category, value) = (condition.category, condition.value.as_str());
            condition.adds |= sense.adds;
            match sense.governor.map(|governor| governor.force) {
                Some(CueEffect::Unclear) => return false,
                Some(_) if sense.is_denied() => {
                    if range || condition.operator.is_negative() {
                        return false;
                    }
                    condition.operator = condition.operator.negated();
                }
                Some(force @ (CueEffect::Remove | CueEffect::Readmit)) => {
                    if context.catalog.holds(category, value) {
                        let negative_only = force == CueEffect::Readmit;
                        let removed = Selection::of_value(category, value);
                        findings.removals.push(Selection { negative_only, ..removed });
                    }
                    return false;
                }
                Some(CueEffect::Displace) => return false,
                _ => {}
            }
            true
        });
        let filters = conditions.iter().filter_map(|it| it.filter(context.catalog.request));
        fired.filters = filters.collect();
        if !conditions.is_empty() || findings.removals.len() > removals {
            findings.trace.push(fired);
        }
        findings.conditions.extend(conditions);
    }
}

/// Applies rules to the elements that no rule has read.
fn round(
    rules: &[Rule],
    context: &mut ParseContext<'_>,
    senses: &[Polarity],
    findings: &mut Findings,
) {
    for at in 0..context.elements.len() {
        let idle = context.element(at).is_none_or(|element| element.used);
        if idle || senses.get(at).is_some_and(Polarity::is_passed_over) {
            continue;
        }
        let view = View { context, senses, findings };
        let read = |&(rule, read): &Rule| read(&view, at).map(|reading| (rule, reading));
        let mut enabled = rules.iter().filter(|rule| is_enabled(&rule.0));
        if let Some((rule, reading)) = enabled.find_map(read) {
            apply(rule, at, reading, context, senses, findings);
        }
    }
}

fn apply(
    rule: &'static str,
    at: usize,
    reading: Reading,
    context: &mut ParseContext<'_>,
    senses: &[Polarity],
    findings: &mut Findings,
) {
    let Reading { span: elements, besides, effects } = reading;
    for read in elements.clone().chain(besides) {
        if let Some(element) = context.elements.get_mut(read) {
            element.used = true;
        }
    }
    let mut filters = Vec::new();
    for effect in effects {
        match effect {
            Effect::State(mut condition) => {
                condition.adds = senses.get(condition.at).is_some_and(|sense| sense.adds);
                filters.extend(condition.filter(context.catalog.request));
                findings.conditions.push(condition);
            }
            Effect::Remove(removed) => findings.removals.push(removed),
            Effect::Keep(kept) => findings.kept.push(kept),
            Effect::Reset => {
                findings.reset = true;
                findings.conditions.retain(|condition| condition.at > at);
            }
            Effect::DropRest => findings.reset = true,
            Effect::Flip => findings.flips = true,
            Effect::Correct => findings.corrections.push(at),
        }
    }
    findings.trace.push(RuleMatch { rule, elements, besides, filters });
}
