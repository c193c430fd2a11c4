//! Rules of text that several resources share.

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

fn check_length(text: &str, most: usize) -> Result<(), Fault> {
    let length = text.chars().count();
    if length > most {
        let message = format_args!("has {length} characters; at most {most} are allowed");
        return Err(Fault::new(ViolationCode::TooLong, message));
    }
    Ok(())
}
