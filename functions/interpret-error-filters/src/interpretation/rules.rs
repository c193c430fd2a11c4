//! Stage 7: the rules that make readings of the query, in rounds. At each element the reading with
//! the highest score is taken; what it spans is read by no rule after it.
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

use crate::interpretation::condition::{Condition, Findings, Removal};
use crate::interpretation::context::Scene;
use crate::interpretation::model::{Filter, Operator};
use crate::interpretation::polarity::{self, Sense};

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

/// The name of each rule, and queries that it reads: `tests/tests/error_tracking/` asks them.
pub fn examples() -> impl Iterator<Item = (&'static str, &'static [Example])> {
    ROUNDS.into_iter().flatten().map(|rule| (rule.name, rule.examples))
}

/// What a rule sees.
pub(crate) struct View<'a> {
    pub(crate) scene: &'a Scene<'a>,
    /// How each element is meant; nothing before the last round.
    pub(crate) senses: &'a [Sense],
    /// What was read before.
    pub(crate) findings: &'a Findings,
}

impl View<'_> {
    pub(crate) fn sense(&self, at: usize) -> Sense {
        self.senses.get(at).copied().unwrap_or_default()
    }
}

/// What some elements mean.
#[derive(Debug)]
pub(crate) struct Reading {
    /// The elements.
    pub(crate) span: Range<usize>,
    /// A label apart from them that they rest on.
    pub(crate) besides: Option<usize>,
    pub(crate) effects: Vec<Effect>,
    /// Which of several readings counts: `weights.rs`.
    pub(crate) score: f32,
}

impl Reading {
    pub(crate) fn new(span: Range<usize>, effects: Vec<Effect>, score: f32) -> Self {
        Self { span, besides: None, effects, score }
    }
}

/// What a reading does.
#[derive(Debug)]
pub(crate) enum Effect {
    /// The element states a condition.
    State {
        at: usize,
        category: usize,
        operator: Operator,
        value: String,
    },
    Remove(Removal),
    /// A reset leaves this category, or one value of it.
    Keep(usize, Option<String>),
    Reset,
    /// The rest of the filters goes.
    DropRest,
    Flip,
    /// What stands before was a slip.
    Correct,
}

/// A rule that fired.
#[derive(Debug)]
pub(crate) struct Fired {
    pub(crate) rule: &'static str,
    /// The elements on which it did, and a label apart from them.
    pub(crate) elements: Range<usize>,
    pub(crate) besides: Option<usize>,
    /// The conditions that it stated.
    pub(crate) filters: Vec<Filter>,
}

/// The rules of each round, from left to right before the next. Of equal scores the first counts.
/// Polarity is found before the last round: it passes over texts and numbers.
pub(crate) static ROUNDS: [&[&Rule]; 4] = [
    &[&labelled_text::RULE, &text_in_label::RULE, &mentioned::RULE, &address::RULE],
    &[&quote::RULE],
    &[&number::RULE, &http_class::RULE],
    &LAST_ROUND,
];

static LAST_ROUND: [&Rule; 15] = [
    &reset::RULE,
    &any::RULE,
    &correction::RULE,
    &replacement::RULE,
    &rest::RULE,
    &flip::RULE,
    &no_matter::RULE,
    &kept_label::RULE,
    &edited_label::RULE,
    &boolean::RULE,
    &absence::RULE,
    &presence::RULE,
    &absence_word::RULE,
    &edited_value::RULE,
    &value::RULE,
];

/// All that the rules find in a query.
pub(crate) fn read(scene: &mut Scene<'_>) -> Findings {
    let mut findings = Findings::default();
    let [before @ .., last] = ROUNDS;
    for rules in before {
        round(rules, scene, &[], &mut findings);
    }
    let conditions = findings.conditions.iter();
    let stated: Vec<(usize, usize)> = conditions.map(|it| (it.at, it.category)).collect();
    let senses = polarity::senses(scene, &stated);
    for condition in &mut findings.conditions {
        condition.adds |= senses.get(condition.at).is_some_and(|sense| sense.adds);
    }
    round(last, scene, &senses, &mut findings);
    findings.senses = senses;
    findings
}

/// Reads the elements that nothing has read yet.
fn round(rules: &[&Rule], scene: &mut Scene<'_>, senses: &[Sense], findings: &mut Findings) {
    for at in 0..scene.elements.len() {
        let idle = scene.element(at).is_none_or(|element| element.used);
        if idle || senses.get(at).is_some_and(|sense| sense.part_of.is_some()) {
            continue;
        }
        let view = View { scene, senses, findings };
        let mut best: Option<(&Rule, Reading)> = None;
        for rule in rules {
            if let Some(reading) = (rule.read)(&view, at)
                && best.as_ref().is_none_or(|(_, other)| other.score < reading.score)
            {
                best = Some((rule, reading));
            }
        }
        if let Some((rule, reading)) = best {
            apply(rule, at, reading, scene, senses, findings);
        }
    }
}

fn apply(
    rule: &Rule,
    at: usize,
    reading: Reading,
    scene: &mut Scene<'_>,
    senses: &[Sense],
    findings: &mut Findings,
) {
    for read in reading.span.clone().chain(reading.besides) {
        if let Some(element) = scene.elements.get_mut(read) {
            element.used = true;
        }
    }
    let mut filters = Vec::new();
    for effect in reading.effects {
        match effect {
            Effect::State { at, category, operator, value } => {
                let adds = senses.get(at).is_some_and(|sense| sense.adds);
                filters.extend(scene.catalog.filter(category, operator, &value));
                findings.conditions.push(Condition { category, operator, value, adds, at });
            }
            Effect::Remove(removal) => findings.removals.push(removal),
            Effect::Keep(category, value) => findings.kept.push((category, value)),
            Effect::Reset => {
                findings.reset = true;
                findings.conditions.retain(|condition| condition.at > at);
            }
            Effect::DropRest => findings.reset = true,
            Effect::Flip => findings.flips = true,
            Effect::Correct => findings.corrections.push(at),
        }
    }
    let (elements, besides) = (reading.span, reading.besides);
    findings.trace.push(Fired { rule: rule.name, elements, besides, filters });
}
