//! Which category a number belongs to.

use super::Quantity;
use crate::interpretation::context::{Role, Scene};
use crate::interpretation::cue::Class;
use crate::interpretation::element::Element;
use crate::interpretation::model::{Kind, Operator};
use crate::interpretation::word::Word;

/// A category, and the label that told it.
pub(crate) type Owner = (usize, Option<usize>);

impl Scene<'_> {
    /// The category of a number, by the first of these that tells: the label before it, the label
    /// after it, the comparative's or unit's dimension, the last category with a number, the
    /// nearest label of the clause, the only numeric category with a filter, the only one there is.
    pub(crate) fn owner(&self, quantity: &Quantity, last: Option<usize>) -> Option<Owner> {
        if let Some(owner) = self.label_beside(quantity) {
            return Some(owner);
        }
        let told = |category| Some((category, None));
        if let Some(category) = self.label_of_list(quantity) {
            return told(category);
        }
        let compared = quantity.is_compared();
        let number = self.free_number(quantity.at)?;
        let year = number.is_year().then(|| self.numeric_of(Word::Year)).flatten();
        if let Some(category) = year.filter(|_| compared) {
            return told(category);
        }
        if let Some(category) = self.catalog.age_category(self.lexicon).filter(|_| quantity.ago) {
            return told(category);
        }
        let measured = self.measured(quantity);
        if compared && !measured.is_empty() {
            let named = measured.iter().find(|it| self.clause_names(quantity.at, **it)).copied();
            let again = last.filter(|category| measured.contains(category));
            return named.or(again).or(measured.first().copied()).and_then(told);
        }
        // "women over 60": a mere number said of people is their age.
        let mere = quantity.units.is_empty() && quantity.dimensions.is_empty();
        let before = self.previous(quantity.start);
        let people = before.is_some_and(|before| self.says(before, Word::Person));
        if compared
            && mere
            && people
            && let Some(category) = self.numeric_of(Word::Age)
        {
            return told(category);
        }
        let weak = number.weak && number.unit.is_none();
        let listed = self.joins_number(quantity.start) && !compared;
        let goes_on = listed
            || quantity.denied
            || compared && !weak
            || !compared && self.is_corrected(quantity);
        if let Some(last) = last.filter(|_| goes_on) {
            return told(last);
        }
        if compared && let Some(owner) = self.nearest_label(quantity) {
            return Some(owner);
        }
        if !compared && (weak || !self.is_number_edit(quantity)) {
            return None;
        }
        let mut filtered = self.numeric().filter(|&it| self.catalog.has_filter(it));
        let mut all = self.numeric();
        let choice = match (filtered.next(), filtered.next(), all.next(), all.next()) {
            (Some(only), None, ..) => Some(only),
            (_, _, Some(only), None) if compared => Some(only),
            _ => None,
        };
        let fits = |category: &usize| {
            quantity.units.is_empty()
                || measured.contains(category)
                || !self.knows_dimension(*category)
        };
        choice.filter(fits).and_then(told)
    }

    fn numeric(&self) -> impl Iterator<Item = usize> {
        let all = 0..self.catalog.request.categories.len();
        all.filter(|&category| self.catalog.kind(category) == Kind::Numeric)
    }

    /// The first numeric category whose label has a word of the class.
    pub(crate) fn numeric_of(&self, class: Word) -> Option<usize> {
        self.numeric().find(|&category| self.label_is(category, class))
    }

    /// Of the numeric categories that a label names, the one that the number's unit fits.
    fn fitting_number(&self, quantity: &Quantity, at: usize) -> Option<usize> {
        if matches!(self.role(at), Role::Other | Role::Values { .. }) {
            return None;
        }
        let labels = self.labels(at).iter().map(|label| label.category);
        let mut numeric = labels.filter(|&it| self.catalog.kind(it) == Kind::Numeric).peekable();
        let first = numeric.peek().copied();
        let by_unit = numeric.find(|&it| quantity.units.iter().any(|unit| self.measures(it, unit)));
        by_unit.or(first)
    }

    fn is_unread(&self, at: usize) -> bool {
        self.element(at).is_some_and(|element| !element.used)
    }

    /// The label beside a number: "users > 100", "more events than 2 million", "five or more stops".
    fn label_beside(&self, quantity: &Quantity) -> Option<Owner> {
        let mut before = quantity.start.checked_sub(1);
        while let Some(at) = before {
            let copula = self.is_any(at, &[Class::Is, Class::Not]) && !self.is_boundary(at);
            let link = self.is(at, Class::BeforeNumber);
            let unit = self.element(at).is_some_and(Element::is_word)
                && self.lexicon.unit(self.word(at)).is_some();
            if !(copula || link || unit || self.is_idle(at)) {
                break;
            }
            before = at.checked_sub(1);
        }
        let owner = |at: usize| Some((self.fitting_number(quantity, at)?, Some(at)));
        if let Some(found) = before.filter(|&at| self.is_unread(at)).and_then(owner) {
            return Some(found);
        }
        if let Some(inside) = (quantity.start..quantity.at).find_map(owner) {
            return Some(inside);
        }
        for after in quantity.at + 1..(quantity.at + 5).min(self.elements.len()) {
            if let Some(found) = owner(after) {
                return Some(found);
            }
            let word = self.element(after).is_some_and(|it| it.is_word() && !it.used);
            let of = self.is(after, Class::OfNumber);
            let stepped = word || of || after < quantity.end || self.is_idle(after);
            if !stepped || self.is_boundary(after) {
                break;
            }
        }
        None
    }

    /// "3 or 4 stops": the last number of the list has the label.
    fn label_of_list(&self, quantity: &Quantity) -> Option<usize> {
        let mut end = quantity.end;
        while self.is_any(end, &[Class::Or, Class::And, Class::Comma, Class::Nor])
            && self.free_number(end + 1).is_some()
        {
            end += 2;
        }
        let exact = quantity.operator.is_none_or(|operator| operator == Operator::Is);
        let listed = exact && end > quantity.end;
        listed.then(|| self.fitting_number(quantity, self.next(end - 1))).flatten()
    }

    /// The categories that the comparative or the unit speaks of.
    fn measured(&self, quantity: &Quantity) -> Vec<usize> {
        // The first dimension that a category has: "older" speaks of an age rather than a time.
        let dimensions = quantity.dimensions.iter().chain(&quantity.units);
        let measure = |dimension: &&str| -> Vec<usize> {
            self.numeric().filter(|&category| self.measures(category, dimension)).collect()
        };
        dimensions.map(measure).find(|found| !found.is_empty()).unwrap_or_default()
    }

    /// "rating under 2, actually make that 3"
    fn is_corrected(&self, quantity: &Quantity) -> bool {
        let plain = |at: &usize| self.element(*at).is_some_and(|it| it.number.is_none());
        let mut before = (0..quantity.start).rev().take_while(plain);
        before.any(|at| self.is(at, Class::Correction))
    }

    fn nearest_label(&self, quantity: &Quantity) -> Option<Owner> {
        let unread = (0..self.elements.len()).filter(|&at| self.is_unread(at));
        let named = unread.filter_map(|at| {
            Some((at.abs_diff(quantity.at), at, self.fitting_number(quantity, at)?))
        });
        named.min().map(|(_, at, category)| (category, Some(at)))
    }

    /// "make it 500", "500 instead".
    fn is_number_edit(&self, quantity: &Quantity) -> bool {
        const EDITS: [Class; 3] = [Class::Switch, Class::Raise, Class::Correction];
        (0..quantity.at).any(|at| self.is_any(at, &EDITS))
            || self.is(self.next(quantity.at), Class::Instead)
    }

    fn clause_names(&self, at: usize, category: usize) -> bool {
        (0..self.elements.len()).any(|other| {
            other.abs_diff(at) < 6
                && self.labels(other).iter().any(|label| label.category == category)
        })
    }

    /// The operator of a bare number. "make it 500" keeps the direction of the filter it changes;
    /// "500 users" and "exit code 3" are exact.
    pub(crate) fn direction(
        &self,
        quantity: &Quantity,
        category: usize,
        before: Option<Operator>,
    ) -> Operator {
        const BOUNDS: [Operator; 4] = [Operator::Gt, Operator::Gte, Operator::Lt, Operator::Lte];
        let said = |class: Class| (0..quantity.at).any(|at| self.is(at, class));
        if let Some(operator) = before.filter(|_| said(Class::Correction)) {
            return operator;
        }
        let after = quantity.at + 1..(quantity.at + 3).min(self.elements.len());
        let labelled_after =
            after.flat_map(|at| self.labels(at)).any(|label| label.category == category);
        let mut operators = self.catalog.current(category).map(|filter| filter.operator);
        match (operators.next(), operators.next()) {
            (Some(operator), None)
                if said(Class::Raise) && !labelled_after && BOUNDS.contains(&operator) =>
            {
                operator
            }
            _ => Operator::Is,
        }
    }
}
