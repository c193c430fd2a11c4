//! The category of a number.

use super::{Class, CueSet, JOINS, Kind, Operator, ParseContext, Quantity, Word};

/// A category, and the label that determined it.
pub(crate) type Owner = (usize, Option<usize>);

impl ParseContext<'_> {
    /// Returns the category of a number. The first of these sources decides:
    ///
    /// - the label before or after the number
    /// - the dimension of the comparative or unit
    /// - the last category with a number
    /// - the nearest label
    /// - the only numeric category with a filter, else the only numeric category
    pub(crate) fn owner(&self, quantity: &Quantity, last: Option<usize>) -> Option<Owner> {
        let compared = quantity.is_compared();
        let without_label = |category: usize| (category, None);
        self.label_beside(quantity)
            .or_else(|| self.implied_category(quantity, last).map(without_label))
            .or_else(|| self.nearest_label(quantity).filter(|_| compared))
            .or_else(|| self.only_category(quantity).map(without_label))
    }

    /// Returns the category that the number or the words around it imply.
    fn implied_category(&self, quantity: &Quantity, last: Option<usize>) -> Option<usize> {
        let compared = quantity.is_compared();
        let number = self.free_number(quantity.at)?;
        let measured = self.measured(quantity);
        let named = measured.iter().find(|it| self.clause_names(quantity.at, **it));
        let continues = if compared {
            !number.is_weak()
        } else {
            self.joins_number(quantity.start) || self.is_corrected(quantity)
        };
        self.label_of_list(quantity)
            .or_else(|| self.numeric_of(Word::Year).filter(|_| compared && number.is_year()))
            .or_else(|| self.catalog.age_category().filter(|_| quantity.ago))
            .or(named.or(measured.first()).copied().filter(|_| compared))
            .or(last.filter(|_| continues || quantity.negator.is_some()))
    }

    /// Returns the only category that a number can mean, if it must mean one.
    fn only_category(&self, quantity: &Quantity) -> Option<usize> {
        let compared = quantity.is_compared();
        let weak = self.free_number(quantity.at)?.is_weak();
        if !compared && (weak || !self.is_number_edit(quantity)) {
            return None;
        }
        let mut filtered = self.numeric().filter(|&it| self.catalog.has_filter(it));
        let mut all = self.numeric();
        let choice = match (filtered.next(), filtered.next(), all.next(), all.next()) {
            (Some(only), None, ..) => only,
            (_, _, Some(only), None) if compared => only,
            _ => return None,
        };
        let dimensions = self.dimensions(choice);
        let fits = quantity.unit.is_none_or(|unit| dimensions.contains(&unit));
        (fits || dimensions.is_empty()).then_some(choice)
    }

    pub(crate) fn numeric(&self) -> impl Iterator<Item = usize> {
        let all = 0..self.catalog.request.categories.len();
        all.filter(|&category| self.catalog.kind(category) == Kind::Numeric)
    }

    /// Returns the first numeric category whose label contains a word of the class.
    pub(crate) fn numeric_of(&self, class: Word) -> Option<usize> {
        self.numeric().find(|&category| self.label_is(category, class))
    }

    /// Returns a numeric category that a label names, preferably one that fits the number's unit.
    fn fitting_number(&self, quantity: &Quantity, at: usize) -> Option<usize> {
        let labels = self.labels(at).iter().map(|label| label.category);
        let mut numeric = labels.filter(|&it| self.catalog.kind(it) == Kind::Numeric).peekable();
        let first = numeric.peek().copied();
        let fits = |unit| numeric.find(|&it| self.dimensions(it).contains(&unit));
        // "claims older than 3 months" for Claim amount (EUR), next to Age (days)
        let differs = |category: usize| {
            let dimensions = self.dimensions(category);
            !dimensions.is_empty() && quantity.unit.is_some() && !self.measured(quantity).is_empty()
        };
        quantity.unit.and_then(fits).or(first.filter(|&it| !differs(it)))
    }

    /// Returns the label next to a number: "users > 100", "more events than 2 million", "five or
    /// more stops".
    fn label_beside(&self, quantity: &Quantity) -> Option<Owner> {
        let mut before = quantity.start.checked_sub(1);
        while let Some(at) = before {
            let copula = self.is_any(at, cues![Is, Not]) && !self.is_boundary(at);
            let link = self.is(at, Class::BeforeNumber);
            let unit = self.is_word(at) && self.lexicon.unit(self.word(at)).is_some();
            if !(copula || link || unit || self.is_idle(at)) {
                break;
            }
            before = at.checked_sub(1);
        }
        let owner = |at: usize| Some((self.fitting_number(quantity, at)?, Some(at)));
        if let Some(found) = before.filter(|&at| !self.is_used(at)).and_then(owner) {
            return Some(found);
        }
        if let Some(inside) = (quantity.start..quantity.at).find_map(owner) {
            return Some(inside);
        }
        for after in quantity.at + 1..(quantity.at + 5).min(self.elements.len()) {
            if let Some(found) = owner(after) {
                return Some(found);
            }
            let stepped = after < quantity.end
                || self.is(after, Class::OfNumber)
                || self.is_idle(after)
                || self.is_word(after) && !self.is_used(after);
            if !stepped || self.is_boundary(after) {
                break;
            }
        }
        None
    }

    /// Returns the category of the label after a list of numbers: "3 or 4 stops".
    fn label_of_list(&self, quantity: &Quantity) -> Option<usize> {
        let mut end = quantity.end;
        while self.is_any(end, JOINS) && self.free_number(end + 1).is_some() {
            end += 2;
        }
        let exact = quantity.operator.is_none_or(|operator| operator == Operator::Is);
        let listed = exact && end > quantity.end;
        listed.then(|| self.fitting_number(quantity, self.next(end - 1))).flatten()
    }

    /// Returns the categories with the dimension of the comparative or the unit. The best come
    /// first: those with the same unit, then those with more of the dimensions.
    fn measured(&self, quantity: &Quantity) -> Vec<usize> {
        // The first dimension that a category has: "older" prefers an age to a time.
        let dimensions = quantity.dimensions.iter().chain(&quantity.unit);
        let measured: Vec<_> = self.numeric().map(|it| (it, self.dimensions(it))).collect();
        let measure = |dimension: &&str| -> Vec<usize> {
            measured.iter().filter(|it| it.1.contains(dimension)).map(|it| it.0).collect()
        };
        let mut found =
            dimensions.clone().map(measure).find(|found| !found.is_empty()).unwrap_or_default();
        let said = self.unit_of(quantity.second.unwrap_or(quantity.at));
        found.sort_by_cached_key(|&category| {
            let same = said.zip(self.label_unit(category)).is_some_and(|(one, other)| {
                (one.dimension, one.factor) == (other.dimension, other.factor)
            });
            let own = self.dimensions(category);
            let more = dimensions.clone().filter(|it| own.contains(it)).count();
            (!same, usize::MAX - more)
        });
        found
    }

    /// `true` if a correction precedes: "rating under 2, actually make that 3".
    fn is_corrected(&self, quantity: &Quantity) -> bool {
        let plain = |at: &usize| !self.is_number(*at);
        (0..quantity.start).rev().take_while(plain).any(|at| self.is(at, Class::Correction))
    }

    fn nearest_label(&self, quantity: &Quantity) -> Option<Owner> {
        let unread = (0..self.elements.len()).filter(|&at| !self.is_used(at));
        let named = unread.filter_map(|at| {
            Some((at.abs_diff(quantity.at), at, self.fitting_number(quantity, at)?))
        });
        named.min().map(|(_, at, category)| (category, Some(at)))
    }

    /// `true` if the number edits a filter: "make it 500", "500 instead".
    fn is_number_edit(&self, quantity: &Quantity) -> bool {
        const EDITS: CueSet = cues![Switch, Raise, Correction];
        (0..quantity.at).any(|at| self.is_any(at, EDITS))
            || self.is(self.next(quantity.at), Class::Instead)
    }

    fn clause_names(&self, at: usize, category: usize) -> bool {
        (0..self.elements.len())
            .any(|other| other.abs_diff(at) < 6 && self.is_label_of(other, category))
    }

    /// Returns the operator of a bare number. "make it 500" keeps the direction of the filter that
    /// it changes. "500 users" and "exit code 3" are exact.
    pub(crate) fn direction(
        &self,
        quantity: &Quantity,
        category: usize,
        before: Option<Operator>,
    ) -> Operator {
        let said = |class: Class| (0..quantity.at).any(|at| self.is(at, class));
        if let Some(operator) = before.filter(|_| said(Class::Correction)) {
            return operator;
        }
        let mut after = quantity.at + 1..(quantity.at + 3).min(self.elements.len());
        let labelled_after = after.any(|at| self.is_label_of(at, category));
        let mut operators = self.catalog.current(category).map(|filter| filter.operator);
        let only = operators.next().filter(|_| operators.next().is_none());
        let raised = said(Class::Raise) && !labelled_after;
        only.filter(|only| raised && only.is_bound()).unwrap_or(Operator::Is)
    }
}
