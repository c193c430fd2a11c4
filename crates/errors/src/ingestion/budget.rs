//! Cuts an event to the size of its item.

use std::borrow::Cow;
use std::cmp::Reverse;
use std::collections::HashSet;

use shared::json::Json;

use super::exception::{each_exception, each_frame, shorten};
use super::json_text;
use super::json_text::member_size;
use super::member::{Members, get, get_mut, take};
use super::trimmed_paths::TrimmedPaths;

/// Maximum JSON bytes of a stored event. zstd keeps incompressible data as it is and adds at most
/// 1/256 and a few bytes. So the compressed form always fits 350,000 bytes.
pub const MAX_PAYLOAD_BYTES: usize = 348_000;

/// Essential fields of an event. Each is bounded, and they fit together once stacks are short.
const ESSENTIAL: [&str; 10] = [
    "event_id",
    "timestamp",
    "level",
    "platform",
    "release",
    "environment",
    "transaction",
    "exception",
    "logentry",
    "fingerprint",
];
/// Limits for exceptions and frames, from long to short. They apply to an event that is too large
/// without all optional parts.
const SHORTER: [(usize, usize); 4] = [(50, 20), (20, 10), (5, 10), (1, 1)];

/// Bytes reserved for the record of omitted parts.
const RECORD_BYTES: usize = 10_000;
const OF_EXCEPTIONS: [&str; 1] = ["mechanism"];
const OF_FRAMES: [&str; 5] = ["vars", "pre_context", "post_context", "preContext", "postContext"];

