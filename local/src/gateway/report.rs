//! What a person at the terminal sees of each request.

use std::fmt::{self, Write};
use std::time::Duration;

use axum::body::Bytes;
use axum::http::Response;
use serde_json::Value as Json;
use shared::timestamp::Timestamp;

/// The most characters of what went wrong.
const MAX_TOLD: usize = 400;
/// The most violations that are told.
const MAX_VIOLATIONS: usize = 3;

/// A request that was answered. Shown, it is one line, without the query: keys of DSNs stand there.
#[derive(Debug, Clone, PartialEq)]
pub struct Served {
    /// When it came.
    pub at: Timestamp,
    /// Its method.
    pub method: String,
    /// Its path as it was sent.
    pub path: String,
    /// The status that it was answered with.
    pub status: u16,
    /// How long it took.
    pub duration: Duration,
    /// What went wrong, if anything did.
    pub wrong: Option<String>,
}

impl fmt::Display for Served {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { at, method, path, status, duration, wrong } = self;
        let at = at.to_string();
        let (time, millis) = (at.get(11..19).unwrap_or_default(), duration.as_millis());
        write!(formatter, "{time} {method:<7} {path} {status} {millis} ms")?;
        match wrong {
            Some(wrong) => write!(formatter, "  {wrong}"),
            None => Ok(()),
        }
    }
}

/// What an answer says that went wrong, in the words of its protocol, with what else is known of it.
pub(super) fn what_went_wrong(response: &Response<Bytes>, cause: Option<&str>) -> Option<String> {
    if response.status().as_u16() < 400 {
        return None;
    }
    let body: Json = serde_json::from_slice(response.body()).unwrap_or_default();
    let text = |member: &str| body[member].as_str();
    let code = text("code").or_else(|| text("errorCode"));
    let detail = text("detail").or_else(|| text("errorDetails")).or_else(|| text("message"));
    let mut told = match (code, detail) {
        (Some(code), Some(detail)) => format!("{code}: {detail}"),
        (one, other) => one.or(other).unwrap_or_default().to_owned(),
    };
    let violations = body["errors"].as_array().map_or(&[][..], Vec::as_slice);
    for violation in violations.iter().take(MAX_VIOLATIONS) {
        let text = |member: &str| violation[member].as_str().unwrap_or_default();
        let _ = write!(told, " [{}: {}]", text("pointer"), text("message"));
    }
    if let Some(cause) = cause {
        let _ = write!(told, " ({cause})");
    }
    // A terminal obeys some of the characters that a caller may send.
    let visible = told.chars().map(|it| if it.is_control() { ' ' } else { it });
    let mut line: String = visible.clone().take(MAX_TOLD).collect();
    if visible.count() > MAX_TOLD {
        line.push('…');
    }
    Some(line)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn told(status: u16, body: &str, cause: Option<&str>) -> Option<String> {
        let response = Response::builder().status(status);
        what_went_wrong(&response.body(Bytes::from(body.to_owned())).unwrap(), cause)
    }

    #[test]
    fn a_request_is_a_line_without_its_query() {
        let served = Served {
            at: Timestamp::from_millis(1_795_234_560_000),
            method: "POST".to_owned(),
            path: "/v0/things".to_owned(),
            status: 201,
            duration: Duration::from_micros(12_700),
            wrong: None,
        };
        assert_eq!(served.to_string(), "04:16:00 POST    /v0/things 201 12 ms");
        let failed = Served { status: 404, wrong: Some("Not Found".to_owned()), ..served };
        assert_eq!(failed.to_string(), "04:16:00 POST    /v0/things 404 12 ms  Not Found");
    }

    #[test]
    fn every_protocol_tells_what_went_wrong_in_its_own_members() {
        let violation = |at: &str| json!({"pointer": at, "code": "x", "message": "is missing"});
        let problem = json!({
            "code": "validation_failed", "detail": "4 faults.",
            "errors": [violation("/a"), violation("/b"), violation("/c"), violation("/d")],
        });
        for (body, expected) in [
            (json!({"code": "flag_exists", "detail": "It is there."}), "flag_exists: It is there."),
            (
                problem,
                "validation_failed: 4 faults. [/a: is missing] [/b: is missing] [/c: is missing]",
            ),
            (json!({"errorCode": "PARSE_ERROR", "errorDetails": "No."}), "PARSE_ERROR: No."),
            (json!({"detail": "missing or invalid DSN key"}), "missing or invalid DSN key"),
            (json!({"message": "Not Found"}), "Not Found"),
            (json!(null), ""),
        ] {
            assert_eq!(told(400, &body.to_string(), None).as_deref(), Some(expected));
        }
        assert_eq!(told(399, "{}", None), None);
        let cause = told(503, r#"{"message":"Service Unavailable"}"#, Some("nobody is there"));
        assert_eq!(cause.as_deref(), Some("Service Unavailable (nobody is there)"));
    }

    #[test]
    fn a_terminal_is_shown_no_control_characters_and_no_page_of_text() {
        let body = json!({"detail": format!("\u{1b}[2Ja\n{}", "x".repeat(2 * MAX_TOLD))});
        let line = told(400, &body.to_string(), None).unwrap();
        assert!(line.starts_with(" [2Ja x"), "{line}");
        assert_eq!((line.chars().count(), line.ends_with('…')), (MAX_TOLD + 1, true));
    }
}
