//! Session recordings of Sentry's browser SDK (`docs/semantics/replay-insights.md`, "Derived pain
//! points"), without I/O.
//!
//! A segment is read for clicks and for the SDK's verdicts on them, and then dropped. A
//! [`Replay`] collects these facts from all segments and errors of a session, in any order, and
//! derives the pain points. They depend only on the set of facts.

mod element;
mod events;
mod feedback;
mod replay;
mod route;
mod segment;

pub use crate::evidence::{Evidence, PainKind};
pub use events::each_event;
pub use feedback::Feedback;
pub use replay::{Click, ClickError, ClickId, Facts, Replay, Step};
pub use route::route;
pub use segment::Segment;

use serde_json::Value;

/// Most characters of a user's identity, and of a release.
const MAX_TEXT: usize = 200;

/// A recording or feedback item with an invalid format.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the recording is malformed")]
pub struct Malformed;

/// The ID of a replay: 32 hexadecimal digits in lower case.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ReplayId(String);

impl ReplayId {
    /// Parses 32 hexadecimal digits in either case, with or without hyphens.
    pub fn parse(text: &str) -> Option<Self> {
        let digits: String = text.chars().filter(|it| *it != '-').collect();
        let is_id = digits.len() == 32 && digits.bytes().all(|it| it.is_ascii_hexdigit());
        let is_nil = digits.bytes().all(|it| it == b'0');
        (is_id && !is_nil).then(|| Self(digits.to_ascii_lowercase()))
    }

    /// Returns the 32 digits.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// Returns the text at a JSON pointer.
fn text_at<'v>(value: &'v Value, pointer: &str) -> Option<&'v str> {
    value.pointer(pointer)?.as_str()
}

/// Returns the milliseconds since the epoch of a time in seconds.
#[allow(clippy::cast_possible_truncation)] // The cast saturates.
fn millis_of_seconds(seconds: f64) -> Option<i64> {
    seconds.is_finite().then(|| (seconds * 1_000.0).round() as i64)
}

/// Returns the text on one line, without control characters, with at most `most` characters.
fn clean(text: &str, most: usize) -> String {
    let words = text.split(|it: char| it.is_whitespace() || it.is_control());
    let words: Vec<&str> = words.filter(|word| !word.is_empty()).take(most).collect();
    cut(words.join(" "), most)
}

/// Returns the first `most` characters of a text.
fn cut(mut text: String, most: usize) -> String {
    if let Some((end, _)) = text.char_indices().nth(most) {
        text.truncate(end);
    }
    text
}

/// Returns the identity of the user of an event or a replay: the ID, else the email address, else
/// the IP address that the SDK sent. Errors use the same identity.
fn user_of(event: &Value) -> Option<String> {
    let user = event.get("user")?;
    ["id", "email", "ip_address"].into_iter().find_map(|name| {
        let identity = match user.get(name)? {
            Value::String(text) => text.clone(),
            Value::Number(number) => number.to_string(),
            _ => return None,
        };
        let is_known = !identity.trim().is_empty() && identity != "{{auto}}";
        is_known.then(|| cut(identity.replace('\0', ""), MAX_TEXT)).filter(|it| !it.is_empty())
    })
}

/// Returns the header `User-Agent` of the request of an event or a replay.
fn user_agent_of(event: &Value) -> Option<String> {
    let headers = event.pointer("/request/headers")?.as_object()?;
    let is_user_agent = |name: &String| name.eq_ignore_ascii_case("user-agent");
    let (_, value) = headers.iter().find(|(name, _)| is_user_agent(name))?;
    value.as_str().map(str::to_owned)
}

fn release_of(event: &Value) -> Option<String> {
    let release = clean(text_at(event, "/release")?, MAX_TEXT);
    (!release.is_empty()).then_some(release)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn replay_ids_are_32_hexadecimal_digits() {
        let id = "ac012cadf588491bb76da90129e33c41";
        for text in [id, &id.to_uppercase(), "ac012cad-f588-491b-b76d-a90129e33c41"] {
            assert_eq!(ReplayId::parse(text).as_ref().map(ReplayId::as_str), Some(id), "{text}");
        }
        for text in ["", "ac01", &format!("{id}0"), &"0".repeat(32), &"x".repeat(32)] {
            assert_eq!(ReplayId::parse(text), None, "{text}");
        }
    }

    #[test]
    fn users_have_the_identity_of_errors() {
        for (user, identity) in [
            (json!({"id": "u", "email": "e"}), Some("u")),
            (json!({"id": 7}), Some("7")),
            (json!({"id": "", "email": "e@example.com"}), Some("e@example.com")),
            (json!({"ip_address": "{{auto}}"}), None),
            (json!({"ip_address": "::1", "id": null}), Some("::1")),
            (json!("u"), None),
        ] {
            assert_eq!(user_of(&json!({"user": user})).as_deref(), identity, "{user}");
        }
    }

    #[test]
    fn cleaned_texts_are_one_short_line() {
        assert_eq!(clean(" a\n\u{0}b\t c ", 9), "a b c");
        assert_eq!(clean("äöü", 2), "äö");
    }
}
