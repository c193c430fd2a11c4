//! Stage 6: finds the cue that governs each mention, from left to right, before rules state
//! conditions.
//!
//! A mention can be negated, removed, kept, replaced or added. A cue reaches over commas, `and`,
//! `or` and `nor` to the next clause or contrary cue (`reach`). A cue after its list governs the
//! list before it (`behind`). Each mention records its tie to the previous one.

mod behind;
mod clause;
mod reach;
mod stated;

use crate::condition::{Condition, Findings};
use crate::context::{ParseContext, Role};
use crate::cue::{Class, CueSet};
use crate::element::Element;
use crate::lexicon::Affix;
use crate::link::MatchConfidence;
use crate::model::{Kind, Operator};
use crate::rules::RuleMatch;
use crate::word::Word;

/// The effect of a cue on the mentions that it governs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum CueEffect {
    /// `not`: negates a list of one category.
    Deny,
    /// `no`, `without`: negates like `not`. For a label it means that there is no value.
    Lack,
    /// `except`, `ignore`: also negates values of other categories that `and` or `or` joins.
    Exclude,
    /// Two negations in one clause: the mention is wanted.
    Twice,
    /// Two cues whose joint meaning is ambiguous.
    Unclear,
    /// `drop`: removes a filter, or excludes the value if there is no filter.
    Remove,
    /// `keep`.
    Keep,
    /// Exempts a filter from a reset.
    Spare,
    /// `instead of`: these values are replaced.
    Displace,
    /// `stop hiding`: removes a negative filter.
    Readmit,
}

impl CueEffect {
    /// `true` if it negates, or would without the other negation.
    pub(crate) fn denies(self) -> bool {
        matches!(self, Self::Deny | Self::Lack | Self::Exclude | Self::Twice | Self::Unclear)
    }

    /// Returns the effect of an edit after a negator: "don't drop chrome".
    fn denied(self) -> Self {
        match self {
            Self::Remove => Self::Keep,
            Self::Keep => Self::Remove,
            Self::Exclude => Self::Readmit,
            other => other,
        }
    }
}

/// The cue that governs a mention.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Governor {
    /// The element of the cue.
    pub(crate) at: usize,
    pub(crate) force: CueEffect,
}

impl Governor {
    /// Returns the governor with an ambiguous effect.
    fn unclear(self) -> Self {
        Self { force: CueEffect::Unclear, ..self }
    }
}

/// The polarity of one element of the query.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Polarity {
    /// The governing cue. `None`: the mention is wanted.
    pub(crate) governor: Option<Governor>,
    /// `true` if the condition is added to the current filters of its category.
    pub(crate) adds: bool,
    /// The earlier cue or mention that this element belongs to.
    pub(crate) part_of: Option<usize>,
}

impl Polarity {
    /// `true` if no rule reads the element.
    pub(crate) fn is_passed_over(&self) -> bool {
        self.part_of.is_some() || self.governor.is_some_and(|it| it.force == CueEffect::Unclear)
    }

    pub(crate) fn is_denied(&self) -> bool {
        let denied = [CueEffect::Deny, CueEffect::Lack, CueEffect::Exclude];
        self.governor.is_some_and(|governor| denied.contains(&governor.force))
    }
}

/// An active governor, and the categories that it has governed.
struct ActiveScope {
    governor: Governor,
    categories: Vec<usize>,
    /// `true` if the first negated value is a current filter.
    turns: bool,
}

impl ActiveScope {
    fn denies(&self) -> bool {
        self.governor.force.denies()
    }

    /// `true` if it negates, and has not negated anything yet.
    fn is_to_deny(&self) -> bool {
        self.denies() && self.categories.is_empty()
    }
}

/// The words between two mentions: conjunctions, and whether a preposition is among them.
#[derive(Debug, Clone, Copy, Default)]
struct Conjunction {
    by: CueSet,
    preposition: bool,
    /// `true` if other words or the end of a clause are among them.
    apart: bool,
}

