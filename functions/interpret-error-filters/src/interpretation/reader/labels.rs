//! Labels without a value: booleans (rule 5), presence (rule 10), and edits of a whole category.

use super::{Action, Denial, Reach, Reader};
use crate::interpretation::context::Role;
use crate::interpretation::cue::Class;
use crate::interpretation::element::Element;
use crate::interpretation::fold;
use crate::interpretation::link::LabelLink;
use crate::interpretation::model::{Kind, Operator};

impl Reader<'_, '_> {
    pub(super) fn label(&mut self, at: usize, labels: &[LabelLink]) -> usize {
        let Some(first) = labels.first().copied() else { return at + 1 };
        let (noun, exclusion) = self.nouns_after(at);
        let denied = self
            .denial
            .clone()
            .filter(|denial| denial.categories.is_empty() || self.joint.is_list());
        let preferred =
            labels.iter().copied().find(|label| self.has_filter(label.category)).unwrap_or(first);
        if self.scene.is(at, Class::Generic)
            && labels.iter().all(|label| !label.full)
            && self.action.is_none()
        {
            return at + 1;
        }
        let any_after = self.scene.is(self.after_is(at), Class::AfterAny)
            && (self.scene.is_boundary(self.scene.next(self.after_is(at)))
                || self.scene.word(self.after_is(at)) != "any");
        if any_after {
            self.remove(preferred.category, None, false);
            let end = self.after_is(at);
            self.use_up(at..end + 1);
            self.finish(at);
            return end + 1;
        }
        if self.scene.is(at + 1, Class::AfterKeep) {
            self.use_up(at..at + 2);
            return at + 2;
        }
        let telling = labels
            .iter()
            .copied()
            .find(|label| self.scene.catalog.kind(label.category) == Kind::Boolean);
        let removes = self.action_for(preferred.category, None);
        if let Some(action) = removes.or((noun && denied.is_some()).then_some(Action::Remove)) {
            let boolean_clause =
                action == Action::Keep && telling.is_some() && !self.has_filter(preferred.category);
            if !boolean_clause {
                match action {
                    Action::Remove | Action::Displace => {
                        self.remove(preferred.category, None, exclusion);
                    }
                    Action::Spare | Action::Keep => {
                        self.findings.kept.push((preferred.category, None));
                    }
                    Action::Readmit => self.remove(preferred.category, None, true),
                }
                if noun {
                    self.denial = None;
                }
                self.finish(at);
                return at + 1;
            }
        }
        if let Some(label) = telling
            && (self.boolean(at, label))
        {
            return at + 1;
        }
        if let Some(denial) = denied
            && self.absence(at, labels, &denial)
        {
            self.finish(at);
            return at + 1;
        }
        self.presence(at, labels);
        at + 1
    }

    /// The element after a label and an `is` or colon.
    pub(super) fn after_is(&self, at: usize) -> usize {
        let mut next = self.scene.next(at);
        while self.scene.is_any(next, &[Class::Is, Class::Eq, Class::Carrier, Class::Polite])
            && !self.scene.is_any(
                next,
                &[
                    Class::AfterAny,
                    Class::Yes,
                    Class::False,
                    Class::AfterAbsent,
                    Class::AfterPresent,
                    Class::Not,
                    Class::No,
                    Class::Comma,
                ],
            )
        {
            next = self.scene.next(next);
        }
        next
    }

