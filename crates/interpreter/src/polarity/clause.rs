//! The words between mentions: cues that begin to govern, and what ends their reach.

use super::{
    ActiveScope, Class, Conjunction, CueEffect, Element, Governor, PolarityPass, Role, Word,
};

impl PolarityPass<'_, '_> {
    pub(super) fn other(&mut self, at: usize) -> usize {
        let scene = self.scene;
        self.joint.preposition |= scene.says(at, Word::Preposition);
        // A rule may ask what is in force here.
        let governor = self.reign.as_ref().map(|reign| reign.governor);
        self.set(at, |sense| sense.governor = governor);
        if scene.is_word(at) {
            self.word(at);
            return at + 1;
        }
        if let Some(end) = scene.reset_end(at) {
            self.end_clause();
            self.take(at, end);
            if end > at + 1 {
                self.govern(
                    at,
                    if scene.is_forbidden(at) { CueEffect::Keep } else { CueEffect::Spare },
                );
            }
            return end;
        }
        if let Some(any) = scene.any_phrase(at) {
            self.last = any.labels.last().map(|label| label.0);
            self.take(at, any.end);
            return any.end;
        }
        let denies =
            scene.is_any(at, &[Class::Not, Class::Except, Class::No, Class::Neither, Class::Ne]);
        if self.excepts_from_all(at) {
            self.deny(at);
        } else if scene.is(at, Class::Comma) {
            for class in [Class::Comma, Class::Stop].into_iter().filter(|&it| scene.is(at, it)) {
                self.joint.by.insert(class);
            }
            self.reign = self.reign.take().filter(|reign| !reign.is_to_deny());
        } else if scene.is_any(at, &[Class::But, Class::Stop]) && !scene.is(at, Class::Except) {
            self.end_clause();
        } else if scene.is_interjection(at)
            || scene.is(at, Class::Correction) && (!self.mentions.is_empty() || !denies)
        {
            self.reign = None;
            self.joint = Conjunction::default();
            self.last = None;
        } else if denies {
            self.deny(at);
        } else if scene.is(at, Class::Likewise) && scene.names_value(scene.next(at)) {
            // "betas are out, and so are nightlies"
            let last = self.mentions.last().and_then(|mention| self.senses.get(mention.0));
            if let Some(governor) = last.map(|sense| sense.governor) {
                self.reign = None;
                governor.inspect(|governor| self.govern(governor.at, governor.force));
            }
        } else if scene.is(at, Class::Nor) {
            if self.reign.is_none() && self.mentions.is_empty() {
                // "nor lea" adds to what is denied already.
                self.govern(at, CueEffect::Deny);
                self.adding = Some(Vec::new());
            }
            self.joint.by.insert(Class::Or);
        } else if self.adds(at) {
        } else if scene.is_any(at, &[Class::And, Class::Or]) {
            for class in [Class::And, Class::Or] {
                if scene.is(at, class) {
                    self.joint.by.insert(class);
                }
            }
        } else {
            return self.edit(at);
        }
        at + 1
    }

