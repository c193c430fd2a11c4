//! Converts an event to the one shape that the rest of ingestion reads, within Sentry's limits.
//!
//! SDKs of all ages write lists as objects, objects as lists, texts as numbers. Values of an
//! unexpected type are left out. No event fails because of them.

use std::borrow::Cow;

use shared::json::Json;

use super::exception::canonical_exceptions;
use super::limits;
use super::limits::cut_noted;
use super::member::{Members, any_text, cut, get, get_mut, scalar_text, set, take};
use super::occurrence_time::parse_timestamp;
use super::trimmed_paths::TrimmedPaths;

/// Field names of the protocol before version 7.
const FORMER_NAMES: [(&str, &str); 7] = [
    ("sentry.interfaces.Exception", "exception"),
    ("sentry.interfaces.Message", "logentry"),
    ("sentry.interfaces.Stacktrace", "stacktrace"),
    ("sentry.interfaces.Http", "request"),
    ("sentry.interfaces.User", "user"),
    ("sentry.interfaces.Contexts", "contexts"),
    ("sentry.interfaces.Breadcrumbs", "breadcrumbs"),
];
const SHORT_TEXTS: [&str; 7] =
    ["environment", "release", "platform", "transaction", "dist", "logger", "server_name"];

/// Brings an event to its canonical shape.
pub(super) fn canonicalize(event: &mut Members<'_>, trimmed_paths: &mut TrimmedPaths) {
    for (former, name) in FORMER_NAMES {
        if let Some(value) = take(event, former).filter(|_| get(event, name).is_none()) {
            set(event, name, value);
        }
    }
    canonicalize_log(event, trimmed_paths);
    if let Some(sent) = take(event, "exception")
        && let Some(exceptions) = canonical_exceptions(sent, trimmed_paths)
    {
        set(event, "exception", exceptions);
    }
    for name in SHORT_TEXTS {
        let text = take(event, name);
        if let Some(text) = text.as_ref().and_then(scalar_text).filter(|text| !text.is_empty()) {
            let text =
                cut_noted(text.to_owned().into(), limits::ATTRIBUTE_CHARS, name, trimmed_paths);
            set(event, name, Json::String(text));
        }
    }
    let level = level(take(event, "level").as_ref());
    set(event, "level", Json::String(level.into()));
    canonicalize_fingerprint(event, trimmed_paths);
    if let Some(tags) = take(event, "tags").and_then(|sent| canonical_tags(sent, trimmed_paths)) {
        set(event, "tags", tags);
    }
    canonicalize_times(event);
    if let Some(Json::Object(mut contexts)) = take(event, "contexts") {
        contexts.retain_mut(|(name, context)| {
            let path = format!("contexts.{name}");
            *context != Json::Null
                && name.len() <= limits::NAME_CHARS
                && limits::fit(context, limits::CONTEXT_BYTES, &path, trimmed_paths)
        });
        set(event, "contexts", Json::Object(contexts));
    }
    if let Some(mut extra) = take(event, "extra")
        && limits::fit(&mut extra, limits::EXTRA_BYTES, "extra", trimmed_paths)
    {
        set(event, "extra", extra);
    }
}

/// Converts the times of an event, and of the items in its lists, to the form of `timestamp`.
/// `timestamp` itself is corrected elsewhere.
fn canonicalize_times(event: &mut Members<'_>) {
    canonicalize_time(event, "start_timestamp");
    canonicalize_time(event, "received");
    for list in ["breadcrumbs", "spans"] {
        let items = match get_mut(event, list) {
            Some(Json::Object(members)) => get_mut(members, "values"),
            sent => sent,
        };
        let Some(Json::Array(items)) = items else { continue };
        for item in items {
            if let Json::Object(item) = item {
                canonicalize_time(item, "timestamp");
                canonicalize_time(item, "start_timestamp");
            }
        }
    }
}

fn canonicalize_time(members: &mut Members<'_>, name: &'static str) {
    let Some(sent) = get_mut(members, name) else { return };
    match parse_timestamp(sent) {
        Some(at) => *sent = Json::String(at.to_string().into()),
        None => drop(take(members, name)),
    }
}

