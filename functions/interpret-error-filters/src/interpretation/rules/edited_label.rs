//! The filters of a category are removed or kept.

use super::{Effect, Reading, Rule, View};
use crate::interpretation::condition::Removal;
use crate::interpretation::context::Role;
use crate::interpretation::polarity::Force;
use crate::interpretation::weights;

pub(crate) static RULE: Rule = Rule {
    name: "edited-label",
    read,
    examples: &[
        ("drop the browser filter", "browser is Chrome; os is iOS", "os is iOS"),
        ("no browser filter", "browser is Chrome; os is iOS", "os is iOS"),
        ("ignore the environment", "env is staging; os is iOS", "os is iOS"),
    ],
};

fn read(view: &View<'_>, at: usize) -> Option<Reading> {
    let scene = view.scene;
    let Role::Label(labels) = scene.role(at) else { return None };
    let category = scene.preferred(labels);
    let (_, exclusion) = scene.nouns_after(at);
    let effect = match view.sense(at).governor?.force {
        Force::Remove | Force::Displace => {
            Effect::Remove(Removal { negative_only: exclusion, ..Removal::of(category) })
        }
        Force::Readmit => Effect::Remove(Removal { negative_only: true, ..Removal::of(category) }),
        Force::Spare | Force::Keep => Effect::Keep(category, None),
        Force::Exclude if scene.catalog.has_filter(category) => {
            Effect::Remove(Removal::of(category))
        }
        _ => return None,
    };
    Some(Reading::new(at..at + 1, vec![effect], weights::rule::EDITED))
}
