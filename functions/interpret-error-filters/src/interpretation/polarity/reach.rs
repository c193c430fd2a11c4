//! How far a cue reaches.

use super::{Affix, Class, Force, Governor, Kind, Reign, Role, Sense, Tier, Walk};

impl Walk<'_, '_> {
    /// The edit in force for a value or label here; it ends where its list does.
    pub(super) fn edit_of(&mut self, category: usize, value: Option<&str>) -> Option<Governor> {
        let reign = self.reign.as_mut().filter(|reign| !reign.denies())?;
        let governor = reign.governor;
        let catalog = self.scene.catalog;
        let first = self.last.is_none_or(|last| last < governor.at);
        let current = value
            .map_or_else(|| catalog.has_filter(category), |value| catalog.holds(category, value));
        let removes = governor.force == Force::Remove;
        let goes_on = if self.joint.is_list() {
            current || value.is_none() || !self.joint.is(Class::Comma) && !removes
        } else {
            !self.joint.preposition
        };
        if first || goes_on {
            return Some(governor);
        }
        if removes && !reign.categories.is_empty() {
            // There was nothing to remove: it excludes, and goes on so.
            reign.governor.force = Force::Exclude;
        } else {
            self.reign = None;
        }
        None
    }

    /// The denial in force for a category, which notes that it was reached.
    pub(super) fn denial_of(&mut self, category: usize) -> Option<Governor> {
        let joint = self.joint;
        let reign = self.reign.as_mut().filter(|reign| reign.denies())?;
        let joined = joint.is(Class::And) || joint.is(Class::Or);
        // "not Poland, Romania" where Poland is the current filter: the second takes its place.
        let turns = reign.turns && joint.is(Class::Comma) && !joined;
        let reached = if reign.categories.is_empty() || reign.categories.contains(&category) {
            !turns
        } else {
            joined && (!joint.preposition || joint.is(Class::Or))
        };
        if !reached {
            self.reign = None;
            return None;
        }
        if !reign.categories.contains(&category) {
            reign.categories.push(category);
        }
        Some(reign.governor)
    }

    /// "not in Norway and on Chrome": whether the denial before it means this too, nobody can tell.
    pub(super) fn is_unclear(&self, category: usize) -> bool {
        let other = |reign: &Reign| {
            reign.denies() && !reign.is_to_deny() && !reign.categories.contains(&category)
        };
        self.reign.as_ref().is_some_and(other)
            && self.joint.is(Class::And)
            && !self.joint.is(Class::Comma)
            && self.joint.preposition
    }

    /// The category of a label that a denial says has no value: "no release", "without a user".
    pub(super) fn lacking(&self, at: usize, cue: Governor, first: bool) -> Option<usize> {
        const LEADS: [Class; 8] = [
            Class::And,
            Class::Or,
            Class::Nor,
            Class::Comma,
            Class::Any,
            Class::WithPresence,
            Class::Mentions,
            Class::Contains,
        ];
        let scene = self.scene;
        let labels = scene.as_labels(at);
        let before = scene.previous(at)?;
        let direct = before == cue.at
            || scene.is_any(before, &LEADS)
            || before > cue.at && scene.is_word(before);
        if !direct {
            return None;
        }
        if cue.force == Force::Exclude && !scene.is(cue.at, Class::No) {
            // "ignore the environment" removes its filter.
            let filtered = labels.iter().find(|label| scene.catalog.has_filter(label.category));
            return filtered.filter(|_| first).map(|label| label.category);
        }
        let full = labels.iter().find(|label| label.full);
        if cue.force == Force::Deny && full.is_none() {
            return None;
        }
        let category = full.or(labels.first())?.category;
        match scene.catalog.kind(category) {
            Kind::Boolean => None,
            Kind::Numeric if cue.force == Force::Deny => None,
            _ => Some(category),
        }
    }

    /// Whether `only` follows a value of the category.
    pub(super) fn only_follows(&self, category: usize) -> bool {
        (0..self.scene.elements.len()).any(|at| {
            matches!(*self.scene.role(at), Role::Values { category: own, .. } if own == category)
                && self.scene.is(self.scene.next(at), Class::Only)
        })
    }

    /// "drive not syncing" for the value sync: the verb is denied, not the value.
    pub(super) fn is_action(&self, at: usize) -> bool {
        let mention = self.scene.element(at).and_then(|element| element.mention.as_ref());
        let stemmed = mention.is_some_and(|mention| mention.value_tier == Tier::Stem);
        let direct = self.reign.as_ref().is_some_and(|reign| {
            reign.governor.force == Force::Deny
                && self.scene.previous(at) == Some(reign.governor.at)
        });
        stemmed && direct && self.scene.lexicon.has_affix(self.scene.word(at), Affix::Gerund)
    }

    /// What denies the mention that stands before it, and belongs to it: "chrome excluded", "bob
    /// doesn't count".
    pub(super) fn denied_after(&mut self, at: usize) -> Option<Governor> {
        let scene = self.scene;
        let mut cue = at + 1;
        while matches!(scene.role(cue), Role::Context(_))
            || scene.is_any(cue, &[Class::Generic, Class::Polite])
                && !scene.is(cue, Class::AfterNot)
        {
            cue += 1;
        }
        cue += usize::from(scene.is(cue, Class::Is) && scene.is(cue + 1, Class::AfterNot));
        let flag = matches!(*scene.role(at), Role::Values { category, .. }
            if scene.catalog.kind(category) == Kind::Array);
        if flag && scene.is(at + 1, Class::Off) {
            cue = at + 1;
        } else if !scene.is(cue, Class::AfterNot) || scene.is(cue + 1, Class::Is) {
            // "ones excluded: chrome" begins a list of its own.
            return None;
        }
        self.set(cue, |sense| sense.part_of = Some(at));
        Some(Governor { at: cue, force: Force::Deny })
    }

    /// Denies the last value and the list that it ends.
    pub(super) fn deny_list_before(&mut self, governor: Governor) {
        let scene = self.scene;
        let Some(&(mut edge, category)) = self.mentions.last() else { return };
        for &(at, own) in self.mentions.clone().iter().rev() {
            let governed = self.senses.get(at).is_some_and(Sense::is_denied);
            let listed = (at + 1..edge)
                .all(|at| scene.is_any(at, &[Class::And, Class::Or]) || scene.is_idle(at));
            if own != category || governed || !listed {
                break;
            }
            edge = at;
            // "over 10 users and chrome excluded": of a number, nobody can tell.
            let stated = scene.is_used(at);
            self.set(at, |sense| {
                sense.governor = Some(governor);
                sense.unclear |= stated;
            });
        }
    }
}