/// An optional part of an event.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
enum Part {
    Member(String),
    Context(String),
    /// A field of each exception.
    OfExceptions(&'static str),
    /// A field of each frame.
    OfFrames(&'static str),
}

impl Part {
    fn path(&self) -> String {
        match self {
            Self::Member(name) => name.clone(),
            Self::Context(name) => format!("contexts.{name}"),
            Self::OfExceptions(name) => format!("exception.{name}"),
            Self::OfFrames(name) => format!("exception.stacktrace.frames.{name}"),
        }
    }
}

/// Returns the JSON of an event, at most [`MAX_PAYLOAD_BYTES`].
///
/// Leaves out the largest optional parts until the rest fits, then the middle of stacks and of the
/// chain. Records each in `trimmed`.
pub(super) fn write_within_budget(
    mut event: Members<'_>,
    trimmed_paths: &mut TrimmedPaths,
) -> Vec<u8> {
    let mut payload = write(&mut event, trimmed_paths);
    if payload.len() <= MAX_PAYLOAD_BYTES {
        return payload;
    }
    leave_out_largest(&mut event, payload.len(), trimmed_paths);
    payload = write(&mut event, trimmed_paths);
    for (exceptions, frames) in SHORTER {
        if payload.len() <= MAX_PAYLOAD_BYTES {
            break;
        }
        trimmed_paths.note("exception.stacktrace.frames");
        shorten(&mut event, exceptions, frames);
        payload = write(&mut event, trimmed_paths);
    }
    payload
}

fn write(event: &mut Members<'_>, trimmed_paths: &TrimmedPaths) -> Vec<u8> {
    trimmed_paths.put_into(event);
    let json = Json::Object(std::mem::take(event));
    let mut payload = Vec::with_capacity(8_192);
    json_text::write(&json, &mut payload);
    if let Json::Object(members) = json {
        *event = members;
    }
    payload
}

fn leave_out_largest(event: &mut Members<'_>, mut total: usize, trimmed_paths: &mut TrimmedPaths) {
    let target = MAX_PAYLOAD_BYTES - RECORD_BYTES;
    let mut left_out = HashSet::new();
    for (bytes, part) in optional_parts(event) {
        if total <= target {
            break;
        }
        trimmed_paths.note(&part.path());
        left_out.insert(part);
        total = total.saturating_sub(bytes);
    }
    leave_out(event, &left_out);
}

/// Returns all optional parts with their sizes, the largest first.
fn optional_parts(event: &mut Members<'_>) -> Vec<(usize, Part)> {
    let mut parts = Vec::new();
    for name in OF_EXCEPTIONS {
        let mut bytes = 0;
        each_exception(event, |exception| bytes += size_of_member(exception, name));
        parts.push((bytes, Part::OfExceptions(name)));
    }
    for name in OF_FRAMES {
        let mut bytes = 0;
        each_exception(event, |exception| {
            each_frame(exception, |frame| bytes += size_of_member(frame, name));
        });
        parts.push((bytes, Part::OfFrames(name)));
    }
    for member in event.iter() {
        let name = member.0.as_ref();
        if !ESSENTIAL.contains(&name) && name != "contexts" {
            parts.push((with_comma(member), Part::Member(name.to_owned())));
        }
    }
    if let Some(Json::Object(contexts)) = get(event, "contexts") {
        let contexts = contexts.iter();
        parts.extend(contexts.map(|m| (with_comma(m), Part::Context(m.0.to_string()))));
    }
    parts.sort_unstable_by(|(bytes, part), (other_bytes, other)| {
        (Reverse(bytes), part).cmp(&(Reverse(other_bytes), other))
    });
    parts
}

fn with_comma(member: &(Cow<'_, str>, Json<'_>)) -> usize {
    member_size(member) + 1
}

fn size_of_member(members: &Members<'_>, name: &str) -> usize {
    members.iter().find(|(member, _)| member == name).map_or(0, with_comma)
}

/// Removes parts in one pass over each object: a hostile event has tens of thousands of parts.
fn leave_out(event: &mut Members<'_>, parts: &HashSet<Part>) {
    event.retain(|(name, _)| !parts.contains(&Part::Member(name.to_string())));
    if let Some(Json::Object(contexts)) = get_mut(event, "contexts") {
        contexts.retain(|(name, _)| !parts.contains(&Part::Context(name.to_string())));
    }
    let of_exceptions = OF_EXCEPTIONS.map(|name| parts.contains(&Part::OfExceptions(name)));
    let of_frames = OF_FRAMES.map(|name| parts.contains(&Part::OfFrames(name)));
    each_exception(event, |exception| {
        take_marked(exception, OF_EXCEPTIONS.iter().zip(of_exceptions));
        each_frame(exception, |frame| take_marked(frame, OF_FRAMES.iter().zip(of_frames)));
    });
}

fn take_marked<'n>(members: &mut Members<'_>, names: impl Iterator<Item = (&'n &'n str, bool)>) {
    for (name, _) in names.filter(|(_, is_marked)| *is_marked) {
        take(members, name);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written(text: &str) -> (usize, String) {
        let Ok(Json::Object(event)) = Json::parse(text, 16) else { panic!("not an object") };
        let payload = write_within_budget(event, &mut TrimmedPaths::default());
        (payload.len(), String::from_utf8(payload).unwrap())
    }

    #[test]
    fn small_events_stay_unchanged() {
        let text = r#"{"exception":{"values":[{"type":"E"}]},"unknown":[1]}"#;
        assert_eq!(written(text).1, text);
    }

    #[test]
    fn local_variables_are_dropped_before_frames() {
        let frame = format!(r#"{{"function":"f","vars":{{"v":"{}"}}}}"#, "x".repeat(10_000));
        let frames = [frame.as_str(); 40].join(",");
        let text =
            format!(r#"{{"exception":{{"values":[{{"stacktrace":{{"frames":[{frames}]}}}}]}}}}"#);
        let (_, payload) = written(&text);
        let frames = [r#"{"function":"f"}"#; 40].join(",");
        assert_eq!(
            payload,
            format!(
                r#"{{"exception":{{"values":[{{"stacktrace":{{"frames":[{frames}]}}}}]}},"trimmed":["exception.stacktrace.frames.vars"]}}"#
            )
        );
    }

    #[test]
    fn tens_of_thousands_of_fields_fit() {
        let members: Vec<String> = (0..40_000).map(|i| format!("\"m{i}\":0")).collect();
        let many = members.join(",");
        for text in [format!("{{{many}}}"), format!("{{\"contexts\":{{{many}}}}}")] {
            let (length, payload) = written(&text);
            assert!((MAX_PAYLOAD_BYTES - 2 * RECORD_BYTES..=MAX_PAYLOAD_BYTES).contains(&length));
            assert!(payload.contains("\"trimmed\":["));
        }
    }
}
