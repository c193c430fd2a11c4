//! Classifies the output lines of functions, builds and `cargo lambda watch`.

use serde_json::Value as Json;

/// A classified line.
#[derive(Debug, PartialEq, Eq)]
pub enum Message {
    /// A function's log line about a request or run. The gateway reports requests itself.
    FunctionLog,
    /// A function's warning or error, formatted for the terminal.
    Problem(String),
    /// Output or an error of the build.
    BuildOutput(String),
    /// Progress messages of tools.
    Noise,
}

/// First words of `cargo` lines that need no attention.
const CARGO_NOISE: [&str; 4] = ["Blocking", "Finished", "Fresh", "Running"];

/// Runtime messages that `cargo lambda watch` causes: about a variable that it sets for each
/// function, and about a function that it restarts.
const RUNTIME_NOISE: [&str; 2] =
    ["AWS_LAMBDA_MAX_CONCURRENCY", "Lambda Runtime API returned non-200 response"];
/// End of the message of `cargo lambda watch` about a restart.
const STOPPED: &str = "code=ForceStop";

/// Classifies a line.
pub fn read(line: &str) -> Message {
    if let Ok(logged @ Json::Object(_)) = serde_json::from_str(line) {
        return read_log(&logged);
    }
    let plain = without_colors(line);
    let first = plain.split_whitespace().next().unwrap_or_default();
    let is_noise = plain.trim().is_empty()
        || plain.ends_with(STOPPED)
        || CARGO_NOISE.contains(&first)
        || ["INFO", "DEBUG", "TRACE"].contains(&level(&plain));
    if is_noise { Message::Noise } else { Message::BuildOutput(line.to_owned()) }
}

fn read_log(logged: &Json) -> Message {
    let text = |field: &str| logged[field].as_str();
    let message = text("message").unwrap_or_default();
    let is_expected = RUNTIME_NOISE.iter().any(|beginning| message.starts_with(beginning));
    if is_expected || !matches!(text("level"), Some("WARN" | "ERROR")) {
        return Message::FunctionLog;
    }
    let mut parts = vec![text("level").unwrap_or_default().to_lowercase()];
    parts.extend(text("operation").map(str::to_owned));
    parts.extend(text("message").map(str::to_owned));
    parts.extend(text("location").map(|location| format!("at {location}")));
    for field in ["code", "cause", "table", "key", "attribute", "requestId"] {
        let value = match &logged[field] {
            Json::Null => continue,
            Json::String(text) => text.clone(),
            other => other.to_string(),
        };
        parts.push(format!("{field}: {value}"));
    }
    Message::Problem(parts.join("  "))
}

/// Returns the severity of a line of `cargo lambda watch`.
fn level(line: &str) -> &str {
    // A timestamp can precede it.
    let mut words = line.split_whitespace().take(2);
    words.find(|word| ["ERROR", "WARN", "INFO", "DEBUG", "TRACE"].contains(word)).unwrap_or("")
}

/// Removes color sequences from a line.
fn without_colors(line: &str) -> String {
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
    fn tool_noise_is_distinguished_from_errors() {
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
            assert_eq!(read(line), Message::Noise, "{line}");
        }
        for line in [
            "   Compiling shared v0.1.0 (/waymark/shared)",
            "error[E0308]: mismatched types",
            "  --> shared/src/lib.rs:1:1",
            "\u{1b}[31mERROR\u{1b}[0m command exited \u{1b}[3mcode\u{1b}[0m=101",
            "thread 'main' panicked at src/main.rs:1:1:",
        ] {
            assert_eq!(read(line), Message::BuildOutput(line.to_owned()), "{line}");
        }
    }

    #[test]
    fn warnings_and_errors_of_functions_are_problems() {
        let line = r#"{"level":"INFO","message":"request","operation":"create-feature-flag"}"#;
        assert_eq!(read(line), Message::FunctionLog);
        let line =
            r#"{"level":"WARN","message":"AWS_LAMBDA_MAX_CONCURRENCY is set to '1', but …"}"#;
        assert_eq!(read(line), Message::FunctionLog);
        for (line, problem) in [
            (
                r#"{"level":"ERROR","message":"panic","location":"shared/src/lib.rs:1:1"}"#,
                "error  panic  at shared/src/lib.rs:1:1",
            ),
            (
                r#"{"level":"ERROR","message":"request","requestId":"a-1","operation":"get-error","code":"unavailable","cause":"no connection"}"#,
                "error  get-error  request  code: unavailable  cause: no connection  requestId: a-1",
            ),
            (
                r#"{"level":"ERROR","message":"damaged item","table":"errors","key":{"pk":"a"}}"#,
                r#"error  damaged item  table: errors  key: {"pk":"a"}"#,
            ),
        ] {
            assert_eq!(read(line), Message::Problem(problem.to_owned()));
        }
    }
}
