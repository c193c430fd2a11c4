//! A label has a value, or none (rule 10).

use super::{Effect, Reading, Rule, View};
use crate::interpretation::context::Role;
use crate::interpretation::weights;

pub(crate) static RULE: Rule = Rule {
    name: "presence",
    read,
    examples: &[
        ("with an assignee", "", "owner is_set "),
        ("has:assignee", "", "owner is_set "),
        ("ticket id missing on firefox", "", "ticket is_not_set ; browser is Firefox"),
    ],
};

fn read(view: &View<'_>, at: usize) -> Option<Reading> {
    let Role::Label(labels) = view.scene.role(at) else { return None };
    let (category, operator, end) = view.scene.presence_said(at, labels)?;
    let effects = vec![Effect::State { at, category, operator, value: String::new() }];
    Some(Reading::new(at..end, effects, weights::rule::PRESENCE))
}
