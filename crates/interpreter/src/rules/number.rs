//! Compares a numeric category with a number (rule 6).

use super::{Effect, Kind, Operator, ParseContext, Reading, Rule, View};
use crate::decimal::Decimal;
use crate::quantity::Quantity;

pub(crate) static RULE: Rule = Rule {
    name: "number",
    read,
    examples: &[
        ("users > 100", "", "users gt 100"),
        ("10 or more users", "", "users gte 10"),
        ("between 5 and 10 users", "", "users gte 5; users lte 10"),
        ("between a dozen and a hundred users", "", "users gte 12; users lte 100"),
        ("users 5-10", "", "users gte 5; users lte 10"),
        ("between 3 and 4 thousand users", "", "users gte 3000; users lte 4000"),
        ("between 5 and 9 users other than 7", "", "users gte 5; users lte 9; users is_not 7"),
        ("users other than 3, 5 and 7", "", "users is_not 3; users is_not 5; users is_not 7"),
        ("over 5 but under 10 users", "", "users gt 5; users lt 10"),
        ("1.5k+ users", "", "users gte 1500"),
        ("2, 3 or 4 users", "", "users is 2; users is 3; users is 4"),
        ("latency over 2 seconds", "", "latency gt 2000"),
        ("slower than 300 ms", "", "latency gt 300"),
        ("wind faster than 50", "", "speed gt 50"),
        ("wind no faster than 50", "", "speed lte 50"),
        ("older than 2015", "", "year lt 2015"),
        ("wind stronger than 50", "", "speed gt 50"),
        ("latency below minus five", "", "latency lt -5"),
        ("power draw over 2 kW", "", "draw gt 2000"),
        ("at least once renewed", "", "renewals gte 1"),
        ("battery, battery (%) below 15", "", "power is battery; battery lt 15"),
        ("users not 3", "", "users is_not 3"),
        ("exclude more than 10 users", "", "users lte 10"),
        ("hide what has over 10 users", "", "users lte 10"),
        ("firefox, but not with more than 10 users", "", "browser is Firefox; users lte 10"),
        ("not firefox and over 10 users", "", "browser is_not Firefox; users gt 10"),
        ("hide firefox and over 10 users", "", "browser is_not Firefox; users lte 10"),
        ("everything except 3 users and firefox", "", "users is_not 3; browser is_not Firefox"),
        ("users not over 10", "", "users lte 10"),
        ("hide users not over 10", "", "users gt 10"),
        ("everything except response 404 and 500", "", "response is_not 404; response is_not 500"),
        ("more than 10 users excluded", "", "users lte 10"),
        ("drop more than 10 users", "", "users lte 10"),
        ("drop users over 10", "users gt 10", ""),
        ("not older than 3 days", "", "age lte 3"),
        ("make it 500", "latency gt 200", "latency gt 500"),
        ("raise it to 500", "latency gt 200", "latency gt 500"),
        ("change it to 500", "latency gt 200", "latency gt 500"),
        ("make it 700", "users gt 100", "users gt 700"),
    ],
};

fn read(view: &View<'_>, at: usize) -> Option<Reading> {
    let context = view.context;
    let quantity = context.quantity(at)?;
    let numbers = || {
        let conditions = view.findings.conditions.iter().rev();
        conditions.filter(|found| context.catalog.kind(found.category) == Kind::Numeric)
    };
    let last = numbers().next();
    let (category, label) = context.owner(&quantity, last.map(|last| last.category))?;
    let bare = !quantity.is_compared() && context.joins_number(quantity.start);
    let listed = last.filter(|last| bare && last.category == category).map(|last| last.operator);
    let operator = quantity.operator.or(listed.filter(|it| *it == Operator::Is));
    let before = numbers().find(|found| found.category == category).map(|found| found.operator);
    let operator = operator.unwrap_or_else(|| context.direction(&quantity, category, before));
    let state = |at: usize, value: Decimal, operator: Operator, unit| {
        let value = context.converted(value, unit, category)?.to_string();
        Some(Effect::state(at, category, context.turned(at, operator, category), value))
    };
    let number = context.free_number(at)?;
    let effects = if let Some(second) = quantity.second {
        let high = context.free_number(second)?;
        let low = shared_scale(context, &quantity).unwrap_or(number.value);
        vec![
            state(at, low, Operator::Gte, number.unit.or(high.unit))?,
            state(second, high.value, Operator::Lte, high.unit)?,
        ]
    } else {
        vec![state(at, number.value, operator, number.unit)?]
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
