//! Rules of text that several resources share.

use uuid::Uuid;

use crate::json::{Fault, ViolationCode};

/// Reads a name for people: `least` to `most` characters after trimming, no control characters.
pub(super) fn parse_label(text: &str, least: usize, most: usize) -> Result<String, Fault> {
    let label = text.trim();
    check_label(label, least, most)?;
    Ok(label.to_owned())
}

/// Checks a name as it is: `least` to `most` characters, no control characters.
pub(super) fn check_label(label: &str, least: usize, most: usize) -> Result<(), Fault> {
    if label.chars().count() < least {
        let message = format_args!("must have at least {least} characters");
        return Err(Fault::new(ViolationCode::TooShort, message));
    }
    check_length(label, most)?;
    if label.chars().any(char::is_control) {
        let message = "control characters are not allowed";
        return Err(Fault::new(ViolationCode::InvalidFormat, message));
    }
    Ok(())
}

/// Reads free text: at most `most` characters.
pub(super) fn parse_text(text: &str, most: usize) -> Result<String, Fault> {
    check_length(text, most)?;
    Ok(text.to_owned())
}

/// Reads the usual form of a UUID (`8-4-4-4-12` hexadecimal digits, either case).
pub(super) fn parse_uuid(text: &str) -> Option<Uuid> {
    // The library also takes forms without hyphens, in braces and as a URN.
    let hyphenated = text.len() == uuid::fmt::Hyphenated::LENGTH;
    Uuid::try_parse(text).ok().filter(|_| hyphenated)
}

fn check_length(text: &str, most: usize) -> Result<(), Fault> {
    let length = text.chars().count();
    if length > most {
        let message = format_args!("has {length} characters; at most {most} are allowed");
        return Err(Fault::new(ViolationCode::TooLong, message));
    }
    Ok(())
}
