//! Stage 7: numbers (rule 6): what compares them, and which category they belong to.

use crate::interpretation::catalog::Catalog;
use crate::interpretation::condition::{Condition, Findings};
use crate::interpretation::context::{Role, Scene};
use crate::interpretation::cue::Class;
use crate::interpretation::decimal::Decimal;
use crate::interpretation::element::Element;
use crate::interpretation::fold;
use crate::interpretation::lexicon::{Lexicon, Unit};
use crate::interpretation::model::{Kind, Operator};

const COMPARATORS: [(Class, Operator); 6] = [
    (Class::Gte, Operator::Gte),
    (Class::Lte, Operator::Lte),
    (Class::Gt, Operator::Gt),
    (Class::Lt, Operator::Lt),
    (Class::Ne, Operator::IsNot),
    (Class::Eq, Operator::Is),
];

/// A number with all that was found around it.
struct Quantity {
    at: usize,
    operator: Option<Operator>,
    /// The elements from the comparator to the last word that belongs to the number.
    start: usize,
    end: usize,
    /// What the comparative speaks of.
    dimensions: Vec<&'static str>,
    /// What the unit measures.
    units: Vec<&'static str>,
    ranged: bool,
    denied: bool,
}

/// Finds all conditions on numeric categories and marks their elements as used.
pub(crate) fn read(scene: &mut Scene<'_>, findings: &mut Findings) {
    let numeric: Vec<usize> = (0..scene.catalog.request.categories.len())
        .filter(|&category| scene.catalog.kind(category) == Kind::Numeric)
        .collect();
    if numeric.is_empty() {
        return;
    }
    let mut last: Option<(usize, Operator)> = None;
    let mut at = 0;
    while at < scene.elements.len() {
        if !is_free_number(scene, at) {
            at += 1;
            continue;
        }
        let (first, second) = range(scene, at);
        let mut quantity = surroundings(scene, first, second);
        if second.is_some() && quantity.operator.is_some_and(|operator| operator == Operator::Is) {
            quantity.operator = None;
        }
        let listed = last.filter(|_| joined_to_number(scene, quantity.start));
        let named = last.map(|(category, _)| category);
        let Some(category) = category(scene, &quantity, &numeric, named) else {
            at = second.unwrap_or(first) + 1;
            continue;
        };
        let operator = quantity
            .operator
            .or(listed.map(|(_, operator)| operator).filter(|operator| *operator == Operator::Is));
        let keeps_direction = operator.is_none() && second.is_none();
        let operator = if keeps_direction {
            direction(scene, &quantity, category, findings)
        } else {
            operator.unwrap_or(Operator::Is)
        };
        let operator = if quantity.denied { operator.negated() } else { operator };
        if let Some(second) = second {
            share_scale(scene, first, second);
            add(scene, first, category, Operator::Gte, unit_of(scene, second), findings);
            add(scene, second, category, Operator::Lte, None, findings);
        } else {
            add(scene, first, category, operator, None, findings);
        }
        last = Some((category, operator));
        for element in scene.elements.get_mut(quantity.start..quantity.end).into_iter().flatten() {
            element.used = true;
        }
        at = second.unwrap_or(first) + 1;
    }
}

fn is_free_number(scene: &Scene<'_>, at: usize) -> bool {
    matches!(scene.role(at), Role::Other)
        && scene.element(at).is_some_and(|element| element.number.is_some() && !element.used)
}

fn unit_of(scene: &Scene<'_>, at: usize) -> Option<Unit> {
    scene.element(at).and_then(|element| element.number.as_ref()).and_then(|number| number.unit)
}

/// A number and the other end of its range, when it begins one.
fn range(scene: &Scene<'_>, at: usize) -> (usize, Option<usize>) {
    let link = at + 1;
    let second = link + 1;
    if !is_free_number(scene, second) {
        return (at, None);
    }
    let between = scene.previous(at).is_some_and(|before| scene.is(before, Class::Between))
        || at.checked_sub(1).is_some_and(|before| scene.is(before, Class::Between));
    let dash = scene.word(link) == "-";
    let to = scene.is(link, Class::To) && !scene.is(link, Class::Contains);
    let and = between && scene.is(link, Class::And);
    (at, (dash || to || and).then_some(second))
}

