//! Conditions on values, under the negation, addition or removal in force.

use super::{Action, Denial, Joint, Reach, Reader};
use crate::interpretation::condition::Condition;
use crate::interpretation::context::Role;
use crate::interpretation::cue::Class;
use crate::interpretation::link::Tier;
use crate::interpretation::model::{Kind, Operator};

impl Reader<'_, '_> {
    pub(super) fn values(&mut self, at: usize, category: usize, indexes: &[usize]) -> usize {
        let mut values: Vec<String> = indexes
            .iter()
            .map(|&index| self.scene.catalog.value(category, index).to_owned())
            .collect();
        values.dedup();
        let first = values.first().cloned().unwrap_or_default();
        let (noun, exclusion) = self.nouns_after(at);
        let denied_by_label =
            noun && self.denial.as_ref().is_some_and(|denial| denial.categories.is_empty());
        if let Some(action) =
            self.action_for(category, Some(&first)).or(denied_by_label.then_some(Action::Remove))
            && self.act(action, category, &values, noun, exclusion)
        {
            self.finish(at);
            return at + 1;
        }
        if self.is_action(at) {
            self.denial = None;
        }
        let mut denied = self.take_denial_for(category);
        let holds = self.holds(category, &first);
        if let Some(denial) = &mut self.denial
            && denial.reach == Reach::Narrow
        {
            denial.turns |= holds;
        }
        denied |= self.denied_after(at);
        let array = self.scene.catalog.kind(category) == Kind::Array;
        let operator = match (array, denied) {
            (false, false) => Operator::Is,
            (false, true) => Operator::IsNot,
            (true, false) => Operator::Contains,
            (true, true) => Operator::NotContains,
        };
        for value in values {
            self.push(category, operator, value, at);
        }
        self.finish(at);
        at + 1
    }

    /// Whether `only` follows the value that is read now.
    fn last_value_only(&self, category: usize) -> bool {
        (0..self.scene.elements.len()).any(|at| {
            matches!(*self.scene.role(at), Role::Values { category: own, .. } if own == category)
                && self.scene.is(self.scene.next(at), Class::Only)
        })
    }

    /// "drive not syncing" for the value sync: the verb is denied, not the value.
    fn is_action(&self, at: usize) -> bool {
        let stemmed = self
            .scene
            .element(at)
            .and_then(|element| element.mention.as_ref())
            .is_some_and(|mention| mention.value_tier == Tier::Stem);
        let direct = self.denial.as_ref().is_some_and(|denial| {
            denial.reach == Reach::Narrow && self.scene.previous(at) == Some(denial.at)
        });
        stemmed && direct && self.scene.word(at).ends_with("ing")
    }

    /// Rule `denied-after`: "chrome excluded", "bob doesn't count".
    pub(super) fn denied_after(&mut self, at: usize) -> bool {
        let mut next = at + 1;
        while matches!(self.scene.role(next), Role::Context(_))
            || self.scene.is_any(next, &[Class::Generic, Class::Polite])
                && !self.scene.is(next, Class::AfterNot)
                && next < self.scene.elements.len()
        {
            next += 1;
        }
        if self.scene.is(next, Class::Is) && self.scene.is(next + 1, Class::AfterNot) {
            next += 1;
        }
        // "ones excluded: chrome" begins a list of its own.
        let found = self.scene.is(next, Class::AfterNot) && !self.scene.is(next + 1, Class::Is);
        if found {
            if let Some(element) = self.scene.elements.get_mut(next) {
                element.used = true;
            }
            // The list before it is denied too.
            self.deny_list_before(at);
        }
        found
    }

    pub(super) fn deny_list_before(&mut self, at: usize) {
        if self.joint.is(Class::And) || self.joint.is(Class::Or) {
            self.deny_before();
        }
        debug_assert!(at < self.scene.elements.len());
    }

    /// Carries out an action on values; false when they are a condition after all.
    pub(super) fn act(
        &mut self,
        action: Action,
        category: usize,
        values: &[String],
        noun: bool,
        exclusion: bool,
    ) -> bool {
        match action {
            Action::Remove => {
                let known = values.iter().any(|value| self.has_value_filter(category, value));
                if !known && !noun && !self.has_filter(category) {
                    // Nothing to remove: the wish is not to see it.
                    self.denial = Some(Denial {
                        reach: Reach::Wide,
                        categories: vec![category],
                        at: 0,
                        turns: false,
                    });
                    return false;
                }
                for value in values {
                    self.remove(category, Some(value.clone()), exclusion);
                }
            }
            Action::Displace => {
                for value in values {
                    if self.has_value_filter(category, value) {
                        self.remove(category, Some(value.clone()), false);
                    }
                }
            }
            Action::Readmit => {
                for value in values {
                    self.remove(category, Some(value.clone()), true);
                }
            }
            Action::Keep => {
                self.findings
                    .kept
                    .extend(values.iter().map(|value| (category, Some(value.clone()))));
                // "keep t1 only" keeps nothing else.
                let only = self.last_value_only(category);
                if only || !values.iter().any(|value| self.has_value_filter(category, value)) {
                    self.action = None;
                    return false;
                }
            }
            Action::Spare => self
                .findings
                .kept
                .extend(values.iter().map(|value| (category, Some(value.clone())))),
        }
        true
    }

    pub(super) fn push(&mut self, category: usize, operator: Operator, value: String, at: usize) {
        let adds = self.take_adding_for(category);
        self.findings.conditions.push(Condition { category, operator, value, adds, at });
    }

    pub(super) fn finish(&mut self, at: usize) {
        self.last = Some(at);
        self.joint = Joint::default();
    }
}