    /// Cues that edit.
    fn edit(&mut self, at: usize) -> usize {
        let scene = self.scene;
        let phrasal = scene.is_any(at, &[Class::SplitRemove, Class::SplitExcept]);
        // "don't drop chrome" keeps it.
        let forbidden = scene.is_forbidden(at);
        let (removal, exclusion) = if forbidden {
            (CueEffect::Keep, CueEffect::Readmit)
        } else {
            (CueEffect::Remove, CueEffect::Exclude)
        };
        if scene.is(at, Class::InsteadOf) {
            self.govern(at, CueEffect::Displace);
        } else if let Some(replaced) = scene.replacement(at) {
            self.take(at, replaced.end);
            self.adding = Some(vec![replaced.category]);
            if forbidden {
                self.govern(at, CueEffect::Unclear);
            }
            return replaced.end;
        } else if scene.is(at, Class::Instead) {
            self.reign = self.reign.take().filter(|reign| !reign.denies() || reign.is_to_deny());
        } else if scene.is(at, Class::Rest) {
        } else if scene.is(at, Class::Unexclude)
            || scene.is(at, Class::SplitReadmit) && self.takes_particle(at, Word::Back)
        {
            self.govern(at, CueEffect::Readmit);
        } else if phrasal && self.takes_particle(at, Word::Particle) {
            let removes = scene.is(at, Class::SplitRemove);
            self.govern(at, if removes { removal } else { exclusion });
        } else if scene.is(at, Class::Remove) {
            self.govern(at, removal);
            self.adding = None;
        } else if scene.is(at, Class::Only)
            || scene.is(at, Class::Polite) && scene.says(at, Word::Request)
        {
            // "not chrome, only firefox"; but "except only firefox"
            self.reign = self.reign.take().filter(ActiveScope::is_to_deny);
        } else if scene.is(at, Class::Keep) {
            self.govern(at, if forbidden { CueEffect::Remove } else { CueEffect::Keep });
        } else if scene.is_any(at, &[Class::Switch, Class::Raise])
            && !(forbidden && scene.is(at, Class::Carrier))
        {
            // "don't switch to chrome"; but "who don't use chrome"
            self.reign = None;
            if forbidden {
                self.govern(at, CueEffect::Unclear);
            }
            self.adding = None;
        }
        at + 1
    }

    fn end_clause(&mut self) {
        self.reign = None;
        self.adding = None;
        self.joint = Conjunction::default();
        self.last = None;
    }

    /// A word that means nothing here: a verb after `not` ends its reach ("can't pay on iOS"), but
    /// no noun before its text does ("not the page /cart").
    fn word(&mut self, at: usize) {
        let scene = self.scene;
        if let Some(category) = scene.absent_category(at) {
            let governor = self.denial_of(category);
            let adds = self.adds_to(category);
            self.set(at, |sense| (sense.governor, sense.adds) = (governor, adds));
            return;
        }
        let word = scene.word(at);
        let content = word.len() > 2 && word.chars().all(char::is_alphabetic);
        let denied = |reign: &ActiveScope| {
            content
                && reign.is_to_deny()
                && reign.governor.force == CueEffect::Deny
                && scene.previous(at) == Some(reign.governor.at)
                && !self.is_noun_of_text(reign.governor.at, at)
        };
        if let Some(reign) = self.reign.as_ref().filter(|reign| denied(reign))
            && !self.denies_through_verb(reign.governor.at, at)
        {
            self.reign = None;
        }
    }

    /// Whether what the verb after a negator governs is denied: "don't speak English", "not signed
    /// by Smith".
    fn denies_through_verb(&self, negator: usize, verb: usize) -> bool {
        let scene = self.scene;
        let object = if scene.is(verb + 1, Class::Any) { verb + 2 } else { verb + 1 };
        scene.says(negator, Word::Auxiliary) && scene.names_value(object)
            || scene.says(verb + 1, Word::Agent)
    }

    /// What a negator does here.
    fn deny(&mut self, at: usize) {
        let scene = self.scene;
        if let Some((value, category)) = self.value_denied_behind(at) {
            return self.deny_list(value, category, Governor { at, force: CueEffect::Deny });
        }
        let force = if let Some(force) = self.denied_within(at) {
            force
        } else if scene.is(at, Class::AnythingBut) && self.is_denied_already(at) {
            self.reign = None;
            return;
        } else if scene.is(at, Class::Neither) {
            CueEffect::Deny
        } else if scene.is(at, Class::No) {
            CueEffect::Lack
        } else if scene.is_any(at, &[Class::Except, Class::But]) {
            CueEffect::Exclude
        } else {
            CueEffect::Deny
        };
        self.govern(at, force);
    }

