//! Texts and numbers, which have been read before: what governs them.

use super::{
    ActiveScope, Affix, Class, Condition, CueEffect, Governor, Kind, PolarityPass, RuleMatch, Word,
};

impl PolarityPass<'_, '_> {
    pub(super) fn states_text_or_number(&mut self, at: usize) {
        let stated = self.stated.conditions.iter().find(|it| it.at == at);
        let fired = self.stated.trace.iter().find(|it| it.elements.contains(&at));
        if let (Some(condition), Some(fired)) = (stated, fired) {
            let category = condition.category;
            let apart = self.is_apart(condition, fired);
            if apart {
                self.reign = None;
            }
            let unclear = self.unclear_of(category);
            let mut governor = self.governor_of_stated(condition, fired);
            let lacks = |it: &Governor| self.lacks_something_else(*it, category, fired);
            let lacking = governor.filter(lacks).map(Governor::unclear);
            if let Some(after) = self.denied_after(last_element(fired)) {
                governor = Some(after);
                self.deny_list(at, category, after);
            }
            governor = unclear.or(lacking).or(governor);
            let adds = self.adds_to(category);
            self.set(at, |sense| (sense.governor, sense.adds) = (governor, adds));
            self.finish(at, category);
        }
        let names = self.scene.element(at).is_some_and(|element| element.mention.is_some());
        if names && self.force() != Some(CueEffect::Remove) {
            self.reign = self.reign.take().filter(ActiveScope::denies);
        }
    }

    /// "not chrome and over 10 users": what compares or brings its own label is a statement of its
    /// own, which a plain `not` of another category does not reach over `and`.
    fn is_apart(&self, condition: &Condition, fired: &RuleMatch) -> bool {
        let category = condition.category;
        let other = self.reign.as_ref().is_some_and(|reign| {
            matches!(reign.governor.force, CueEffect::Deny | CueEffect::Lack)
                && !reign.is_to_deny()
                && !reign.categories.contains(&category)
        });
        let labelled = fired
            .elements
            .clone()
            .chain(fired.besides)
            .any(|it| self.scene.is_label_of(it, category));
        other && (labelled || condition.operator.is_bound()) && !self.joint.is(Class::Or)
    }

    fn governor_of_stated(&mut self, condition: &Condition, fired: &RuleMatch) -> Option<Governor> {
        let reign = self.reign.as_ref()?;
        let governor = reign.governor;
        if reign.denies() {
            return self.denial_of(condition.category);
        }
        let scene = self.scene;
        let goes_on = |at: usize| {
            let same = self.mentions.last().is_some_and(|it| it.1 == condition.category);
            at < governor.at
                || fired.elements.contains(&at)
                || same && (self.joint.is(Class::And) || self.joint.is(Class::Or))
        };
        // "drop it to 50" changes a bound; "we lost over 10 users" edits nothing.
        let bound = fired.elements.start.checked_sub(1).is_some_and(|it| scene.is(it, Class::To));
        let before = scene.previous(governor.at);
        let bids = governor.force != CueEffect::Remove
            || before.is_none_or(|it| scene.is_boundary(it) || scene.is(it, Class::And));
        if !self.last.is_none_or(goes_on) || self.joint.is(Class::Comma) || bound || !bids {
            return None;
        }
        match governor.force {
            CueEffect::Remove if !scene.catalog.has_filter(condition.category) => {
                Some(Governor { force: CueEffect::Exclude, ..governor })
            }
            CueEffect::Remove | CueEffect::Readmit | CueEffect::Displace => Some(governor),
            _ => None,
        }
    }

    /// "no response in over 5 seconds", "no one can open /cart": whether the number or text is
    /// denied, or what stands before it, nobody can tell.
    fn lacks_something_else(&self, governor: Governor, category: usize, fired: &RuleMatch) -> bool {
        let scene = self.scene;
        let lacked = scene.next(governor.at);
        let number = scene.catalog.kind(category) == Kind::Numeric;
        let mut between = lacked..fired.elements.start;
        governor.force == CueEffect::Lack
            && if number {
                scene.is_word(lacked) && !fired.elements.contains(&lacked)
            } else {
                // "no one" lacks no text: the verb after it is what is denied.
                let person = scene.is(governor.at, Class::AfterAbsent);
                between.any(|it| {
                    let verb = person && !scene.says(it, Word::Function);
                    scene.is_word(it) && (verb || scene.says(it, Word::Verb))
                })
            }
    }

    /// Whether a word after a negator is a noun before its text: "not the page /cart"; not
    /// "doesn't load /cart".
    pub(super) fn is_noun_of_text(&self, negator: usize, noun: usize) -> bool {
        let scene = self.scene;
        let word = scene.word(noun);
        let verb = scene.says(negator, Word::Auxiliary)
            || scene.lexicon.is_verb(word)
            || scene.lexicon.has_affix(word, Affix::Gerund);
        !verb && self.states_text(noun + 1)
    }

    pub(super) fn states_text(&self, at: usize) -> bool {
        let kind = |category| self.scene.catalog.kind(category);
        self.stated.conditions.iter().any(|it| it.at == at && kind(it.category) != Kind::Numeric)
    }
}

/// The last element of what was read, with its label.
fn last_element(fired: &RuleMatch) -> usize {
    let last = fired.elements.end.saturating_sub(1);
    fired.besides.map_or(last, |label| label.max(last))
}
