//! A word that says that a category has no value (rule 10).

use super::{Effect, Reading, Rule, View};
use crate::interpretation::element::Element;
use crate::interpretation::model::Operator;
use crate::interpretation::weights;

pub(crate) static RULE: Rule = Rule {
    name: "absence-word",
    read,
    examples: &[("unassigned", "", "owner is_not_set "), ("not unassigned", "", "owner is_set ")],
};

fn read(view: &View<'_>, at: usize) -> Option<Reading> {
    if !view.scene.element(at).is_some_and(Element::is_word) {
        return None;
    }
    let category = view.scene.absent_category(at)?;
    let denied = view.sense(at).is_denied();
    let operator = if denied { Operator::IsSet } else { Operator::IsNotSet };
    let effects = vec![Effect::State { at, category, operator, value: String::new() }];
    Some(Reading::new(at..at + 1, effects, weights::rule::ABSENCE))
}
