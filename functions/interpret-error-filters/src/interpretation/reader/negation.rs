//! Negation (rule 9): what a negator denies, how far it reaches, and denial said afterwards.

use super::{Denial, Joint, Reach, Reader};
use crate::interpretation::context::Role;
use crate::interpretation::cue::Class;

impl Reader<'_, '_> {
    pub(super) fn starts_denial(&self, at: usize) -> bool {
        self.scene.is_any(at, &[Class::Not, Class::Except, Class::No, Class::Neither, Class::Ne])
    }

    /// "no, firefox", "no wait": said to correct, not to deny.
    pub(super) fn is_interjection(&self, at: usize) -> bool {
        if self.scene.is(at, Class::Interjection) {
            return true;
        }
        matches!(self.scene.word(at), "no")
            && self.scene.element(at).is_some_and(|element| element.tokens.len() == 1)
            && (self.scene.is(at + 1, Class::Comma)
                || self.scene.is_any(at + 1, &[Class::Correction, Class::Switch]))
    }

    pub(super) fn corrects(&self, at: usize) -> bool {
        // "actually" and the like correct only what has been said.
        !self.findings.conditions.is_empty()
            || self
                .scene
                .element(at)
                .is_some_and(|element| !self.starts_denial(at) || element.is(Class::Interjection))
    }

    pub(super) fn correct(&mut self, at: usize) {
        self.findings.corrections.push(at);
        self.denial = None;
        self.action = None;
        self.joint = Joint::default();
        self.last = None;
    }

    /// Rule `negation`: what a negator does here.
    pub(super) fn deny(&mut self, at: usize) {
        if self.denies_what_stands_before(at) {
            self.deny_before();
            return;
        }
        let reach = if self.scene.is_any(at, &[Class::Except]) && !self.scene.is(at, Class::No) {
            Reach::Wide
        } else if self.scene.is(at, Class::No) {
            Reach::Absence
        } else {
            Reach::Narrow
        };
        if self.scene.is(at, Class::Neither) {
            self.denial =
                Some(Denial { reach: Reach::Narrow, categories: Vec::new(), at, turns: false });
            return;
        }
        if let Some(denial) = &mut self.denial
            && denial.categories.is_empty()
        {
            // "but not", "don't ignore": one denial.
            denial.reach = if denial.reach == Reach::Wide { Reach::Wide } else { reach };
            denial.at = at;
            return;
        }
        self.action = None;
        self.denial = Some(Denial { reach, categories: Vec::new(), at, turns: false });
    }

    /// "chrome is not", "spell check not installed": nothing follows that could be denied.
    pub(super) fn denies_what_stands_before(&self, at: usize) -> bool {
        let Some(before) = self.last else { return false };
        if !matches!(self.scene.role(before), Role::Values { .. })
            || !self.scene.is_any(at, &[Class::Not])
        {
            return false;
        }
        let Role::Values { category, .. } = *self.scene.role(before) else { return false };
        let mut next = at + 1;
        let mut seen = false;
        while !self.scene.is_boundary(next) {
            let own_label = self.scene.labels(next).iter().any(|label| label.category == category)
                && matches!(self.scene.role(next), Role::Label(_));
            let carrier = self.scene.is(next, Class::Carrier)
                && matches!(
                    self.scene.word(next),
                    "included"
                        | "wanted"
                        | "include"
                        | "count"
                        | "want"
                        | "needed"
                        | "that"
                        | "one"
                        | "please"
                        | "those"
                );
            if !own_label && !carrier && !self.scene.is(next, Class::Polite) {
                return false;
            }
            seen = true;
            next += 1;
        }
        seen || self.scene.previous(at) == Some(before) && self.scene.is_boundary(at + 1)
    }

    /// Whether what the verb after a negator governs is denied: "don't speak English", "not signed
    /// by Smith".
    pub(super) fn denies_through_verb(&self, negator: usize, verb: usize) -> bool {
        let does = matches!(
            self.scene.word(negator),
            "dont" | "doesnt" | "didnt" | "do" | "does" | "did" | "never"
        );
        let object = if self.scene.is(verb + 1, Class::Any) { verb + 2 } else { verb + 1 };
        does && matches!(self.scene.role(object), Role::Values { .. })
            || self.scene.word(verb + 1) == "by"
    }

    /// Denies the last value and its list.
    pub(super) fn deny_before(&mut self) {
        let Some(last) = self.last else { return };
        let Some(category) = self
            .findings
            .conditions
            .iter()
            .rev()
            .find(|condition| condition.at == last)
            .map(|condition| condition.category)
        else {
            return;
        };
        let mut edge = last;
        for condition in self.findings.conditions.iter_mut().rev() {
            if condition.category != category || condition.operator.is_negative() {
                break;
            }
            if condition.at != last
                && (condition.at..edge).skip(1).any(|at| {
                    !self.scene.is_any(at, &[Class::And, Class::Or]) && !self.scene.is_idle(at)
                })
            {
                break;
            }
            edge = condition.at;
            condition.operator = condition.operator.negated();
        }
    }

    /// Whether the negator in force reaches a category, and notes that it did.
    pub(super) fn take_denial_for(&mut self, category: usize) -> bool {
        let joint = self.joint;
        let Some(denial) = &mut self.denial else { return false };
        // "not Poland, Romania" where Poland is the current filter: the second takes its place.
        let turns =
            denial.turns && joint.is(Class::Comma) && !joint.is(Class::And) && !joint.is(Class::Or);
        let reached = if denial.categories.is_empty() || denial.categories.contains(&category) {
            !turns
        } else {
            let joined = match denial.reach {
                Reach::Wide => joint.is(Class::And) || joint.is(Class::Or),
                Reach::Narrow | Reach::Absence => joint.is(Class::Or),
            };
            joined && !joint.preposition
        };
        if reached {
            if !denial.categories.contains(&category) {
                denial.categories.push(category);
            }
        } else {
            self.denial = None;
        }
        reached
    }
}