/// "between 3 and 4 thousand": the scale of the second number is the first's too.
fn share_scale(scene: &mut Scene<'_>, first: usize, second: usize) {
    let number = |at: usize| scene.element(at).and_then(|element| element.number.as_ref());
    let (Some(low), Some(high)) = (number(first), number(second)) else { return };
    let scaled = low.value.times(high.scale, 1);
    let shared = low.scale == 1 && high.scale > 1 && low.unit.is_none();
    if let Some(scaled) = scaled.filter(|scaled| shared && scaled.is_less_than(high.value))
        && let Some(element) = scene.elements.get_mut(first)
        && let Some(number) = &mut element.number
    {
        number.value = scaled;
    }
}

/// Whether the number goes on a list of numbers: "137, 143".
fn joined_to_number(scene: &Scene<'_>, start: usize) -> bool {
    let Some(join) = start.checked_sub(1) else { return false };
    scene.is_any(join, &[Class::And, Class::Or, Class::Comma])
        && join
            .checked_sub(1)
            .and_then(|before| scene.element(before))
            .is_some_and(|element| element.number.is_some())
}

/// What stands around a number: comparators before and after.
fn surroundings(scene: &Scene<'_>, first: usize, second: Option<usize>) -> Quantity {
    let mut quantity = Quantity {
        at: first,
        operator: None,
        start: first,
        end: second.unwrap_or(first) + 1,
        dimensions: Vec::new(),
        units: unit_of(scene, second.unwrap_or(first))
            .or(unit_of(scene, first))
            .map(|unit| unit.dimension)
            .into_iter()
            .collect(),
        ranged: second.is_some(),
        denied: false,
    };
    let mut cursor = first;
    while let Some(before) = cursor.checked_sub(1) {
        let word = scene.word(before);
        if matches!(scene.role(before), Role::Other)
            && let Some(operator) = COMPARATORS
                .iter()
                .find(|(class, _)| scene.is(before, *class))
                .map(|(_, operator)| *operator)
            && quantity.operator.is_none()
            && !(operator == Operator::Is && scene.is(before, Class::Is))
        {
            quantity.operator = Some(operator);
            quantity.start = before;
        } else if scene.is(before, Class::ComparisonEnd) && compares(scene, before).is_some() {
            let (comparative, operator, dimensions) =
                compares(scene, before).unwrap_or((before, Operator::Gt, Vec::new()));
            quantity.operator = Some(operator);
            quantity.start = comparative;
            quantity.dimensions = dimensions;
            cursor = comparative;
            continue;
        } else if (cursor == first || cursor + 1 == first && scene.is(cursor, Class::Is))
            && quantity.operator.is_none()
            && bounds_label(scene, before)
        {
            // "under level 20"
            quantity.start = before;
        } else if scene.is(before, Class::Between) && second.is_some() {
            quantity.start = before;
        } else if (scene.is_any(before, &[Class::Not, Class::Neither, Class::Nor])
            || scene.word(before) == "no" && !quantity.dimensions.is_empty())
            && !quantity.denied
        {
            quantity.denied = true;
            quantity.start = before;
        } else if !(matches!(
            word,
            "a" | "an"
                | "the"
                | "around"
                | "about"
                | "roughly"
                | "approximately"
                | "some"
                | "than"
                | "then"
                | "whole"
                | "mere"
                | "like"
                | "even"
                | "="
                | "("
        ) || scene.is(before, Class::Is) && scene.word(before) == "of"
            || scene.is_idle(before) && quantity.operator.is_none() && is_small(word))
        {
            break;
        }
        cursor = before;
    }
    let mut after = quantity.end;
    while after < scene.elements.len() {
        // "10 users or more"
        // "30 percent off or more"
        let skips_label = after == quantity.end
            && (scene.word(after) == "off" || matches!(scene.role(after), Role::Label(_)));
        if let Some(operator) = suffix(scene, after) {
            if !(scene.word(after) == "plus" && is_free_number(scene, after + 1))
                && quantity.operator.is_none_or(|operator| operator == Operator::Is)
            {
                quantity.operator = Some(operator);
                quantity.end = after + 1;
            }
            break;
        }
        if !skips_label {
            break;
        }
        after += 1;
    }
    quantity
}

