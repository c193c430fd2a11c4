//! Additions (rule 1): `also`, `too` and the conditions that they join to the current ones.

use super::Reader;
use crate::interpretation::context::Role;
use crate::interpretation::cue::Class;

impl Reader<'_, '_> {
    /// Rule `add`: "also firefox", "jonas too".
    pub(super) fn adds(&mut self, at: usize) -> bool {
        let (before, after) = (self.scene.is(at, Class::Add), self.scene.is(at, Class::AfterAdd));
        if !before && !after {
            return false;
        }
        let next = self.scene.next(at);
        // "chrome as well as firefox" is a list.
        let list = self.scene.is(at, Class::And)
            && self.last.is_some()
            && self.last == self.scene.previous(at)
            && matches!(self.scene.role(next), Role::Values { .. });
        if list {
            self.joint.by.insert(Class::And);
            return true;
        }
        let ends = self.scene.is_boundary(next)
            || self
                .scene
                .is_any(next, &[Class::And, Class::Remove, Class::Correction, Class::Except])
                && !before
            || self.trails_off(next);
        if (after && (ends || !before) || self.trails_off(next)) && self.last.is_some() {
            self.add_clause();
        } else if before
            && (self.scene.word(at) != "+"
                || self.scene.element(at).is_some_and(|element| !element.used))
        {
            self.adding = Some(Vec::new());
            self.action = None;
            if self.last.is_some() {
                self.joint.by.insert(Class::And);
            }
        }
        true
    }

    /// "as well as whatever i have": nothing that could be added follows.
    pub(super) fn trails_off(&self, from: usize) -> bool {
        let mut at = from;
        while !self.scene.is_boundary(at) {
            let states = matches!(self.scene.role(at), Role::Values { .. } | Role::Label(_))
                || self.scene.element(at).is_some_and(|element| {
                    element.number.is_some() || element.quoted || element.used
                });
            if states {
                return false;
            }
            at += 1;
        }
        true
    }

    /// Marks the conditions of this clause as added.
    pub(super) fn add_clause(&mut self) {
        let Some(last) = self.last else { return };
        let mut edge = last;
        for condition in self.findings.conditions.iter_mut().rev() {
            if condition.at > last {
                continue;
            }
            let separated = (condition.at..=edge).any(|at| {
                self.scene.is_any(at, &[Class::Comma, Class::But, Class::Stop, Class::Correction])
            });
            if separated {
                break;
            }
            edge = condition.at;
            condition.adds = true;
        }
    }

    pub(super) fn mark_added(&mut self, at: usize) {
        let Some(category) = self
            .findings
            .conditions
            .iter()
            .find(|condition| condition.at == at)
            .map(|condition| condition.category)
        else {
            return;
        };
        let adds = self.take_adding_for(category);
        if adds {
            for condition in
                self.findings.conditions.iter_mut().filter(|condition| condition.at == at)
            {
                condition.adds = true;
            }
        }
    }

    /// Whether an `also` in force reaches a category. It ends at the first condition that is not
    /// joined to its list.
    pub(super) fn take_adding_for(&mut self, category: usize) -> bool {
        let joint = self.joint;
        let Some(categories) = &mut self.adding else { return false };
        let reached = categories.is_empty()
            || categories.contains(&category)
            || joint.is(Class::And) && !joint.is(Class::Comma);
        if reached {
            categories.push(category);
        } else {
            self.adding = None;
        }
        reached
    }
}
