//! Compares a numeric category with a number (rule 6).

use super::{Effect, Kind, Operator, ParseContext, Reading, View};
use crate::decimal::Decimal;
use crate::number::Number;
use crate::quantity::Quantity;

pub(super) fn read(view: &View<'_>, at: usize) -> Option<Reading> {
    let context = view.context;
    let quantity = context.quantity(at)?;
    let numbers = || {
        let conditions = view.findings.conditions.iter().rev();
        conditions.filter(|found| context.catalog.kind(found.category) == Kind::Numeric)
    };
    let last = numbers().next();
    let (category, label) = context.owner(&quantity, last.map(|last| last.category))?;
    let before = numbers().find(|found| found.category == category).map(|found| found.operator);
    let operator =
        quantity.operator.unwrap_or_else(|| context.direction(&quantity, category, before));
    let state = |at: usize, value: Decimal, operator: Operator, unit| {
        let value = context.converted(value, unit, category)?.to_string();
        Some(Effect::state(at, category, context.turned(at, operator, category), value))
    };
    let number = context.free_number(at)?;
    // "60k" is 60 for Salary (k€).
    let money = context.lexicon.unit("$");
    let unit = |it: &Number| it.unit.or(money.filter(|_| it.scale > 1));
    let effects = if let Some(second) = quantity.second {
        let high = context.free_number(second)?;
        let low = shared_scale(context, &quantity).unwrap_or(number.value);
        vec![
            state(at, low, Operator::Gte, unit(number).or(unit(high)))?,
            state(second, high.value, Operator::Lte, unit(high))?,
        ]
    } else {
        vec![state(at, number.value, operator, unit(number))?]
    };
    let span = quantity.negator.map_or(quantity.start, |it| it + 1)..quantity.end;
    let besides = label.filter(|label| !span.contains(label));
    Some(Reading { besides, ..Reading::new(span, effects) })
}

/// Returns the first number with the scale of the second: "between 3 and 4 thousand".
fn shared_scale(context: &ParseContext<'_>, quantity: &Quantity) -> Option<Decimal> {
    let low = context.free_number(quantity.at)?;
    let high = context.free_number(quantity.second?)?;
    let shared = low.scale == 1 && high.scale > 1 && low.unit.is_none();
    low.value.times(high.scale, 1).filter(|scaled| shared && scaled.is_less_than(high.value))
}