/// A numeric label between a comparator and its number.
fn bounds_label(scene: &Scene<'_>, label: usize) -> bool {
    let numeric = matches!(scene.role(label), Role::Label(_))
        && scene
            .labels(label)
            .iter()
            .any(|found| scene.catalog.kind(found.category) == Kind::Numeric);
    numeric
        && label.checked_sub(1).is_some_and(|before| {
            scene.is_any(before, &[Class::Gt, Class::Gte, Class::Lt, Class::Lte, Class::Between])
        })
}

fn is_small(word: &str) -> bool {
    matches!(word, "set" | "only" | "just")
}

fn suffix(scene: &Scene<'_>, at: usize) -> Option<Operator> {
    // "or more" of something else: "10 users at least 5 events" compares what follows.
    let numbered = is_free_number(scene, scene.next(at))
        && !scene.is_any(at, &[Class::And, Class::Or])
        && scene.is_any(at, &[Class::Gte, Class::Lte]);
    if numbered {
        return None;
    }
    if scene.is(at, Class::AfterGte) {
        Some(Operator::Gte)
    } else if scene.is(at, Class::AfterLte) {
        Some(Operator::Lte)
    } else {
        None
    }
}

/// "slower than", "more events than": the comparative before `than`.
fn compares(scene: &Scene<'_>, than: usize) -> Option<(usize, Operator, Vec<&'static str>)> {
    for steps in 1..=3 {
        let at = than.checked_sub(steps)?;
        if let Some(comparative) = scene.lexicon.comparative(scene.word(at)) {
            let operator = if comparative.greater { Operator::Gt } else { Operator::Lt };
            return Some((at, operator, comparative.dimensions.clone()));
        }
        if scene.is(at, Class::Gt) {
            return Some((at, Operator::Gt, Vec::new()));
        }
        if scene.is(at, Class::Lt) {
            return Some((at, Operator::Lt, Vec::new()));
        }
    }
    None
}

fn numeric_label(scene: &Scene<'_>, at: usize, numeric: &[usize]) -> Vec<usize> {
    if !matches!(scene.role(at), Role::Label(_) | Role::Context(_)) {
        return Vec::new();
    }
    scene
        .labels(at)
        .iter()
        .map(|label| label.category)
        .filter(|category| numeric.contains(category))
        .collect()
}

/// The category of a number, by the first of these that tells: the label before it, the label
/// after it, the comparative's or unit's dimension, the last category with a number, the nearest
/// label of the clause, the only numeric category with a filter, the only one there is.
fn category(
    scene: &mut Scene<'_>,
    quantity: &Quantity,
    numeric: &[usize],
    last: Option<usize>,
) -> Option<usize> {
    if let Some((at, category)) = label_beside(scene, quantity, numeric) {
        take(scene, at);
        return Some(category);
    }
    if let Some(category) = label_of_list(scene, quantity, numeric) {
        return Some(category);
    }
    let compared = quantity.operator.is_some() || quantity.ranged;
    if compared && let Some(category) = year_category(scene, quantity, numeric) {
        return Some(category);
    }
    let measured = measured(scene, quantity, numeric);
    if compared && !measured.is_empty() {
        let named =
            measured.iter().copied().find(|&category| clause_names(scene, quantity.at, category));
        return named
            .or(last.filter(|category| measured.contains(category)))
            .or(measured.first().copied());
    }
    if compared && let Some(category) = age_category(scene, quantity, numeric) {
        return Some(category);
    }
    let number = scene.element(quantity.at).and_then(|element| element.number.as_ref());
    let weak = number.is_some_and(|number| number.weak && number.unit.is_none());
    let listed = joined_to_number(scene, quantity.start) && !compared;
    if last.is_some() && (listed || compared && !weak || !compared && is_corrected(scene, quantity))
    {
        return last;
    }
    if compared && let Some((at, category)) = nearest_label(scene, quantity, numeric) {
        take(scene, at);
        return Some(category);
    }
    if !compared && (weak || !is_edit(scene, quantity)) {
        return None;
    }
    let mut filtered =
        numeric.iter().copied().filter(|&category| has_filter(scene.catalog, category));
    let choice = match (filtered.next(), filtered.next(), numeric) {
        (Some(only), None, _) => Some(only),
        (_, _, &[only]) if compared => Some(only),
        _ => None,
    };
    let unitless = quantity.units.is_empty();
    choice.filter(|&category| {
        unitless
            || measured.contains(&category)
            || !knows_dimension(scene.catalog, scene.lexicon, category)
    })
}

