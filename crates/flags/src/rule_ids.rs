//! Which rules of a flag are the ones that it had before.

use std::collections::HashSet;

use super::{Rule, RuleId};

/// Rules that were sent without an id, and have a `new` one, keep that of a stored rule that is the
/// same otherwise: whoever says the same twice changes nothing.
#[allow(clippy::implicit_hasher)] // Nobody has reason for another hasher.
pub fn with_known_ids(rules: Vec<Rule>, new: &HashSet<RuleId>, stored: &[Rule]) -> Vec<Rule> {
    let mut taken: HashSet<RuleId> =
        rules.iter().map(|rule| rule.id.clone()).filter(|id| !new.contains(id)).collect();
    let with_known_id = |rule: Rule| {
        if !new.contains(&rule.id) {
            return rule;
        }
        let is_same = |known: &&Rule| {
            !taken.contains(&known.id) && Rule { id: rule.id.clone(), ..(*known).clone() } == rule
        };
        let Some(known) = stored.iter().find(is_same) else { return rule };
        taken.insert(known.id.clone());
        known.clone()
    };
    rules.into_iter().map(with_known_id).collect()
}
