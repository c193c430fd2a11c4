//! Text rules that several resources share.

use serde::de::value::Error as NameError;
use uuid::Uuid;

use crate::json::{FieldError, ViolationCode};

use crate::timestamp::Timestamp;

/// Parses a name for people: `least` to `most` characters after trimming, no control characters.
pub fn parse_label(text: &str, least: usize, most: usize) -> Result<String, FieldError> {
    let label = text.trim();
    check_label(label, least, most)?;
    Ok(label.to_owned())
}

/// Checks a name without trimming: `least` to `most` characters, no control characters.
pub fn check_label(label: &str, least: usize, most: usize) -> Result<(), FieldError> {
    if label.chars().count() < least {
        let plural = if least == 1 { "" } else { "s" };
        let message = format_args!("must have at least {least} character{plural}");
        return Err(FieldError::new(ViolationCode::TooShort, message));
    }
    check_length(label, most)?;
    if label.chars().any(char::is_control) {
        let message = "control characters are not allowed";
        return Err(FieldError::new(ViolationCode::InvalidFormat, message));
    }
    Ok(())
}

/// Returns the error for a name that an enum does not have. The message lists the valid names, and
/// replaces serde's word `variant` with `noun`.
pub fn unknown_name(noun: &str, error: &NameError) -> FieldError {
    let message = error.to_string().replacen("variant", noun, 1);
    FieldError::new(ViolationCode::InvalidValue, message)
}

/// Parses free text: at most `most` characters.
pub fn parse_text(text: &str, most: usize) -> Result<String, FieldError> {
    check_length(text, most)?;
    Ok(text.to_owned())
}

/// Escapes a text for HTML, between tags and in attributes.
pub fn escape_html(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for character in text.chars() {
        match character {
            '&' => escaped.push_str("&amp;"),
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '"' => escaped.push_str("&quot;"),
            '\'' => escaped.push_str("&#39;"),
            other => escaped.push(other),
        }
    }
    escaped
}

/// Parses an RFC 3339 date-time.
pub fn parse_time(text: &str) -> Result<Timestamp, FieldError> {
    Timestamp::parse_rfc3339(text)
        .map_err(|error| FieldError::new(ViolationCode::InvalidFormat, error))
}

/// Parses the usual form of a UUID (`8-4-4-4-12` hexadecimal digits, either case).
pub fn parse_uuid(text: &str) -> Option<Uuid> {
    // The library also accepts forms without hyphens, in braces and as a URN.
    let hyphenated = text.len() == uuid::fmt::Hyphenated::LENGTH;
    Uuid::try_parse(text).ok().filter(|_| hyphenated)
}

/// Parses a UUID of RFC 9562: versions 1 to 8 of its variant, the nil and the max UUID. The form is
/// the usual one, in either case (`docs/api-conventions.md`, "Identifiers").
pub fn parse_rfc9562_uuid(text: &str) -> Option<Uuid> {
    let uuid = parse_uuid(text)?;
    let versioned =
        (1..=8).contains(&uuid.get_version_num()) && uuid.get_variant() == uuid::Variant::RFC4122;
    (versioned || uuid.is_nil() || uuid.is_max()).then_some(uuid)
}

fn check_length(text: &str, most: usize) -> Result<(), FieldError> {
    let length = text.chars().count();
    if length > most {
        let message = format_args!("has {length} characters; at most {most} are allowed");
        return Err(FieldError::new(ViolationCode::TooLong, message));
    }
    Ok(())
}

/// Returns a count with its noun, in the singular or plural.
pub fn counted(count: u64, (one, many): (&str, &str)) -> String {
    format!("{} {}", grouped(count), if count == 1 { one } else { many })
}

/// Returns a number with commas between thousands.
pub fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::with_capacity(digits.len() + digits.len() / 3);
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_have_commas_and_their_word() {
        for (number, text) in [(0, "0"), (999, "999"), (1_000, "1,000"), (1_234_567, "1,234,567")] {
            assert_eq!(grouped(number), text);
        }
        assert_eq!(counted(1, ("session", "sessions")), "1 session");
        assert_eq!(counted(1_000, ("session", "sessions")), "1,000 sessions");
    }

    #[test]
    fn only_rfc_9562_uuids_are_parsed() {
        for version in 1..=8 {
            for variant in ["8", "9", "a", "B"] {
                let text = format!("0B24DD5a-0000-{version}000-{variant}000-00000000000f");
                assert!(parse_rfc9562_uuid(&text).is_some(), "{text}");
            }
        }
        for text in ["00000000-0000-0000-0000-000000000000", "FFFFFFFF-ffff-ffff-ffff-ffffffffffff"]
        {
            assert!(parse_rfc9562_uuid(text).is_some(), "{text}");
        }
        for text in [
            "0b24dd5a-0000-0000-8000-000000000000",
            "0b24dd5a-0000-9000-8000-000000000000",
            "0b24dd5a-0000-f000-8000-000000000000",
            "0b24dd5a-0000-4000-7000-000000000000",
            "0b24dd5a-0000-4000-c000-000000000000",
            "00000000-0000-0000-0000-000000000001",
            "ffffffff-ffff-ffff-ffff-fffffffffffe",
            "0b24dd5a000040008000000000000000",
            "{0b24dd5a-0000-4000-8000-00000000000}",
            "{0b24dd5a-0000-4000-8000-000000000000}",
            "urn:uuid:0b24dd5a-0000-4000-8000-000000000000",
            "0b24dd5a-0000-4000-8000-00000000000g",
            "0b24dd5a-0000-4000-8000-000000000000 ",
            "",
        ] {
            assert_eq!(parse_rfc9562_uuid(text), None, "{text:?}");
        }
    }
}
