//! Converts the chain of exceptions to the one shape that Sentry documents.

use shared::json::Json;

use super::limits;
use super::limits::cut_noted;
use super::member::{Members, any_text, cut, get, get_mut, items, scalar_text, set, take};
use super::trimmed_paths::TrimmedPaths;
use crate::grouping::occurrence::{Exception, Frame};

const EXCEPTION_MEMBERS: [&str; 6] =
    ["type", "value", "module", "thread_id", "mechanism", "stacktrace"];
const FRAME_NAMES: [&str; 6] =
    ["function", "raw_function", "module", "package", "filename", "abs_path"];
const FRAME_SCALARS: [&str; 7] =
    ["lineno", "colno", "in_app", "platform", "instruction_addr", "symbol_addr", "image_addr"];
/// Minimum column of built code. Lines that people write are shorter.
const LEAST_BUILT_COLUMN: u64 = 1_000;
const SOURCE_CONTEXT: [&str; 2] = ["pre_context", "post_context"];

/// Returns `{"values": […]}`, from such an object, a list, or a single exception. Drops fields that
/// the protocol does not know, since nothing else bounds their size.
pub(super) fn canonical_exceptions<'a>(
    sent: Json<'a>,
    trimmed_paths: &mut TrimmedPaths,
) -> Option<Json<'a>> {
    let mut exceptions = listed(sent);
    exceptions.retain(|exception| matches!(exception, Json::Object(_)));
    if limits::cut_middle(&mut exceptions, limits::EXCEPTIONS) {
        trimmed_paths.note("exception.values");
    }
    for exception in &mut exceptions {
        if let Json::Object(members) = exception {
            canonicalize_exception(members, trimmed_paths);
        }
    }
    exceptions
        .retain(|exception| !matches!(exception, Json::Object(members) if members.is_empty()));
    (!exceptions.is_empty()).then(|| Json::Object(vec![("values".into(), Json::Array(exceptions))]))
}

fn listed(sent: Json<'_>) -> Vec<Json<'_>> {
    match sent {
        Json::Array(exceptions) => exceptions,
        Json::Object(mut members) => match take(&mut members, "values") {
            Some(Json::Array(exceptions)) => exceptions,
            Some(single @ Json::Object(_)) => vec![single],
            _ => vec![Json::Object(members)],
        },
        _ => Vec::new(),
    }
}

fn canonicalize_exception(members: &mut Members<'_>, trimmed_paths: &mut TrimmedPaths) {
    members.retain(|(name, _)| EXCEPTION_MEMBERS.contains(&name.as_ref()));
    for (name, most) in [
        ("type", limits::NAME_CHARS),
        ("value", limits::MESSAGE_CHARS),
        ("module", limits::NAME_CHARS),
    ] {
        if let Some(text) = take(members, name).and_then(any_text) {
            let text = cut_noted(text, most, "exception.values", trimmed_paths);
            set(members, name, Json::String(text));
        }
    }
    let thread_id = take(members, "thread_id");
    let is_short = |id: &Json<'_>| scalar_text(id).is_some_and(|id| id.len() <= limits::NAME_CHARS);
    if let Some(id) = thread_id.filter(is_short) {
        set(members, "thread_id", id);
    }
    if let Some(mut mechanism @ Json::Object(_)) = take(members, "mechanism") {
        limits::fit(&mut mechanism, limits::CONTEXT_BYTES, "exception.mechanism", trimmed_paths);
        set(members, "mechanism", mechanism);
    }
    if let Some(stack) = take(members, "stacktrace").and_then(|s| canonical_stack(s, trimmed_paths))
    {
        set(members, "stacktrace", stack);
    }
}

fn canonical_stack<'a>(sent: Json<'a>, trimmed_paths: &mut TrimmedPaths) -> Option<Json<'a>> {
    let mut frames = match sent {
        Json::Array(frames) => frames,
        Json::Object(mut members) => match take(&mut members, "frames") {
            Some(Json::Array(frames)) => frames,
            _ => return None,
        },
        _ => return None,
    };
    frames.retain(|frame| matches!(frame, Json::Object(_)));
    if limits::cut_middle(&mut frames, limits::FRAMES) {
        trimmed_paths.note("exception.stacktrace.frames");
    }
    for frame in &mut frames {
        if let Json::Object(members) = frame {
            *members = std::mem::take(members)
                .into_iter()
                .filter_map(|(name, value)| {
                    canonical_frame_member(&name, value).map(|value| (name, value))
                })
                .collect();
        }
    }
    (!frames.is_empty()).then(|| Json::Object(vec![("frames".into(), Json::Array(frames))]))
}

