//! Conditions about attributes in flagd's `JsonLogic`.

use serde_json::{Value, json};

use shared::timestamp::Timestamp;

use crate::condition::{Condition, NOW, Operator, is_number, parse_version};

/// Returns a condition in `JsonLogic`, or the reason why flagd cannot express it.
pub(super) fn condition(condition: &Condition) -> Result<Value, String> {
    use Operator as O;
    let Condition { attribute, operator, values } = condition;
    let Some(attribute) = attribute else { return Err("it has no attribute".to_owned()) };
    let is_now = attribute == NOW;
    let var = json!({"var": if is_now { "$flagd.timestamp" } else { attribute }});
    Ok(match operator {
        O::Exists => is_present(&var),
        O::NotExists => json!({"===": [var, null]}),
        O::Equals | O::In => one_of(&var, values)?,
        O::NotEquals | O::NotIn => json!({"and": [is_present(&var), not(&one_of(&var, values)?)]}),
        O::Contains => of_text(&var, contains(&var, values)),
        O::NotContains => of_text(&var, not(&contains(&var, values))),
        O::StartsWith => any_of(values, |part| json!({"starts_with": [var, part]})),
        O::NotStartsWith => {
            let starts = any_of(values, |part| json!({"starts_with": [var, part]}));
            of_text(&var, not(&starts))
        }
        O::EndsWith => any_of(values, |part| json!({"ends_with": [var, part]})),
        O::NotEndsWith => {
            let ends = any_of(values, |part| json!({"ends_with": [var, part]}));
            of_text(&var, not(&ends))
        }
        O::GreaterThan => number(&var, ">", values)?,
        O::GreaterThanOrEqual => number(&var, ">=", values)?,
        O::LessThan => number(&var, "<", values)?,
        O::LessThanOrEqual => number(&var, "<=", values)?,
        O::After if is_now => now(&var, ">=", values)?,
        O::Before if is_now => now(&var, "<", values)?,
        O::Before | O::After => return Err("flagd cannot compare dates".to_owned()),
        O::SemverEquals => version(&var, "=", values)?,
        O::SemverGreaterThan => version(&var, ">", values)?,
        O::SemverGreaterThanOrEqual => version(&var, ">=", values)?,
        O::SemverLessThan => version(&var, "<", values)?,
        O::SemverLessThanOrEqual => version(&var, "<=", values)?,
        O::Matches | O::NotMatches => return Err("flagd has no regular expressions".to_owned()),
        O::InCidr => return Err("flagd has no address ranges".to_owned()),
        O::InSegment | O::NotInSegment => return Err("it is about segments".to_owned()),
    })
}

fn is_present(var: &Value) -> Value {
    json!({"!==": [var, null]})
}

/// Only a text is equal to its conversion to text. flagd cannot convert null.
fn is_text(var: &Value) -> [Value; 2] {
    [is_present(var), json!({"===": [{"cat": [var]}, var]})]
}

/// Returns a condition that holds only for texts.
fn of_text(var: &Value, condition: Value) -> Value {
    let [present, text] = is_text(var);
    all(vec![present, text, condition])
}

pub(super) fn not(condition: &Value) -> Value {
    json!({"!": [condition]})
}

pub(super) fn all(mut conditions: Vec<Value>) -> Value {
    match conditions.len() {
        0 => json!(true),
        1 => conditions.remove(0),
        _ => json!({"and": conditions}),
    }
}

fn any_of(values: &[String], condition: impl Fn(&str) -> Value) -> Value {
    any(values.iter().map(|value| condition(value)).collect())
}

pub(super) fn any(mut conditions: Vec<Value>) -> Value {
    if conditions.len() == 1 { conditions.remove(0) } else { json!({"or": conditions}) }
}

fn contains(var: &Value, parts: &[String]) -> Value {
    any_of(parts, |part| json!({"in": [part, var]}))
}

/// Compares with each value in all types that it can equal: text, number, boolean.
fn one_of(var: &Value, values: &[String]) -> Result<Value, String> {
    let mut equal = Vec::with_capacity(values.len());
    for value in values {
        equal.push(json!(value));
        if is_number(value) {
            equal.push(exact_number(value)?);
        }
        if let Ok(boolean) = value.parse::<bool>() {
            equal.push(json!(boolean));
        }
    }
    Ok(json!({"in": [var, equal]}))
}

fn number(var: &Value, operator: &str, values: &[String]) -> Result<Value, String> {
    let number = exact_number(only(values)?)?;
    // Values that flagd would convert to 0 or 1.
    let non_numbers = [json!(null), json!(""), json!(true), json!(false)];
    let mut conditions: Vec<Value> =
        non_numbers.iter().map(|other| json!({"!==": [var, other]})).collect();
    conditions.push(json!({operator: [var, number]}));
    Ok(all(conditions))
}

/// Returns a number as flagd reads it. flagd has only binary floats.
fn exact_number(written: &str) -> Result<Value, String> {
    const MAX_SAFE_INTEGER: i64 = 9_007_199_254_740_991;
    let integer = written.parse::<i64>();
    match (integer, written.contains(['.', 'e', 'E'])) {
        (Ok(integer), _) if (-MAX_SAFE_INTEGER..=MAX_SAFE_INTEGER).contains(&integer) => {
            Ok(json!(integer))
        }
        (_, true) => written.parse::<f64>().map(|number| json!(number)).map_err(|e| e.to_string()),
        _ => Err("flagd would round an integer of this size".to_owned()),
    }
}

/// Compares flagd's clock, which has whole seconds, with the time rounded up.
fn now(var: &Value, operator: &str, values: &[String]) -> Result<Value, String> {
    let at = Timestamp::parse_rfc3339(only(values)?).map_err(|error| error.to_string())?;
    let seconds = at.as_millis().div_euclid(1_000) + i64::from(at.as_millis() % 1_000 != 0);
    Ok(json!({operator: [var, seconds]}))
}

fn version(var: &Value, operator: &str, values: &[String]) -> Result<Value, String> {
    let version = parse_version(only(values)?).ok_or("it is not a version")?;
    Ok(of_text(var, json!({"sem_ver": [var, operator, version.to_string()]})))
}

fn only(values: &[String]) -> Result<&str, String> {
    match values {
        [value] => Ok(value),
        _ => Err("it does not have exactly one value".to_owned()),
    }
}
