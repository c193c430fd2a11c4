//! The polarity of texts and numbers, which earlier rounds have read.

use super::{
    ActiveScope, Affix, Class, Condition, CueEffect, Governor, Kind, Operator, PolarityPass,
    RuleMatch, Word,
};

impl PolarityPass<'_, '_> {
    pub(super) fn states_text_or_number(&mut self, at: usize) {
        let stated = self.stated.conditions.iter().find(|it| it.at == at);
        let fired = self.stated.trace.iter().find(|it| it.elements.contains(&at));
        if let (Some(condition), Some(fired)) = (stated, fired) {
            let category = condition.category;
            let apart = self.is_apart(condition, fired);
            if apart {
                self.scope = None;
            }
            let governor = self.governor_of_stated(condition, fired);
            let governor = governor.filter(|it| !self.counts_since(*it, condition));
            let lacks = |it: &Governor| self.lacks_something_else(*it, category, fired);
            let lacking = governor.filter(lacks).map(Governor::unclear);
            let governor = lacking.or(governor);
            let adds = self.adds_to(category);
            self.set(at, |sense| (sense.governor, sense.adds) = (governor, adds));
            self.finish(at, last_element(fired) + 1, category);
        }
        let more = |it: &Condition| {
            it.at > at && fired.is_some_and(|fired| fired.elements.contains(&it.at))
        };
        if self.stated.conditions.iter().any(more) {
            // "between 5 and 10"
            self.join(at);
        }
        let names = self.context.element(at).is_some_and(|element| element.mention.is_some());
        if names && self.force() != Some(CueEffect::Remove) {
            self.scope = self.scope.take().filter(ActiveScope::denies);
        }
    }

    /// `true` for a comparison or a labeled text or number: "not chrome and over 10 users". A plain
    /// `not` of another category does not reach it over `and`.
    fn is_apart(&self, condition: &Condition, fired: &RuleMatch) -> bool {
        let category = condition.category;
        let other = self.scope.as_ref().is_some_and(|scope| {
            matches!(scope.governor.force, CueEffect::Deny | CueEffect::Lack)
                && !scope.is_to_deny()
                && !scope.categories.contains(&category)
        });
        let labelled = fired
            .elements
            .clone()
            .chain(fired.besides)
            .any(|it| self.context.is_label_of(it, category));
        other && (labelled || condition.operator.is_bound()) && !self.joint.is(Class::Or)
    }

    fn governor_of_stated(&mut self, condition: &Condition, fired: &RuleMatch) -> Option<Governor> {
        let scope = self.scope.as_ref()?;
        let governor = scope.governor;
        if scope.denies() {
            return self.denial_of(condition.category);
        }
        let context = self.context;
        let continues = |at: usize| {
            let same = self.mentions.last().is_some_and(|it| it.category == condition.category);
            at < governor.at
                || fired.elements.contains(&at)
                || same && (self.joint.is(Class::And) || self.joint.is(Class::Or))
        };
        // "drop it to 50" changes a bound; "we lost over 10 users" edits nothing.
        let bound = fired.elements.start.checked_sub(1).is_some_and(|it| context.is(it, Class::To));
        let before = context.previous(governor.at);
        let bids = governor.force != CueEffect::Remove
            || before.is_none_or(|it| context.is_boundary(it) || context.is(it, Class::And));
        if !self.last.is_none_or(continues) || self.joint.is(Class::Comma) || bound || !bids {
            return None;
        }
        match governor.force {
            CueEffect::Remove if !context.catalog.has_filter(condition.category) => {
                Some(Governor { force: CueEffect::Exclude, ..governor })
            }
            CueEffect::Remove | CueEffect::Readmit | CueEffect::Displace => Some(governor),
            _ => None,
        }
    }

    /// `true` for "not seen for more than a week", which counts the days since it was seen.
    fn counts_since(&self, negator: Governor, condition: &Condition) -> bool {
        let context = self.context;
        matches!(condition.operator, Operator::Gt | Operator::Gte)
            && context.label_is(condition.category, Word::Ago)
            && context.is_label_of(context.next(negator.at), condition.category)
    }

    /// `true` if the negator might negate a word before the text or number: "no response in over 5
    /// seconds", `no one can open /cart`.
    fn lacks_something_else(&self, governor: Governor, category: usize, fired: &RuleMatch) -> bool {
        let context = self.context;
        let lacked = context.next(governor.at);
        let number = context.catalog.kind(category) == Kind::Numeric;
        let mut between = lacked..fired.elements.start;
        governor.force == CueEffect::Lack
            && if number {
                context.is_word(lacked) && !fired.elements.contains(&lacked)
            } else {
                // `no one` negates the verb after it, not a text.
                let person = context.is(governor.at, Class::AfterAbsent);
                between.any(|it| {
                    let verb = person && !context.says(it, Word::Function);
                    context.is_word(it) && (verb || context.says(it, Word::Verb))
                })
            }
    }

    /// `true` if a word after a negator is a noun before its text: "not the page /cart", but not
    /// "doesn't load /cart".
    pub(super) fn is_noun_of_text(&self, negator: usize, noun: usize) -> bool {
        let context = self.context;
        let word = context.word(noun);
        let verb = context.says(negator, Word::Auxiliary)
            || context.lexicon.is_verb(word)
            || context.lexicon.has_affix(word, Affix::Gerund);
        !verb && self.states_text(noun + 1)
    }

    pub(super) fn states_text(&self, at: usize) -> bool {
        let kind = |category| self.context.catalog.kind(category);
        self.stated.conditions.iter().any(|it| it.at == at && kind(it.category) != Kind::Numeric)
    }
}

/// Returns the last element of a match, including its label.
fn last_element(fired: &RuleMatch) -> usize {
    let last = fired.elements.end.saturating_sub(1);
    fired.besides.map_or(last, |label| label.max(last))
}
