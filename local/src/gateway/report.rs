//! Terminal output for each request.

use std::fmt::{self, Write};
use std::time::Duration;

use axum::body::Bytes;
use axum::http::Response;
use serde_json::Value as Json;
use shared::timestamp::Timestamp;

/// Maximum characters of a problem.
const MAX_PROBLEM_CHARS: usize = 400;
/// Maximum number of violations in a problem.
const MAX_VIOLATIONS: usize = 3;

/// A completed request. It is displayed on one line without the query, which can contain DSN keys.
#[derive(Debug, Clone, PartialEq)]
pub struct Served {
    /// Time of arrival.
    pub at: Timestamp,
    /// Method.
    pub method: String,
    /// Path as sent.
    pub path: String,
    /// Status of the response.
    pub status: u16,
    /// Duration until the response.
    pub duration: Duration,
    /// Description of the problem, if the request failed.
    pub problem: Option<String>,
}

impl fmt::Display for Served {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { at, method, path, status, duration, problem } = self;
        let at = at.to_string();
        let (time, millis) = (at.get(11..19).unwrap_or_default(), duration.as_millis());
        write!(formatter, "{time} {method:<7} {path} {status} {millis} ms")?;
        match problem {
            Some(problem) => write!(formatter, "  {problem}"),
            None => Ok(()),
        }
    }
}

/// Describes an error response with the fields of its protocol and the gateway's cause. Returns
/// `None` for other responses.
pub(super) fn problem_of(response: &Response<Bytes>, cause: Option<&str>) -> Option<String> {
    if response.status().as_u16() < 400 {
        return None;
    }
    let body: Json = serde_json::from_slice(response.body()).unwrap_or_default();
    let text = |field: &str| body[field].as_str();
    let code = text("code").or_else(|| text("errorCode"));
    let detail = text("detail").or_else(|| text("errorDetails")).or_else(|| text("message"));
    let mut problem = match (code, detail) {
        (Some(code), Some(detail)) => format!("{code}: {detail}"),
        (one, other) => one.or(other).unwrap_or_default().to_owned(),
    };
    let violations = body["errors"].as_array().map_or(&[][..], Vec::as_slice);
    for violation in violations.iter().take(MAX_VIOLATIONS) {
        let text = |field: &str| violation[field].as_str().unwrap_or_default();
        let _ = write!(problem, " [{}: {}]", text("pointer"), text("message"));
    }
    if let Some(cause) = cause {
        let _ = write!(problem, " ({cause})");
    }
    if let Some(id) = text("requestId") {
        let _ = write!(problem, " requestId: {id}");
    }
    // Clients could send control characters to the terminal.
    let visible = problem.chars().map(|it| if it.is_control() { ' ' } else { it });
    let mut line: String = visible.clone().take(MAX_PROBLEM_CHARS).collect();
    if visible.count() > MAX_PROBLEM_CHARS {
        line.push('…');
    }
    Some(line)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn described(status: u16, body: &str, cause: Option<&str>) -> Option<String> {
        let response = Response::builder().status(status);
        problem_of(&response.body(Bytes::from(body.to_owned())).unwrap(), cause)
    }

    #[test]
    fn requests_are_lines_without_the_query() {
        let served = Served {
            at: Timestamp::from_millis(1_795_234_560_000),
            method: "POST".to_owned(),
            path: "/v0/things".to_owned(),
            status: 201,
            duration: Duration::from_micros(12_700),
            problem: None,
        };
        assert_eq!(served.to_string(), "04:16:00 POST    /v0/things 201 12 ms");
        let failed = Served { status: 404, problem: Some("Not Found".to_owned()), ..served };
        assert_eq!(failed.to_string(), "04:16:00 POST    /v0/things 404 12 ms  Not Found");
    }

    #[test]
    fn problems_are_read_from_each_protocol() {
        let violation = |at: &str| json!({"pointer": at, "code": "x", "message": "is missing"});
        let problem = json!({
            "code": "validation_failed", "detail": "4 faults.",
            "errors": [violation("/a"), violation("/b"), violation("/c"), violation("/d")],
        });
        for (body, expected) in [
            (
                json!({"code": "flag_exists", "detail": "It is there.", "requestId": "a-1"}),
                "flag_exists: It is there. requestId: a-1",
            ),
            (
                problem,
                "validation_failed: 4 faults. [/a: is missing] [/b: is missing] [/c: is missing]",
            ),
            (json!({"errorCode": "PARSE_ERROR", "errorDetails": "No."}), "PARSE_ERROR: No."),
            (
                json!({"detail": "the DSN key is missing or invalid; check the DSN"}),
                "the DSN key is missing or invalid; check the DSN",
            ),
            (json!({"message": "Not Found"}), "Not Found"),
            (json!(null), ""),
        ] {
            assert_eq!(described(400, &body.to_string(), None).as_deref(), Some(expected));
        }
        assert_eq!(described(399, "{}", None), None);
        let cause = described(503, r#"{"message":"Service Unavailable"}"#, Some("no connection"));
        assert_eq!(cause.as_deref(), Some("Service Unavailable (no connection)"));
    }

    #[test]
    fn problems_are_short_without_control_characters() {
        let body = json!({"detail": format!("\u{1b}[2Ja\n{}", "x".repeat(2 * MAX_PROBLEM_CHARS))});
        let line = described(400, &body.to_string(), None).unwrap();
        assert!(line.starts_with(" [2Ja x"), "{line}");
        assert_eq!((line.chars().count(), line.ends_with('…')), (MAX_PROBLEM_CHARS + 1, true));
    }
}
