//! The frames of an event in Sentry's format: which of them need a map, and their resolved form.

use std::borrow::Cow;
use std::collections::{BTreeSet, HashMap};

use shared::json::Json;
use shared::json::members::{Members, get, get_mut, items};

use crate::pieces::{Context, Found};
use crate::{MapKey, is_in_app, url_path};

/// Maximum characters of a shown source line, as in events of SDKs.
const MAX_LINE_CHARS: usize = 256;
/// Characters that are shown before the column of a longer line.
const CHARS_BEFORE: usize = 100;
/// Maximum maps that an event can look up.
const MAX_MAPS_OF_EVENT: usize = 20;
/// Words before the name of a called function.
const KEYWORDS: [&str; 7] = ["new", "await", "return", "throw", "yield", "void", "typeof"];
/// Words before a parenthesis that call nothing.
const STATEMENTS: [&str; 8] = ["", "if", "for", "while", "switch", "catch", "function", "async"];

/// A frame of minified code.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MinifiedFrame {
    /// Index of its exception.
    pub exception: usize,
    /// Index in the exception's stack.
    pub frame: usize,
    /// The key of its map.
    pub key: MapKey,
    /// Line, from 0.
    pub line: u32,
    /// Column, from 0.
    pub column: u32,
}

/// The new members of a frame. Numbers are text, since JSON values borrow them.
#[derive(Debug, Clone, PartialEq, Eq)]
struct ResolvedFrame {
    exception: usize,
    frame: usize,
    found: Found,
    line: String,
    column: String,
}

/// The resolved frames of an event.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ResolvedFrames(Vec<ResolvedFrame>);

/// Returns the frames of an event that need a map: those of scripts with a debug ID, and those with
/// a URL if the event has a release. Resolved frames need none.
pub fn minified_frames(event: &Members<'_>) -> Vec<MinifiedFrame> {
    let ids = debug_ids(event);
    let text = |name| match get(event, name) {
        Some(Json::String(text)) if !text.is_empty() => Some(text.as_ref()),
        _ => None,
    };
    let is_javascript = matches!(text("platform"), Some("javascript" | "node"));
    let release = text("release").filter(|_| is_javascript);
    if ids.is_empty() && release.is_none() {
        return Vec::new();
    }
    let key_of = |frame: &Json<'_>| {
        let files = ["abs_path", "filename"].into_iter().filter_map(|name| frame.member_text(name));
        if let Some(key) = files.clone().find_map(|file| ids.get(file)) {
            return Some(key.clone());
        }
        let path = files.filter(|file| file.contains("://")).find_map(url_path)?;
        Some(MapKey::of_url(release?, text("dist").unwrap_or_default(), &path))
    };
    let mut keys = BTreeSet::new();
    let mut minified = Vec::new();
    let exceptions = items(get(event, "exception").and_then(|it| it.member("values")));
    for (exception, value) in exceptions.iter().enumerate() {
        for (frame, sent) in frames_of(value).iter().enumerate() {
            let number = |name| match sent.member(name) {
                Some(Json::Number(text)) => text.parse::<u32>().ok()?.checked_sub(1),
                _ => None,
            };
            let (Some(line), Some(column), None) =
                (number("lineno"), number("colno"), sent.member("minified"))
            else {
                continue;
            };
            let Some(key) = key_of(sent) else { continue };
            if keys.len() == MAX_MAPS_OF_EVENT && !keys.contains(&key) {
                continue;
            }
            keys.insert(key.clone());
            minified.push(MinifiedFrame { exception, frame, key, line, column });
        }
    }
    minified
}

/// Returns the debug IDs that an event lists, by the file of their script.
fn debug_ids<'e>(event: &'e Members<'_>) -> HashMap<&'e str, MapKey> {
    let images = get(event, "debug_meta").and_then(|meta| meta.member("images"));
    let ids = items(images).iter().filter_map(|image| {
        let is_map = image.member_text("type") == Some("sourcemap");
        let id = MapKey::of_debug_id(image.member_text("debug_id")?)?;
        is_map.then_some((image.member_text("code_file")?, id))
    });
    ids.collect()
}

