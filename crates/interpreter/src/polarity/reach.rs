//! The reach of a cue.

use super::{
    Affix, Class, CueEffect, Governor, Kind, MatchConfidence, Polarity, PolarityPass, Role, Word,
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
            context.is_any(*it, &[Class::And, Class::Or])
                || matches!(*context.role(*it), Role::Values { category: own, .. } if own == category)
        };
        let after = (at + 1..context.elements.len()).find(|it| !listed(it));
        let ends = |it| context.is_any(it, &[Class::Instead, Class::Only]);
        // "no typeerrors, rangeerrors are fine"
        let approved = (at + 1..context.elements.len())
            .take_while(|&it| context.is_idle(it))
            .find(|&it| context.is_any(it, &[Class::Approved, Class::Yes]));
        let approved = approved.is_some_and(|it| context.is_boundary(context.next(it)));
        if self.joint.is(Class::Comma) && (approved || after.is_some_and(ends)) {
            self.scope = self.scope.take().filter(|scope| !scope.denies());
        }
    }

    /// Returns the category of a label that a negation says has no value: "no release", "without a
    /// user".
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
        if context.is_any(with, &[Class::Except, Class::AnythingBut]) {
            // "no tickets except German" wants German.
            return None;
        }
        let direct = before == cue.at
            || context.is_any(before, &LEADS)
            || before > cue.at && context.is_word(before);
        // "not chrome, release 5": a condition of its own.
        let next = context.next(at);
        let ends = context.is_boundary(next) || context.is_any(next, &LEADS);
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

    /// `true` if `only` follows a value of the category.
    pub(super) fn only_follows(&self, category: usize) -> bool {
        (0..self.context.elements.len()).any(|at| {
            matches!(*self.context.role(at), Role::Values { category: own, .. } if own == category)
                && self.context.is(self.context.next(at), Class::Only)
        })
    }

    /// `true` for "drive not syncing" and the value sync: the verb is negated, not the value.
    pub(super) fn is_action(&self, at: usize) -> bool {
        let mention = self.context.element(at).and_then(|element| element.mention.as_ref());
        let stemmed = mention.is_some_and(|mention| mention.value_tier == MatchConfidence::Stem);
        let direct = self.scope.as_ref().is_some_and(|scope| {
            scope.governor.force == CueEffect::Deny
                && !self.context.is_any(scope.governor.at, &[Class::Neither, Class::Nor])
                && self.context.previous(at) == Some(scope.governor.at)
        });
        stemmed && direct && self.context.lexicon.has_affix(self.context.word(at), Affix::Gerund)
    }

    /// Returns the cue that negates the mention before it: "chrome excluded", "bob doesn't count".
    /// Marks the cue as part of the mention.
    pub(super) fn denied_after(&mut self, at: usize) -> Option<Governor> {
        let context = self.context;
        let mut cue = at + 1;
        // "the chrome browser can go"
        let own_label = |it: usize| matches!(*context.role(at), Role::Values { category, .. } if context.is_label_of(it, category));
        while own_label(cue)
            || (context.is_any(cue, &[Class::Generic, Class::Polite, Class::Is])
                || context.says(cue, Word::Modal)
                || self.is_noun_before_denial(cue))
                && !context.is_any(cue, &[Class::AfterNot, Class::Unexclude])
        {
            cue += 1;
        }
        // "chrome? no thanks"
        let said = |it| context.is(it, Class::AfterNot) && context.is(it, Class::Interjection);
        let bare =
            context.is_any(cue + 1, &[Class::No, Class::Not]) && context.ends_sentence(cue + 2);
        let rejected = context.is_boundary(cue) && (said(cue + 1) || bare);
        cue += usize::from(rejected);
        let owner = self.senses.get(cue).and_then(|sense| sense.part_of);
        if owner.is_some_and(|owner| owner != at) {
            // "leave japan out of it": the particle belongs to its verb.
            return None;
        }
        if context.is(cue, Class::Unexclude) && self.ends_after(cue) {
            // "muted should be in again"
            self.take(at, cue + 1);
            return Some(Governor { at: cue, force: CueEffect::Readmit });
        }
        // "android is irrelevant", but not "android, any browser"
        let phrase = context.element(cue).is_some_and(|it| it.tokens.len() > 1);
        if phrase && context.is(cue, Class::AfterAny) && context.is_boundary(cue + 1) {
            self.take(at, cue + 1);
            return Some(Governor { at: cue, force: CueEffect::Unclear });
        }
        let flag = matches!(*context.role(at), Role::Values { category, .. }
            if context.catalog.kind(category) == Kind::Array || self.ends_after(cue));
        if flag && context.is(cue, Class::Off) {
        } else if !rejected
            && !self.is_suffix(cue)
            && (!context.is(cue, Class::AfterNot)
                || context.is(cue + 1, Class::Is)
                || !phrase && context.says(cue, Word::Particle) && !self.ends_after(cue))
        {
            // "ones excluded: chrome" begins its own list.
            return None;
        }
        self.take(at, cue + 1);
        Some(Governor { at: cue, force: CueEffect::Deny })
    }

    /// `true` for a noun between a value and the phrase that negates it: "quarantined units are out",
    /// "the berlin restriction can go".
    fn is_noun_before_denial(&self, at: usize) -> bool {
        let context = self.context;
        let both = context.is(at, Class::Both);
        let noun = context.is_any(at, &[Class::FilterNoun, Class::Carrier])
            || context.is_word(at) && !context.lexicon.is_verb(context.word(at))
            || context.is_label(at) && context.as_labels(at).iter().all(|label| !label.full);
        // "late payers out" does not negate, "banned accounts excluded" does.
        let sure = context.element(at + 1).is_some_and(|it| it.tokens.len() > 1)
            || !context.says(at + 1, Word::Particle);
        (noun && sure || both)
            && context.is_any(at + 1, &[Class::AfterNot, Class::AfterAny])
            && self.ends_after(at + 1)
    }

    /// `true` for the end of "lead-free".
    fn is_suffix(&self, at: usize) -> bool {
        let glued = self.context.first_token(at).is_some_and(|token| token.glued);
        glued && self.context.is_other(at) && self.context.says(at, Word::Free)
    }

    /// `true` for "ups out, dhl in", but not "payments out of Germany".
    fn ends_after(&self, at: usize) -> bool {
        let ends = [Class::And, Class::Or];
        self.context.is_boundary(at + 1) || self.context.is_any(at + 1, &ends)
    }

    /// Negates a value and the list that it ends. A list that only commas join is ambiguous
    /// ("stable, beta excluded"). "firefox and chrome, edge excluded" negates only edge.
    pub(super) fn deny_list(&mut self, last: usize, category: usize, cue: Governor) {
        const JOINS: [Class; 3] = [Class::And, Class::Or, Class::Comma];
        let context = self.context;
        let continues = |it| context.is_any(it, &JOINS) || context.is_used(it);
        let (mut edge, mut members, mut stated) = (last, Vec::new(), None);
        for &(at, own) in self.mentions.iter().rev().skip_while(|mention| mention.0 >= last) {
            let denied = self.senses.get(at).is_some_and(Polarity::is_denied);
            let mut between = at + 1..edge;
            if denied && cue.force != CueEffect::Twice || !between.clone().all(continues) {
                break;
            }
            let apart = between.clone().any(|it| context.is(it, Class::Comma));
            let joined = between.any(|it| context.is_any(it, &[Class::And, Class::Or]));
            if own != category {
                stated = Some(at).filter(|_| joined && !apart && context.is_used(at));
                // "urgent and German are out"
                if joined && !apart && stated.is_none() && context.says(cue.at, Word::Several) {
                    members.push((at, joined));
                }
                break;
            }
            members.push((at, joined));
            edge = at;
        }
        // "flaky tests aside", "unhandled chrome errors are out": no filter can express that.
        let own = |it: &usize| {
            // "urgent (German excluded)"
            let apart = context.query_text(*it..edge + 1).contains(['(', '[']);
            !apart && !context.is_used(*it) && self.mentions.iter().any(|mention| mention.0 == *it)
        };
        if let Some(before) = edge.checked_sub(1).filter(own)
            && cue.force == CueEffect::Deny
        {
            self.set(before, |sense| sense.governor = Some(cue.unclear()));
            self.set(last, |sense| sense.governor = Some(cue.unclear()));
            return;
        }
        if let Some(at) = stated {
            // "over 10 users and chrome excluded": the negation of the number is ambiguous.
            self.set(at, |sense| sense.governor = Some(cue.unclear()));
        }
        self.set(last, |sense| sense.governor = Some(cue));
        let both = (last..cue.at).any(|it| context.is(it, Class::Both));
        let force = match members.first() {
            Some((_, joined)) if *joined || both => cue.force,
            _ if members.iter().all(|it| !it.1) => CueEffect::Unclear,
            _ => return,
        };
        for (at, _) in members {
            self.set(at, |sense| sense.governor = Some(Governor { force, ..cue }));
        }
    }

    /// `true` for the negator of "everything bob doesn't own".
    fn is_subject_of_relative(&self, at: usize) -> bool {
        let context = self.context;
        let head = |&it: &usize| context.says(it, Word::Head);
        let part = |&it: &usize| !context.is_boundary(it);
        let mut clause = (0..at).rev().take_while(part);
        clause.find(head).is_some_and(|it| {
            (it + 1..at)
                .all(|it| !context.is_other(it) || context.is_any(it, &[Class::And, Class::Or]))
        })
    }

    /// Marks the value before a negator as ambiguous, if the negator has no target. Before a verb
    /// the negator negates only the verb ("why does chrome not load").
    pub(super) fn leave_out_before(&mut self, at: usize) {
        let context = self.context;
        let governed = |sense: &Polarity| sense.governor.is_some_and(|cue| cue.at == at);
        let governed = |mention: &(usize, usize)| self.senses.get(mention.0).is_some_and(governed);
        let clause = |it: &usize| !context.is_boundary(*it);
        let mut after = (at + 1..context.elements.len()).take_while(clause);
        let next = context.next(at);
        // "android doesn't interest me", "tablets are not my concern"
        let mut attitude = (at + 1..=at + 2).filter(|&it| context.says(it, Word::Speaker));
        let attitude = attitude.any(|it| context.is_boundary(it + 1));
        if !context.is_any(at, &[Class::Not, Class::No])
            || !context.word(at).starts_with(char::is_alphabetic)
            || context.is_word(next)
                && !context.says(next, Word::Head)
                && !attitude
                && !self.is_subject_of_relative(at)
            || self.senses.get(at).is_some_and(|sense| sense.part_of.is_some())
            || self.mentions.iter().any(governed)
            || after.any(|it| !context.is_other(it))
        {
            return;
        }
        let joins = |it: &usize| context.is_any(*it, &[Class::And, Class::Or]);
        let mut before = (0..at).rev().take_while(|it| clause(it) && !joins(it));
        let value = before.find_map(|it| match *context.role(it) {
            Role::Values { category, .. } => Some((it, category)),
            _ => None,
        });
        if let Some((value, category)) = value {
            self.deny_list(value, category, Governor { at, force: CueEffect::Unclear });
        }
    }
}
