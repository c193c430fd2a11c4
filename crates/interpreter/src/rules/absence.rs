//! A denied label has no value; a number is 0 (rules 9 and 10).

use super::{Effect, Kind, Operator, Reading, Rule, View};

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
    let labels = scene.as_labels(at);
    let category = labels.iter().find(|label| label.full).or(labels.first())?.category;
    let (operator, value) = match scene.catalog.kind(category) {
        _ if !view.sense(at).is_denied() => return None,
        Kind::Boolean => return None,
        Kind::Numeric => (Operator::Is, "0"),
        Kind::Text | Kind::Array => (Operator::IsNotSet, ""),
    };
    Some(Reading::new(at..at + 1, [Effect::state(at, category, operator, value)]))
}
