//! The label next to a value, which determines the value's category (rule 11).

use super::{CueSet, JOINS, ParseContext, Role};

/// Maximum distance from a value back to its label, in elements.
const FARTHEST_LABEL: usize = 14;

impl ParseContext<'_> {
    /// Returns the category of the preceding value in a list.
    pub(super) fn listed_category(&self, at: usize) -> Option<usize> {
        const JOINTS: CueSet = cues![And, Or, Comma, But, Not, Except];
        let mut before = self.previous(at).filter(|&joint| self.is_any(joint, JOINTS))?;
        while self.is_any(before, JOINTS) {
            before = self.previous(before)?;
        }
        match self.role(before) {
            Role::Values { category, .. } => Some(*category),
            _ => None,
        }
    }

    /// Returns the label next to a value, with a category that has the value.
    pub(super) fn label_near(
        &self,
        at: usize,
        values: &[(usize, usize)],
    ) -> Option<(usize, usize)> {
        match self.label_before(at, values) {
            Some((label, category, true)) => Some((label, category)),
            left => self.label_after(at, values).or(left.map(|it| (it.0, it.1))),
        }
    }

    /// Returns the category of a label, if it has one of these values.
    fn fitting(&self, at: usize, values: &[(usize, usize)]) -> Option<usize> {
        let owns = |category: usize| values.iter().any(|value| value.0 == category);
        match self.role(at) {
            Role::Label => {
                let mut fitting =
                    self.labels(at).iter().filter(|it| it.positive && owns(it.category));
                fitting.next().map(|label| label.category)
            }
            Role::Context(category) => Some(*category).filter(|&category| owns(category)),
            _ => None,
        }
    }

    /// `true` if an element can name a value in the same category as one of these.
    pub(super) fn is_mate(&self, at: usize, values: &[(usize, usize)]) -> bool {
        self.candidates(at).iter().any(|found| values.iter().any(|value| value.0 == found.0))
    }

    fn label_after(&self, at: usize, values: &[(usize, usize)]) -> Option<(usize, usize)> {
        let label = at + 1;
        let category = self.fitting(label, values)?;
        // In "chrome environment: staging" the label belongs to the next value.
        let next = label + 1;
        let begins = self.is_any(next, cues![Is, Eq, Ne])
            && !self.is_idle(next)
            && !self.is_boundary(next)
            && self.candidates(self.next(next)).iter().any(|found| found.0 == category);
        (!begins).then_some((label, category))
    }

    /// Returns the label before a value, its category, and `true` unless a list separates them.
    fn label_before(&self, at: usize, values: &[(usize, usize)]) -> Option<(usize, usize, bool)> {
        const LINKS: CueSet =
            cues![Is, Eq, Ne, Not, Except, Only, Both, Neither, Contains, InLabel];
        let mut tied = true;
        for before in (0..at).rev().take(FARTHEST_LABEL) {
            if matches!(self.role(before), Role::Label | Role::Context(_)) {
                return self.fitting(before, values).map(|category| (before, category, tied));
            }
            if self.is_mate(before, values) {
                tied = false;
            } else if self.is_any(before, JOINS) {
                tied = false;
                // Only a list of values continues after a conjunction or comma.
                if !before.checked_sub(1).is_some_and(|earlier| self.is_mate(earlier, values)) {
                    return None;
                }
            } else if !self.is_any(before, LINKS)
                && !self.is_idle(before)
                && self.word(before) != "("
            {
                return None;
            }
        }
        None
    }
}
