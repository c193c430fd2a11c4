//! Numbers and the words around them (rule 6): comparators, ranges, units.

mod owner;
mod unit;

use crate::context::{COMPARES, JOINS, ParseContext};
use crate::cue::{Class, CueSet};
use crate::decimal::Decimal;
use crate::fold;
use crate::lexicon::Unit;
use crate::model::{Kind, Operator};
use crate::number::Number;
use crate::word::Word;

const COMPARATORS: [(Class, Operator); 7] = [
    (Class::Gte, Operator::Gte),
    (Class::Lte, Operator::Lte),
    (Class::Gt, Operator::Gt),
    (Class::Lt, Operator::Lt),
    (Class::Ne, Operator::IsNot),
    (Class::Eq, Operator::Is),
    (Class::WithinLast, Operator::Lte),
];

/// A number and the words around it.
pub(crate) struct Quantity {
    pub(crate) at: usize,
    /// The other end of a range.
    pub(crate) second: Option<usize>,
    pub(crate) operator: Option<Operator>,
    /// The elements from the comparator to the last word of the number.
    pub(crate) start: usize,
    pub(crate) end: usize,
    /// Dimensions of the comparative.
    dimensions: Vec<&'static str>,
    /// Dimension of the unit.
    unit: Option<&'static str>,
    /// The negator within those elements, which governs the number as it governs values.
    pub(crate) negator: Option<usize>,
    /// `true` if it is the time since an event.
    pub(crate) ago: bool,
}

impl Quantity {
    /// `true` if a comparator or a range comes with the number.
    pub(crate) fn is_compared(&self) -> bool {
        self.operator.is_some() || self.second.is_some()
    }
}

