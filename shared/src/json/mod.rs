//! JSON documents, read exactly as sent.
//!
//! `serde` derives stop at the first error and turn numbers into binary floats. A request body
//! needs every violation with its location (RFC 6901) and the decimals of a number as written.
//! Duplicate names are rejected, since RFC 8259 §4 leaves their meaning open.
//!
//! `serde_json` still does all the parsing; this module keeps the details that it would discard.

#[cfg(test)]
mod conformance;
mod duplicates;
mod fields;
pub mod members;
mod path;
mod violations;

use std::borrow::Cow;
use std::fmt;

use serde::Deserialize;
use serde::de::{Deserializer, MapAccess, Visitor};
use serde_json::value::RawValue;

pub use duplicates::note_duplicates;
pub use fields::{Field, Fields, array, boolean, number, text};
pub use path::JsonPath;
pub use violations::{FieldError, Violation, ViolationCode, Violations};

/// Deepest nesting of arrays and objects in a request body; the root counts as one. The deepest
/// body that any operation accepts needs six.
pub const MAX_BODY_DEPTH: usize = 32;

/// A parsed JSON value that borrows from its text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Json<'a> {
    /// `null`
    Null,
    /// `true` or `false`
    Bool(bool),
    /// A number as written, so that `0.1` stays one tenth.
    Number(&'a str),
    /// A string with its escapes resolved.
    String(Cow<'a, str>),
    /// An array.
    Array(Vec<Json<'a>>),
    /// An object with all its fields in order, including duplicates.
    Object(Vec<(Cow<'a, str>, Json<'a>)>),
}

/// The reason why a text is not JSON or nests too deeply. The display form contains line and
/// column.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{reason} at line {line} column {column}")]
pub struct Malformed {
    reason: String,
    line: usize,
    column: usize,
}

impl<'a> Json<'a> {
    /// Parses one JSON value. Rejects arrays and objects that nest deeper than `max_depth`.
    pub fn parse(text: &'a str, max_depth: usize) -> Result<Self, Malformed> {
        check_nesting(text, max_depth)?;
        let root: &RawValue =
            serde_json::from_str(text).map_err(|error| Malformed::from_serde(&error))?;
        Self::read(text, root.get())
    }

    /// Returns the name of the value's type in error messages.
    pub fn type_name(&self) -> &'static str {
        match self {
            Json::Null => "null",
            Json::Bool(_) => "a boolean",
            Json::Number(_) => "a number",
            Json::String(_) => "a string",
            Json::Array(_) => "an array",
            Json::Object(_) => "an object",
        }
    }

    /// Returns the field `name` if this is an object that has it, or the first of several.
    pub fn member(&self, name: &str) -> Option<&Json<'a>> {
        let Json::Object(members) = self else { return None };
        members.iter().find_map(|(member, value)| (member == name).then_some(value))
    }

    /// Returns the text of the field `name` if this is an object with such a text.
    pub fn member_text(&self, name: &str) -> Option<&str> {
        match self.member(name) {
            Some(Json::String(text)) => Some(text),
            _ => None,
        }
    }

    /// Returns `true` if any object of the document has a name twice.
    pub fn has_duplicate_names(&self) -> bool {
        match self {
            Json::Array(items) => items.iter().any(Json::has_duplicate_names),
            Json::Object(members) => {
                let mut names: Vec<&str> = members.iter().map(|(name, _)| name.as_ref()).collect();
                names.sort_unstable();
                names.windows(2).any(|pair| pair[0] == pair[1])
                    || members.iter().any(|(_, value)| value.has_duplicate_names())
            }
            _ => false,
        }
    }

    /// Reads `raw`, a slice of `text` that `serde_json` found well-formed. `\u` surrogates are
    /// checked only when a string is unescaped.
    fn read(text: &'a str, raw: &'a str) -> Result<Self, Malformed> {
        let within = |error: &serde_json::Error| Malformed::at(text, raw, error);
        Ok(match raw.as_bytes().first() {
            Some(b'{') => {
                let Members(members) = serde_json::from_str(raw).map_err(|e| within(&e))?;
                let mut object = Vec::with_capacity(members.len());
                for (name, value) in members {
                    object.push((name, Self::read(text, value.get())?));
                }
                Json::Object(object)
            }
            Some(b'[') => {
                let items: Vec<&'a RawValue> = serde_json::from_str(raw).map_err(|e| within(&e))?;
                let mut array = Vec::with_capacity(items.len());
                for item in items {
                    array.push(Self::read(text, item.get())?);
                }
                Json::Array(array)
            }
            Some(b'"') => {
                let Text(string) = serde_json::from_str(raw).map_err(|e| within(&e))?;
                Json::String(string)
            }
            Some(b't') => Json::Bool(true),
            Some(b'f') => Json::Bool(false),
            Some(b'n') | None => Json::Null,
            Some(_) => Json::Number(raw),
        })
    }
}

impl Malformed {
    fn from_serde(error: &serde_json::Error) -> Self {
        let message = error.to_string();
        let reason = message.split(" at line ").next().unwrap_or(&message).to_owned();
        Self { reason, line: error.line(), column: error.column() }
    }

    /// Returns an error inside `raw`, a slice of `text`, with its position in the whole text.
    fn at(text: &str, raw: &str, error: &serde_json::Error) -> Self {
        let offset = (raw.as_ptr() as usize).saturating_sub(text.as_ptr() as usize);
        Self { reason: Self::from_serde(error).reason, ..Self::located(text, offset, "") }
    }

