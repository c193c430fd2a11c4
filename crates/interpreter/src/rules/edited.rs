//! Removes or keeps the filters of a category, or its filter with a value.

use super::{CueEffect, Effect, Kind, Reading, Role, Selection, View};

pub(super) fn read(view: &View<'_>, at: usize) -> Option<Reading> {
    let context = view.context;
    let one = |effect: Effect| Some(Reading::new(at..at + 1, [effect]));
    let (noun, exclusion) = context.nouns_after(at);
    let force = view.sense(at).governor.map(|governor| governor.force);
    let lifts = force == Some(CueEffect::Readmit) || force == Some(CueEffect::Remove) && exclusion;
    if let Role::Values { category, ref indexes } = *context.role(at) {
        let force = force.filter(|force| !force.denies())?;
        // "lift the US exclusion", "drop the ipad exclusion"
        let lifted = if lifts { context.excluded(at) } else { Vec::new() };
        if !lifted.is_empty() {
            return Some(Reading::new(at..at + 1, lifted.into_iter().map(Effect::Remove)));
        }
        let effect = |value: &str| {
            let named = Selection::of_value(category, value);
            match force {
                CueEffect::Keep | CueEffect::Spare => Some(Effect::Keep(named)),
                CueEffect::Displace if !context.catalog.holds(category, value) => None,
                _ => Some(Effect::Remove(Selection { negative_only: lifts, ..named })),
            }
        };
        let values = indexes.iter().map(|&index| context.catalog.value(category, index));
        return Some(Reading::new(at..at + 1, values.filter_map(effect)));
    }
    let category = context.preferred(at)?;
    let all = Selection::of(category);
    if context.follows_any(at, cues![Keep])
        && context.follows_any(at, cues![Only])
        && context.catalog.has_filter(category)
        && (noun || context.is_boundary(context.next(at)))
    {
        // "keep only the browser"
        return Some(Reading::new(at..at + 1, [Effect::Keep(all), Effect::DropRest]));
    }
    match force? {
        CueEffect::Remove | CueEffect::Displace | CueEffect::Readmit => {
            let negative_only = lifts && context.catalog.kind(category) != Kind::Boolean;
            one(Effect::Remove(Selection { negative_only, ..all }))
        }
        CueEffect::Spare | CueEffect::Keep => one(Effect::Keep(all)),
        CueEffect::Exclude if context.catalog.has_filter(category) => one(Effect::Remove(all)),
        _ => None,
    }
}