impl ResolvedFrames {
    /// Combines frames with the positions that were found for them, in the same order.
    ///
    /// The name of a frame's function is the one in the map's scopes, else the one that its caller
    /// calls: the word at the call in the source, else the map's name for the call.
    pub fn of(frames: &[MinifiedFrame], positions: Vec<Option<Found>>) -> Self {
        let mut resolved = Vec::new();
        // The place of a frame, and the name by which its caller calls it.
        let mut call: Option<((usize, usize), Option<String>)> = None;
        for (at, position) in frames.iter().zip(positions) {
            let Some(mut found) = position else { continue };
            let MinifiedFrame { exception, frame, .. } = *at;
            let call_of_this = call.take().filter(|(callee, _)| *callee == (exception, frame));
            let called = found.context.as_ref().and_then(|it| called_name(&it.line, found.column));
            call = Some(((exception, frame + 1), called.or(found.name.take())));
            found.function = found.function.or(call_of_this.and_then(|(_, name)| name));
            let from_one = |number| (u64::from(number) + 1).to_string();
            let [line, column] = [found.line, found.column].map(from_one);
            resolved.push(ResolvedFrame { exception, frame, found, line, column });
        }
        Self(resolved)
    }

    /// Returns `true` if no frame was resolved.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns an event with its resolved frames.
    pub fn apply<'a>(&'a self, mut event: Members<'a>) -> Members<'a> {
        if let Some(Json::Object(exception)) = get_mut(&mut event, "exception")
            && let Some(Json::Array(values)) = get_mut(exception, "values")
        {
            for resolved in &self.0 {
                if let Some(Json::Object(value)) = values.get_mut(resolved.exception)
                    && let Some(Json::Object(stack)) = get_mut(value, "stacktrace")
                    && let Some(Json::Array(frames)) = get_mut(stack, "frames")
                    && let Some(Json::Object(frame)) = frames.get_mut(resolved.frame)
                {
                    resolved.replace(frame);
                }
            }
        }
        event
    }
}

impl ResolvedFrame {
    /// Replaces the members of a frame. Keeps the minified ones in `minified`.
    fn replace<'a>(&'a self, frame: &mut Members<'a>) {
        const MINIFIED: [&str; 4] = ["filename", "lineno", "colno", "function"];
        const DROPPED: [&str; 6] =
            ["abs_path", "module", "context_line", "pre_context", "post_context", "raw_function"];
        let mut kept = std::mem::take(frame);
        let member = |name| get(&kept, name).filter(|it| **it != Json::Null).cloned();
        let minified = MINIFIED.map(|name| {
            let url = || (name == "filename").then(|| member("abs_path")).flatten();
            (Cow::Borrowed(name), member(name).or_else(url).unwrap_or(Json::Null))
        });
        kept.retain(|(name, _)| {
            name != "in_app" && !MINIFIED.contains(&&**name) && !DROPPED.contains(&&**name)
        });
        let text = |text: &'a str| Json::String(Cow::Borrowed(text));
        let mut put = |name: &'static str, value| frame.push((Cow::Borrowed(name), value));
        put("filename", text(&self.found.path));
        if let Some(function) = &self.found.function {
            put("function", text(function));
        }
        put("lineno", Json::Number(&self.line));
        put("colno", Json::Number(&self.column));
        put("in_app", Json::Bool(is_in_app(&self.found.path)));
        if let Some(Context { before, line, after }) = &self.found.context {
            let shown = |line: &str, skipped| {
                let shown: String = line.chars().skip(skipped).take(MAX_LINE_CHARS).collect();
                Json::String(Cow::Owned(shown))
            };
            let all_shown =
                |lines: &[String]| Json::Array(lines.iter().map(|line| shown(line, 0)).collect());
            put("contextLine", shown(line, hidden_chars(line, self.found.column)));
            put("preContext", all_shown(before));
            put("postContext", all_shown(after));
        }
        put("minified", Json::Object(minified.into()));
        frame.append(&mut kept);
    }
}

