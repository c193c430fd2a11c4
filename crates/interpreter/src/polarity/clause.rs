//! The words between mentions: cues that begin to govern, and words that end their reach.

use super::{
    ActiveScope, Affix, Class, Conjunction, CueEffect, Element, Governor, PolarityPass, Role, Word,
};

impl PolarityPass<'_, '_> {
    pub(super) fn other(&mut self, at: usize) -> usize {
        const DENIES: [Class; 6] =
            [Class::Not, Class::Except, Class::No, Class::Neither, Class::Ne, Class::NotContains];
        let context = self.context;
        self.joint.preposition |= context.says(at, Word::Preposition);
        // Rules can read the active governor here.
        let governor = self.scope.as_ref().map(|scope| scope.governor);
        self.set(at, |sense| sense.governor = governor);
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
        if let Some(any) = context.any_phrase(at) {
            self.last = any.labels.last().map(|label| label.0);
            self.take(at, any.end);
            return any.end;
        }
        let denies = context.is_any(at, &DENIES);
        // "excluded: kids and news"
        let heads = context.is(at, Class::AfterNot) && context.word(at + 1) == ":";
        if context.is(at, Class::Regardless)
            && !context.is(at, Class::Polite)
            && context.names_value(context.next(at))
        {
            // "i don't care about warnings"
            self.govern(at, CueEffect::Unclear);
        } else if heads {
            self.govern(at, CueEffect::Exclude);
        } else if context.is(at, Class::Comma) {
            self.join(at, &[Class::Comma, Class::Stop]);
            self.scope = self.scope.take().filter(|scope| !scope.is_to_deny());
        } else if context.is_any(at, &[Class::But, Class::Stop]) && !context.is(at, Class::Except) {
            self.adding = None;
            self.end_clause();
        } else if context.is_interjection(at)
            || context.is(at, Class::Correction) && (!self.mentions.is_empty() || !denies)
        {
            self.end_clause();
        } else if denies {
            self.deny(at);
        } else if context.is(at, Class::Inability) && context.says(context.next(at), Word::Becoming)
        {
            // "sensors can't get online"
            self.govern(at, CueEffect::Unclear);
        } else if context.is(at, Class::Likewise) && context.names_value(context.next(at)) {
            // "betas are out, and so are nightlies"
            let last = self.mentions.last().and_then(|mention| self.senses.get(mention.0));
            if let Some(governor) = last.map(|sense| sense.governor) {
                governor.inspect(|governor| self.govern(governor.at, governor.force));
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
            self.scope = self.scope.take().filter(|scope| !scope.denies());
        } else if self.adds(at) {
        } else if context.is_any(at, &[Class::And, Class::Or]) {
            self.join(at, &[Class::And, Class::Or]);
        } else {
            return self.edit(at);
        }
        at + 1
    }

    /// Applies a cue that edits.
    fn edit(&mut self, at: usize) -> usize {
        let context = self.context;
        let phrasal = context.is_any(at, &[Class::SplitRemove, Class::SplitExcept]);
        // "don't drop chrome" keeps the filter.
        let forbidden = context.is_forbidden(at);
        let (removal, exclusion) = if forbidden {
            (CueEffect::Keep, CueEffect::Readmit)
        } else {
            (CueEffect::Remove, CueEffect::Exclude)
        };
        if context.is(at, Class::InsteadOf) {
            self.govern(at, CueEffect::Displace);
        } else if let Some(replaced) = context.replacement(at) {
            self.adding = Some(vec![replaced.category]);
            if forbidden {
                self.govern(at, CueEffect::Unclear);
            }
            return replaced.end;
        } else if context.is(at, Class::Instead) {
            self.scope = self.scope.take().filter(|scope| !scope.denies());
        } else if context.is(at, Class::Rest) {
        } else if context.is(at, Class::Unexclude)
            || context.is(at, Class::SplitReadmit) && self.takes_particle(at, Word::Back)
        {
            self.govern(at, CueEffect::Readmit);
        } else if phrasal && self.takes_particle(at, Word::Particle) {
            let removes = context.is(at, Class::SplitRemove);
            self.govern(at, if removes { removal } else { exclusion });
        } else if context.is(at, Class::FiltersBy) {
            // "we no longer need to filter by browser"
            if self.scope.as_ref().is_some_and(ActiveScope::is_to_deny) {
                self.govern(at, CueEffect::Remove);
            }
        } else if context.is(at, Class::Reset) {
            // "get rid of everything resolved"
            self.govern(at, removal);
        } else if context.is(at, Class::Remove)
            && let Some((value, category)) = self.meant_by_pronoun(at).filter(|_| !forbidden)
        {
            // "chrome? drop it"
            let held = context.catalog.has_wanted(category);
            let force = if held { CueEffect::Remove } else { CueEffect::Exclude };
            self.set(value, |sense| sense.governor = Some(Governor { at, force }));
        } else if context.is(at, Class::Remove) {
            self.govern(at, removal);
        } else if context.is(at, Class::Only)
            || context.is(at, Class::Polite) && context.says(at, Word::Request)
        {
            // "not chrome, only firefox"; but "except only firefox"
            self.scope = self.scope.take().filter(ActiveScope::is_to_deny);
        } else if context.is(at, Class::Keep) {
            self.govern(at, if forbidden { CueEffect::Remove } else { CueEffect::Keep });
        } else if context.is_any(at, &[Class::Switch, Class::Raise])
            && !(forbidden && context.is(at, Class::Carrier))
        {
            // "don't switch to chrome"; but "who don't use chrome"
            self.scope = None;
            if forbidden {
                self.govern(at, CueEffect::Unclear);
            }
            self.adding = None;
        }
        at + 1
    }

    fn end_clause(&mut self) {
        self.scope = None;
        self.joint = Conjunction::default();
        self.last = None;
    }

    /// Records the conjunctions of an element.
    fn join(&mut self, at: usize, classes: &[Class]) {
        let context = self.context;
        classes.iter().filter(|&&it| context.is(at, it)).for_each(|&it| self.joint.by.insert(it));
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
        let is_content = word.len() > 2 && word.chars().all(char::is_alphabetic);
        let denied = |scope: &ActiveScope| {
            is_content
                && scope.is_to_deny()
                && scope.governor.force == CueEffect::Deny
                && context.previous(at) == Some(scope.governor.at)
                && !self.is_noun_of_text(scope.governor.at, at)
        };
        if let Some(scope) = self.scope.as_ref().filter(|scope| denied(scope))
            && !self.denies_through_verb(scope.governor.at, at)
        {
            let governor = scope.governor;
            let value = context.names_value(context.next(at));
            let describes = !context.lexicon.is_verb(word)
                && !context.lexicon.has_affix(word, Affix::Gerund)
                && !context.lexicon.has_affix(word, Affix::Past);
            let excludes = context.is(at + 1, Class::To) && context.says(at + 2, Word::Excluding);
            if excludes {
                // "didn't mean to hide chrome"
            } else if !value {
                self.scope = None;
            } else if !describes {
                // "not loading checkout"; but "not plain chrome"
                self.govern(governor.at, CueEffect::Unclear);
            }
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
        let prepositional = context.says(verb + 1, Word::BeforePlace);
        context.says(negator, Word::Auxiliary)
            && (context.names_value(object)
                || describes && prepositional && context.names_value(context.next(verb + 1)))
            || context.says(verb + 1, Word::Agent)
    }

    /// Applies a negator.
    fn deny(&mut self, at: usize) {
        let context = self.context;
        let exclusion = Some(at).filter(|&at| context.is(at, Class::Except));
        let meant = exclusion.and_then(|at| self.meant_by_pronoun(at));
        if let Some((value, category)) = self.value_denied_behind(at).or(meant) {
            return self.deny_list(value, category, Governor { at, force: CueEffect::Deny });
        }
        let force = if let Some(force) = self.denied_within(at) {
            force
        } else if context.is(at, Class::AnythingBut) && self.is_denied_already(at) {
            return;
        } else if context.is(at, Class::No) {
            CueEffect::Lack
        } else if context.is_any(at, &[Class::Except, Class::But]) {
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
        let contrast = context.is_any(at, &[Class::Not, Class::Contrast]);
        let head = |it: usize| {
            context.is_any(it, &[Class::Generic, Class::Any, Class::Reset])
                || context.says(it, Word::Head)
                || context.is_label(it)
        };
        if force == CueEffect::Remove {
            // "remove all that aren't German"
            let named = self.mentions.last().is_some_and(|last| last.0 > outer);
            let relative = contrast && (outer..at).any(head) || context.is(at, Class::Twice);
            if relative && !named {
                return Some(CueEffect::Twice);
            }
            // "remove chrome but not firefox"
            let last = self.mentions.last().filter(|last| last.0 > outer)?.1;
            let Role::Values { category, ref indexes } = *context.role(context.next(at)) else {
                return None;
            };
            let held =
                context.catalog.holds(category, context.catalog.value(category, *indexes.first()?));
            return (last == category).then_some(if held {
                CueEffect::Keep
            } else {
                CueEffect::Unclear
            });
        }
        if scope.is_to_deny() {
            if context.says(outer, Word::Interjection)
                && context.is(at, Class::Not)
                && at == outer + 1
            {
                // "no not poland"
                return None;
            }
            if context.is(outer, Class::Not) && context.says(at, Word::Excluding) {
                // "I didn't want to exclude chrome"
                self.set(outer, |sense| sense.part_of = Some(at));
                return Some(CueEffect::Readmit);
            }
            // "exclude what isn't linux"
            let turns = force != CueEffect::Twice
                && (context.is_any(at, &[Class::Twice, Class::AnythingBut])
                    || (outer + 1..at).any(head));
            self.set(outer, |sense| sense.part_of = Some(at));
            return Some(if turns { CueEffect::Twice } else { CueEffect::Unclear });
        }
        // "hide chrome but not firefox"
        let first = self.mentions.first().is_none_or(|mention| mention.0 > outer);
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
            && clause.any(|at| context.is_any(at, &[Class::Any, Class::Both]))
    }

    /// `true` if the clause negates and has named nothing yet: "don't show me anything but chrome".
    fn is_denied_already(&self, at: usize) -> bool {
        const DENIES: [Class; 6] = [
            Class::Not,
            Class::No,
            Class::Except,
            Class::Inability,
            Class::Remove,
            Class::Regardless,
        ];
        let inside = |at: &usize| !self.context.is_boundary(*at) && self.context.is_other(*at);
        (0..at).rev().take_while(inside).any(|at| self.context.is_any(at, &DENIES))
    }

    /// Returns the value, and its category, before a negator that has no other target: "chrome is
    /// not", "spell check not installed".
    fn value_denied_behind(&self, at: usize) -> Option<(usize, usize)> {
        let context = self.context;
        let before = self.last?;
        let category = self.mentions.last().filter(|mention| mention.0 == before)?.1;
        let named = context.names_value(before);
        // "Backend no", "chrome I don't want"
        let joins = |it| context.is_idle(it);
        let bare = context.says(at, Word::BareNo) && (before + 1..at).all(joins);
        // "they should not show up"
        let phrase = context.element(at).is_some_and(|it| it.tokens.len() > 1);
        let verb = context.is(at, Class::Except) && phrase;
        if !named || !context.is(at, Class::Not) && !bare && !verb {
            return None;
        }
        let mut next = at + 1;
        while !context.is_boundary(next) {
            let own_label = context.is_label(next) && context.is_label_of(next, category);
            let counting = context.is_other(next) && context.says(next, Word::Counting);
            // "rents no locker" for Locker rented
            let own_label = own_label && !context.is(at, Class::No);
            if !own_label && !counting && !context.is_any(next, &[Class::Polite, Class::Is]) {
                return None;
            }
            next += 1;
        }
        let denies = verb || next > at + 1 || context.previous(at) == Some(before);
        denies.then_some((before, category))
    }

    /// Returns the value of the label's category before the negator of the label.
    pub(super) fn value_with_denied_label(
        &self,
        label: usize,
        cue: Governor,
        category: usize,
    ) -> Option<usize> {
        let context = self.context;
        let &(before, own) = self.mentions.last()?;
        let joined = (before + 1..cue.at).all(|it| context.is_idle(it));
        (own == category
            && before < cue.at
            && joined
            && context.names_value(before)
            && context.is_boundary(context.next(label)))
        .then_some(before)
    }

    /// Returns the last value if a pronoun means it: "warnings? hide them".
    fn meant_by_pronoun(&self, at: usize) -> Option<(usize, usize)> {
        let context = self.context;
        let &(before, category) = self.mentions.last()?;
        let pronoun = context.says(at + 1, Word::Pronoun) && context.ends_sentence(at + 2);
        let pause = |it: usize| context.is_boundary(it);
        let apart = pause(at.checked_sub(1)?);
        let value = context.names_value(before)
            && self.senses.get(before).is_some_and(|sense| sense.governor.is_none());
        (value && apart && before < at && pronoun).then_some((before, category))
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
        // "chrome as well as firefox" is a list.
        let list = context.is(at, Class::And)
            && self.last.is_some()
            && self.last == context.previous(at)
            && context.names_value(next);
        if list {
            self.joint.by.insert(Class::And);
            return true;
        }
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

    /// Marks the mentions of this clause as added.
    fn add_clause(&mut self) {
        const ENDS: [Class; 4] = [Class::Comma, Class::But, Class::Stop, Class::Correction];
        let Some(last) = self.last else { return };
        if self.continues_negation(last) {
            return;
        }
        let mut edge = last;
        for (at, _) in self.mentions.clone().into_iter().rev().filter(|mention| mention.0 <= last) {
            if (at..=edge).any(|at| self.context.is_any(at, &ENDS)) {
                break;
            }
            edge = at;
            self.set(at, |sense| sense.adds = true);
        }
    }

    /// Negates the last mention like the previous one: "phone is out, tablet too". Returns `true`
    /// if it did.
    fn continues_negation(&mut self, last: usize) -> bool {
        let governor = |at: usize| self.senses.get(at).and_then(|sense| sense.governor);
        let [.., (before, _), (at, _)] = self.mentions[..] else { return false };
        // "phone is out, tablet too", "ignore phone. tablet too"
        let cue = governor(before).filter(|cue| {
            cue.force.denies() && (cue.at > before || cue.force == CueEffect::Exclude)
        });
        let same = at == last && governor(at).is_none();
        let said = cue.filter(|_| same);
        if said.is_some() {
            self.set(at, |sense| sense.governor = said);
        }
        said.is_some()
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
