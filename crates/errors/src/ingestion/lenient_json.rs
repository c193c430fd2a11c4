//! JSON as SDKs send it.
//!
//! Python's `json` writes `NaN` and `Infinity`, JavaScript's writes lone surrogates, and both nest
//! as deeply as their input. One pass repairs the text. The parser of [`shared::json`] parses it,
//! and the parsed value is fixed afterwards.

use std::borrow::Cow;
use std::collections::HashSet;

use shared::json::{Json, Malformed};

/// Maximum depth of arrays and objects. Deeper values become `null`. SDKs stop at ten, and some
/// parsers of responses with an event stop at 64.
const MAX_DEPTH: usize = 48;
/// Maximum bytes of a number. The longest written form of a double that is not an integer has about
/// 350 bytes; parsers stop at 1,000.
const MAX_NUMBER_BYTES: usize = 400;
/// Maximum bytes of a number that surely fits 64 bits.
const SHORT_INTEGER: usize = 18;

/// Returns a text that [`parse`] accepts. Copies it only if a repair is needed.
pub(super) fn repair(bytes: &[u8]) -> Cow<'_, str> {
    match String::from_utf8_lossy(bytes) {
        Cow::Borrowed(text) => Repair::new(text).run(),
        Cow::Owned(text) => Cow::Owned(Repair::new(&text).run().into_owned()),
    }
}

/// Parses a repaired text.
///
/// The last of several fields with one name stays, as in the parsers that SDKs are tested with. A
/// number that not every parser accepts becomes text, as in RFC 7493 §2.2. Such parsers reject the
/// whole text, so one event would hide a page of events.
pub(super) fn parse(repaired: &str) -> Result<Json<'_>, Malformed> {
    let mut json = Json::parse(repaired, MAX_DEPTH)?;
    fix(&mut json);
    Ok(json)
}

fn fix(json: &mut Json<'_>) {
    match json {
        Json::Number(written) if !is_interoperable(written) => {
            *json = Json::String(Cow::Borrowed(written));
        }
        Json::Object(members) => {
            if has_repeated_name(members) {
                let mut names = HashSet::new();
                let kept: Vec<bool> =
                    members.iter().rev().map(|(name, _)| names.insert(name.clone())).collect();
                let mut kept = kept.into_iter().rev();
                members.retain(|_| kept.next().unwrap_or(true));
            }
            for (_, value) in members {
                fix(value);
            }
        }
        Json::Array(items) => items.iter_mut().for_each(fix),
        _ => {}
    }
}

/// `true` for an integer of 64 bits, or a number that a double (IEEE 754 binary64) holds, perhaps
/// not to its last digit.
fn is_interoperable(written: &str) -> bool {
    if written.contains(['.', 'e', 'E']) {
        return written.len() <= MAX_NUMBER_BYTES && written.parse().is_ok_and(f64::is_finite);
    }
    written.len() <= SHORT_INTEGER
        || written.parse::<i64>().is_ok()
        || written.parse::<u64>().is_ok()
}

fn has_repeated_name(members: &[(Cow<'_, str>, Json<'_>)]) -> bool {
    // Comparing is faster than hashing for few fields.
    if members.len() <= 16 {
        let mut rest = members;
        while let Some(((name, _), later)) = rest.split_first() {
            if later.iter().any(|(other, _)| other == name) {
                return true;
            }
            rest = later;
        }
        return false;
    }
    let mut names = HashSet::with_capacity(members.len());
    members.iter().any(|(name, _)| !names.insert(name.as_ref()))
}

/// One pass over a text, which it copies only from the first repair on.
struct Repair<'t> {
    text: &'t str,
    at: usize,
    depth: usize,
    repaired: String,
    copied_to: usize,
}

impl<'t> Repair<'t> {
    fn new(text: &'t str) -> Self {
        let text = text.strip_prefix('\u{feff}').unwrap_or(text);
        Self { text, at: 0, depth: 0, repaired: String::new(), copied_to: 0 }
    }

