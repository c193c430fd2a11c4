//! Removals and replacements (rule 1): what goes, what stays, what takes its place.

use super::{Action, Denial, Reach, Reader};
use crate::interpretation::condition::Removal;
use crate::interpretation::context::Role;
use crate::interpretation::cue::Class;

impl Reader<'_, '_> {
    /// Rule `replace`: "replace nina with leo": the first goes, the second joins.
    pub(super) fn replaces(&mut self, at: usize) -> bool {
        let mut first = None;
        for other in at + 1..self.scene.elements.len() {
            match self.scene.role(other).clone() {
                Role::Values { category, indexes } => match first {
                    None => first = Some((other, category, indexes)),
                    Some((from, own, ref replaced)) => {
                        let linked =
                            (from + 1..other).any(|between| self.scene.is(between, Class::With));
                        if own != category || !linked {
                            return false;
                        }
                        for &index in replaced {
                            let value = self.scene.catalog.value(own, index).to_owned();
                            self.remove(own, Some(value), false);
                        }
                        self.use_up(at..from + 1);
                        self.adding = Some(vec![own]);
                        return true;
                    }
                },
                _ if self.scene.is_boundary(other) => return false,
                _ => {}
            }
        }
        false
    }

    pub(super) fn use_up(&mut self, elements: std::ops::Range<usize>) {
        for element in self.scene.elements.get_mut(elements).into_iter().flatten() {
            element.used = true;
        }
    }

    pub(super) fn remove(&mut self, category: usize, value: Option<String>, negative_only: bool) {
        self.findings.removals.push(Removal { category, value, negative_only });
    }

    /// The action in force for a value or label here; it ends where its list does.
    pub(super) fn action_for(&mut self, category: usize, value: Option<&str>) -> Option<Action> {
        let (action, at) = self.action?;
        let first = self.last.is_none_or(|last| last < at);
        let listed = self.joint.is_list();
        let current = value.map_or_else(
            || self.has_filter(category),
            |value| self.has_value_filter(category, value),
        );
        let goes_on = first
            || listed
                && (current
                    || !self.joint.is(Class::Comma) && action != Action::Remove
                    || value.is_none())
            || !listed && !self.joint.preposition;
        if goes_on {
            Some(action)
        } else {
            self.action = None;
            None
        }
    }

    pub(super) fn is_own_label(&self, at: usize, label: usize) -> bool {
        match self.scene.role(label) {
            Role::Context(_) => true,
            Role::Label(_) => label == at + 1,
            _ => false,
        }
    }

    /// What kind of filter a removal names: "the chrome exclusion".
    pub(super) fn nouns_after(&self, at: usize) -> (bool, bool) {
        let mut next = at + 1;
        let mut noun = false;
        while next < self.scene.elements.len() {
            if self.scene.is(next, Class::ExclusionNoun) {
                return (true, true);
            }
            if self.scene.is(next, Class::FilterNoun) {
                noun |= self.scene.is(next, Class::FilterWord);
            } else if !self.is_own_label(at, next) {
                break;
            }
            next += 1;
        }
        (noun, false)
    }

    /// Rule `phrasal-verb`: "take visa out", "leave bob out".
    pub(super) fn phrasal(&mut self, at: usize) -> bool {
        let mut named = false;
        let mut end = at + 1;
        while !self.scene.is_boundary(end) {
            if named && matches!(self.scene.word(end), "out" | "off" | "away") {
                let removes = self.scene.is(at, Class::SplitRemove);
                self.use_up(end..end + 1);
                if removes {
                    self.action = Some((Action::Remove, at));
                    self.denial = None;
                } else {
                    self.action = None;
                    self.denial = Some(Denial {
                        reach: Reach::Wide,
                        categories: Vec::new(),
                        at,
                        turns: false,
                    });
                }
                return true;
            }
            named |= matches!(self.scene.role(end), Role::Label(_) | Role::Values { .. });
            end += 1;
        }
        false
    }
}