    fn located(text: &str, offset: usize, reason: impl fmt::Display) -> Self {
        let before = text.as_bytes().get(..offset).unwrap_or_default();
        let line = before.split(|byte| *byte == b'\n').count();
        let column = 1 + before.iter().rev().take_while(|byte| **byte != b'\n').count();
        Self { reason: reason.to_string(), line, column }
    }
}

/// Checks the nesting in one pass over the bytes before any recursion, so that no body can exhaust
/// the stack.
fn check_nesting(text: &str, max_depth: usize) -> Result<(), Malformed> {
    let mut depth = 0_usize;
    let mut in_string = false;
    let mut escaped = false;
    for (offset, byte) in text.bytes().enumerate() {
        match byte {
            _ if escaped => escaped = false,
            b'\\' if in_string => escaped = true,
            b'"' => in_string = !in_string,
            b'[' | b'{' if !in_string => {
                depth += 1;
                if depth > max_depth {
                    let reason = format_args!("nested deeper than {max_depth} levels");
                    return Err(Malformed::located(text, offset, reason));
                }
            }
            b']' | b'}' if !in_string => depth = depth.saturating_sub(1),
            _ => {}
        }
    }
    Ok(())
}

/// A string that borrows from the text unless it contains escapes.
struct Text<'a>(Cow<'a, str>);

impl<'de> Deserialize<'de> for Text<'de> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct TextVisitor;
        impl<'de> Visitor<'de> for TextVisitor {
            type Value = Text<'de>;
            fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
                formatter.write_str("a string")
            }
            fn visit_borrowed_str<E>(self, value: &'de str) -> Result<Self::Value, E> {
                Ok(Text(Cow::Borrowed(value)))
            }
            fn visit_str<E>(self, value: &str) -> Result<Self::Value, E> {
                Ok(Text(Cow::Owned(value.to_owned())))
            }
        }
        deserializer.deserialize_str(TextVisitor)
    }
}

/// An object's fields in order, including duplicates, with unparsed values.
struct Members<'a>(Vec<(Cow<'a, str>, &'a RawValue)>);

impl<'de> Deserialize<'de> for Members<'de> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct MembersVisitor;
        impl<'de> Visitor<'de> for MembersVisitor {
            type Value = Members<'de>;
            fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
                formatter.write_str("an object")
            }
            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
                let mut members = Vec::new();
                while let Some(Text(name)) = map.next_key()? {
                    members.push((name, map.next_value()?));
                }
                Ok(Members(members))
            }
        }
        deserializer.deserialize_map(MembersVisitor)
    }
}

/// Returns the bytes that a JSON text without control characters takes as a string within JSON.
pub fn bytes_within_json(json: &str) -> usize {
    json.len() + json.bytes().filter(|byte| matches!(byte, b'"' | b'\\')).count()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> Result<Json<'_>, Malformed> {
        Json::parse(text, 4)
    }

    #[test]
    fn numbers_and_field_order_are_preserved() {
        let json = parse(r#" {"b": [1.50, -0, 1e9], "a": "\u00e9x", "b": null} "#);
        let expected = Json::Object(vec![
            (
                "b".into(),
                Json::Array(vec![Json::Number("1.50"), Json::Number("-0"), Json::Number("1e9")]),
            ),
            ("a".into(), Json::String("éx".into())),
            ("b".into(), Json::Null),
        ]);
        assert_eq!(json, Ok(expected));
    }

    #[test]
    fn strings_without_escapes_are_borrowed() {
        let Ok(Json::Array(items)) = parse(r#"["plain", "esc\naped"]"#) else {
            panic!("not an array")
        };
        assert!(matches!(&items[0], Json::String(Cow::Borrowed("plain"))));
        assert!(matches!(&items[1], Json::String(Cow::Owned(_))));
    }

    #[test]
    fn syntax_errors_have_line_and_column() {
        let error = parse("{\n  \"a\": nope\n}").map_err(|e| e.to_string());
        assert_eq!(error, Err("expected ident at line 2 column 9".to_owned()));
        for text in [
            "",
            "  ",
            "{",
            "[1,]",
            "{\"a\":1,}",
            "01",
            "+1",
            ".5",
            "1.",
            "NaN",
            "'a'",
            "\"\t\"",
            "{\"a\" 1}",
            "{} {}",
            "\u{feff}{}",
            "// c\n{}",
            "nul",
            "\"\\x\"",
        ] {
            assert!(parse(text).is_err(), "{text:?} is not JSON");
        }
    }

    #[test]
    fn lone_surrogates_have_line_and_column() {
        let error = parse("{\n \"a\": [\n\"\\ud800\"]}").map_err(|e| e.to_string());
        assert_eq!(error, Err("unexpected end of hex escape at line 3 column 1".to_owned()));
        assert!(parse("{\"\\udc00\": 1}").is_err());
    }

    #[test]
    fn nesting_counts_only_outside_strings() {
        assert!(parse("[[[[]]]]").is_ok());
        assert!(parse(r#"["[[[[[[ \" [[[[[", {"[[[[[": 1}]"#).is_ok());
        let error = parse("[\n[[[{}]]]]").map_err(|e| e.to_string());
        assert_eq!(error, Err("nested deeper than 4 levels at line 2 column 4".to_owned()));
        let bomb = "[".repeat(250_000);
        assert!(Json::parse(&bomb, MAX_BODY_DEPTH).is_err());
    }

    #[test]
    fn duplicate_names_are_found_at_any_level() {
        assert_eq!(
            parse(r#"[{"a": {"b": 1, "c": 2, "\u0062": 3}}]"#).map(|j| j.has_duplicate_names()),
            Ok(true)
        );
        assert_eq!(parse(r#"[{"a": 1}, {"a": 2}]"#).map(|j| j.has_duplicate_names()), Ok(false));
    }
}