/// Returns the name of the function that is called at a column of a source line.
fn called_name(line: &str, column: u32) -> Option<String> {
    let is_of_name = |c: char| c.is_alphanumeric() || matches!(c, '_' | '$');
    // `cart.items.total()` can be mapped to its start.
    let is_of_path = |c: char| is_of_name(c) || matches!(c, '.' | '?' | '!' | '#');
    let rest: String = line.chars().skip(chars_before(line, column)).collect();
    if rest.starts_with(char::is_whitespace) {
        return None;
    }
    // Words can precede the name: `await new Cart()`.
    let call = rest.split_whitespace().find(|word| !KEYWORDS.contains(word))?;
    let first = call.split(|c| !is_of_name(c)).next()?;
    let (path, after) = call.split_at(call.find(|c| !is_of_path(c))?);
    let last = path.trim_end_matches(['?', '.', '!']).rsplit(['.', '#']).next()?;
    let is_call = after.starts_with(['(', '`', '<'])
        && !first.starts_with(|c: char| c.is_ascii_digit())
        && !KEYWORDS.contains(&first)
        && !STATEMENTS.contains(&first);
    (is_call && !last.is_empty() && last.chars().all(is_of_name)).then(|| last.to_owned())
}

/// Returns the number of characters before a column in UTF-16 units.
fn chars_before(line: &str, column: u32) -> usize {
    char::decode_utf16(line.encode_utf16().take(column as usize)).count()
}

/// Returns the number of characters at the start of a line that are hidden: a long line shows the
/// part around the column, if it has that column.
fn hidden_chars(line: &str, column: u32) -> usize {
    let (before, all) = (chars_before(line, column), line.chars().count());
    let is_cut = all > MAX_LINE_CHARS && before < all;
    if is_cut { before.saturating_sub(CHARS_BEFORE) } else { 0 }
}

fn frames_of<'e, 'a>(exception: &'e Json<'a>) -> &'e [Json<'a>] {
    items(exception.member("stacktrace").and_then(|stack| stack.member("frames")))
}

#[cfg(test)]
mod tests {
    use super::*;

    const ID: &str = "d0c3f1b2-7a44-4f0e-9a3b-0c5d6e7f8a9b";