/// Returns `fatal`, `error`, `warning`, `info` or `debug`. Accepts other names that SDKs use, and
/// the numbers of Python's `logging`. Anything else is an error.
fn level(sent: Option<&Json<'_>>) -> &'static str {
    let name = sent.and_then(scalar_text).unwrap_or_default().trim().to_ascii_lowercase();
    match name.as_str() {
        "fatal" | "critical" | "50" => "fatal",
        "warning" | "warn" | "30" => "warning",
        "info" | "log" | "20" => "info",
        "debug" | "trace" | "10" => "debug",
        _ => "error",
    }
}

/// Sets `logentry` from itself or from `message`. Each is a text or an object.
fn canonicalize_log(event: &mut Members<'_>, trimmed_paths: &mut TrimmedPaths) {
    let logentry = take(event, "logentry").and_then(|sent| canonical_log(sent, trimmed_paths));
    let message = take(event, "message").and_then(|sent| canonical_log(sent, trimmed_paths));
    if let Some(log) = logentry.or(message) {
        set(event, "logentry", log);
    }
}

fn canonical_log<'a>(sent: Json<'a>, trimmed_paths: &mut TrimmedPaths) -> Option<Json<'a>> {
    let mut log = Members::new();
    let mut put =
        |name: &'static str, text: Option<Cow<'a, str>>, trimmed_paths: &mut TrimmedPaths| {
            if let Some(text) = text.filter(|text| !text.is_empty()) {
                let text = cut_noted(text, limits::MESSAGE_CHARS, "logentry", trimmed_paths);
                set(&mut log, name, Json::String(text));
            }
        };
    match sent {
        Json::Object(mut members) => {
            put("message", take(&mut members, "message").and_then(any_text), trimmed_paths);
            put("formatted", take(&mut members, "formatted").and_then(any_text), trimmed_paths);
            let params = take(&mut members, "params").filter(has_items);
            if let Some(mut params) = params
                && limits::fit(&mut params, limits::CONTEXT_BYTES, "logentry.params", trimmed_paths)
            {
                set(&mut log, "params", params);
            }
        }
        text => put("formatted", any_text(text), trimmed_paths),
    }
    let has_text = get(&log, "message").or(get(&log, "formatted")).is_some();
    has_text.then_some(Json::Object(log))
}

fn has_items(json: &Json<'_>) -> bool {
    match json {
        Json::Array(items) => !items.is_empty(),
        Json::Object(members) => !members.is_empty(),
        _ => false,
    }
}

fn canonicalize_fingerprint(event: &mut Members<'_>, trimmed_paths: &mut TrimmedPaths) {
    let Some(Json::Array(mut parts)) = take(event, "fingerprint") else { return };
    if parts.len() > limits::FINGERPRINT_PARTS {
        parts.truncate(limits::FINGERPRINT_PARTS);
        trimmed_paths.note("fingerprint");
    }
    let texts = parts.iter().filter_map(scalar_text).map(|text| {
        let text = cut(text.to_owned().into(), limits::ATTRIBUTE_CHARS);
        Json::String(text)
    });
    let texts: Vec<Json<'_>> = texts.collect();
    if !texts.is_empty() {
        set(event, "fingerprint", Json::Array(texts));
    }
}

/// Returns an object of texts, from an object or from pairs.
fn canonical_tags<'a>(sent: Json<'a>, trimmed_paths: &mut TrimmedPaths) -> Option<Json<'a>> {
    let pairs: Members<'a> = match sent {
        Json::Object(members) => members,
        Json::Array(pairs) => pairs.into_iter().filter_map(pair).collect(),
        _ => return None,
    };
    let mut tags = Members::new();
    for (name, value) in pairs {
        let Some(value) = scalar_text(&value).filter(|_| !name.is_empty()) else { continue };
        if tags.len() == limits::TAGS {
            trimmed_paths.note("tags");
            break;
        }
        let name = cut_noted(name, limits::TAG_CHARS, "tags", trimmed_paths);
        let value = cut_noted(value.to_owned().into(), limits::TAG_CHARS, "tags", trimmed_paths);
        if get(&tags, &name).is_none() {
            tags.push((name, Json::String(value)));
        }
    }
    (!tags.is_empty()).then_some(Json::Object(tags))
}

