//! Stage 7: the rules that make readings of the query, in rounds. At each element the reading of the
//! first rule that has one is taken; what it spans is read by no rule after it.
//!
//! A rule is a pure function from a view of the elements to a reading. Adding one: CONTRIBUTING.md,
//! "Adding a rule".

mod absence;
mod absence_word;
mod address;
mod any;
mod boolean;
mod correction;
mod edited_label;
mod edited_value;
mod flip;
mod http_class;
mod kept_label;
mod labelled_text;
mod mentioned;
mod no_matter;
mod number;
mod presence;
mod quote;
mod replacement;
mod reset;
mod rest;
mod text_in_label;
mod value;

use std::ops::Range;

use crate::condition::{Condition, Findings, Selection};
use crate::context::{ParseContext, Role, Text};
use crate::cue::Class;
use crate::model::{Filter, Kind, Operator};
use crate::polarity::{self, CueEffect, Polarity};
use crate::word::Word;

/// One way to read some elements of a query.
pub(crate) struct Rule {
    /// What traces and tests call it.
    pub(crate) name: &'static str,
    /// The reading that begins at an element; none where the rule does not apply.
    pub(crate) read: fn(&View<'_>, usize) -> Option<Reading>,
    /// Queries that this rule reads, over the categories of the tests.
    pub(crate) examples: &'static [Example],
}

/// A query, the current filters, and the filters after it.
pub type Example = (&'static str, &'static str, &'static str);

/// The name of each rule, and queries that it reads: `tests/tests/errors/` asks them.
pub fn examples() -> impl Iterator<Item = (&'static str, &'static [Example])> {
    ROUNDS.into_iter().flatten().map(|rule| (rule.name, rule.examples))
}

/// What a rule sees.
pub(crate) struct View<'a> {
    pub(crate) scene: &'a ParseContext<'a>,
    /// How each element is meant; nothing before the last round.
    pub(crate) senses: &'a [Polarity],
    /// What was read before.
    pub(crate) findings: &'a Findings,
}

impl View<'_> {
    pub(crate) fn sense(&self, at: usize) -> Polarity {
        self.senses.get(at).copied().unwrap_or_default()
    }
}

/// What some elements mean.
pub(crate) struct Reading {
    /// The elements.
    pub(crate) span: Range<usize>,
    /// A label apart from them that they rest on.
    pub(crate) besides: Option<usize>,
    pub(crate) effects: Vec<Effect>,
}

impl Reading {
    pub(crate) fn new(span: Range<usize>, effects: impl IntoIterator<Item = Effect>) -> Self {
        Self { span, besides: None, effects: effects.into_iter().collect() }
    }
}

/// What a reading does.
pub(crate) enum Effect {
    State(Condition),
    Remove(Selection),
    /// A reset leaves these filters.
    Keep(Selection),
    Reset,
    /// The rest of the filters goes.
    DropRest,
    Flip,
    /// What stands before was a slip.
    Correct,
}

impl Effect {
    /// The element `at` states a condition.
    pub(crate) fn state(
        at: usize,
        category: usize,
        operator: Operator,
        value: impl Into<String>,
    ) -> Self {
        Self::State(Condition { category, operator, value: value.into(), adds: false, at })
    }

    /// Texts state conditions, each at its first element.
    pub(crate) fn state_texts(category: usize, operator: Operator, texts: Vec<Text>) -> Vec<Self> {
        let state = |(at, text): Text| Self::state(at.start, category, operator, text);
        texts.into_iter().map(state).collect()
    }
}

/// A rule that fired.
#[derive(Debug)]
pub(crate) struct RuleMatch {
    pub(crate) rule: &'static str,
    /// The elements on which it did, and a label apart from them.
    pub(crate) elements: Range<usize>,
    pub(crate) besides: Option<usize>,
    /// The conditions that it stated.
    pub(crate) filters: Vec<Filter>,
}

/// The rules of each round, which goes over the query from left to right before the next. Of the
/// rules that could read an element, the first does: they stand from the most special to the
/// plainest. Polarity is found before the last round, and turns the texts and numbers that were read.
pub(crate) static ROUNDS: [&[&Rule]; 4] = [
    &[&labelled_text::RULE, &text_in_label::RULE, &mentioned::RULE, &address::RULE],
    &[&quote::RULE],
    &[&number::RULE, &http_class::RULE],
    &[
        &reset::RULE,
        &any::RULE,
        &correction::RULE,
        &replacement::RULE,
        &rest::RULE,
        &flip::RULE,
        &no_matter::RULE,
        &kept_label::RULE,
        &edited_label::RULE,
        &edited_value::RULE,
        &boolean::RULE,
        &absence::RULE,
        &absence_word::RULE,
        &presence::RULE,
        &value::RULE,
    ],
];

/// All that the rules find in a query.
pub(crate) fn read(scene: &mut ParseContext<'_>) -> Findings {
    let mut findings = Findings::default();
    let [before @ .., last] = ROUNDS;
    for rules in before {
        round(rules, scene, &[], &mut findings);
    }
    let senses = polarity::senses(scene, &findings);
    turn(&mut findings, scene, &senses);
    round(last, scene, &senses, &mut findings);
    findings.senses = senses;
    findings
}

/// Gives texts and numbers the polarity that governs them. What no filter can say or nobody can
/// tell is left out, and its words count as unread: a range that is denied, a denial of a denial.
fn turn(findings: &mut Findings, scene: &ParseContext<'_>, senses: &[Polarity]) {
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
                    if scene.catalog.holds(category, value) {
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
        let filters = conditions.iter().filter_map(|it| it.filter(scene.catalog.request));
        fired.filters = filters.collect();
        if !conditions.is_empty() || findings.removals.len() > removals {
            findings.trace.push(fired);
        }
        findings.conditions.extend(conditions);
    }
}

/// Reads the elements that nothing has read yet.
fn round(
    rules: &[&Rule],
    scene: &mut ParseContext<'_>,
    senses: &[Polarity],
    findings: &mut Findings,
) {
    for at in 0..scene.elements.len() {
        let idle = scene.element(at).is_none_or(|element| element.used);
        if idle || senses.get(at).is_some_and(Polarity::is_passed_over) {
            continue;
        }
        let view = View { scene, senses, findings };
        let read = |rule: &&Rule| (rule.read)(&view, at).map(|reading| (rule.name, reading));
        if let Some((rule, reading)) = rules.iter().find_map(read) {
            apply(rule, at, reading, scene, senses, findings);
        }
    }
}

fn apply(
    rule: &'static str,
    at: usize,
    reading: Reading,
    scene: &mut ParseContext<'_>,
    senses: &[Polarity],
    findings: &mut Findings,
) {
    let Reading { span: elements, besides, effects } = reading;
    for read in elements.clone().chain(besides) {
        if let Some(element) = scene.elements.get_mut(read) {
            element.used = true;
        }
    }
    let mut filters = Vec::new();
    for effect in effects {
        match effect {
            Effect::State(mut condition) => {
                condition.adds = senses.get(condition.at).is_some_and(|sense| sense.adds);
                filters.extend(condition.filter(scene.catalog.request));
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
