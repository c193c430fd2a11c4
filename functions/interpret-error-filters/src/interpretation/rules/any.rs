//! Any value of a category will do: its filters go.

use super::{Effect, Reading, Rule, View};
use crate::interpretation::condition::Removal;
use crate::interpretation::weights;

pub(crate) static RULE: Rule = Rule {
    name: "any",
    read,
    examples: &[
        ("any browser", "browser is Chrome; os is iOS", "os is iOS"),
        ("regardless of browser or os", "browser is Chrome; os is iOS", ""),
    ],
};

fn read(view: &View<'_>, at: usize) -> Option<Reading> {
    let any = view.scene.any_phrase(at)?;
    let removed = any.labels.into_iter().map(|(_, category)| Removal::of(category));
    let effects = removed.map(Effect::Remove).collect();
    Some(Reading::new(at..any.end, effects, weights::rule::ANY))
}