/// Returns a field of a frame, or `None` if it has the wrong type or is not in the protocol.
fn canonical_frame_member<'a>(name: &str, value: Json<'a>) -> Option<Json<'a>> {
    match value {
        Json::String(text) if FRAME_NAMES.contains(&name) => {
            Some(Json::String(cut(text, limits::NAME_CHARS)))
        }
        Json::String(text) if name == "context_line" => {
            Some(Json::String(cut(text, limits::SOURCE_LINE_CHARS)))
        }
        Json::Array(lines) if SOURCE_CONTEXT.contains(&name) => Some(source_lines(lines)),
        Json::Object(_) if name == "vars" => Some(value),
        Json::String(text) if FRAME_SCALARS.contains(&name) => {
            Some(Json::String(cut(text, limits::NAME_CHARS)))
        }
        Json::Number(written) if FRAME_SCALARS.contains(&name) => {
            (written.len() <= limits::NAME_CHARS).then_some(value)
        }
        Json::Bool(_) if FRAME_SCALARS.contains(&name) => Some(value),
        _ => None,
    }
}

fn source_lines(lines: Vec<Json<'_>>) -> Json<'_> {
    let texts = lines.into_iter().take(limits::SOURCE_LINES).map(|line| match line {
        Json::String(text) => Json::String(cut(text, limits::SOURCE_LINE_CHARS)),
        _ => Json::String("".into()),
    });
    Json::Array(texts.collect())
}

/// Returns the exceptions of a canonical event.
pub(super) fn read_exceptions<'e>(event: &'e Members<'_>) -> Vec<Exception<'e>> {
    let text = |json: &'e Json<'_>, name: &str| json.member_text(name).unwrap_or_default();
    let values = items(get(event, "exception").and_then(|exception| exception.member("values")));
    // Beside resolved frames, the names of minified ones would only separate builds.
    let any_resolved = values.iter().flat_map(frames_of).any(is_resolved);
    let counts = |frame: &&Json<'_>| {
        let file = frame.member_text("filename").or_else(|| frame.member_text("abs_path"));
        !any_resolved || is_resolved(frame) || !file.is_some_and(|file| file.contains("://"))
    };
    let exceptions = values.iter().map(|exception| Exception {
        error_type: text(exception, "type").trim(),
        value: text(exception, "value"),
        frames: frames_of(exception).iter().filter(counts).map(read_frame).collect(),
    });
    exceptions.collect()
}

/// `true` if the code was built. Browsers run the output of a bundler. A server does if its lines
/// are longer than people write them.
pub(super) fn is_built(event: &Members<'_>) -> bool {
    let values = get(event, "exception").and_then(|exception| exception.member("values"));
    if items(values).iter().flat_map(frames_of).any(is_resolved) {
        return false;
    }
    match get(event, "platform").and_then(scalar_text) {
        Some("javascript") => true,
        Some("node") => {
            let mut frames = items(values).iter().flat_map(frames_of);
            frames.any(|frame| {
                let column = frame.member("colno").and_then(scalar_text);
                let column = column.and_then(|column| column.parse::<u64>().ok());
                frame.member("in_app") == Some(&Json::Bool(true))
                    && column.is_some_and(|column| column >= LEAST_BUILT_COLUMN)
            })
        }
        _ => false,
    }
}

fn frames_of<'e, 'a>(exception: &'e Json<'a>) -> &'e [Json<'a>] {
    items(exception.member("stacktrace").and_then(|stack| stack.member("frames")))
}

/// `true` if a source map resolved the frame.
fn is_resolved(frame: &Json<'_>) -> bool {
    frame.member("minified").is_some()
}

fn read_frame<'e>(frame: &'e Json<'_>) -> Frame<'e> {
    let text = |name: &str| frame.member_text(name).filter(|text| !text.is_empty());
    Frame {
        module: text("module").unwrap_or_default(),
        file: text("filename").or_else(|| text("abs_path")).unwrap_or_default(),
        function: text("function").unwrap_or_default(),
        // Resolved frames have the camel-case name.
        context_line: text("context_line").or_else(|| text("contextLine")).unwrap_or_default(),
        in_app: frame.member("in_app") == Some(&Json::Bool(true)),
    }
}

