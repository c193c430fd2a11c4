//! The label beside a value, which tells the category that the value belongs to (rule 11).

use super::{Role, Scene, values_in};
use crate::interpretation::cue::Class;
use crate::interpretation::link::LabelLink;

impl Scene<'_> {
    /// The category of the value that a list has before this element.
    pub(super) fn listed_category(&self, at: usize) -> Option<usize> {
        let joint = self
            .previous(at)
            .filter(|&joint| self.is_any(joint, &[Class::And, Class::Or, Class::Comma]))?;
        match self.role(self.previous(joint)?) {
            Role::Values { category, .. } => Some(*category),
            _ => None,
        }
    }

    /// The label beside a value, of a category that has the value.
    pub(super) fn label_near(
        &self,
        at: usize,
        values: &[(usize, usize)],
    ) -> Option<(usize, usize)> {
        let left = self.label_before(at, values);
        if let Some((label, category, tied)) = left
            && tied
        {
            return Some((label, category));
        }
        self.label_after(at, values).or(left.map(|(label, category, _)| (label, category)))
    }

    pub(super) fn fitting(&self, at: usize, values: &[(usize, usize)]) -> Option<usize> {
        let labels: &[LabelLink] = match self.role(at) {
            Role::Label(labels) => labels,
            Role::Context(category) => {
                return values.iter().any(|(own, _)| own == category).then_some(*category);
            }
            _ => return None,
        };
        let mut fitting = labels.iter().filter(|label| {
            label.positive && values.iter().any(|(category, _)| *category == label.category)
        });
        fitting.next().map(|label| label.category)
    }

    pub(super) fn label_after(
        &self,
        at: usize,
        values: &[(usize, usize)],
    ) -> Option<(usize, usize)> {
        let label = at + 1;
        let category = self.fitting(label, values)?;
        // "chrome environment: staging" begins something new at the label.
        let next = self.next(label);
        let begins = self.is_any(next, &[Class::Is, Class::Eq, Class::Ne])
            && next == label + 1
            && !self.is_boundary(next)
            && self.candidates(self.next(next)).iter().any(|(own, _)| *own == category);
        (!begins).then_some((label, category))
    }

    /// Also says whether the label is tied to the value: by `is`, a colon, or directly.
    pub(super) fn label_before(
        &self,
        at: usize,
        values: &[(usize, usize)],
    ) -> Option<(usize, usize, bool)> {
        let mut tied = true;
        let mut steps = 0;
        let mut cursor = at;
        while let Some(before) = cursor.checked_sub(1) {
            cursor = before;
            steps += 1;
            if steps > 14 {
                return None;
            }
            if matches!(self.role(before), Role::Label(_) | Role::Context(_)) {
                return self.fitting(before, values).map(|category| (before, category, tied));
            }
            let mate = self
                .candidates(before)
                .iter()
                .any(|(category, _)| values.iter().any(|(own, _)| own == category));
            if mate {
                tied = false;
                continue;
            }
            let link = self.is_any(
                before,
                &[
                    Class::Is,
                    Class::Eq,
                    Class::Ne,
                    Class::Not,
                    Class::Except,
                    Class::Only,
                    Class::Both,
                    Class::Neither,
                    Class::Contains,
                    Class::InLabel,
                ],
            );
            let list = self.is_any(before, &[Class::And, Class::Or, Class::Comma, Class::Nor]);
            if list {
                tied = false;
                // Only a list of values goes on over a comma.
                let earlier = before.checked_sub(1);
                let listed = earlier.is_some_and(|earlier| {
                    self.candidates(earlier)
                        .iter()
                        .any(|(category, _)| values.iter().any(|(own, _)| own == category))
                });
                if !listed {
                    return None;
                }
            } else if !link && !self.is_idle(before) && self.word(before) != "(" {
                return None;
            }
        }
        None
    }

    /// Rule 11: a value that stands in several categories goes to the one whose label is named.
    pub(super) fn settle_by_named_labels(&mut self) {
        for at in 0..self.elements.len() {
            let Role::Values { category, .. } = *self.role(at) else { continue };
            let Some(mention) = self.mention(at).cloned() else { continue };
            let several = mention.values.iter().any(|(other, _)| *other != category);
            if !several || self.label_near(at, &mention.values).is_some() {
                continue;
            }
            let named = (0..self.elements.len())
                .filter(|&other| matches!(self.role(other), Role::Label(_)))
                .filter_map(|other| {
                    self.fitting(other, &mention.values)
                        .map(|category| (other.abs_diff(at), other, category))
                })
                .min();
            if let Some((_, label, category)) = named {
                let indexes = values_in(&mention, category);
                self.set_role(at, Role::Values { category, indexes });
                self.set_role(label, Role::Context(category));
            }
        }
    }
}