fn pair(json: Json<'_>) -> Option<(Cow<'_, str>, Json<'_>)> {
    let Json::Array(pair) = json else { return None };
    let mut pair = pair.into_iter();
    match (pair.next(), pair.next(), pair.next()) {
        (Some(Json::String(name)), Some(value), None) => Some((name, value)),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ingestion::json_text::to_string;

    fn canonical(text: &str) -> String {
        let Ok(Json::Object(mut event)) = Json::parse(text, 16) else { panic!("{text}") };
        let mut trimmed_paths = TrimmedPaths::default();
        canonicalize(&mut event, &mut trimmed_paths);
        trimmed_paths.put_into(&mut event);
        event.retain(|(name, value)| !(name == "level" && *value == Json::String("error".into())));
        to_string(&Json::Object(event))
    }

    #[test]
    fn reads_tags_as_map_and_as_pairs() {
        let expected = r#"{"tags":{"a":"b","n":"1"}}"#;
        for text in [
            r#"{"tags":{"a":"b","n":1,"x":null,"y":[],"":"e"}}"#,
            r#"{"tags":[["a","b"],["n",1],["odd"],null,["a","second"],["x",{}]]}"#,
        ] {
            assert_eq!(canonical(text), expected, "{text}");
        }
        for text in [r#"{"tags":null}"#, r#"{"tags":"a"}"#, r#"{"tags":[]}"#] {
            assert_eq!(canonical(text), "{}", "{text}");
        }
    }

    #[test]
    fn breadcrumb_times_become_rfc3339() {
        for (sent, stored) in [
            ("1795258800.25", Some("2026-11-21T11:00:00.250Z")),
            (r#""2026-11-21T11:00:00.250000""#, Some("2026-11-21T11:00:00.250Z")),
            ("1e15", Some("9999-12-31T23:59:59.999Z")),
            ("-1e300", Some("0000-01-01T00:00:00.000Z")),
            (r#""+275760-09-13T00:00:00Z""#, None),
            (r#"{"a":1}"#, None),
            ("null", None),
        ] {
            let stored = stored.map(|at| format!("\"timestamp\":\"{at}\"")).unwrap_or_default();
            for (before, after) in
                [(r#""breadcrumbs":[{"#, "}]"), (r#""spans":{"values":[{"#, "}]}")]
            {
                let text = format!("{{{before}\"timestamp\":{sent}{after}}}");
                assert_eq!(canonical(&text), format!("{{{before}{stored}{after}}}"));
            }
        }
        let of_event = r#"{"start_timestamp":1e15,"received":[]}"#;
        assert_eq!(canonical(of_event), r#"{"start_timestamp":"9999-12-31T23:59:59.999Z"}"#);
    }

    #[test]
    fn cuts_tags() {
        let long = "é".repeat(300);
        let text = format!(r#"{{"tags":{{"{long}":"{long}"}}}}"#);
        let short = "é".repeat(200);
        let expected = format!(r#"{{"tags":{{"{short}":"{short}"}},"trimmed":["tags"]}}"#);
        assert_eq!(canonical(&text), expected);
        let many: Vec<String> = (0..300).map(|i| format!("\"t{i}\":1")).collect();
        let kept = canonical(&format!("{{\"tags\":{{{}}}}}", many.join(",")));
        assert!(kept.contains("\"t199\"") && !kept.contains("\"t200\""));
    }

    #[test]
    fn reads_messages_in_all_shapes() {
        for text in [
            r#"{"message":"m"}"#,
            r#"{"logentry":"m"}"#,
            r#"{"message":{"formatted":"m","params":[]}}"#,
            r#"{"logentry":{"formatted":"m"},"message":"other"}"#,
            r#"{"logentry":{"formatted":""},"message":"m"}"#,
            r#"{"sentry.interfaces.Message":{"formatted":"m"}}"#,
        ] {
            assert_eq!(canonical(text), r#"{"logentry":{"formatted":"m"}}"#, "{text}");
        }
        let text = format!(r#"{{"message":"{}"}}"#, "x".repeat(8_193));
        assert!(canonical(&text).contains(&format!("\"{}\"", "x".repeat(8_192))));
        assert_eq!(canonical(r#"{"message":null,"logentry":{}}"#), "{}");
    }

    #[test]
    fn reads_levels() {
        for (sent, level) in [
            ("\"fatal\"", "fatal"),
            ("\"Warn\"", "warning"),
            ("\"log\"", "info"),
            ("20", "info"),
            ("\"debug\"", "debug"),
        ] {
            let expected = format!(r#"{{"level":"{level}"}}"#);
            assert_eq!(canonical(&format!("{{\"level\":{sent}}}")), expected, "{sent}");
        }
        for sent in ["\"error\"", "\"severe\"", "null", "{}", "\"\""] {
            assert_eq!(canonical(&format!("{{\"level\":{sent}}}")), "{}", "{sent}");
        }
    }

    #[test]
    fn limits_contexts_and_extra() {
        let text = format!(
            r#"{{"contexts":{{"a":{{"x":"{}","y":1}},"b":null,"c":"{}"}}}}"#,
            "x".repeat(9_000),
            "x".repeat(9_000)
        );
        let expected = r#"{"contexts":{"a":{"y":1}},"trimmed":["contexts.a.x","contexts.c"]}"#;
        assert_eq!(canonical(&text), expected);
        let text = format!(r#"{{"extra":{{"big":"{}","y":1}}}}"#, "x".repeat(256_000));
        assert_eq!(canonical(&text), r#"{"extra":{"y":1},"trimmed":["extra.big"]}"#);
    }

    #[test]
    fn ignores_fields_of_wrong_types() {
        let text = r#"{"release":[],"environment":{},"platform":5,"transaction":null,
            "fingerprint":"x","contexts":[1],"exception":3}"#;
        assert_eq!(canonical(text), r#"{"platform":"5"}"#);
        assert_eq!(
            canonical(r#"{"fingerprint":["a",1,null,true]}"#),
            r#"{"fingerprint":["a","1","true"]}"#
        );
    }
}
