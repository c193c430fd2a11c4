//! The dimensions and the unit of a numeric category.

use super::{Decimal, Operator, ParseContext, Unit, Word, fold};

const TIME: &str = "time";
/// In seconds. A year has twelve months, though a month has 30 days.
const YEAR: (i128, i128) = (31_536_000, 1);
const MONTH: (i128, i128) = (2_592_000, 1);
const PERCENT: &str = "percent";

impl ParseContext<'_> {
    /// Returns the dimensions of a category, from the unit and the words of its label.
    pub(crate) fn dimensions(&self, category: usize) -> Vec<&'static str> {
        let facts = self.catalog.category(category);
        let unit = self.label_unit(category).map(|unit| unit.dimension);
        let percent = facts.is_some_and(|facts| facts.label.contains('%')).then_some(PERCENT);
        let mut found: Vec<&str> = unit.into_iter().chain(percent).collect();
        let measured = !found.is_empty();
        for atom in self.label_atoms(category) {
            let dimensions = self.lexicon.dimensions(&atom.folded).iter().copied();
            // "Usage (GB)" is no percentage.
            found.extend(dimensions.filter(|&it| !measured || it != PERCENT));
        }
        found
    }

    /// Returns the unit in a label: in brackets, "Duration (ms)", or as a word of time, "Days
    /// open".
    pub(super) fn label_unit(&self, category: usize) -> Option<Unit> {
        let label = &self.catalog.category(category)?.label;
        let lexicon = self.lexicon;
        let Some((_, bracket)) = label.split_once(['(', '[']) else {
            let atoms = fold::atoms(label);
            let long = atoms.iter().filter(|atom| atom.folded.len() > 3);
            let mut units = long.filter_map(|atom| lexicon.unit(&atom.folded));
            return units.find(Unit::is_time);
        };
        let folded = fold::fold(bracket.trim_end_matches([')', ']', ' ']).trim());
        let mut words = folded.split(' ').filter_map(|word| lexicon.unit(word));
        lexicon
            .unit(&folded)
            .or_else(|| words.next())
            .or_else(|| lexicon.unit(&folded.replace(' ', "")))
    }

    /// Returns the number in the unit of the label: 2000 for "2 seconds" and "Latency (ms)". `None`
    /// if the result has no short decimal form.
    pub(crate) fn converted(
        &self,
        value: Decimal,
        unit: Option<Unit>,
        category: usize,
    ) -> Option<Decimal> {
        let target = self.label_unit(category);
        let Some((unit, target)) = unit.zip(target).filter(|(it, to)| it.dimension == to.dimension)
        else {
            return Some(value);
        };
        match (unit.factor, target.factor) {
            (YEAR, MONTH) => value.times(12, 1),
            (MONTH, YEAR) => value.times(1, 12),
            (mut from, mut to) => {
                // GiB and MB: a user who counts by 1,024 does so for both units.
                if let Some(binary) = binary(to).filter(|it| is_binary(from) && it.0 < from.0) {
                    to = binary;
                } else if let Some(binary) = binary(from).filter(|it| is_binary(to) && it.0 < to.0)
                {
                    from = binary;
                }
                let (numerator, denominator) = (from.0 * to.1, from.1 * to.0);
                let common = divisor(numerator, denominator);
                value.times(numerator / common, denominator / common)
            }
        }
    }

    /// Returns the operator in the direction of the category. "faster than 50 km/h" is more, and
    /// "faster than 2 seconds" is less. "newer" means a later year.
    pub(crate) fn turned(&self, at: usize, operator: Operator, category: usize) -> Operator {
        let dimensions = self.dimensions(category);
        let rate = dimensions.iter().any(|dimension| self.lexicon.is(dimension, Word::Rate))
            && !dimensions.contains(&TIME);
        let near = at.saturating_sub(4)..at + 3;
        let faster = rate && (near.start..at).any(|other| self.says(other, Word::Speed));
        let dated = |age: Word| {
            let elements = near.clone().filter_map(|other| self.element(other));
            let mut tokens = elements.flat_map(|element| element.tokens.clone());
            self.label_is(category, Word::Year) && tokens.any(|token| self.tokens.says(token, age))
        };
        match operator {
            Operator::Gt if faster || dated(Word::Older) => Operator::Lt,
            Operator::Gte if faster || dated(Word::Older) => Operator::Lte,
            Operator::Lt if faster || dated(Word::Newer) => Operator::Gt,
            Operator::Lte if faster => Operator::Gte,
            other => other,
        }
    }
}

/// `true` if a factor is binary: a power of two.
fn is_binary(factor: (i128, i128)) -> bool {
    factor.1 == 1 && factor.0 > 1 && factor.0 & (factor.0 - 1) == 0
}

/// Returns the binary counterpart of a decimal factor: 1,024 for 1,000.
fn binary((numerator, denominator): (i128, i128)) -> Option<(i128, i128)> {
    let steps = (1..5).find(|&steps| denominator == 1 && 1_000_i128.pow(steps) == numerator)?;
    Some((1_024_i128.pow(steps), 1))
}

/// Returns the greatest common divisor of two positive numbers.
fn divisor(one: i128, other: i128) -> i128 {
    if other == 0 { one.max(1) } else { divisor(other, one % other) }
}
