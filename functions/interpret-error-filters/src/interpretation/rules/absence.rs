//! A denied label has no value; a number is 0 (rules 9 and 10).

use super::{Effect, Reading, Rule, View};
use crate::interpretation::context::Role;
use crate::interpretation::model::{Kind, Operator};
use crate::interpretation::weights;

pub(crate) static RULE: Rule = Rule {
    name: "absence",
    read,
    examples: &[
        ("no release", "", "release is_not_set "),
        ("firefox but no assignee", "", "browser is Firefox; owner is_not_set "),
        ("no users", "", "users is 0"),
    ],
};

fn read(view: &View<'_>, at: usize) -> Option<Reading> {
    let scene = view.scene;
    let Role::Label(labels) = scene.role(at) else { return None };
    let force = view.sense(at).governor?.force;
    let category = labels.iter().find(|label| label.full).or(labels.first())?.category;
    let (operator, value) = match scene.catalog.kind(category) {
        _ if !force.denies() => return None,
        Kind::Boolean => return None,
        Kind::Numeric => (Operator::Is, "0"),
        Kind::Text | Kind::Array => (Operator::IsNotSet, ""),
    };
    let effects = vec![Effect::State { at, category, operator, value: value.to_owned() }];
    Some(Reading::new(at..at + 1, effects, weights::rule::ABSENCE))
}
