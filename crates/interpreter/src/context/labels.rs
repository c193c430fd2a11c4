//! Statements about a label next to it: that it does not matter, is true or false, or has a value
//! or none.

use super::{
    Class, CueSet, JOINS, Kind, LabelLink, MatchConfidence, Operator, ParseContext, Role, Word,
    fold,
};

/// The value that the query gives a boolean label, before negation.
pub(crate) struct BooleanMention {
    pub(crate) category: usize,
    pub(crate) value: bool,
    /// `true` if either value matches: "handled or not".
    pub(crate) either: bool,
    /// The first element after the statement.
    pub(crate) end: usize,
}

/// Labels whose categories can have any value.
pub(crate) struct AnyPhrase {
    /// Elements and categories of the labels.
    pub(crate) labels: Vec<(usize, usize)>,
    /// The first element after the labels.
    pub(crate) end: usize,
}

impl ParseContext<'_> {
    /// Returns whether a noun such as filter follows a value or label, and whether that noun is an
    /// exclusion ("the chrome exclusion").
    pub(crate) fn nouns_after(&self, at: usize) -> (bool, bool) {
        let mut noun = false;
        for next in at + 1..self.elements.len() {
            let own_label = matches!(self.role(next), Role::Context(_));
            if self.is(next, Class::ExclusionNoun) {
                return (true, true);
            } else if self.is(next, Class::FilterNoun) {
                noun |= self.is(next, Class::FilterWord);
            } else if !own_label {
                break;
            }
        }
        (noun, false)
    }

    /// `true` if a label only names what has a value: "orders from Poland", next to Order status.
    /// Also the plural of a whole label: "hide tests from ali".
    pub(crate) fn is_bearer(&self, at: usize) -> bool {
        let links = |it: &usize| {
            self.is_idle(*it)
                || [Word::Preposition, Word::Head, Word::Copula]
                    .iter()
                    .any(|&class| self.says(*it, class))
        };
        let described = (at + 1..self.elements.len()).find(|it| !links(it));
        let described = described.is_some_and(|it| it > at + 1 && self.names_value(it));
        let before = at.checked_sub(1).is_some_and(|it| self.names_value(it));
        let modifies = |label: &LabelLink| {
            let category = label.category;
            let open = self.catalog.is_open(category);
            if self.catalog.kind(category) == Kind::Boolean {
                return false;
            } else if label.full {
                return !before && !open && label.tier == MatchConfidence::Stem;
            }
            let name =
                self.catalog.category(category).map(|facts| fold::atoms(facts.plain_label()));
            let head = name.iter().flatten().next_back().map(|atom| fold::stem(&atom.folded));
            head != Some(fold::stem(self.word(at))) && !open
        };
        (described || before) && self.as_labels(at).iter().all(modifies)
    }

    /// Returns a category that a label names, preferably one with a current filter.
    pub(crate) fn preferred(&self, at: usize) -> Option<usize> {
        let labels = self.as_labels(at);
        let filtered = labels.iter().find(|label| self.catalog.has_filter(label.category));
        filtered.or(labels.first()).map(|label| label.category)
    }

    /// Returns the label of an element that it names in full, or the first one.
    pub(crate) fn best_label(&self, at: usize) -> Option<&LabelLink> {
        let labels = self.as_labels(at);
        labels.iter().find(|label| label.full).or(labels.first())
    }

    /// Returns the boolean category that a label names.
    pub(crate) fn boolean_label(&self, at: usize) -> Option<&LabelLink> {
        let mut labels = self.as_labels(at).iter();
        labels.find(|label| self.catalog.kind(label.category) == Kind::Boolean)
    }

    /// Returns the element after a label and its `is` or colon.
    pub(crate) fn after_is(&self, at: usize) -> usize {
        const LINKS: CueSet = cues![Is, Eq, Carrier, Polite];
        const SAYS: CueSet = cues![AfterAny, Yes, False, AfterAbsent, AfterPresent, Not, No, Comma];
        let mut next = self.next(at);
        while self.is_any(next, LINKS) && !self.is_any(next, SAYS) {
            next = self.next(next);
        }
        next
    }

    /// Returns the value given to a boolean label: "handled", "ray tracing off", "handled: no".
    pub(crate) fn boolean_said(&self, at: usize) -> Option<BooleanMention> {
        let label = self.boolean_label(at)?;
        let category = label.category;
        let next = self.after_is(at);
        let polar = self.next(next);
        let tied = !self.is_boundary(next);
        // "orders on the web" turns nothing on.
        let place = self.says(next, Word::Preposition) && self.names_value(polar);
        let (value, last) = if tied && !place && self.is(next, Class::Yes) {
            (self.on(label, next, true), next)
        } else if tied
            && self.is(next, Class::False)
            // "rents no locker" for Locker rented
            && !(self.is(next, Class::No) && self.is_label_of(polar, category))
        {
            (self.on(label, next, false), next)
        } else if self.is(next, Class::Not) && self.is_any(polar, cues![Yes, False]) {
            (!self.on(label, polar, self.is(polar, Class::Yes)), polar)
        } else if let Some(last) = self.denied_rest_of_label(at, category) {
            // "index not used" for Index used.
            (!label.positive, last)
        } else {
            return self.implied_boolean(at, label);
        };
        Some(BooleanMention { category, value, either: false, end: last + 1 })
    }

    /// Returns the value that a boolean label has alone or with the word before it.
    fn implied_boolean(&self, at: usize, label: &LabelLink) -> Option<BooleanMention> {
        let mut telling = label.telling;
        if let Some(before) = self.previous(at) {
            telling |= self.is_any(before, cues![No, WithPresence, NotContains, Not, Except])
                && !self.says(before, Word::Nothing);
        }
        let either = self.is_or_not(at + 1);
        let (category, value) = (label.category, label.positive);
        let end = if either { at + 3 } else { at + 1 };
        telling.then_some(BooleanMention { category, value, either, end })
    }

    /// `true` for "or not" at the end of a clause: "handled or not".
    pub(crate) fn is_or_not(&self, at: usize) -> bool {
        self.is(at, Class::Or) && self.is(at + 1, Class::Not) && self.is_boundary(at + 2)
    }

    /// Returns the value of a word such as "on" for a label. "on" means false for a label with
    /// "disabled". "true" means what the label says.
    fn on(&self, label: &LabelLink, at: usize, yes: bool) -> bool {
        let last = self.element(at).and_then(|element| self.tokens.get(element.tokens.end - 1));
        let literal = self.says(at, Word::Literal)
            || last.is_some_and(|token| self.lexicon.is(&token.folded, Word::Truth));
        let inverse = !literal && self.label_is(label.category, Word::Off);
        (yes != inverse) == label.positive
    }

    /// Returns the category and operator of "with a user", "release is missing" or "email is set",
    /// and the first element after the phrase.
    pub(crate) fn presence_said(&self, at: usize) -> Option<(usize, Operator, usize)> {
        const VALUED: CueSet = cues![Is, Eq, Ne, Contains];
        let labels = self
            .as_labels(at)
            .iter()
            .filter(|label| matches!(self.catalog.kind(label.category), Kind::Text | Kind::Array));
        let full = labels.clone().find(|label| label.full);
        let category = full.or(labels.clone().next())?.category;
        let next = self.next(at);
        let after = self.after_is(at);
        // `alerts that nobody acknowledged` negates the next word.
        let denied = self.names_value(after + 1);
        let denies = self.is(after, Class::No) && denied;
        // "empty bio"
        let before = at.checked_sub(1).filter(|&it| {
            self.is(it, Class::AfterAbsent)
                && self.element(it).is_some_and(|element| element.tokens.len() == 1)
                && !it.checked_sub(1).is_some_and(|it| self.is_label(it))
        });
        // "orders missing a coupon"
        let absence = |it: usize| {
            let of_next = self.is(it, Class::No) && self.is_label(self.next(it));
            self.is(it, Class::AfterAbsent) && !of_next
        };
        let absent = before.is_some() || absence(next) || absence(after);
        let operator = if absent && !denies {
            Operator::IsNotSet
        } else if self.is(after, Class::AfterPresent) {
            Operator::IsSet
        } else {
            let valued = self.is_any(next, VALUED) && !self.is_any(next, cues![Polite, InLabel]);
            let present = self.follows_any(at, cues![WithPresence]) && !valued;
            present.then_some(Operator::IsSet)?
        };
        let last = after.min(self.elements.len().saturating_sub(1));
        let said = self.is_any(last, cues![AfterAbsent, AfterPresent]);
        Some((category, operator, if said { last + 1 } else { at + 1 }))
    }

    /// Returns the labels of "any browser", "regardless of store or brand" or "browser doesn't
    /// matter".
    pub(crate) fn any_phrase(&self, at: usize) -> Option<AnyPhrase> {
        const ANY: CueSet = cues![Any, Regardless, Is];
        if let Some(category) = self.preferred(at) {
            let after = self.after_is(at);
            let ends = self.is_boundary(self.next(after)) || !self.is(after, Class::Any);
            let any = AnyPhrase { labels: vec![(at, category)], end: after + 1 };
            return (self.is(after, Class::AfterAny) && ends).then_some(any);
        }
        if !self.is_any(at, cues![Any, Regardless]) {
            return None;
        }
        let mut label = self.next(at);
        while self.is_any(label, ANY) {
            label = self.next(label);
        }
        let mut labels = vec![(label, self.label_of_any(at, label)?)];
        loop {
            let next = self.next(label + 1);
            let joined = self.is_any(label + 1, JOINS);
            match self.label_of_any(at, next).filter(|&it| joined && self.catalog.has_filter(it)) {
                Some(category) => labels.push((next, category)),
                None => return Some(AnyPhrase { labels, end: label + 1 }),
            }
            label = next;
        }
    }

    /// Returns the category of "any browser" or "regardless of the os", but not of "any browser:
    /// chrome".
    fn label_of_any(&self, at: usize, label: usize) -> Option<usize> {
        if self.is_bearer(label) {
            // "all orders from Poland"
            return None;
        }
        let strong = self.is(at, Class::Regardless);
        let fits =
            |label: &&LabelLink| strong || self.catalog.kind(label.category) != Kind::Boolean;
        let mut labels = self.as_labels(label).iter().filter(fits);
        let filtered = labels.find(|label| self.catalog.has_filter(label.category));
        filtered.map(|label| label.category)
    }

    /// Returns the last element of a negated rest of a label, after the part at `at`: "index not
    /// used", "returns are not allowed".
    fn denied_rest_of_label(&self, at: usize, category: usize) -> Option<usize> {
        let mut cursor = at + 1;
        while self.is(cursor, Class::Is) && !self.is_boundary(cursor) {
            cursor += 1;
        }
        // "not allowed" is a single phrase.
        let own = self.element(cursor).filter(|element| element.tokens.len() > 1);
        let last = own.and_then(|element| self.tokens.get(element.tokens.end - 1));
        if self.is_any(cursor, cues![AfterNot, AfterAbsent])
            && last.is_some_and(|token| self.label_has(category, &[&token.folded]))
        {
            return Some(cursor);
        }
        let denied =
            self.is(cursor, Class::Not) && self.label_has(category, &[self.word(cursor + 1)]);
        denied.then_some(cursor + 1)
    }
}