impl Conjunction {
    fn is(self, class: Class) -> bool {
        self.by.has(class)
    }

    fn is_list(self) -> bool {
        self.by.has_any(cues![And, Or, Comma])
    }
}

/// A mention, and its tie to the previous one.
#[derive(Debug, Clone, Copy)]
struct Member {
    at: usize,
    /// The first element after it.
    end: usize,
    category: usize,
    tie: Conjunction,
}

/// Returns the polarity of each element. `stated`: the texts and numbers that were read before.
pub(crate) fn senses(context: &ParseContext<'_>, stated: &Findings) -> Vec<Polarity> {
    let mut walk = PolarityPass {
        context,
        senses: vec![Polarity::default(); context.elements.len()],
        stated,
        mentions: Vec::new(),
        scope: None,
        adding: None,
        joint: Conjunction::default(),
        last: None,
    };
    let mut at = 0;
    while at < context.elements.len() {
        at = walk.step(at).max(at + 1);
    }
    (0..at).for_each(|at| walk.leave_out_before(at));
    walk.senses
}

struct PolarityPass<'s, 'a> {
    context: &'s ParseContext<'a>,
    senses: Vec<Polarity>,
    stated: &'s Findings,
    /// The stating elements so far.
    mentions: Vec<Member>,
    scope: Option<ActiveScope>,
    /// The categories that an active `also` has reached. `None` if none is active.
    adding: Option<Vec<usize>>,
    joint: Conjunction,
    last: Option<usize>,
}

impl PolarityPass<'_, '_> {
    fn step(&mut self, at: usize) -> usize {
        let context = self.context;
        if self.senses.get(at).is_some_and(|sense| sense.part_of.is_some()) {
            return at + 1;
        }
        if context.element(at).is_some_and(|element| element.used) {
            self.states_text_or_number(at);
            return at + 1;
        }
        match context.role(at) {
            Role::Values { category, indexes } => {
                let index = indexes.first().copied().unwrap_or_default();
                self.value(at, *category, context.catalog.value(*category, index));
                at + 1
            }
            Role::Label => self.label(at),
            Role::Context(_) => {
                self.joint.apart = true;
                at + 1
            }
            Role::Other => self.other(at),
        }
    }

    fn set(&mut self, at: usize, change: impl FnOnce(&mut Polarity)) {
        if let Some(sense) = self.senses.get_mut(at) {
            change(sense);
        }
    }

    /// Marks the elements after `at`, up to `end`, as parts of `at`.
    fn take(&mut self, at: usize, end: usize) {
        for sense in self.senses.get_mut(at + 1..end).into_iter().flatten() {
            sense.part_of = Some(at);
        }
    }

    fn governor_of(&self, at: usize) -> Option<Governor> {
        self.senses.get(at).and_then(|sense| sense.governor)
    }

    fn force(&self) -> Option<CueEffect> {
        self.scope.as_ref().map(|scope| scope.governor.force)
    }

    fn govern(&mut self, at: usize, force: CueEffect) {
        let governor = Governor { at, force };
        self.scope = Some(ActiveScope { governor, categories: Vec::new(), turns: false });
    }

    /// Records a mention that the elements from `at` to `end` state.
    fn finish(&mut self, at: usize, end: usize, category: usize) {
        let tie = std::mem::take(&mut self.joint);
        self.mentions.push(Member { at, end, category, tie });
        self.last = Some(at);
    }