/// "2018 or older": a number that looks like a year is one where a category holds years.
fn year_category(scene: &Scene<'_>, quantity: &Quantity, numeric: &[usize]) -> Option<usize> {
    let number = scene.element(quantity.at).and_then(|element| element.number.as_ref())?;
    let year = number.written && number.digits.len() == 4 && number.unit.is_none() && {
        number.digits.starts_with("19") || number.digits.starts_with("20")
    };
    numeric.iter().copied().find(|&category| year && scene.label_has(category, &["year"]))
}

/// "women over 60": a mere number said of people is their age.
fn age_category(scene: &Scene<'_>, quantity: &Quantity, numeric: &[usize]) -> Option<usize> {
    let people = scene.previous(quantity.start).is_some_and(|before| {
        matches!(
            scene.word(before),
            "women"
                | "men"
                | "females"
                | "males"
                | "people"
                | "patients"
                | "adults"
                | "persons"
                | "children"
                | "kids"
                | "girls"
                | "boys"
                | "seniors"
                | "anyone"
                | "everyone"
        )
    });
    let unitless = quantity.units.is_empty() && quantity.dimensions.is_empty();
    numeric
        .iter()
        .copied()
        .find(|&category| people && unitless && scene.label_has(category, &["age"]))
}

/// Of the numeric categories that a label names, the one that the number's unit fits.
fn fitting(scene: &Scene<'_>, quantity: &Quantity, numeric: &[usize], at: usize) -> Option<usize> {
    let categories = numeric_label(scene, at, numeric);
    let by_unit = categories.iter().copied().find(|&category| {
        quantity.units.iter().any(|unit| measures(scene.catalog, scene.lexicon, category, unit))
    });
    by_unit.or(categories.first().copied())
}

/// The label beside a number: "users > 100", "more events than 2 million", "five or more stops".
fn label_beside(
    scene: &Scene<'_>,
    quantity: &Quantity,
    numeric: &[usize],
) -> Option<(usize, usize)> {
    let mut before = quantity.start.checked_sub(1);
    while let Some(at) = before {
        let copula = scene.is_any(at, &[Class::Is, Class::Not]) && !scene.is_boundary(at);
        let to = scene.is(at, Class::With) && scene.word(at) == "to";
        let unit = scene.element(at).is_some_and(Element::is_word)
            && scene.lexicon.unit(scene.word(at)).is_some();
        if !(copula || to || unit || scene.is_idle(at) || scene.word(at) == "in") {
            break;
        }
        before = at.checked_sub(1);
    }
    if let Some(at) = before
        && !label_taken(scene, at)
        && let Some(category) = fitting(scene, quantity, numeric, at)
    {
        return Some((at, category));
    }
    let inside = (quantity.start..quantity.at)
        .find_map(|at| Some((at, fitting(scene, quantity, numeric, at)?)));
    if inside.is_some() {
        return inside;
    }
    let reach = quantity.at + 1..(quantity.at + 5).min(scene.elements.len());
    for after in reach {
        if let Some(category) = fitting(scene, quantity, numeric, after) {
            return Some((after, category));
        }
        let word = scene.element(after).is_some_and(|element| element.is_word() && !element.used);
        let of = scene.is(after, Class::Is) && scene.word(after) == "of";
        let stepped = word || of || after < quantity.end || scene.is_idle(after);
        if !stepped || scene.is_boundary(after) {
            break;
        }
    }
    None
}

/// "3 or 4 stops": the last number of the list has the label.
fn label_of_list(scene: &Scene<'_>, quantity: &Quantity, numeric: &[usize]) -> Option<usize> {
    let mut end = quantity.end;
    while scene.is_any(end, &[Class::Or, Class::And, Class::Comma])
        && is_free_number(scene, end + 1)
    {
        end += 2;
    }
    let exact = quantity.operator.is_none_or(|operator| operator == Operator::Is);
    if !exact || end == quantity.end {
        return None;
    }
    fitting(scene, quantity, numeric, scene.next(end - 1))
}