/// `true` unless an exception of a canonical event says that the application did not catch it.
pub(super) fn is_handled(event: &Members<'_>) -> bool {
    let values = items(get(event, "exception").and_then(|exception| exception.member("values")));
    !values.iter().any(|exception| {
        exception.member("mechanism").and_then(|mechanism| mechanism.member("handled"))
            == Some(&Json::Bool(false))
    })
}

/// Calls `change` for each exception of a canonical event.
pub(super) fn each_exception<'a>(
    event: &mut Members<'a>,
    mut change: impl FnMut(&mut Members<'a>),
) {
    if let Some(Json::Array(values)) = values_mut(event) {
        for exception in values {
            if let Json::Object(members) = exception {
                change(members);
            }
        }
    }
}

/// Calls `change` for each frame of an exception.
pub(super) fn each_frame<'a>(
    exception: &mut Members<'a>,
    mut change: impl FnMut(&mut Members<'a>),
) {
    if let Some(Json::Array(frames)) = frames_mut(exception) {
        for frame in frames {
            if let Json::Object(members) = frame {
                change(members);
            }
        }
    }
}

/// Removes the middle of the chain and of each stack.
pub(super) fn shorten(event: &mut Members<'_>, exceptions: usize, frames: usize) {
    if let Some(Json::Array(values)) = values_mut(event) {
        limits::cut_middle(values, exceptions);
    }
    each_exception(event, |exception| {
        if let Some(Json::Array(list)) = frames_mut(exception) {
            limits::cut_middle(list, frames);
        }
    });
}

fn values_mut<'e, 'a>(event: &'e mut Members<'a>) -> Option<&'e mut Json<'a>> {
    match get_mut(event, "exception")? {
        Json::Object(members) => get_mut(members, "values"),
        _ => None,
    }
}

fn frames_mut<'e, 'a>(exception: &'e mut Members<'a>) -> Option<&'e mut Json<'a>> {
    match get_mut(exception, "stacktrace")? {
        Json::Object(members) => get_mut(members, "frames"),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ingestion::json_text::to_string;

    fn canonical(text: &str) -> Option<String> {
        let json = Json::parse(text, 16).unwrap();
        let canonical = canonical_exceptions(json, &mut TrimmedPaths::default());
        canonical.map(|json| to_string(&json))
    }

    #[test]
    fn converts_all_shapes_to_one() {
        let expected = Some(r#"{"values":[{"type":"E","value":"v"}]}"#.to_owned());
        for text in [
            r#"{"type":"E","value":"v"}"#,
            r#"[{"type":"E","value":"v"}]"#,
            r#"{"values":[{"type":"E","value":"v"}]}"#,
            r#"{"values":{"type":"E","value":"v"}}"#,
            r#"{"values":[null,"x",{"type":"E","value":"v","stacktrace":{"frames":[null]}},{}]}"#,
        ] {
            assert_eq!(canonical(text), expected, "{text}");
        }
        for text in ["null", "[]", "{}", "\"E\"", "{\"values\":null}", "7"] {
            assert_eq!(canonical(text), None, "{text}");
        }
    }

    #[test]
    fn values_become_text_and_wrong_types_are_dropped() {
        let text = r#"[{"type":7,"value":{"code":1},"mechanism":"x","stacktrace":{"frames":[
            {"function":3,"lineno":"x","in_app":true,"vars":[],"odd":{}}]}}]"#;
        let expected = r#"{"values":[{"type":"7","value":"{\"code\":1}","stacktrace":{"frames":[{"lineno":"x","in_app":true}]}}]}"#;
        assert_eq!(canonical(text), Some(expected.to_owned()));
    }

    #[test]
    fn cuts_the_middle_of_a_stack_and_long_values() {
        let frames: Vec<String> = (0..80).map(|i| format!("{{\"lineno\":{i}}}")).collect();
        let text = format!(
            "{{\"value\":\"{}\",\"stacktrace\":{{\"frames\":[{}]}}}}",
            "é".repeat(9_000),
            frames.join(",")
        );
        let canonical = canonical(&text).unwrap();
        let event = format!("{{\"exception\":{canonical}}}");
        let Ok(Json::Object(event)) = Json::parse(&event, 16) else { panic!("{event}") };
        let exceptions = read_exceptions(&event);
        assert_eq!(exceptions[0].value.chars().count(), limits::MESSAGE_CHARS);
        assert_eq!(exceptions[0].frames.len(), limits::FRAMES);
        assert!(canonical.contains("{\"lineno\":24},{\"lineno\":55}"));
    }
}
