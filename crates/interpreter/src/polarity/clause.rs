//! The words between mentions: cues that begin to govern, and words that end their reach.

use crate::context::JOINS;

use super::{
    ActiveScope, Affix, Class, Conjunction, CueEffect, CueSet, Element, Governor, PolarityPass,
    Role, Word,
};

/// Negators.
pub(super) const DENIES: CueSet = cues![Not, Except, No, Neither, Ne, NotContains];

impl PolarityPass<'_, '_> {
    pub(super) fn other(&mut self, at: usize) -> usize {
        let context = self.context;
        self.joint.preposition |= context.says(at, Word::Preposition);
        // Rules can read the active governor here.
        let governor = self.scope.as_ref().map(|scope| scope.governor);
        self.set(at, |sense| sense.governor = governor);
        if self.governs_behind(at) {
            return at + 1;
        }
        self.joint.apart |= !context.is_any(at, JOINS);
        if self.excepts_from_all(at) {
            self.deny(at);
            return at + 1;
        }
        if context.is_word(at) {
            self.word(at);
            return at + 1;
        }
        if let Some(end) = context.reset_end(at) {
            if end > at + 1 {
                self.govern(at, CueEffect::Spare);
            }
            return end;
        }
        let denies = context.is_any(at, DENIES);
        let heads = context.is(at, Class::AfterNot) && context.word(at + 1) == ":";
        let named = context.names_value(context.next(at));
        if named && context.is(at, Class::Regardless) && !context.is(at, Class::Polite)
            || context.is(at, Class::Inability) && context.says(context.next(at), Word::Becoming)
        {
            // "i don't care about warnings", "sensors can't get online"
            self.govern(at, CueEffect::Unclear);
        } else if heads {
            // "excluded: kids and news"
            self.govern(at, CueEffect::Exclude);
        } else if context.is(at, Class::Comma) {
            self.join(at);
            self.scope = self.scope.take().filter(|scope| !scope.is_to_deny());
        } else if context.is_any(at, cues![But, Stop]) && !context.is(at, Class::Except) {
            self.adding = None;
            self.end_clause();
        } else if context.is_interjection(at)
            || context.is(at, Class::Correction) && (!self.mentions.is_empty() || !denies)
        {
            self.end_clause();
        } else if denies {
            self.deny(at);
        } else if context.is(at, Class::Likewise) && named {
            // "betas are out, and so are nightlies"
            let last = self.mentions.last();
            if let Some(governor) = last.and_then(|member| self.governor_of(member.at)) {
                self.govern(governor.at, governor.force);
            }
        } else if context.is(at, Class::Nor) {
            if !self.scope.as_ref().is_some_and(ActiveScope::denies) {
                // "nor lea" adds to the negative filters; "archived doesn't count, nor resolved"
                self.govern(at, CueEffect::Deny);
                self.adding = self.mentions.is_empty().then(Vec::new);
            }
            self.joint.by.insert(Class::Or);
        } else if context.is(at, Class::WithPresence) && self.joint.is(Class::And) {
            // "not ignored and has a replay"
            self.end_negation();
        } else if self.adds(at) {
        } else if context.is_any(at, cues![And, Or]) {
            self.join(at);
        } else if let Some(replaced) = context.replacement(at) {
            self.adding = Some(vec![replaced.category]);
            if context.is_forbidden(at) {
                self.govern(at, CueEffect::Unclear);
            }
            return replaced.end;
        } else if context.is(at, Class::FiltersBy) {
            // "we no longer need to filter by browser"
            if self.scope.as_ref().is_some_and(ActiveScope::is_to_deny) {
                self.govern(at, CueEffect::Remove);
            }
        } else if context.is(at, Class::Only)
            || context.is(at, Class::Polite) && context.says(at, Word::Request)
        {
            // "not chrome, only firefox"; but "except only firefox"
            self.scope = self.scope.take().filter(ActiveScope::is_to_deny);
        } else if let Some(force) = self.edit(at) {
            // "don't drop chrome" keeps the filter.
            self.govern(at, if context.is_forbidden(at) { force.denied() } else { force });
        } else if context.is(at, Class::Instead) {
            self.end_negation();
        } else if context.is_any(at, cues![Switch, Raise]) {
            self.switch(at);
        }
        at + 1
    }

    /// Returns the effect of a cue that edits.
    fn edit(&mut self, at: usize) -> Option<CueEffect> {
        const EDITS: [(Class, CueEffect); 5] = [
            (Class::InsteadOf, CueEffect::Displace),
            (Class::Unexclude, CueEffect::Readmit),
            (Class::Reset, CueEffect::Remove),
            (Class::Remove, CueEffect::Remove),
            (Class::Keep, CueEffect::Keep),
        ];
        const PHRASAL: [(Class, Word, CueEffect); 3] = [
            (Class::SplitReadmit, Word::Back, CueEffect::Readmit),
            (Class::SplitRemove, Word::Particle, CueEffect::Remove),
            (Class::SplitExcept, Word::Particle, CueEffect::Exclude),
        ];
        let context = self.context;
        let phrasal = PHRASAL
            .iter()
            .find(|it| context.is(at, it.0) && self.takes_particle(at, it.1))
            .map(|it| it.2);
        let plain = EDITS.iter().find(|it| context.is(at, it.0)).map(|it| it.1);
        phrasal.or(plain)
    }