/// The categories that the comparative or the unit speaks of.
fn measured(scene: &Scene<'_>, quantity: &Quantity, numeric: &[usize]) -> Vec<usize> {
    let spoken_of = |category: &usize| {
        let mut dimensions = quantity.dimensions.iter().chain(&quantity.units);
        dimensions.any(|dimension| measures(scene.catalog, scene.lexicon, *category, dimension))
    };
    numeric.iter().copied().filter(spoken_of).collect()
}

/// "rating under 2, actually make that 3"
fn is_corrected(scene: &Scene<'_>, quantity: &Quantity) -> bool {
    (0..quantity.start)
        .rev()
        .take_while(|&at| scene.element(at).is_some_and(|element| element.number.is_none()))
        .any(|at| scene.is(at, Class::Correction))
}

fn nearest_label(
    scene: &Scene<'_>,
    quantity: &Quantity,
    numeric: &[usize],
) -> Option<(usize, usize)> {
    let free = (0..scene.elements.len()).filter(|&at| !label_taken(scene, at));
    let named = free.filter_map(|at| {
        Some((at.abs_diff(quantity.at), at, fitting(scene, quantity, numeric, at)?))
    });
    named.min().map(|(_, at, category)| (at, category))
}

/// "make it 500", "500 instead".
fn is_edit(scene: &Scene<'_>, quantity: &Quantity) -> bool {
    (0..quantity.at).any(|at| scene.is_any(at, &[Class::Switch, Class::Raise, Class::Correction]))
        || scene.is(scene.next(quantity.at), Class::Instead)
}

fn has_filter(catalog: &Catalog<'_>, category: usize) -> bool {
    let id = catalog.category(category).map_or("", |facts| facts.id.as_str());
    catalog.request.current_filters.iter().any(|filter| filter.category_id == id)
}

fn label_taken(scene: &Scene<'_>, at: usize) -> bool {
    scene.element(at).is_none_or(|element| element.used)
}

fn take(scene: &mut Scene<'_>, at: usize) {
    if let Some(element) = scene.elements.get_mut(at) {
        element.used = true;
    }
}

/// Whether the label of a category speaks of a dimension.
fn measures(catalog: &Catalog<'_>, lexicon: &Lexicon, category: usize, dimension: &str) -> bool {
    let Some(facts) = catalog.category(category) else { return false };
    let in_unit =
        label_unit(catalog, lexicon, category).is_some_and(|unit| unit.dimension == dimension);
    in_unit
        || fold::atoms(&facts.label)
            .iter()
            .chain(&fold::atoms(&facts.id))
            .any(|atom| lexicon.dimensions(&atom.folded).contains(&dimension))
        || dimension == "percent" && facts.label.contains('%')
}

fn knows_dimension(catalog: &Catalog<'_>, lexicon: &Lexicon, category: usize) -> bool {
    let Some(facts) = catalog.category(category) else { return false };
    label_unit(catalog, lexicon, category).is_some()
        || fold::atoms(&facts.label).iter().any(|atom| !lexicon.dimensions(&atom.folded).is_empty())
}

/// The unit in a label: in brackets, "Duration (ms)", or as a word of time, "Days open".
fn label_unit(catalog: &Catalog<'_>, lexicon: &Lexicon, category: usize) -> Option<Unit> {
    let label = &catalog.category(category)?.label;
    let Some((_, bracket)) = label.split_once(['(', '[']) else {
        let atoms = fold::atoms(label);
        let long = atoms.iter().filter(|atom| atom.folded.len() > 3);
        return long
            .filter_map(|atom| lexicon.unit(&atom.folded))
            .find(|unit| unit.dimension == "time");
    };
    // A week is no `W`.
    if bracket.starts_with("W)") || bracket.starts_with("W]") {
        return lexicon.unit("watt");
    }
    let folded = fold::fold(bracket.trim_end_matches([')', ']', ' ']).trim());
    lexicon
        .unit(&folded)
        .or_else(|| folded.split(' ').find_map(|word| lexicon.unit(word)))
        .or_else(|| lexicon.unit(&folded.replace(' ', "")))
}

