//! Removes or keeps the filter with a value.

use super::{CueEffect, Effect, Reading, Role, Selection, View};

pub(super) fn read(view: &View<'_>, at: usize) -> Option<Reading> {
    let context = view.context;
    let Role::Values { category, ref indexes } = *context.role(at) else { return None };
    let force = view.sense(at).governor?.force;
    if force.denies() {
        return None;
    }
    let (_, exclusion) = context.nouns_after(at);
    if force == CueEffect::Readmit || force == CueEffect::Remove && exclusion {
        // "lift the US exclusion", "drop the ipad exclusion"
        let lifted = context.excluded(at);
        if !lifted.is_empty() {
            return Some(Reading::new(at..at + 1, lifted.into_iter().map(Effect::Remove)));
        }
    }
    let effect = |value: &str| {
        let one = Selection::of_value(category, value);
        let negative_only = force == CueEffect::Readmit || force == CueEffect::Remove && exclusion;
        match force {
            CueEffect::Keep | CueEffect::Spare => Some(Effect::Keep(one)),
            CueEffect::Displace if !context.catalog.holds(category, value) => None,
            _ => Some(Effect::Remove(Selection { negative_only, ..one })),
        }
    };
    let values = indexes.iter().map(|&index| context.catalog.value(category, index));
    Some(Reading::new(at..at + 1, values.filter_map(effect)))
}