    fn parse(text: &str) -> Members<'_> {
        match Json::parse(text, 20).unwrap() {
            Json::Object(members) => members,
            _ => panic!("not an object"),
        }
    }

    fn event(frames: &str, release: &str) -> String {
        format!(
            r#"{{"platform":"javascript","release":"{release}","debug_meta":{{"images":[
            {{"type":"sourcemap","code_file":"https://h/a.js","debug_id":"{ID}"}}]}},
            "exception":{{"values":[{{"type":"E","stacktrace":{{"frames":[{frames}]}}}}]}}}}"#
        )
    }

    fn found(path: &str, line: u32, name: Option<&str>, source: &str) -> Found {
        Found {
            path: path.to_owned(),
            line,
            column: 7,
            name: name.map(str::to_owned),
            function: None,
            context: Some(Context { line: source.to_owned(), ..Context::default() }),
        }
    }

    #[test]
    fn frames_with_debug_id_or_release_need_a_map() {
        let frames = r#"{"filename":"https://h/a.js","lineno":1,"colno":9},
            {"filename":"https://h/b.js?x","lineno":2,"colno":1},
            {"filename":"<anonymous>","lineno":1,"colno":1},
            {"filename":"https://h/a.js","lineno":1},
            {"filename":"https://h/a.js","lineno":0,"colno":4},
            {"filename":"a.js","lineno":1,"colno":9,"minified":{}}"#;
        let id = MapKey::of_debug_id(ID).unwrap();
        let at =
            |frame, key, line, column| MinifiedFrame { exception: 0, frame, key, line, column };
        let first = at(0, id, 0, 8);
        assert_eq!(minified_frames(&parse(&event(frames, ""))), std::slice::from_ref(&first));
        let url = MapKey::of_url("r", "", "/b.js");
        assert_eq!(minified_frames(&parse(&event(frames, "r"))), [first, at(1, url, 1, 0)]);
    }

    #[test]
    fn callers_name_the_functions() {
        let frames = r#"{"filename":"https://h/a.js","function":"t","in_app":true,"lineno":1,"colno":9},
            {"filename":"https://h/a.js","function":"n","in_app":true,"lineno":1,"colno":20},
            {"filename":"https://h/a.js","function":"r","lineno":1,"colno":30,"vars":{"x":"1"}}"#;
        let text = event(frames, "");
        let event = parse(&text);
        let minified = minified_frames(&event);
        let positions = vec![
            Some(found("src/main.js", 2, Some("cart"), "return total(x)")),
            Some(found("node_modules/a.js", 4, Some("parse"), "const x = y")),
            Some(found("src/cart.js", 6, Some("items"), "return total(x)")),
        ];
        let resolved = ResolvedFrames::of(&minified, positions);
        let event = Json::Object(resolved.apply(event));
        let frames = frames_of(&items(event.member("exception").unwrap().member("values"))[0]);
        let names: Vec<_> = frames.iter().map(|it| it.member_text("function")).collect();
        assert_eq!(names, [None, Some("total"), Some("parse")]);
        let in_app: Vec<_> = frames.iter().map(|it| it.member("in_app")).collect();
        assert_eq!(
            in_app,
            [Some(&Json::Bool(true)), Some(&Json::Bool(false)), Some(&Json::Bool(true))]
        );
        let last = &frames[2];
        assert_eq!(last.member("lineno"), Some(&Json::Number("7")));
        assert_eq!(last.member("colno"), Some(&Json::Number("8")));
        assert_eq!(last.member_text("contextLine"), Some("return total(x)"));
        assert_eq!(last.member("minified").unwrap().member_text("function"), Some("r"));
        assert!(last.member("vars").is_some());
    }

    #[test]
    fn calls_in_sources_have_names() {
        for (line, column, name) in [
            ("return total(x)", 7, Some("total")),
            ("  cart.total(x)", 7, Some("total")),
            ("  cart.items.total(x)", 2, Some("total")),
            ("  cart?.total(x)", 2, Some("total")),
            ("x = new Cart(1)", 4, Some("Cart")),
            ("x = new Cart(1)", 0, None),
            ("if (total(x))", 0, None),
            ("this.#total(x)", 0, Some("total")),
            ("await new Cart(1)", 0, Some("Cart")),
            ("é😀 total()", 4, Some("total")),
            ("(0, f)()", 0, None),
            ("x", 5, None),
            ("", 0, None),
            ("return return return return x", 0, None),
            ("cart.", 0, None),
            (" total(x)", 0, None),
            ("return(total)", 0, None),
            ("new.target()", 0, None),
            ("return  total(x)", 0, Some("total")),
            ("cart.items[0](x)", 0, None),
            ("tag`x`", 0, Some("tag")),
            ("total<T, U>(x)", 0, Some("total")),
            ("1.total(x)", 0, None),
        ] {
            assert_eq!(called_name(line, column).as_deref(), name, "{line}");
        }
    }

    #[test]
    fn long_lines_keep_the_part_around_the_column() {
        let line = format!("{}HERE{}", "a".repeat(400), "b".repeat(400));
        assert_eq!(hidden_chars(&line, 400), 400 - CHARS_BEFORE);
        for column in [0, 99, 100, 808, u32::MAX] {
            assert_eq!(hidden_chars(&line, column), 0, "{column}");
        }
        assert_eq!(hidden_chars(&"a".repeat(MAX_LINE_CHARS), 200), 0);
    }
}
