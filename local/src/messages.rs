//! What of the lines that functions, builds and `cargo lambda watch` write is for a person.

use serde_json::Value as Json;

/// A line.
#[derive(Debug, PartialEq, Eq)]
pub enum Message {
    /// What a function logs of each request and run. The gateway shows requests.
    OfFunction,
    /// What a function logs of something that should not happen, for a person.
    Trouble(String),
    /// A message of the build, or of something that went wrong with it.
    OfPeople(String),
    /// How tools go about their work.
    Chatter,
}

/// What `cargo` says of what it need not do.
const CHATTER_OF_CARGO: [&str; 4] = ["Blocking", "Finished", "Fresh", "Running"];

/// What Lambda's runtime says of what `cargo lambda watch` does: of a variable that it sets for every
/// function, and of a function that it stops to start it anew.
const OF_THE_RUNTIME: [&str; 2] =
    ["AWS_LAMBDA_MAX_CONCURRENCY", "Lambda Runtime API returned non-200 response"];
/// What `cargo lambda watch` says of the same.
const STOPPED: &str = "code=ForceStop";

/// Reads a line.
pub fn read(line: &str) -> Message {
    if let Ok(logged @ Json::Object(_)) = serde_json::from_str(line) {
        return of_function(&logged);
    }
    let plain = without_colours(line);
    let first = plain.split_whitespace().next().unwrap_or_default();
    let is_chatter = plain.trim().is_empty()
        || plain.ends_with(STOPPED)
        || CHATTER_OF_CARGO.contains(&first)
        || ["INFO", "DEBUG", "TRACE"].contains(&level(&plain));
    if is_chatter { Message::Chatter } else { Message::OfPeople(line.to_owned()) }
}

fn of_function(logged: &Json) -> Message {
    let text = |member: &str| logged[member].as_str();
    let message = text("message").unwrap_or_default();
    let is_expected = OF_THE_RUNTIME.iter().any(|beginning| message.starts_with(beginning));
    if is_expected || !matches!(text("level"), Some("WARN" | "ERROR")) {
        return Message::OfFunction;
    }
    let mut told = vec![text("level").unwrap_or_default().to_lowercase()];
    told.extend(text("operation").map(str::to_owned));
    told.extend(text("message").map(str::to_owned));
    told.extend(text("location").map(|location| format!("at {location}")));
    for member in ["code", "cause", "table", "key", "attribute"] {
        let value = match &logged[member] {
            Json::Null => continue,
            Json::String(text) => text.clone(),
            other => other.to_string(),
        };
        told.push(format!("{member}: {value}"));
    }
    Message::Trouble(told.join("  "))
}

/// How severe a line of `cargo lambda watch` is.
fn level(line: &str) -> &str {
    // A time may come before it.
    let mut words = line.split_whitespace().take(2);
    words.find(|word| ["ERROR", "WARN", "INFO", "DEBUG", "TRACE"].contains(word)).unwrap_or("")
}

/// A text without the sequences that colour it in a terminal.
fn without_colours(line: &str) -> String {
    let mut parts = line.split('\u{1b}');
    let mut plain = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let sequence_ends = part.find(|it: char| it.is_ascii_alphabetic());
        plain.push_str(sequence_ends.and_then(|end| part.get(end + 1..)).unwrap_or_default());
    }
    plain
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn chatter_of_tools_is_told_apart_from_what_goes_wrong() {
        for line in [
            "",
            " INFO invoke server listening on 127.0.0.1:9000",
            "\u{1b}[32m INFO\u{1b}[0m starting lambda function \u{1b}[3mfunction\u{1b}[0m=\"a\"",
            "2026-11-21T04:16:00.000000Z  INFO terminating lambda scheduler",
            "    Finished `dev` profile [unoptimized + debuginfo] target(s) in 0.27s",
            "\u{1b}[1m\u{1b}[32m     Running\u{1b}[0m `target/debug/create-feature-flag`",
            "    Blocking waiting for file lock on build directory",
            "\u{1b}[31mERROR\u{1b}[0m command killed \u{1b}[3mcode\u{1b}[0m\u{1b}[2m=\u{1b}[0mForceStop",
        ] {
            assert_eq!(read(line), Message::Chatter, "{line}");
        }
        for line in [
            "   Compiling shared v0.1.0 (/waymark/shared)",
            "error[E0308]: mismatched types",
            "  --> shared/src/lib.rs:1:1",
            "\u{1b}[31mERROR\u{1b}[0m command exited \u{1b}[3mcode\u{1b}[0m=101",
            "thread 'main' panicked at src/main.rs:1:1:",
        ] {
            assert_eq!(read(line), Message::OfPeople(line.to_owned()), "{line}");
        }
    }

    #[test]
    fn of_what_functions_log_trouble_is_told() {
        let line = r#"{"level":"INFO","message":"request","operation":"create-feature-flag"}"#;
        assert_eq!(read(line), Message::OfFunction);
        let line =
            r#"{"level":"WARN","message":"AWS_LAMBDA_MAX_CONCURRENCY is set to '1', but …"}"#;
        assert_eq!(read(line), Message::OfFunction);
        for (line, told) in [
            (
                r#"{"level":"ERROR","message":"panic","location":"shared/src/lib.rs:1:1"}"#,
                "error  panic  at shared/src/lib.rs:1:1",
            ),
            (
                r#"{"level":"ERROR","message":"request","operation":"get-error","code":"unavailable","cause":"no connection"}"#,
                "error  get-error  request  code: unavailable  cause: no connection",
            ),
            (
                r#"{"level":"ERROR","message":"damaged item","table":"errors","key":{"pk":"a"}}"#,
                r#"error  damaged item  table: errors  key: {"pk":"a"}"#,
            ),
        ] {
            assert_eq!(read(line), Message::Trouble(told.to_owned()));
        }
    }
}
