//! Bodies of requests: what `serde_json` reads, `shared::json` reads too, as it was written; and nothing else.

use std::borrow::Cow;

use serde_json::Value;
use serde_json::value::RawValue;
use shared::json::{Json, JsonPath, MAX_BODY_DEPTH, Violations, array, number, text};

pub(crate) fn json(bytes: &[u8]) {
    let Ok(written) = std::str::from_utf8(bytes) else { return };
    let read = Json::parse(written, MAX_BODY_DEPTH);
    assert_eq!(read, Json::parse(written, MAX_BODY_DEPTH), "the same each time");
    let json = match read {
        Ok(json) => json,
        Err(fault) => {
            // Numbers that no float holds are read here and not there; never the other way round.
            if serde_json::from_str::<Value>(written).is_ok() {
                assert!(depth(written) > MAX_BODY_DEPTH, "{fault}");
            }
            return;
        }
    };
    assert!(serde_json::from_str::<&RawValue>(written).is_ok());
    let mut again = String::new();
    write(&json, &mut again);
    assert_eq!(
        Json::parse(&again, MAX_BODY_DEPTH).as_ref(),
        Ok(&json),
        "what is read can be written"
    );
    if let Ok(value) = serde_json::from_str::<Value>(written) {
        assert!(depth(written) <= MAX_BODY_DEPTH);
        if !json.has_duplicate_names() {
            assert!(is_same(&json, &value), "{json:?} is not {value}");
        }
    }
    // Whatever it is, it is a list of numbers, or it is said why not.
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
        "text is refused, and all else is no text"
    );
    assert!(list.is_none_or(|list| list.len() <= 10));
}

/// How deep lists and objects are in each other. What `serde_json` made of them does not tell: of members of one
/// name it keeps the last.
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
        // Without its feature `float_roundtrip`, serde_json may miss the last bit, or two of the least numbers.
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
        // What an object with a name of serde_json's own says is read in the place of the object.
        (Json::Object(members), _) if members.iter().any(|(name, _)| is_private(name)) => true,
        (Json::Object(members), Value::Object(others)) => {
            let named = |name: &Cow<'_, str>| others.get(name.as_ref());
            members.len() == others.len()
                && members.iter().all(|(name, one)| named(name).is_some_and(|it| is_same(one, it)))
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
        Json::Object(members) => {
            to.push('{');
            for (at, (name, value)) in members.iter().enumerate() {
                to.push_str(if at > 0 { "," } else { "" });
                to.push_str(&quoted(name));
                to.push(':');
                write(value, to);
            }
            to.push('}');
        }
    }
}
