//! Cues that govern the list before them: "chrome and firefox excluded", "jonas too".

use super::clause::DENIES;
use super::{
    Class, Conjunction, CueEffect, CueSet, Governor, Kind, Member, Polarity, PolarityPass, Word,
};

impl PolarityPass<'_, '_> {
    /// Applies a cue to the list before it, if it points there. Returns `false` if it does not.
    pub(super) fn governs_behind(&mut self, at: usize) -> bool {
        let context = self.context;
        let Some(&member) = self.mentions.last() else { return false };
        let before = self.governor_of(member.at);
        let follows = self.follows(member, at) || self.rejects(member, at);
        let effect = self.effect_after(member, at).filter(|_| follows);
        let after = effect.map(|force| (force, at + 1));
        if effect.is_some() && before.is_some_and(|edit| !edit.force.denies()) {
            return false;
        }
        let Some((mut force, end)) = after.or_else(|| self.effect_alone(member, at)) else {
            return false;
        };
        for word in at + 1..end {
            self.set(word, |sense| sense.part_of = Some(member.at));
        }
        if effect.is_some() {
            force = match before.filter(|_| force == CueEffect::Deny) {
                // "unacknowledged excluded"
                Some(_) if context.is_opposed(member.at) => CueEffect::Unclear,
                // "i don't want chrome excluded", but not "drop urgent (german excluded)"
                Some(outer)
                    if !member.tie.is(Class::Comma) && !context.is(outer.at, Class::Remove) =>
                {
                    CueEffect::Twice
                }
                _ => force,
            };
            self.take(member.at, at + 1);
        }
        if force == CueEffect::Deny && context.is(at, Class::Remove) {
            // "chrome? drop it", "the chrome filter can go"
            let held = context.catalog.has_wanted(member.category);
            force = if held { CueEffect::Remove } else { CueEffect::Deny };
        }
        self.deny_list(self.mentions.len() - 1, Governor { at, force });
        self.joint = Conjunction::default();
        true
    }

    /// `true` if only words without a meaning of their own separate a cue from the mention before it:
    /// "the chrome browser can be hidden".
    fn follows(&self, member: Member, at: usize) -> bool {
        let context = self.context;
        (member.end..at).all(|it| {
            context.is_used(it)
                || context.is_label_of(it, member.category)
                || context.is_any(it, cues![Generic, Polite, Is])
                || context.says(it, Word::Modal)
                || it + 1 == at && self.is_noun_before_denial(it)
        })
    }

    /// `true` for a short answer to the mention before it: "chrome? no thanks".
    fn rejects(&self, member: Member, at: usize) -> bool {
        let context = self.context;
        let answers = context.is(at, Class::AfterNot) && context.is(at, Class::Interjection)
            || context.is_any(at, cues![No, Not]) && context.ends_sentence(at + 1);
        answers && at > member.end && context.is_boundary(at - 1) && self.follows(member, at - 1)
    }

    /// Returns the effect of a cue that follows its mention: "chrome excluded", "bob doesn't count".
    fn effect_after(&self, member: Member, at: usize) -> Option<CueEffect> {
        let context = self.context;
        let ends = self.ends_after(at);
        let phrase = context.element(at).is_some_and(|it| it.tokens.len() > 1);
        let array = context.catalog.kind(member.category) == Kind::Array;
        if context.is(at, Class::Unexclude) && ends {
            // "muted should be in again"
            Some(CueEffect::Readmit)
        } else if phrase && context.is(at, Class::AfterAny) && context.is_boundary(at + 1) {
            // "android is irrelevant", but not "android, any browser"
            Some(CueEffect::Unclear)
        } else {
            // "ones excluded: chrome" begins its own list, and "out of" is a preposition.
            let opens = context.is(at + 1, Class::Is)
                || !phrase && context.says(at, Word::Particle) && !ends;
            let denies = context.is(at, Class::Off) && (array || ends)
                || context.is(at, Class::AfterNot) && !opens
                || context.is_any(at, cues![No, Not]) && self.rejects(member, at);
            denies.then_some(CueEffect::Deny)
        }
    }