    /// Rule `boolean`: "handled", "not handled", "ray tracing off", "handled: no".
    pub(super) fn boolean(&mut self, at: usize, label: LabelLink) -> bool {
        let next = self.after_is(at);
        let before = self.scene.previous(at);
        let mut value = label.positive;
        let mut said = label.telling;
        let mut used = None;
        let tied = next > at + 1 || !self.scene.is_boundary(next);
        // "orders on the web" switches nothing on.
        let place = self.scene.word(next) == "on"
            && matches!(self.scene.role(self.scene.next(next)), Role::Values { .. });
        if tied && !place && self.scene.is(next, Class::Yes) {
            said = true;
            value = self.on(label, next, true);
            used = Some(next);
        } else if tied && self.scene.is(next, Class::False) {
            said = true;
            value = self.on(label, next, false);
            used = Some(next);
        } else if matches!(self.scene.word(next), "missing" | "absent")
            && self.scene.is(next, Class::AfterAbsent)
            && self.scene.is_boundary(self.scene.next(next))
        {
            // "consent missing"
            said = true;
            value = !label.positive;
            used = Some(next);
        } else if self.scene.is_any(next, &[Class::Not])
            && self.scene.is_any(self.scene.next(next), &[Class::Yes, Class::False])
        {
            let polarity = self.scene.next(next);
            said = true;
            value = !self.on(label, polarity, self.scene.is(polarity, Class::Yes));
            used = Some(polarity);
        } else if let Some(end) = self.scene.denied_rest_of_label(at, label.category) {
            // "index not used" for Index used.
            said = true;
            value = !value;
            used = Some(end);
        } else if next > at + 1
            && matches!(self.scene.word(next), "no" | "not")
            && self.scene.is_boundary(next + 1)
        {
            said = true;
            value = !value;
            used = Some(next);
        } else if let Some(before) = before
            && self.scene.is_any(before, &[Class::Yes, Class::False])
            && self.scene.element(before).is_some_and(|element| !element.used)
            && self
                .scene
                .tokens
                .get(self.scene.element(before).map_or(0, |element| element.tokens.start))
                .is_some_and(|token| token.folded.len() > 3)
            && !label.full
        {
            said = true;
            value = self.scene.is(before, Class::Yes) == value;
        } else if before.is_some_and(|before| {
            self.scene.is_any(before, &[Class::No, Class::WithPresence])
                && !matches!(self.scene.word(before), "nothing" | "none")
                || self.scene.is(before, Class::Not) && self.begins_label(at, label)
        }) {
            said = true;
        }
        // "handled or not"
        if said && self.scene.is(at + 1, Class::Interjection) && self.scene.word(at + 1) == "or" {
            self.remove(label.category, None, false);
            self.use_up(at..at + 2);
            return true;
        }
        if !said {
            return false;
        }
        let denied =
            self.take_denial_for(label.category) || used.is_none() && self.denied_after(at);
        if let Some(used) = used {
            self.use_up(at..used + 1);
        }
        let value = value != denied;
        // Two words of one label, "licence ... expired", are one mention.
        if let Some(last) = self.findings.conditions.last()
            && last.category == label.category
            && self.last.is_some_and(|last| at - last <= 3)
            && !self.joint.is(Class::Or)
            && !self.joint.is(Class::And)
        {
            self.findings.conditions.pop();
        }
        self.push(label.category, Operator::Is, value.to_string(), at);
        self.finish(at);
        true
    }

    /// Whether a label's first word stands here: "not organic" for Organic certified.
    fn begins_label(&self, at: usize, label: LabelLink) -> bool {
        let facts = self.scene.catalog.category(label.category);
        let atoms = facts.map(|facts| fold::atoms(&facts.label)).unwrap_or_default();
        atoms.first().is_some_and(|first| first.folded == self.scene.word(at))
    }

    /// "on" for a label that says "disabled" means false; "true" means what the label says.
    pub(super) fn on(&self, label: LabelLink, at: usize, yes: bool) -> bool {
        let literal = matches!(self.scene.word(at), "true" | "false" | "yes" | "no" | "y")
            || self
                .scene
                .tokens
                .get(
                    self.scene
                        .element(at)
                        .map_or(0, |element| element.tokens.end.saturating_sub(1)),
                )
                .is_some_and(|token| matches!(token.folded.as_str(), "true" | "false"));
        let inverse = !literal
            && self
                .scene
                .label_has(label.category, &["disabled", "off", "inactive", "deactivated"]);
        (yes != inverse) == label.positive
    }

