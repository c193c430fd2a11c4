//! The context of an evaluation.

use std::borrow::Cow;
use std::fmt;

use shared::json::Json;

use super::attribute::Members;

/// Maximum size of a targeting key in bytes.
const MAX_TARGETING_KEY_BYTES: usize = 1_000;
/// Name of the targeting key among the attributes.
const TARGETING_KEY: &str = "targetingKey";

/// An evaluation context: the individual and its attributes. Borrows from the request's text;
/// numbers keep their written form.
#[derive(Debug, Default)]
pub struct Context<'a> {
    targeting_key: Option<Cow<'a, str>>,
    attributes: Members<'a>,
}

/// The reason why a JSON value is not a valid context.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum InvalidContext {
    /// The value is not an object.
    NotAnObject,
    /// An object in the context has a duplicate name.
    DuplicateName,
    /// The targeting key is not a string.
    TargetingKeyNotText,
    /// The targeting key is too long.
    TargetingKeyTooLong,
}

impl fmt::Display for InvalidContext {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotAnObject => formatter.write_str("the context must be an object"),
            Self::DuplicateName => {
                formatter.write_str("an object in the context has a field twice; remove one")
            }
            Self::TargetingKeyNotText => {
                write!(formatter, "the context's {TARGETING_KEY} must be a string")
            }
            Self::TargetingKeyTooLong => write!(
                formatter,
                "the context's {TARGETING_KEY} has more than {MAX_TARGETING_KEY_BYTES} bytes"
            ),
        }
    }
}

impl<'a> Context<'a> {
    /// Parses the context of an evaluation request. The targeting key is also an attribute. A null
    /// targeting key counts as missing.
    pub fn read(json: Json<'a>) -> Result<Self, InvalidContext> {
        if json.has_duplicate_names() {
            return Err(InvalidContext::DuplicateName);
        }
        let Json::Object(members) = json else { return Err(InvalidContext::NotAnObject) };
        let sent = members.iter().find(|(name, _)| name == TARGETING_KEY);
        let targeting_key = match sent.map(|(_, value)| value) {
            None | Some(Json::Null) => None,
            Some(Json::String(key)) if key.len() > MAX_TARGETING_KEY_BYTES => {
                return Err(InvalidContext::TargetingKeyTooLong);
            }
            Some(Json::String(key)) => Some(key.clone()),
            Some(_) => return Err(InvalidContext::TargetingKeyNotText),
        };
        Ok(Self { targeting_key, attributes: Members::new(members) })
    }

    /// Returns the targeting key, unless it is missing or empty.
    pub fn targeting_key(&self) -> Option<&str> {
        self.targeting_key.as_deref().filter(|key| !key.is_empty())
    }

    pub(super) fn attributes(&self) -> &Members<'a> {
        &self.attributes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<Option<String>, InvalidContext> {
        let context = Context::read(Json::parse(text, 8).unwrap())?;
        Ok(context.targeting_key().map(str::to_owned))
    }

    #[test]
    fn targeting_keys_are_text_or_absent() {
        assert_eq!(read(r#"{"targetingKey": "é"}"#), Ok(Some("é".to_owned())));
        for absent in ["{}", r#"{"targetingKey": null}"#, r#"{"targetingKey": ""}"#] {
            assert_eq!(read(absent), Ok(None), "{absent}");
        }
        for other in ["1", "true", "[]", "{}"] {
            let text = format!(r#"{{"targetingKey": {other}}}"#);
            assert_eq!(read(&text), Err(InvalidContext::TargetingKeyNotText), "{other}");
        }
    }

    #[test]
    fn targeting_keys_have_at_most_1000_bytes() {
        let of_length =
            |bytes: usize| read(&format!(r#"{{"targetingKey": "{}"}}"#, "k".repeat(bytes)));
        assert!(of_length(1_000).is_ok());
        assert_eq!(of_length(1_001), Err(InvalidContext::TargetingKeyTooLong));
    }

    #[test]
    fn ambiguous_contexts_are_rejected() {
        assert_eq!(read(r#"{"a": {"b": 1, "b": 2}}"#), Err(InvalidContext::DuplicateName));
        assert_eq!(read("[]"), Err(InvalidContext::NotAnObject));
    }
}
