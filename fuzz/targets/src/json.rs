//! Request bodies: `shared::json` reads what `serde_json` reads, unchanged, and nothing else.
use std::borrow::Cow;

use serde_json::Value;
use serde_json::value::RawValue;
use shared::json::{Json, JsonPath, MAX_BODY_DEPTH, Violations, array, number, text};

pub(crate) fn json(bytes: &[u8]) {
    let Ok(written) = std::str::from_utf8(bytes) else { return };
    let read = Json::parse(written, MAX_BODY_DEPTH);
    assert_eq!(read, Json::parse(written, MAX_BODY_DEPTH), "parsing is not deterministic");
    let json = match read {
        Ok(json) => json,
        Err(fault) => {
            // Numbers beyond floats are accepted here and not by `serde_json`, never the reverse.
            if serde_json::from_str::<Value>(written).is_ok() {
                assert!(depth(written) > MAX_BODY_DEPTH, "{fault}");
            }
            return;
        }
    };
    assert!(serde_json::from_str::<&RawValue>(written).is_ok());
    let mut again = String::new();
    write(&json, &mut again);
    assert_eq!(Json::parse(&again, MAX_BODY_DEPTH).as_ref(), Ok(&json), "the written form differs");
    if let Ok(value) = serde_json::from_str::<Value>(written) {
        assert!(depth(written) <= MAX_BODY_DEPTH);
        if !json.has_duplicate_names() {
            assert!(is_same(&json, &value), "{json:?} is not {value}");
        }
    }
    // Any value is either a list of numbers or has violations.
    let mut violations = Violations::default();
    let no_text = text(|_| {
        Err::<(), _>(shared::json::FieldError::new(
            shared::json::ViolationCode::InvalidValue,
            "is text",
        ))
    });
    let _ = no_text(&json, &JsonPath::Root, &mut violations);
    let item = |item: &Json<'_>, path: &JsonPath<'_>, violations: &mut Violations| {
        number(|written| Ok(written.to_owned()))(item, path, violations)
    };
    let list = array(10, item)(&json, &JsonPath::Root, &mut violations);
    assert!(
        violations.into_result(None::<()>).is_err(),
        "a text was accepted, or another type passed as text"
    );
    assert!(list.is_none_or(|list| list.len() <= 10));
}

/// Returns the nesting depth. `serde_json`'s result does not show it, because of duplicate fields
/// it keeps only the last.
fn depth(written: &str) -> usize {
    let (mut depth, mut deepest) = (0_usize, 0);
    let (mut is_text, mut is_escaped) = (false, false);
    for letter in written.chars() {
        match letter {
            _ if is_escaped => is_escaped = false,
            '\\' => is_escaped = is_text,
            '"' => is_text = !is_text,
            '[' | '{' if !is_text => {
                depth += 1;
                deepest = deepest.max(depth);
            }
            ']' | '}' if !is_text => depth -= 1,
            _ => {}
        }
    }
    deepest
}

fn is_same(json: &Json<'_>, value: &Value) -> bool {
    match (json, value) {
        (Json::Null, Value::Null) => true,
        (Json::Bool(one), Value::Bool(other)) => one == other,
        // Without its feature `float_roundtrip`, serde_json can be off by one bit, or by two for
        // the smallest numbers.
        (Json::Number(written), Value::Number(other)) => {
            let both = written.parse::<f64>().ok().zip(other.as_f64());
            let two_of_the_least = f64::from_bits(2);
            both.is_some_and(|(one, other)| {
                (one - other).abs() <= one.abs() * 2.0 * f64::EPSILON + two_of_the_least
            })
        }
        (Json::String(one), Value::String(other)) => one == other,
        (Json::Array(items), Value::Array(others)) => {
            items.len() == others.len()
                && items.iter().zip(others).all(|(one, other)| is_same(one, other))
        }
        // serde_json replaces an object that has one of its private field names with the field's
        // value.
        (Json::Object(fields), _) if fields.iter().any(|(name, _)| is_private(name)) => true,
        (Json::Object(fields), Value::Object(others)) => {
            let named = |name: &Cow<'_, str>| others.get(name.as_ref());
            fields.len() == others.len()
                && fields.iter().all(|(name, one)| named(name).is_some_and(|it| is_same(one, it)))
        }
        _ => false,
    }
}

fn is_private(name: &str) -> bool {
    name.starts_with("$serde_json::private::")
}

fn write(json: &Json<'_>, to: &mut String) {
    let quoted = |text: &str| Value::from(text).to_string();
    match json {
        Json::Null => to.push_str("null"),
        Json::Bool(value) => to.push_str(if *value { "true" } else { "false" }),
        Json::Number(written) => to.push_str(written),
        Json::String(text) => to.push_str(&quoted(text)),
        Json::Array(items) => {
            to.push('[');
            for (at, item) in items.iter().enumerate() {
                to.push_str(if at > 0 { "," } else { "" });
                write(item, to);
            }
            to.push(']');
        }
        Json::Object(fields) => {
            to.push('{');
            for (at, (name, value)) in fields.iter().enumerate() {
                to.push_str(if at > 0 { "," } else { "" });
                to.push_str(&quoted(name));
                to.push(':');
                write(value, to);
            }
            to.push('}');
        }
    }
}