    fn run(mut self) -> Cow<'t, str> {
        while let Some(byte) = self.byte(0) {
            match byte {
                b'"' => self.string(),
                b'[' | b'{' if self.depth == MAX_DEPTH => self.too_deep(),
                b'[' | b'{' => {
                    self.depth += 1;
                    self.at += 1;
                }
                b']' | b'}' => {
                    self.depth = self.depth.saturating_sub(1);
                    self.at += 1;
                }
                b'N' | b'I' | b'-' => self.not_finite(),
                _ => self.at += 1,
            }
        }
        if self.copied_to == 0 {
            return Cow::Borrowed(self.text);
        }
        self.repaired.push_str(self.text.get(self.copied_to..).unwrap_or_default());
        Cow::Owned(self.repaired)
    }

    fn byte(&self, ahead: usize) -> Option<u8> {
        self.text.as_bytes().get(self.at.saturating_add(ahead)).copied()
    }

    /// Replaces the next `length` bytes. Both ends are ASCII.
    fn replace(&mut self, length: usize, replacement: &str) {
        self.repaired.push_str(self.text.get(self.copied_to..self.at).unwrap_or_default());
        self.repaired.push_str(replacement);
        self.at = self.at.saturating_add(length).min(self.text.len());
        self.copied_to = self.at;
    }

    fn not_finite(&mut self) {
        let rest = self.text.as_bytes().get(self.at..).unwrap_or_default();
        let tokens: [&[u8]; 3] = [b"NaN", b"Infinity", b"-Infinity"];
        match tokens.iter().find(|token| rest.starts_with(token)) {
            Some(token) => self.replace(token.len(), "null"),
            None => self.at += 1,
        }
    }

    fn string(&mut self) {
        self.at += 1;
        while let Some(byte) = self.byte(0) {
            match byte {
                b'"' => {
                    self.at += 1;
                    return;
                }
                b'\\' if self.byte(1) == Some(b'u') => self.unicode_escape(),
                b'\\' => self.at += 2,
                0..0x20 => self.replace(1, &format!("\\u{byte:04x}")),
                _ => self.at += 1,
            }
        }
    }

    /// Replaces a surrogate without its other half by U+FFFD.
    fn unicode_escape(&mut self) {
        const ESCAPE: usize = 6;
        match self.escaped_unit(0) {
            Some(0xd800..0xdc00) => match self.escaped_unit(ESCAPE) {
                Some(0xdc00..0xe000) => self.at += 2 * ESCAPE,
                _ => self.replace(ESCAPE, "\\ufffd"),
            },
            Some(0xdc00..0xe000) => self.replace(ESCAPE, "\\ufffd"),
            _ => self.at += 2,
        }
    }

    fn escaped_unit(&self, ahead: usize) -> Option<u32> {
        let start = self.at.checked_add(ahead)?;
        let digits = self.text.get(start..start.checked_add(6)?)?.strip_prefix("\\u")?;
        u32::from_str_radix(digits, 16).ok()
    }

    /// Replaces a value that is nested too deeply, in one pass.
    fn too_deep(&mut self) {
        let start = self.at;
        let (mut depth, mut in_string) = (0_usize, false);
        while let Some(byte) = self.byte(0) {
            self.at += 1;
            match byte {
                b'\\' if in_string => self.at += 1,
                b'"' => in_string = !in_string,
                b'[' | b'{' if !in_string => depth += 1,
                b']' | b'}' if !in_string => depth -= 1,
                _ => {}
            }
            if depth == 0 {
                break;
            }
        }
        let length = self.at - start;
        self.at = start;
        self.replace(length, "null");
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ingestion::json_text;
    use proptest::prelude::*;

    fn reparsed(bytes: &[u8]) -> Result<String, Malformed> {
        let text = repair(bytes);
        parse(&text).map(|json| json_text::to_string(&json))
    }

    #[test]
    fn leaves_valid_json_uncopied() {
        let text = r#"{"a": [1, "NaN, \" Infinity \ud83d\ude00 \\u", -1.5e3, null], "-": true}"#;
        assert!(matches!(repair(text.as_bytes()), Cow::Borrowed(same) if same == text));
    }

    #[test]
    fn repairs_known_output_of_sdks() {
        for (sent, meant) in [
            (r#"{"a":NaN,"b":[Infinity,-Infinity,-1]}"#, r#"{"a":null,"b":[null,null,-1]}"#),
            (r#"["\ud800","\udc00x","\ud83d\ude00"]"#, r#"["�","�x","😀"]"#),
            ("[\"tab\there\"]", r#"["tab\there"]"#),
            ("\u{feff}[1]", "[1]"),
            (r#"{"a":1,"b":2,"a":3}"#, r#"{"b":2,"a":3}"#),
        ] {
            assert_eq!(reparsed(sent.as_bytes()), Ok(meant.to_owned()), "{sent}");
        }
        assert_eq!(reparsed(b"[\"caf\xe9\"]"), Ok("[\"caf\u{fffd}\"]".to_owned()));
    }

    #[test]
    fn non_interoperable_numbers_become_text() {
        let long = |digits: usize| format!("0.{}", "7".repeat(digits));
        for number in [
            "0",
            "-0",
            "-1.5E-3",
            "999999999999999999",
            "18446744073709551615",
            "-9223372036854775808",
            "1.7976931348623157e308",
            "1e-400",
            &long(398),
        ] {
            let sent = format!("[{number},{{\"a\":{number}}}]");
            assert_eq!(reparsed(sent.as_bytes()), Ok(sent));
        }
        for number in
            ["18446744073709551616", "-9223372036854775809", "1e400", "-1.8E+308", &long(399)]
        {
            let sent = format!("[{number},{{\"a\":{number}}}]");
            let kept = format!("[\"{number}\",{{\"a\":\"{number}\"}}]");
            assert_eq!(reparsed(sent.as_bytes()), Ok(kept));
        }
    }

    #[test]
    fn keeps_the_last_field_with_one_name() {
        let members: Vec<String> = (0..40).map(|i| format!("\"m{}\":{i}", i % 20)).collect();
        let expected: Vec<String> = (20..40).map(|i| format!("\"m{}\":{i}", i % 20)).collect();
        let text = format!("{{{}}}", members.join(","));
        assert_eq!(reparsed(text.as_bytes()), Ok(format!("{{{}}}", expected.join(","))));
    }

    #[test]
    fn cuts_values_that_nest_too_deep() {
        let deep = format!("{}\"]\"{}", "[".repeat(100), "]".repeat(100));
        let cut = format!("{}null{}", "[".repeat(MAX_DEPTH), "]".repeat(MAX_DEPTH));
        assert_eq!(reparsed(deep.as_bytes()), Ok(cut));
        for bomb in ["[".repeat(1 << 20), "{\"a\":".repeat(200_000)] {
            assert!(reparsed(bomb.as_bytes()).is_err());
        }
    }

    proptest! {
        #[test]
        fn never_panics(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
            let _ = reparsed(&bytes);
        }

        #[test]
        fn never_panics_on_nearly_valid_json(text in "[\\[\\]{}\":,\\\\NI\\-uad0-9 é]{0,120}") {
            let _ = reparsed(text.as_bytes());
        }
    }
}
