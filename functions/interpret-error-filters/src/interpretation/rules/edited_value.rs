//! The filter of a value is removed or kept.

use super::{Effect, Reading, Rule, View};
use crate::interpretation::condition::Removal;
use crate::interpretation::context::Role;
use crate::interpretation::polarity::Force;
use crate::interpretation::weights;

pub(crate) static RULE: Rule = Rule {
    name: "edited-value",
    read,
    examples: &[
        ("drop chrome", "browser is Chrome; browser is Edge", "browser is Edge"),
        (
            "forget the chrome exclusion",
            "browser is_not Chrome; browser is_not Edge",
            "browser is_not Edge",
        ),
        ("take chrome out", "browser is Chrome; browser is Edge", "browser is Edge"),
        ("keep chrome, drop edge", "browser is Chrome; browser is Edge", "browser is Chrome"),
        ("edge instead of chrome", "browser is Chrome", "browser is Edge"),
        ("stop hiding chrome", "browser is_not Chrome; os is iOS", "os is iOS"),
    ],
};

fn read(view: &View<'_>, at: usize) -> Option<Reading> {
    let scene = view.scene;
    let Role::Values { category, ref indexes } = *scene.role(at) else { return None };
    let force = view.sense(at).governor.map(|governor| governor.force);
    let force = force.filter(|force| !force.denies())?;
    let (_, exclusion) = scene.nouns_after(at);
    let effect = |value: &str| match force {
        Force::Keep | Force::Spare => Some(Effect::Keep(category, Some(value.to_owned()))),
        Force::Displace if !scene.catalog.holds(category, value) => None,
        _ => {
            let negative_only = force == Force::Readmit || force == Force::Remove && exclusion;
            let removal = Removal { negative_only, ..Removal::of_value(category, value) };
            Some(Effect::Remove(removal))
        }
    };
    let values = indexes.iter().map(|&index| scene.catalog.value(category, index));
    let effects = values.filter_map(effect).collect();
    Some(Reading::new(at..at + 1, effects, weights::rule::EDITED))
}