    /// Rule `absence`: "no release", "without a user", "no comments".
    pub(super) fn absence(&mut self, at: usize, labels: &[LabelLink], denial: &Denial) -> bool {
        let before = self.scene.previous(at);
        let direct = before == Some(denial.at)
            || before.is_some_and(|before| {
                self.scene.is_any(
                    before,
                    &[
                        Class::And,
                        Class::Or,
                        Class::Nor,
                        Class::Comma,
                        Class::Any,
                        Class::WithPresence,
                        Class::Mentions,
                        Class::Contains,
                    ],
                )
            })
            || before.is_some_and(|before| {
                before > denial.at && self.scene.element(before).is_some_and(Element::is_word)
            });
        if !direct {
            return false;
        }
        let listed = denial.categories.is_empty() || self.joint.is_list();
        if !listed || denial.reach == Reach::Wide && !self.scene.is(denial.at, Class::No) {
            if denial.reach == Reach::Wide
                && denial.categories.is_empty()
                && labels.iter().any(|label| self.has_filter(label.category))
            {
                // "ignore the environment"
                let category = labels
                    .iter()
                    .find(|label| self.has_filter(label.category))
                    .map_or(0, |label| label.category);
                self.remove(category, None, false);
                self.denial = None;
                return true;
            }
            return false;
        }
        if denial.reach == Reach::Narrow && !labels.iter().any(|label| label.full) {
            return false;
        }
        let Some(label) = best_label(labels) else { return false };
        let kind = self.scene.catalog.kind(label.category);
        match kind {
            Kind::Boolean => return false,
            Kind::Numeric if denial.reach == Reach::Narrow => return false,
            Kind::Numeric => self.push(label.category, Operator::Is, "0".to_owned(), at),
            Kind::Text | Kind::Array => {
                self.push(label.category, Operator::IsNotSet, String::new(), at);
            }
        }
        if let Some(denial) = &mut self.denial {
            denial.categories.push(label.category);
        }
        true
    }

    /// Rule `presence`: "with a user", "release is missing", "email is set".
    pub(super) fn presence(&mut self, at: usize, labels: &[LabelLink]) {
        let textual = |label: &&LabelLink| {
            !matches!(self.scene.catalog.kind(label.category), Kind::Boolean | Kind::Numeric)
        };
        let Some(label) = labels
            .iter()
            .find(|label| label.full && textual(label))
            .or(labels.iter().find(textual))
        else {
            return;
        };
        let next = self.scene.next(at);
        let after = self.after_is(at);
        // "release missing user" speaks of the user.
        let of_next = self.scene.is(next, Class::MissingLabel)
            && matches!(self.scene.role(self.scene.next(next)), Role::Label(_));
        let operator = if self.scene.is(next, Class::AfterAbsent) && !of_next
            || self.scene.is(after, Class::AfterAbsent)
        {
            Some(Operator::IsNotSet)
        } else if self.scene.is(next, Class::AfterPresent)
            || self.scene.is(after, Class::AfterPresent)
        {
            Some(Operator::IsSet)
        } else {
            let before = self
                .scene
                .previous(at)
                .filter(|&before| self.scene.is_any(before, &[Class::WithPresence]));
            let valued =
                self.scene.is_any(next, &[Class::Is, Class::Eq, Class::Ne, Class::Contains])
                    && !self.scene.is_any(next, &[Class::Polite, Class::InLabel]);
            before.filter(|_| !valued).map(|_| Operator::IsSet)
        };
        if let Some(operator) = operator {
            let category = label.category;
            self.push(category, operator, String::new(), at);
            let end = after.min(self.scene.elements.len().saturating_sub(1));
            if self.scene.is_any(end, &[Class::AfterAbsent, Class::AfterPresent]) {
                self.use_up(at..end + 1);
            }
            self.finish(at);
        }
    }
}

fn best_label(labels: &[LabelLink]) -> Option<LabelLink> {
    labels.iter().copied().find(|label| label.full).or(labels.first().copied())
}
