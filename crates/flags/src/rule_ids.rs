//! Reuse of the IDs of stored rules.

use std::collections::HashSet;

use super::{Rule, RuleId};

/// Gives each rule that was sent without an ID, and so has a `new` one, the ID of a stored rule
/// that is otherwise equal. A repeated request therefore changes nothing.
#[allow(clippy::implicit_hasher)] // No caller needs another hasher.
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
