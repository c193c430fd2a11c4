//! Removes or keeps the filters of a category.

use super::{Class, CueEffect, Effect, Kind, Reading, Selection, View};

pub(super) fn read(view: &View<'_>, at: usize) -> Option<Reading> {
    let context = view.context;
    let category = context.preferred(at)?;
    let all = Selection::of(category);
    let (noun, exclusion) = context.nouns_after(at);
    if context.follows_any(at, &[Class::Keep])
        && context.follows_any(at, &[Class::Only])
        && context.catalog.has_filter(category)
        && (noun || context.is_boundary(context.next(at)))
    {
        // "keep only the browser"
        return Some(Reading::new(at..at + 1, [Effect::Keep(all), Effect::DropRest]));
    }
    let effect = match view.sense(at).governor?.force {
        CueEffect::Remove | CueEffect::Displace => {
            Effect::Remove(Selection { negative_only: exclusion, ..all })
        }
        CueEffect::Readmit => {
            let negative_only = context.catalog.kind(category) != Kind::Boolean;
            Effect::Remove(Selection { negative_only, ..all })
        }
        CueEffect::Spare | CueEffect::Keep => Effect::Keep(all),
        CueEffect::Exclude if context.catalog.has_filter(category) => Effect::Remove(all),
        _ => return None,
    };
    Some(Reading::new(at..at + 1, [effect]))
}