impl ParseContext<'_> {
    /// Returns a number that no rule has read.
    pub(crate) fn free_number(&self, at: usize) -> Option<&Number> {
        self.element(at).filter(|_| self.is_free(at))?.number.as_ref()
    }

    pub(crate) fn unit_of(&self, at: usize) -> Option<Unit> {
        self.element(at)?.number.as_ref()?.unit
    }

    /// Returns the end of the range that a number begins.
    fn range_end(&self, at: usize) -> Option<usize> {
        let link = at + 1;
        self.free_number(link + 1)?;
        let between = self.follows_any(at, cues![Between])
            || at.checked_sub(1).is_some_and(|before| self.is(before, Class::Between));
        let to = self.is(link, Class::To) && !self.is(link, Class::Contains);
        let and = between && self.is(link, Class::And);
        (self.word(link) == "-" || to || and).then_some(link + 1)
    }

    /// `true` if the number continues a list of numbers: "137, 143".
    pub(crate) fn joins_number(&self, start: usize) -> bool {
        let before = start.checked_sub(2);
        before.is_some_and(|before| {
            self.is_number(before) && self.is_any(before + 1, cues![And, Or, Comma])
        })
    }

    /// Returns a number with the comparators before and after it.
    pub(crate) fn quantity(&self, first: usize) -> Option<Quantity> {
        self.free_number(first)?;
        let second = self.range_end(first);
        let unit = second.and_then(|second| self.unit_of(second)).or(self.unit_of(first));
        let mut quantity = Quantity {
            at: first,
            second,
            operator: None,
            start: first,
            end: second.unwrap_or(first) + 1,
            dimensions: Vec::new(),
            unit: unit.map(|unit| unit.dimension),
            negator: None,
            ago: false,
        };
        self.read_before(&mut quantity);
        self.read_after(&mut quantity);
        Some(quantity)
    }

    fn read_before(&self, quantity: &mut Quantity) {
        let first = quantity.at;
        let mut cursor = first;
        while let Some(before) = cursor.checked_sub(1) {
            let comparator = COMPARATORS.iter().find(|it| self.is(before, it.0));
            let operator = comparator.map(|it| it.1);
            let operator = operator.filter(|it| *it != Operator::Is || !self.is(before, Class::Is));
            let copula = cursor == first || cursor + 1 == first && self.is(cursor, Class::Is);
            if let Some(operator) = operator.filter(|_| quantity.operator.is_none()) {
                quantity.operator = Some(operator);
                quantity.ago |= self.is(before, Class::WithinLast);
                quantity.dimensions = self.dimensions_said(before);
                quantity.start = before;
            } else if self.is(before, Class::ComparisonEnd)
                && let Some((comparative, operator, dimensions)) = self.compares(before)
            {
                quantity.operator = Some(operator);
                quantity.start = comparative;
                quantity.dimensions = dimensions;
                cursor = comparative;
                continue;
            } else if copula && quantity.operator.is_none() && self.bounds_label(before)
                || self.is(before, Class::Between) && quantity.second.is_some()
            {
                // "under level 20"
                quantity.start = before;
            } else if quantity.negator.is_none() && self.denies_number(before, quantity) {
                quantity.negator = Some(before);
                quantity.start = before;
            } else if !(self.says(before, Word::Approximation)
                || matches!(self.word(before), "=" | "(")
                || self.is(before, Class::OfNumber))
            {
                break;
            }
            cursor = before;
        }
    }

    fn denies_number(&self, at: usize, quantity: &Quantity) -> bool {
        const DENIES: CueSet = cues![Not, Neither, Nor];
        let exact = quantity.operator.is_none() && quantity.second.is_none();
        self.is_any(at, DENIES)
            || self.says(at, Word::BareNo) && !quantity.dimensions.is_empty()
            || exact && self.is(at, Class::Except)
    }

    fn read_after(&self, quantity: &mut Quantity) {
        let mut after = quantity.end;
        if self.is(after, Class::Ago) {
            quantity.end = after + 1;
            quantity.ago = true;
            return;
        }
        // "10 users or more", "30 percent off or more"
        let skips_label = self.is_label(after) || self.is(after, Class::False);
        if self.suffix(after).is_none() && skips_label {
            after += 1;
        }
        let Some(operator) = self.suffix(after) else { return };
        let adds = self.is(after, Class::Add) && self.free_number(after + 1).is_some();
        if !adds && quantity.operator.is_none_or(|operator| operator == Operator::Is) {
            quantity.operator = Some(operator);
            quantity.end = after + 1;
        }
    }

    /// `true` for a numeric label between a comparator and its number.
    fn bounds_label(&self, label: usize) -> bool {
        self.is_label(label)
            && self.labels_number(label)
            && label.checked_sub(1).is_some_and(|before| self.is_any(before, COMPARES))
    }

    pub(crate) fn suffix(&self, at: usize) -> Option<Operator> {
        // "10 users at least 5 events": the comparator belongs to the next number.
        let numbered = self.free_number(self.next(at)).is_some()
            && !self.is_any(at, cues![And, Or])
            && self.is_any(at, cues![Gte, Lte]);
        let suffixes = [(Class::AfterGte, Operator::Gte), (Class::AfterLte, Operator::Lte)];
        suffixes.into_iter().find(|it| !numbered && self.is(at, it.0)).map(|it| it.1)
    }

    /// Returns the dimensions of the comparative in a phrase: "no older than".
    fn dimensions_said(&self, at: usize) -> Vec<&'static str> {
        let tokens = self.element(at).and_then(|it| self.tokens.get(it.tokens.clone()));
        let mut said = tokens.unwrap_or_default().iter();
        let comparative = said.find_map(|token| self.lexicon.comparative(&token.folded));
        comparative.map(|it| it.dimensions.clone()).unwrap_or_default()
    }

    /// Returns the comparative before `than`: "slower than", "more events than".
    fn compares(&self, than: usize) -> Option<(usize, Operator, Vec<&'static str>)> {
        (1..=3).filter_map(|steps| than.checked_sub(steps)).find_map(|at| {
            let comparative = self.lexicon.comparative(self.word(at));
            let dimensions = comparative.map(|it| it.dimensions.clone()).unwrap_or_default();
            let greater = comparative.map_or(self.is(at, Class::Gt), |it| it.greater);
            let found = comparative.is_some() || greater || self.is(at, Class::Lt);
            found.then_some((at, if greater { Operator::Gt } else { Operator::Lt }, dimensions))
        })
    }
}