    /// Returns the effect of a negator that has no other target than the mention before it ("chrome
    /// is not", "warnings? hide them"), and the first element after its words.
    fn effect_alone(&self, member: Member, at: usize) -> Option<(CueEffect, usize)> {
        let context = self.context;
        let pronoun = context.is_any(at, cues![Except, Remove])
            && !context.is_forbidden(at)
            && self.means_by_pronoun(member, at);
        if pronoun {
            return Some((CueEffect::Deny, at + 1));
        }
        // "Backend no", "chrome I don't want"
        let bare =
            context.says(at, Word::BareNo) && (member.at + 1..at).all(|it| context.is_idle(it));
        // "they should not show up"
        let phrase = context.element(at).is_some_and(|it| it.tokens.len() > 1);
        let verb = context.is(at, Class::Except) && phrase;
        if self.last != Some(member.at)
            || !context.is_any(at, DENIES)
            || !context.names_value(member.at)
            || !context.is(at, Class::Not) && !bare && !verb
        {
            return None;
        }
        // The own label counts only at the end: "priya hasn't been assigned".
        let (mut next, mut carrier) = (at + 1, false);
        while !context.is_boundary(next) {
            // "rents no locker" for Locker rented
            let own_label = context.is_label(next)
                && context.is_label_of(next, member.category)
                && !context.is(at, Class::No);
            let counting = context.is_other(next) && context.says(next, Word::Counting);
            let idle = context.is_any(next, cues![Polite, Is]);
            carrier = !own_label && (carrier || !counting && !idle);
            if carrier && !context.is(next, Class::Carrier) {
                return None;
            }
            next += 1;
        }
        let denies = verb || next > at + 1 || context.previous(at) == Some(member.at);
        (denies && !carrier).then_some((CueEffect::Deny, next))
    }

    /// `true` if a pronoun after a verb means the last value: "warnings? hide them".
    fn means_by_pronoun(&self, member: Member, verb: usize) -> bool {
        let context = self.context;
        let apart = verb.checked_sub(1).is_some_and(|it| context.is_boundary(it));
        let free = self.governor_of(member.at).is_none();
        apart
            && free
            && context.names_value(member.at)
            && context.says(verb + 1, Word::Pronoun)
            && context.ends_sentence(verb + 2)
    }

    /// `true` for a noun between a value and the phrase that negates it: "quarantined units are out",
    /// "the berlin restriction can go".
    fn is_noun_before_denial(&self, at: usize) -> bool {
        let context = self.context;
        let both = context.is(at, Class::Both);
        let noun = context.is_any(at, cues![FilterNoun, Carrier])
            || context.is_word(at) && !context.lexicon.is_verb(context.word(at))
            || context.is_label(at) && context.as_labels(at).iter().all(|label| !label.full);
        // "late payers out" does not negate, "banned accounts excluded" does.
        let sure = context.element(at + 1).is_some_and(|it| it.tokens.len() > 1)
            || !context.says(at + 1, Word::Particle);
        (noun && sure || both)
            && context.is_any(at + 1, cues![AfterNot, AfterAny])
            && self.ends_after(at + 1)
    }

    /// `true` for "ups out, dhl in", but not "payments out of Germany".
    fn ends_after(&self, at: usize) -> bool {
        self.context.is_boundary(at + 1) || self.context.is_any(at + 1, cues![And, Or])
    }