    fn value(&mut self, at: usize, category: usize, value: &str) {
        let context = self.context;
        let (noun, _) = context.nouns_after(at);
        if let Some(scope) = self.scope.as_ref().filter(|scope| noun && scope.is_to_deny()) {
            // "without the chrome filter"
            self.govern(scope.governor.at, CueEffect::Remove);
        }
        let edit = self.edit_of(category, Some(value));
        let mut governor = edit.and_then(|edit| self.apply_edit(edit, category, value, noun));
        if governor.is_none() {
            if self.is_action(at) {
                self.scope = None;
            }
            self.turn_instead(at, category);
            governor = self.denial_of(category);
            if let Some(scope) =
                self.scope.as_mut().filter(|it| it.governor.force == CueEffect::Deny)
            {
                scope.turns |= context.catalog.excludes(category, value) == Some(false);
            }
            governor = self.either(at, governor).or(governor);
            if context.is_opposed(at) {
                let force = if governor.is_some() { CueEffect::Unclear } else { CueEffect::Deny };
                governor = Some(Governor { at, force });
            }
            let adds = self.adds_to(category);
            if adds && governor.is_none() && context.catalog.excludes(category, value) == Some(true)
            {
                // "bring back chrome"
                governor = Some(Governor { at, force: CueEffect::Readmit });
            }
            self.set(at, |sense| sense.adds = adds);
        }
        self.set(at, |sense| sense.governor = governor);
        self.finish(at, at + 1, category);
    }

    /// Returns an ambiguous governor for a value and its negation: "refund or no refund". Marks the
    /// value before it, too.
    fn either(&mut self, at: usize, governor: Option<Governor>) -> Option<Governor> {
        let unclear = governor.filter(|it| it.force.denies())?.unclear();
        let last = self.last.filter(|_| self.joint.is(Class::Or))?;
        if self.context.role(last) != self.context.role(at) {
            return None;
        }
        self.set(last, |sense| sense.governor = Some(unclear));
        Some(unclear)
    }

    /// Returns the governor of a value under an edit, or `None` if the value is a condition.
    fn apply_edit(
        &mut self,
        edit: Governor,
        category: usize,
        value: &str,
        noun: bool,
    ) -> Option<Governor> {
        let catalog = self.context.catalog;
        let holds = catalog.holds(category, value);
        match edit.force {
            CueEffect::Remove if !noun && !holds && !catalog.has_wanted(category) => {
                // No filter can be removed, so the value is excluded.
                if let Some(scope) = &mut self.scope {
                    scope.categories.push(category);
                }
                Some(Governor { force: CueEffect::Exclude, ..edit })
            }
            CueEffect::Keep if !holds => {
                self.scope = None;
                None
            }
            _ => Some(edit),
        }
    }

    fn label(&mut self, at: usize) -> usize {
        let context = self.context;
        let Some(preferred) = context.preferred(at) else { return at + 1 };
        let unreached =
            |it: &ActiveScope| it.is_to_deny() || it.governor.force == CueEffect::Remove;
        if self.scope.as_ref().is_some_and(unreached) && context.is_bearer(at) {
            return at + 1;
        }
        if let Some(any) = context.any_phrase(at) {
            self.take(at, any.end);
            self.finish(at, any.end, preferred);
            return any.end;
        }
        let (noun, _) = context.nouns_after(at);
        let listed = self.joint.is_list();
        let denial = self.scope.as_ref().filter(|it| it.is_to_deny() || it.denies() && listed);
        let denial = denial.map(|scope| (scope.governor, scope.is_to_deny()));
        let edit = self.edit_of(preferred, None).or_else(|| {
            denial.filter(|_| noun).map(|(cue, _)| Governor { force: CueEffect::Remove, ..cue })
        });
        let (category, governor, end) = if edit.is_some() {
            self.set(at, |sense| sense.governor = edit);
            self.finish(at, at + 1, preferred);
            return at + 1;
        } else if let Some(said) = context.boolean_said(at) {
            let governor = self.denial_of(said.category);
            (said.category, governor, said.end)
        } else if let Some((cue, first)) = denial
            && let Some(category) = self.lacking(at, cue, first)
        {
            if let Some(scope) = &mut self.scope {
                scope.categories.push(category);
            }
            (category, Some(cue), at + 1)
        } else if let Some((category, _, end)) = context.presence_said(at) {
            (category, None, end)
        } else {
            return at + 1;
        };
        let adds = self.adds_to(category);
        self.set(at, |sense| *sense = Polarity { governor, adds, part_of: None });
        self.take(at, end);
        self.finish(at, end, category);
        at + 1
    }
}
