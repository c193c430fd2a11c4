//! How far a cue reaches.

use super::{
    Affix, Class, CueEffect, Governor, Kind, MatchConfidence, Polarity, PolarityPass, Role, Word,
};

impl PolarityPass<'_, '_> {
    /// The edit in force for a value or label here; it ends where its list does.
    pub(super) fn edit_of(&mut self, category: usize, value: Option<&str>) -> Option<Governor> {
        let reign = self.reign.as_mut().filter(|reign| !reign.denies())?;
        let governor = reign.governor;
        let catalog = self.scene.catalog;
        let first = self.last.is_none_or(|last| last < governor.at);
        let current = value
            .map_or_else(|| catalog.has_filter(category), |value| catalog.holds(category, value));
        let removes = governor.force == CueEffect::Remove;
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
            reign.governor.force = CueEffect::Exclude;
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

    /// "not in Norway and on Chrome", "not chrome; firefox": whether the denial before it means
    /// this too, nobody can tell.
    pub(super) fn unclear_of(&self, category: usize) -> Option<Governor> {
        let joint = self.joint;
        let reign = self.reign.as_ref().filter(|reign| reign.denies() && !reign.is_to_deny())?;
        let unclear = if reign.categories.contains(&category) {
            joint.is(Class::Stop)
        } else {
            joint.is(Class::And) && !joint.is(Class::Comma) && joint.preposition
        };
        unclear.then_some(Governor { force: CueEffect::Unclear, ..reign.governor })
    }

    /// "not chrome, firefox instead", "not chrome, firefox only": the list that such a word ends is wanted.
    pub(super) fn turn_instead(&mut self, at: usize, category: usize) {
        let scene = self.scene;
        let listed = |it: &usize| {
            scene.is_any(*it, &[Class::And, Class::Or])
                || scene.is_idle(*it)
                || matches!(*scene.role(*it), Role::Values { category: own, .. } if own == category)
        };
        let after = (at + 1..scene.elements.len()).find(|it| !listed(it));
        let ends = |it| scene.is_any(it, &[Class::Instead, Class::Only]);
        if self.joint.is(Class::Comma) && after.is_some_and(ends) {
            self.reign = self.reign.take().filter(|reign| !reign.denies());
        }
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
        if cue.force == CueEffect::Exclude && !scene.is(cue.at, Class::No) {
            // "ignore the environment" removes its filter.
            let filtered = labels.iter().find(|label| scene.catalog.has_filter(label.category));
            return filtered.filter(|_| first).map(|label| label.category);
        }
        let full = labels.iter().find(|label| label.full);
        if cue.force == CueEffect::Deny && full.is_none() {
            return None;
        }
        let category = full.or(labels.first())?.category;
        match scene.catalog.kind(category) {
            Kind::Boolean => None,
            Kind::Numeric if cue.force == CueEffect::Deny => None,
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
        let stemmed = mention.is_some_and(|mention| mention.value_tier == MatchConfidence::Stem);
        let direct = self.reign.as_ref().is_some_and(|reign| {
            reign.governor.force == CueEffect::Deny
                && self.scene.previous(at) == Some(reign.governor.at)
        });
        stemmed && direct && self.scene.lexicon.has_affix(self.scene.word(at), Affix::Gerund)
    }

    /// What denies the mention that stands before it, and belongs to it: "chrome excluded", "bob
    /// doesn't count".
    pub(super) fn denied_after(&mut self, at: usize) -> Option<Governor> {
        let scene = self.scene;
        let mut cue = at + 1;
        // "the chrome browser can go"
        let own_label = |it: usize| matches!(*scene.role(at), Role::Values { category, .. } if scene.is_label_of(it, category));
        while matches!(scene.role(cue), Role::Context(_))
            || own_label(cue)
            || (scene.is_any(cue, &[Class::Generic, Class::Polite, Class::Is])
                || scene.says(cue, Word::Modal))
                && !scene.is(cue, Class::AfterNot)
        {
            cue += 1;
        }
        // "chrome? no thanks"
        let said = |it| scene.is(it, Class::AfterNot) && scene.is(it, Class::Interjection);
        let bare = scene.is(cue + 1, Class::No) && cue + 2 >= scene.elements.len();
        let rejected = scene.is_boundary(cue) && (said(cue + 1) || bare);
        cue += usize::from(rejected);
        let flag = matches!(*scene.role(at), Role::Values { category, .. }
            if scene.catalog.kind(category) == Kind::Array);
        if flag && scene.is(at + 1, Class::Off) {
            cue = at + 1;
        } else if !rejected && (!scene.is(cue, Class::AfterNot) || scene.is(cue + 1, Class::Is)) {
            // "ones excluded: chrome" begins a list of its own.
            return None;
        }
        self.take(at, cue + 1);
        Some(Governor { at: cue, force: CueEffect::Deny })
    }

    /// Denies a value and the list that it ends. Whether a comma alone joins that, nobody can tell
    /// ("stable, beta excluded"); "firefox and chrome, edge excluded" has a list of its own.
    pub(super) fn deny_list(&mut self, last: usize, category: usize, cue: Governor) {
        const JOINS: [Class; 3] = [Class::And, Class::Or, Class::Comma];
        let scene = self.scene;
        let goes_on = |it| scene.is_any(it, &JOINS) || scene.is_idle(it) || scene.is_used(it);
        let (mut edge, mut members, mut stated) = (last, Vec::new(), None);
        for &(at, own) in self.mentions.iter().rev().skip_while(|mention| mention.0 >= last) {
            let denied = self.senses.get(at).is_some_and(Polarity::is_denied);
            let mut between = at + 1..edge;
            if denied && cue.force != CueEffect::Twice || !between.clone().all(goes_on) {
                break;
            }
            let joined = between.any(|it| scene.is_any(it, &[Class::And, Class::Or]));
            if own != category {
                stated = Some(at).filter(|_| joined && scene.is_used(at));
                break;
            }
            members.push((at, joined));
            edge = at;
        }
        if let Some(at) = stated {
            // "over 10 users and chrome excluded": of a number, nobody can tell.
            self.set(at, |sense| sense.governor = Some(cue.unclear()));
        }
        self.set(last, |sense| sense.governor = Some(cue));
        let force = match members.first() {
            Some((_, true)) => cue.force,
            _ if members.iter().all(|it| !it.1) => CueEffect::Unclear,
            _ => return,
        };
        for (at, _) in members {
            self.set(at, |sense| sense.governor = Some(Governor { force, ..cue }));
        }
    }

    /// A negator that denies nothing after a value: what it is meant for, nobody can tell, and the
    /// value is left out. Before a verb it denies that alone ("why does chrome not load").
    pub(super) fn leave_out_before(&mut self, at: usize) {
        let scene = self.scene;
        let heard = |sense: &Polarity| sense.governor.is_some_and(|cue| cue.at == at);
        let heard = |mention: &(usize, usize)| self.senses.get(mention.0).is_some_and(heard);
        let clause = |it: &usize| !scene.is_boundary(*it);
        let mut after = (at + 1..scene.elements.len()).take_while(clause);
        let next = scene.next(at);
        if !scene.is_any(at, &[Class::Not, Class::No])
            || !scene.word(at).starts_with(char::is_alphabetic)
            || scene.is_word(next) && !scene.says(next, Word::Head)
            || self.senses.get(at).is_some_and(|sense| sense.part_of.is_some())
            || self.mentions.iter().any(heard)
            || after.any(|it| !scene.is_other(it) || scene.is_used(it))
        {
            return;
        }
        let joins = |it: &usize| scene.is_any(*it, &[Class::And, Class::Or]);
        let mut before = (0..at).rev().take_while(|it| clause(it) && !joins(it));
        let value = before.find_map(|it| match *scene.role(it) {
            Role::Values { category, .. } => Some((it, category)),
            _ => None,
        });
        if let Some((value, category)) = value {
            self.deny_list(value, category, Governor { at, force: CueEffect::Unclear });
        }
    }
}