    /// Negates a value and the list that it ends. A list that only commas join is ambiguous
    /// ("stable, beta excluded"). "firefox and chrome, edge excluded" negates only edge.
    pub(super) fn deny_list(&mut self, last: usize, cue: Governor) {
        let context = self.context;
        let Some(&end) = self.mentions.get(last) else { return };
        let (mut first, mut members, mut stated) = (end, Vec::new(), None);
        for index in (1..=last).rev() {
            let (before, tie) = (self.mentions[index - 1], self.mentions[index].tie);
            let denied = self.senses.get(before.at).is_some_and(Polarity::is_denied);
            if tie.apart || denied && cue.force != CueEffect::Twice {
                break;
            }
            let joined = tie.by.has_any(cues![And, Or]);
            let only = joined && !tie.is(Class::Comma);
            if before.category != end.category {
                // "urgent and German are out"
                if only && context.says(cue.at, Word::Several) && !context.is_used(before.at) {
                    members.push((before.at, joined));
                }
                stated = Some(before.at).filter(|&it| only && context.is_used(it));
                break;
            }
            members.push((before.at, joined));
            first = before;
        }
        // "flaky tests aside", "unhandled chrome errors are out": no filter can express that.
        let own = |it: &usize| {
            // "urgent (German excluded)"
            let apart = context.query_text(*it..first.at + 1).contains(['(', '[']);
            !apart && !context.is_used(*it) && self.mentions.iter().any(|own| own.at == *it)
        };
        if let Some(before) = first.at.checked_sub(1).filter(own)
            && cue.force == CueEffect::Deny
        {
            self.set(before, |sense| sense.governor = Some(cue.unclear()));
            self.set(end.at, |sense| sense.governor = Some(cue.unclear()));
            return;
        }
        if let Some(at) = stated {
            // "over 10 users and chrome excluded": the negation of the number is ambiguous.
            self.set(at, |sense| sense.governor = Some(cue.unclear()));
        }
        self.set(end.at, |sense| sense.governor = Some(cue));
        let both = (end.at..cue.at).any(|it| context.is(it, Class::Both));
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
            (it + 1..at).all(|it| !context.is_other(it) || context.is_any(it, cues![And, Or]))
        })
    }

    /// Marks the value before a negator as ambiguous, if the negator has no target. Before a verb
    /// the negator negates only the verb ("why does chrome not load").
    pub(super) fn leave_out_before(&mut self, at: usize) {
        let context = self.context;
        let governed = |it: &Member| self.governor_of(it.at).is_some_and(|cue| cue.at == at);
        let clause = |it: &usize| !context.is_boundary(*it);
        let mut after = (at + 1..context.elements.len()).take_while(clause);
        let next = context.next(at);
        if !context.is_any(at, cues![Not, No])
            || !context.word(at).starts_with(char::is_alphabetic)
            || context.is_word(next)
                && !context.says(next, Word::Head)
                && !self.is_subject_of_relative(at)
            || self.senses.get(at).is_some_and(|sense| sense.part_of.is_some())
            || self.mentions.iter().any(governed)
            || after.any(|it| !context.is_other(it))
        {
            return;
        }
        let joins = |it: &usize| context.is_any(*it, cues![And, Or]);
        let mut before = (0..at).rev().take_while(|it| clause(it) && !joins(it));
        let value = before.find(|&it| context.names_value(it));
        let value = self.mentions.iter().position(|member| Some(member.at) == value);
        if let Some(value) = value {
            self.deny_list(value, Governor { at, force: CueEffect::Unclear });
        }
    }

    /// Marks the mentions of this clause as added.
    pub(super) fn add_clause(&mut self) {
        const ENDS: CueSet = cues![Comma, But, Stop, Correction];
        let Some(last) = self.last else { return };
        if self.continues_negation(last) {
            return;
        }
        let mut edge = last;
        for member in self.mentions.clone().into_iter().rev().filter(|it| it.at <= last) {
            if (member.at..=edge).any(|at| self.context.is_any(at, ENDS)) {
                break;
            }
            edge = member.at;
            self.set(edge, |sense| sense.adds = true);
        }
    }

    /// Negates the last mention like the previous one: "phone is out, tablet too". Returns `true`
    /// if it did.
    fn continues_negation(&mut self, last: usize) -> bool {
        let [.., before, member] = self.mentions[..] else { return false };
        // "phone is out, tablet too", "ignore phone. tablet too"
        let cue = self.governor_of(before.at).filter(|cue| {
            cue.force.denies() && (cue.at > before.at || cue.force == CueEffect::Exclude)
        });
        let same = member.at == last && self.governor_of(last).is_none();
        let said = cue.filter(|_| same);
        if said.is_some() {
            self.set(last, |sense| sense.governor = said);
        }
        said.is_some()
    }
}