    /// Begins a new condition: "switch to chrome". Denied, it is ambiguous.
    fn switch(&mut self, at: usize) {
        let forbidden = self.context.is_forbidden(at);
        if forbidden && self.context.is(at, Class::Carrier) {
            // "people who don't use chrome"
            return;
        }
        self.scope = None;
        self.adding = None;
        if forbidden {
            self.govern(at, CueEffect::Unclear);
        }
    }

    /// Ends a negation, but no edit.
    pub(super) fn end_negation(&mut self) {
        self.scope = self.scope.take().filter(|scope| !scope.denies());
    }

    fn end_clause(&mut self) {
        self.scope = None;
        self.joint = Conjunction { apart: true, ..Conjunction::default() };
        self.last = None;
    }

    /// Records the conjunctions of an element.
    pub(super) fn join(&mut self, at: usize) {
        let cue = self.context.element(at).map(|element| element.cue).unwrap_or_default();
        self.joint.by.add(cue.common(cues![And, Or, Comma, Stop]));
    }

    /// Reads a word without a meaning. A verb after `not` ends the reach of `not` ("can't pay on
    /// iOS"). A noun before its text does not ("not the page /cart").
    fn word(&mut self, at: usize) {
        let context = self.context;
        if let Some(category) = context.absent_category(at) {
            let governor = self.denial_of(category);
            let adds = self.adds_to(category);
            self.set(at, |sense| (sense.governor, sense.adds) = (governor, adds));
            return;
        }
        let word = context.word(at);
        let reached = |scope: &ActiveScope| {
            word.len() > 2
                && scope.governor.force == CueEffect::Deny
                && context.previous(at) == Some(scope.governor.at)
                && !self.is_noun_of_text(scope.governor.at, at)
                && !self.denies_through_verb(scope.governor.at, at)
        };
        let Some(negator) = self.scope.as_ref().filter(|scope| reached(scope)) else { return };
        let negator = negator.governor.at;
        if context.is(at + 1, Class::To) && context.says(at + 2, Word::Excluding) {
            // "didn't mean to hide chrome"
        } else if !context.names_value(context.next(at)) {
            self.scope = None;
        } else if context.lexicon.is_verb(word)
            || context.lexicon.has_affix(word, Affix::Gerund)
            || context.lexicon.has_affix(word, Affix::Past)
        {
            // "not loading checkout"; but "not plain chrome"
            self.govern(negator, CueEffect::Unclear);
        }
    }

    /// `true` if a negator reaches past its verb to a value: "don't speak English", "not signed by
    /// Smith".
    fn denies_through_verb(&self, negator: usize, verb: usize) -> bool {
        let context = self.context;
        let mut object = context.next(verb);
        if context.is(object, Class::Any) {
            object = context.next(object);
        }
        // "passengers who didn't ask for a vegan meal"
        let describes = negator.checked_sub(1).is_some_and(|it| context.says(it, Word::Person));
        let described = describes && context.says(verb + 1, Word::BeforePlace);
        context.says(negator, Word::Auxiliary) && (context.names_value(object) || described)
            || context.says(verb + 1, Word::Agent)
    }

    /// Applies a negator.
    fn deny(&mut self, at: usize) {
        let context = self.context;
        let force = if let Some(force) = self.denied_within(at) {
            force
        } else if context.is(at, Class::AnythingBut) && self.is_denied_already(at) {
            return;
        } else if context.is(at, Class::No) {
            CueEffect::Lack
        } else if context.is_any(at, cues![Except, But]) {
            CueEffect::Exclude
        } else {
            CueEffect::Deny
        };
        self.govern(at, force);
    }