    /// What a negator does under a denial or removal that is in force.
    fn denied_within(&mut self, at: usize) -> Option<CueEffect> {
        let scene = self.scene;
        let reign = self.reign.as_ref()?;
        let Governor { at: outer, force } = reign.governor;
        let contrast = scene.is_any(at, &[Class::Not, Class::Contrast]);
        if force == CueEffect::Remove {
            // "remove chrome but not firefox"
            let last = self.mentions.last().filter(|last| last.0 > outer)?.1;
            let Role::Values { category, ref indexes } = *scene.role(scene.next(at)) else {
                return None;
            };
            let held =
                scene.catalog.holds(category, scene.catalog.value(category, *indexes.first()?));
            return (last == category).then_some(if held {
                CueEffect::Keep
            } else {
                CueEffect::Unclear
            });
        }
        let head = |it: usize| {
            scene.is_any(it, &[Class::Generic, Class::Any]) || scene.says(it, Word::Head)
        };
        if reign.is_to_deny() {
            if scene.says(outer, Word::Interjection) && scene.is(at, Class::Not) && at == outer + 1
            {
                // "no not poland"
                return None;
            }
            // "exclude what isn't linux"
            let turns = force != CueEffect::Twice
                && (scene.is_any(at, &[Class::Twice, Class::AnythingBut])
                    || (outer + 1..at).any(head));
            self.set(outer, |sense| sense.part_of = Some(at));
            return Some(if turns { CueEffect::Twice } else { CueEffect::Unclear });
        }
        let goes_on = scene.is(at, Class::Twice)
            && self.joint.is(Class::And)
            && (force == CueEffect::Twice
                || force == CueEffect::Exclude && scene.is(at, Class::Except));
        // "hide chrome but not firefox"
        let first = self.mentions.first().is_none_or(|mention| mention.0 > outer);
        let unclear = force == CueEffect::Exclude && contrast && first;
        goes_on.then_some(CueEffect::Twice).or(unclear.then_some(CueEffect::Unclear))
    }

    /// "all regions but ap-south": whether a `but` takes values out of all.
    fn excepts_from_all(&self, at: usize) -> bool {
        let scene = self.scene;
        let inside = |at: &usize| !scene.is_boundary(*at) && !scene.names_value(*at);
        let mut clause = (0..at).rev().take_while(inside);
        scene.is(at, Class::But)
            && scene.word(at) != "."
            && (scene.names_value(scene.next(at)) || self.states_text(scene.next(at)))
            && clause.any(|at| scene.is_any(at, &[Class::Any, Class::Both]))
    }

    /// "don't show me anything but chrome": whether the clause denies, and has named nothing yet.
    fn is_denied_already(&self, at: usize) -> bool {
        const DENIES: [Class; 5] =
            [Class::Not, Class::No, Class::Except, Class::Inability, Class::Remove];
        let inside = |at: &usize| !self.scene.is_boundary(*at) && self.scene.is_other(*at);
        (0..at).rev().take_while(inside).any(|at| self.scene.is_any(at, &DENIES))
    }

    /// "chrome is not", "spell check not installed": the value before a negator behind which nothing follows that
    /// could be denied, and its category.
    fn value_denied_behind(&self, at: usize) -> Option<(usize, usize)> {
        let scene = self.scene;
        let before = self.last?;
        let Role::Values { category, .. } = *scene.role(before) else { return None };
        // "Backend no", "chrome I don't want"
        let joins = |it| scene.is_idle(it) || scene.is(it, Class::Is);
        let bare = scene.says(at, Word::BareNo) && (before + 1..at).all(joins);
        let verb = scene.is(at, Class::Except) && scene.says(at, Word::Auxiliary);
        if !scene.is(at, Class::Not) && !bare && !verb {
            return None;
        }
        let mut next = at + 1;
        while !scene.is_boundary(next) {
            let own_label = scene.is_label(next) && scene.is_label_of(next, category);
            let counting = scene.is_other(next) && scene.says(next, Word::Counting);
            if !own_label && !counting && !scene.is_any(next, &[Class::Polite, Class::Is]) {
                return None;
            }
            next += 1;
        }
        let denies = verb || bare || next > at + 1 || scene.previous(at) == Some(before);
        denies.then_some((before, category))
    }

