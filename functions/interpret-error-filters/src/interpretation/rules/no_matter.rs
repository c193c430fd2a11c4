//! A category does not matter: its filters go.

use super::{Effect, Reading, Rule, View};
use crate::interpretation::condition::Removal;
use crate::interpretation::context::Role;
use crate::interpretation::weights;

pub(crate) static RULE: Rule = Rule {
    name: "no-matter",
    read,
    examples: &[("browser doesn't matter", "browser is Chrome; os is iOS", "os is iOS")],
};

fn read(view: &View<'_>, at: usize) -> Option<Reading> {
    let Role::Label(labels) = view.scene.role(at) else { return None };
    let (category, end) = view.scene.label_of_no_matter(at, labels)?;
    let effects = vec![Effect::Remove(Removal::of(category))];
    Some(Reading::new(at..end, effects, weights::rule::NO_MATTER))
}
