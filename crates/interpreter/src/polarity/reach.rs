//! The reach of a cue.

use super::{
    Affix, Class, CueEffect, CueSet, Governor, Kind, MatchConfidence, PolarityPass, Role, Word,
};

impl PolarityPass<'_, '_> {
    /// Returns the edit that governs a value or label. The edit ends with its list.
    pub(super) fn edit_of(&mut self, category: usize, value: Option<&str>) -> Option<Governor> {
        let scope = self.scope.as_mut().filter(|scope| !scope.denies())?;
        let governor = scope.governor;
        let catalog = self.context.catalog;
        let first = self.last.is_none_or(|last| last < governor.at);
        let current = value
            .map_or_else(|| catalog.has_filter(category), |value| catalog.holds(category, value));
        let removes = governor.force == CueEffect::Remove;
        let continues = if self.joint.is_list() {
            current || value.is_none() || !self.joint.is(Class::Comma) && !removes
        } else {
            !self.joint.preposition
        };
        if first || continues {
            return Some(governor);
        }
        if removes && !scope.categories.is_empty() {
            // There was nothing to remove, so the cue excludes from here on.
            scope.governor.force = CueEffect::Exclude;
        } else {
            self.scope = None;
        }
        None
    }

    /// Returns the negation that governs a category, and records the category as reached. It is
    /// ambiguous if it might not reach: "not in Norway and on Chrome", "not chrome; firefox".
    pub(super) fn denial_of(&mut self, category: usize) -> Option<Governor> {
        let joint = self.joint;
        let (and, or, comma) = (joint.is(Class::And), joint.is(Class::Or), joint.is(Class::Comma));
        let only_comma = comma && !and && !or;
        let bare = self.is_bare();
        let scope = self.scope.as_mut().filter(|scope| scope.denies())?;
        let plain = matches!(scope.governor.force, CueEffect::Deny | CueEffect::Lack);
        let first = scope.categories.is_empty();
        let own = scope.categories.contains(&category);
        let unclear = if own {
            // "not to Germany, to France"
            joint.is(Class::Stop) || plain && joint.preposition && only_comma
        } else {
            !first && and && !comma && !bare && (plain || joint.preposition)
        };
        let reached = if first || own {
            // "not Poland, Romania", if Poland is the current filter: the second value replaces it.
            !(scope.turns && only_comma)
        } else {
            // "not in the foreground, and OOM", "not on main and failed"
            let apart = plain && and && (comma || bare);
            (and || or) && !apart && (!joint.preposition || or)
        };
        let governor = scope.governor;
        if !reached {
            self.scope = None;
        } else if !own {
            scope.categories.push(category);
        }
        if unclear { Some(governor.unclear()) } else { Some(governor).filter(|_| reached) }
    }

    /// `true` if the active negator is `not`, alone or after a copula. It negates one category.
    fn is_bare(&self) -> bool {
        self.scope.as_ref().is_some_and(|scope| {
            let at = scope.governor.at;
            scope.governor.force == CueEffect::Deny
                && (self.context.says(at, Word::BareNo) || self.context.says(at, Word::Copula))
        })
    }

    /// Ends a negation for a list that ends in such a word: "not chrome, firefox instead", "not
    /// chrome, firefox only".
    pub(super) fn turn_instead(&mut self, at: usize, category: usize) {
        let context = self.context;
        let listed = |it: &usize| {
            context.is_any(*it, cues![And, Or])
                || matches!(*context.role(*it), Role::Values { category: own, .. } if own == category)
        };
        let after = (at + 1..context.elements.len()).find(|it| !listed(it));
        let ends = |it| context.is_any(it, cues![Instead, Only]);
        // "no typeerrors, rangeerrors are fine"
        let approved = (at + 1..context.elements.len())
            .take_while(|&it| context.is_idle(it))
            .find(|&it| context.is_any(it, cues![Approved, Yes]));
        let approved = approved.is_some_and(|it| context.is_boundary(context.next(it)));
        if self.joint.is(Class::Comma) && (approved || after.is_some_and(ends)) {
            self.end_negation();
        }
    }

    /// Returns the category of a label that a negation says has no value: "no release", "without a
    /// user".
    pub(super) fn lacking(&self, at: usize, cue: Governor, first: bool) -> Option<usize> {
        const LEADS: CueSet = cues![And, Or, Nor, Comma, Any, WithPresence, Mentions, Contains];
        let context = self.context;
        let labels = context.as_labels(at);
        let before = context.previous(at)?;
        let with = context.next(at);
        if cue.force == CueEffect::Lack
            && context.is(with, Class::WithPresence)
            && context.names_value(context.next(with))
        {
            // "no sites with a playground" negates the playground.
            return None;
        }
        if context.is_any(with, cues![Except, AnythingBut]) {
            // "no tickets except German" wants German.
            return None;
        }
        let direct = before == cue.at
            || context.is_any(before, LEADS)
            || before > cue.at && context.is_word(before);
        // "not chrome, release 5": a condition of its own.
        let next = context.next(at);
        let ends = context.is_boundary(next) || context.is_any(next, LEADS);
        if !direct || !first && !ends {
            return None;
        }
        if cue.force == CueEffect::Exclude && !context.is(cue.at, Class::No) {
            // "ignore the environment" removes its filter.
            let filtered = labels.iter().find(|label| context.catalog.has_filter(label.category));
            return filtered.filter(|_| first).map(|label| label.category);
        }
        let category = context.best_label(at)?.category;
        match context.catalog.kind(category) {
            Kind::Boolean => None,
            Kind::Numeric if cue.force == CueEffect::Deny => None,
            _ => Some(category),
        }
    }

    /// `true` for "drive not syncing" and the value sync: the verb is negated, not the value.
    pub(super) fn is_action(&self, at: usize) -> bool {
        let mention = self.context.element(at).and_then(|element| element.mention.as_ref());
        let stemmed = mention.is_some_and(|mention| mention.value_tier == MatchConfidence::Stem);
        let direct = self.scope.as_ref().is_some_and(|scope| {
            scope.governor.force == CueEffect::Deny
                && !self.context.is_any(scope.governor.at, cues![Neither, Nor])
                && self.context.previous(at) == Some(scope.governor.at)
        });
        stemmed && direct && self.context.lexicon.has_affix(self.context.word(at), Affix::Gerund)
    }
}