    /// Whether an object interrupts a verb and its particle, which belongs to it: "take visa out",
    /// "leave bob out".
    fn takes_particle(&mut self, at: usize, class: Word) -> bool {
        let scene = self.scene;
        let named = |at: usize| scene.is_label(at) || scene.names_value(at) || scene.is_used(at);
        let clause = (at + 1..scene.elements.len()).take_while(|&it| !scene.is_boundary(it));
        let mut after = clause.skip_while(|&it| !named(it)).skip(1);
        let particle = after.find(|&it| scene.says(it, class));
        if let Some(particle) = particle {
            self.set(particle, |sense| sense.part_of = Some(at));
        }
        particle.is_some()
    }

    /// "also firefox", "jonas too".
    fn adds(&mut self, at: usize) -> bool {
        const LATER: [Class; 4] = [Class::And, Class::Remove, Class::Correction, Class::Except];
        let scene = self.scene;
        let (before, after) = (scene.is(at, Class::Add), scene.is(at, Class::AfterAdd));
        if !before && !after {
            return false;
        }
        let next = scene.next(at);
        // "chrome as well as firefox" is a list.
        let list = scene.is(at, Class::And)
            && self.last.is_some()
            && self.last == scene.previous(at)
            && scene.names_value(next);
        if list {
            self.joint.by.insert(Class::And);
            return true;
        }
        let trails_off = self.trails_off(next);
        let ends = scene.is_boundary(next) || scene.is_any(next, &LATER) && !before || trails_off;
        if (after && (ends || !before) || trails_off) && self.last.is_some() {
            self.add_clause();
        } else if before {
            self.adding = Some(Vec::new());
            if self.force().is_some_and(|force| !force.denies()) {
                self.reign = None;
            }
            if self.last.is_some() {
                self.joint.by.insert(Class::And);
            }
        }
        true
    }

    /// "as well as whatever i have": nothing that could be added follows.
    fn trails_off(&self, from: usize) -> bool {
        let scene = self.scene;
        (from..scene.elements.len()).take_while(|&at| !scene.is_boundary(at)).all(|at| {
            let stated = |it: &Element| it.number.is_some() || it.quoted || it.used;
            !scene.names_value(at) && !scene.is_label(at) && !scene.element(at).is_some_and(stated)
        })
    }

    /// The mentions of this clause are added.
    fn add_clause(&mut self) {
        const ENDS: [Class; 4] = [Class::Comma, Class::But, Class::Stop, Class::Correction];
        let Some(last) = self.last else { return };
        if self.goes_on_denying(last) {
            return;
        }
        let mut edge = last;
        for (at, _) in self.mentions.clone().into_iter().rev().filter(|mention| mention.0 <= last) {
            if (at..=edge).any(|at| self.scene.is_any(at, &ENDS)) {
                break;
            }
            edge = at;
            self.set(at, |sense| sense.adds = true);
        }
    }

    /// "phone is out, e-mail too": the last mention is denied as the one before it was.
    fn goes_on_denying(&mut self, last: usize) -> bool {
        let governor = |at: usize| self.senses.get(at).and_then(|sense| sense.governor);
        let [.., (before, category), (at, own)] = self.mentions[..] else { return false };
        let cue = governor(before).filter(|cue| cue.force.denies() && cue.at > before);
        let same = at == last && category == own && governor(at).is_none();
        let said = cue.filter(|_| same);
        if said.is_some() {
            self.set(at, |sense| sense.governor = said);
        }
        said.is_some()
    }

    /// Whether an `also` in force reaches a category. It ends at the first condition that is not
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