fn clause_names(scene: &Scene<'_>, at: usize, category: usize) -> bool {
    (0..scene.elements.len()).any(|other| {
        other.abs_diff(at) < 6 && scene.labels(other).iter().any(|label| label.category == category)
    })
}

/// The operator of a bare number. "make it 500" keeps the direction of the filter it changes;
/// "500 users" and "exit code 3" are exact.
fn direction(
    scene: &Scene<'_>,
    quantity: &Quantity,
    category: usize,
    findings: &Findings,
) -> Operator {
    let raised = (0..quantity.at).any(|at| scene.is(at, Class::Raise));
    let labelled_after = (quantity.at + 1..(quantity.at + 3).min(scene.elements.len()))
        .any(|at| scene.labels(at).iter().any(|label| label.category == category));
    let before = findings
        .conditions
        .iter()
        .rev()
        .find(|condition| condition.category == category)
        .map(|condition| condition.operator);
    let corrected = (0..quantity.at).any(|at| scene.is(at, Class::Correction));
    if corrected && let Some(operator) = before {
        return operator;
    }
    if !raised || labelled_after {
        return Operator::Is;
    }
    let id = scene.catalog.category(category).map_or("", |facts| facts.id.as_str());
    let mut operators = scene
        .catalog
        .request
        .current_filters
        .iter()
        .filter(|filter| filter.category_id == id)
        .map(|filter| filter.operator);
    match (operators.next(), operators.next()) {
        (Some(operator), None)
            if matches!(operator, Operator::Gt | Operator::Gte | Operator::Lt | Operator::Lte) =>
        {
            operator
        }
        _ => Operator::Is,
    }
}

fn add(
    scene: &Scene<'_>,
    at: usize,
    category: usize,
    operator: Operator,
    borrowed: Option<Unit>,
    findings: &mut Findings,
) {
    let Some(number) = scene.element(at).and_then(|element| element.number.as_ref()) else {
        return;
    };
    let value = converted(scene, number.value, number.unit.or(borrowed), category);
    let operator = turned(scene, at, operator, category);
    findings.conditions.push(Condition {
        category,
        operator,
        value: value.to_string(),
        adds: false,
        at,
    });
}

/// The number in the unit that the label names: "2 seconds" for "Latency (ms)" is 2000.
fn converted(scene: &Scene<'_>, value: Decimal, unit: Option<Unit>, category: usize) -> Decimal {
    let target = label_unit(scene.catalog, scene.lexicon, category);
    let (Some(unit), Some(target)) = (unit, target) else { return value };
    if unit.dimension != target.dimension {
        return value;
    }
    value
        .times(unit.factor.0, unit.factor.1)
        .and_then(|base| base.times(target.factor.1, target.factor.0))
        .unwrap_or(value)
}

/// "faster than 50 km/h" is more, "faster than 2 seconds" less.
fn turned(scene: &Scene<'_>, at: usize, operator: Operator, category: usize) -> Operator {
    let speed = ["speed", "fps", "rate"]
        .iter()
        .any(|dimension| measures(scene.catalog, scene.lexicon, category, dimension))
        && !measures(scene.catalog, scene.lexicon, category, "time");
    // What is newer is of a later year.
    let dated = |age: &str| {
        let near = (at.saturating_sub(4)..at + 3).filter_map(|other| scene.element(other));
        let mut words = near.flat_map(|element| element.tokens.clone());
        scene.label_has(category, &["year"])
            && words.any(|word| scene.tokens.get(word).is_some_and(|token| token.is(age)))
    };
    let slow = (at.saturating_sub(4)..at)
        .any(|other| matches!(scene.word(other), "slower" | "faster" | "quicker"));
    match operator {
        Operator::Gt if speed && slow => Operator::Lt,
        Operator::Lt if speed && slow => Operator::Gt,
        Operator::Gte if speed && slow => Operator::Lte,
        Operator::Lte if speed && slow => Operator::Gte,
        Operator::Gt if dated("older") => Operator::Lt,
        Operator::Gte if dated("older") => Operator::Lte,
        Operator::Lt if dated("newer") || dated("younger") => Operator::Gt,
        other => other,
    }
}