    /// Returns the effect of a negator within an active negation or removal.
    fn denied_within(&mut self, at: usize) -> Option<CueEffect> {
        let context = self.context;
        let scope = self.scope.as_ref()?;
        let Governor { at: outer, force } = scope.governor;
        let contrast = context.is_any(at, cues![Not, Contrast]);
        let named = self.mentions.last().filter(|last| last.at > outer);
        // "exclude what isn't linux", "remove all that aren't German"
        let relative = context.is_any(at, cues![Twice, AnythingBut])
            || (outer..at).any(|it| {
                // In "drop everything that isn't linux" the verb contains the object.
                let object = it > outer || force == CueEffect::Remove;
                let head =
                    context.is_any(it, cues![Generic, Any, Reset]) || context.says(it, Word::Head);
                object && head || context.is_label(it)
            });
        if force == CueEffect::Remove {
            let Some(named) = named else { return relative.then_some(CueEffect::Twice) };
            // "remove chrome but not firefox"
            let Role::Values { category, ref indexes } = *context.role(context.next(at)) else {
                return None;
            };
            let value = context.catalog.value(category, *indexes.first()?);
            let held = context.catalog.holds(category, value);
            let force = if held { CueEffect::Keep } else { CueEffect::Unclear };
            return Some(force).filter(|_| named.category == category);
        }
        if scope.is_to_deny() {
            if context.says(outer, Word::Interjection) && context.is(at, Class::Not) {
                // "no not poland"
                return None;
            }
            self.set(outer, |sense| sense.part_of = Some(at));
            return Some(if context.is(outer, Class::Not) && context.says(at, Word::Excluding) {
                // "I didn't want to exclude chrome"
                CueEffect::Readmit
            } else if relative {
                CueEffect::Twice
            } else {
                CueEffect::Unclear
            });
        }
        // "hide chrome but not firefox"
        let first = self.mentions.first().is_none_or(|member| member.at > outer);
        let other = matches!(*context.role(context.next(at)), Role::Values { category, .. }
            if !scope.categories.contains(&category));
        let unclear = force == CueEffect::Exclude && contrast && first && !other;
        unclear.then_some(CueEffect::Unclear)
    }

    /// `true` if a `but` excludes values from all: "all regions but ap-south".
    fn excepts_from_all(&self, at: usize) -> bool {
        let context = self.context;
        let inside = |at: &usize| !context.is_boundary(*at) && !context.names_value(*at);
        let mut clause = (0..at).rev().take_while(inside);
        let after = context.next(at);
        // "all drivers save ahmed"
        let label = at.checked_sub(1).is_some_and(|it| {
            matches!(*context.role(after), Role::Values { category, .. } if context.is_label_of(it, category))
        });
        (context.is(at, Class::But) && context.word(at) != "."
            || context.says(at, Word::Exception) && label)
            && (context.names_value(after) || self.states_text(after))
            && clause.any(|at| context.is_any(at, cues![Any, Both]))
    }

    /// `true` if the clause negates and has named nothing yet: "don't show me anything but chrome".
    fn is_denied_already(&self, at: usize) -> bool {
        const ALSO: CueSet = cues![Inability, Remove, Regardless];
        let inside = |at: &usize| !self.context.is_boundary(*at) && self.context.is_other(*at);
        let denies = |at| self.context.is_any(at, DENIES) || self.context.is_any(at, ALSO);
        (0..at).rev().take_while(inside).any(denies)
    }

    /// `true` if an object separates a verb from its particle: "take visa out", "leave bob out".
    /// Marks the particle as part of the verb.
    fn takes_particle(&mut self, at: usize, class: Word) -> bool {
        let context = self.context;
        let named = |at: usize| context.names_value(at);
        let clause = (at + 1..context.elements.len()).take_while(|&it| !context.is_boundary(it));
        let mut after = clause.skip_while(|&it| !named(it)).skip(1);
        let particle = after.find(|&it| context.says(it, class));
        if let Some(particle) = particle {
            self.set(particle, |sense| sense.part_of = Some(at));
        }
        particle.is_some()
    }

    /// Applies a cue that adds: "also firefox", "jonas too". Returns `false` if there is none.
    fn adds(&mut self, at: usize) -> bool {
        let context = self.context;
        let (before, after) = (context.is(at, Class::Add), context.is(at, Class::AfterAdd));
        if !before && !after {
            return false;
        }
        let next = context.next(at);
        let trails_off = self.trails_off(next);
        if (after && !before || trails_off) && self.last.is_some() {
            self.add_clause();
        } else if before {
            self.adding = Some(Vec::new());
            // "exclude chrome, include firefox"
            let requests = context.says(at, Word::Request)
                && self.scope.as_ref().is_some_and(|scope| !scope.is_to_deny());
            if requests || self.force().is_some_and(|force| !force.denies()) {
                self.scope = None;
            }
            if self.last.is_some() {
                self.joint.by.insert(Class::And);
            }
        }
        true
    }

    /// `true` if nothing follows that could be added: "as well as whatever i have".
    fn trails_off(&self, from: usize) -> bool {
        let context = self.context;
        (from..context.elements.len()).take_while(|&at| !context.is_boundary(at)).all(|at| {
            let stated = |it: &Element| it.number.is_some() || it.quoted || it.used;
            !context.names_value(at)
                && !context.is_label(at)
                && !context.element(at).is_some_and(stated)
        })
    }

    /// `true` if an active `also` reaches a category. It ends at the first condition that is not
    /// joined to its list.
    pub(super) fn adds_to(&mut self, category: usize) -> bool {
        let joined = self.joint.is(Class::And) && !self.joint.is(Class::Comma);
        let Some(categories) = &mut self.adding else { return false };
        if categories.is_empty() || categories.contains(&category) || joined {
            categories.push(category);
            return true;
        }
        self.adding = None;
        false
    }
}
