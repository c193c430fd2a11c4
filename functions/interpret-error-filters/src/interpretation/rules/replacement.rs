//! One value takes the place of another: the first goes, the second joins the others.

use super::{Effect, Reading, Rule, View};
use crate::interpretation::condition::Removal;
use crate::interpretation::weights;

pub(crate) static RULE: Rule = Rule {
    name: "replacement",
    read,
    examples: &[(
        "replace chrome with edge",
        "browser is Chrome; browser is Safari",
        "browser is Safari; browser is Edge",
    )],
};

fn read(view: &View<'_>, at: usize) -> Option<Reading> {
    let replaced = view.scene.replacement(at)?;
    let category = replaced.category;
    let values = replaced.indexes.iter().map(|&index| view.scene.catalog.value(category, index));
    let effects = values.map(|value| Effect::Remove(Removal::of_value(category, value))).collect();
    Some(Reading::new(at..replaced.end, effects, weights::rule::EDIT))
}
