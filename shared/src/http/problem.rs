//! Errors on the wire: the members of RFC 9457, a stable code, and for an invalid request
//! everything that is wrong with it (`docs/api-conventions.md`, "Errors").

use std::fmt::Display;
use std::num::NonZeroU32;

use lambda_http::http::StatusCode;
use lambda_http::http::header::{HeaderValue, RETRY_AFTER, WWW_AUTHENTICATE};
use serde::Serialize;

use crate::dynamodb::StoreError;
use crate::json::{Malformed, Violation, Violations};

use super::ApiResponse;

/// Declares the codes, each with its name on the wire, its status and what it is called.
macro_rules! problem_codes {
    ($($code:ident, $name:literal, $status:ident, $title:literal;)+) => {
        /// The stable, machine-readable kind of a problem. Each is documented in `openapi.yaml`.
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        #[allow(missing_docs)] // Their meanings stand in openapi.yaml, once.
        pub enum ProblemCode {
            $($code,)+
        }

        impl ProblemCode {
            /// Every code.
            pub const ALL: &[Self] = &[$(Self::$code,)+];

            fn parts(self) -> (&'static str, StatusCode, &'static str) {
                match self {
                    $(Self::$code => ($name, StatusCode::$status, $title),)+
                }
            }
        }
    };
}

problem_codes! {
    MalformedJson, "malformed_json", BAD_REQUEST, "Malformed JSON";
    MalformedEnvelope, "malformed_envelope", BAD_REQUEST, "Malformed envelope";
    ValidationFailed, "validation_failed", BAD_REQUEST, "Validation failed";
    MissingApiKey, "missing_api_key", UNAUTHORIZED, "Missing API key";
    InvalidApiKey, "invalid_api_key", UNAUTHORIZED, "Invalid API key";
    InvalidDsnKey, "invalid_dsn_key", FORBIDDEN, "Invalid DSN key";
    InsufficientScope, "insufficient_scope", FORBIDDEN, "Insufficient scope";
    ProjectNotFound, "project_not_found", NOT_FOUND, "Project not found";
    FlagExists, "flag_exists", CONFLICT, "Flag exists";
    FlagLimitReached, "flag_limit_reached", CONFLICT, "Flag limit reached";
    FlagBytesLimitReached, "flag_bytes_limit_reached", CONFLICT, "Flag bytes limit reached";
    FlagNotFound, "flag_not_found", NOT_FOUND, "Flag not found";
    FlagArchived, "flag_archived", CONFLICT, "Flag archived";
    FlagNotArchived, "flag_not_archived", CONFLICT, "Flag not archived";
    FlagInUse, "flag_in_use", CONFLICT, "Flag in use";
    SegmentExists, "segment_exists", CONFLICT, "Segment exists";
    SegmentLimitReached, "segment_limit_reached", CONFLICT, "Segment limit reached";
    SegmentNotFound, "segment_not_found", NOT_FOUND, "Segment not found";
    SegmentInUse, "segment_in_use", CONFLICT, "Segment in use";
    FlagdConfigurationTooLarge, "flagd_configuration_too_large", CONFLICT, "Flagd configuration too large";
    CollectionNotFound, "collection_not_found", NOT_FOUND, "Collection not found";
    ErrorNotFound, "error_not_found", NOT_FOUND, "Error not found";
    InsightNotFound, "insight_not_found", NOT_FOUND, "Insight not found";
    InsightMerged, "insight_merged", CONFLICT, "Insight merged";
    InsightFull, "insight_full", CONFLICT, "Insight full";
    PainPointExists, "pain_point_exists", CONFLICT, "Pain point exists";
    SplitWouldEmptyInsight, "split_would_empty_insight", BAD_REQUEST, "Split would empty insight";
    Conflict, "conflict", CONFLICT, "Conflict";
    VersionMismatch, "version_mismatch", PRECONDITION_FAILED, "Version mismatch";
    IdempotencyConflict, "idempotency_conflict", CONFLICT, "Idempotency conflict";
    IdempotencyInProgress, "idempotency_in_progress", CONFLICT, "Idempotency in progress";
    BodyTooLarge, "body_too_large", PAYLOAD_TOO_LARGE, "Body too large";
    UnsupportedMediaType, "unsupported_media_type", UNSUPPORTED_MEDIA_TYPE, "Unsupported media type";
    Throttled, "throttled", TOO_MANY_REQUESTS, "Throttled";
    Internal, "internal", INTERNAL_SERVER_ERROR, "Internal error";
    Unavailable, "unavailable", SERVICE_UNAVAILABLE, "Service unavailable";
}

impl ProblemCode {
    /// The code's name on the wire.
    pub fn as_str(self) -> &'static str {
        self.parts().0
    }

    /// The HTTP status code that goes with it.
    pub fn status(self) -> StatusCode {
        self.parts().1
    }

    /// What it is called.
    pub fn title(self) -> &'static str {
        self.parts().2
    }
}

/// The one error type that reaches the wire. What caused it stays behind, for the log.
#[derive(Debug)]
pub struct Problem {
    code: ProblemCode,
    detail: String,
    violations: Violations,
    retry_after_seconds: Option<u16>,
    limited: Option<&'static str>,
    cause: Option<String>,
}

impl Problem {
    /// A problem whose `detail` tells the caller what is wrong and what to do.
    pub fn new(code: ProblemCode, detail: impl Into<String>) -> Self {
        Self {
            code,
            detail: detail.into(),
            violations: Violations::default(),
            retry_after_seconds: None,
            limited: None,
            cause: None,
        }
    }

    /// 401: the request carries no key.
    pub fn missing_api_key() -> Self {
        let detail = "Send an API key in the header x-api-key, or as Authorization: Bearer KEY.";
        Self::new(ProblemCode::MissingApiKey, detail)
    }

    /// 401: the key is unknown, wrong, revoked or expired; which of these is not told.
    pub fn invalid_api_key() -> Self {
        let detail =
            "The API key is not valid. Check it, or make a new one with `waymark key create`.";
        Self::new(ProblemCode::InvalidApiKey, detail)
    }

    /// 403: the key does not allow this.
    pub fn insufficient_scope(scope: impl Display) -> Self {
        let detail = format!("The API key lacks the scope {scope}.");
        Self::new(ProblemCode::InsufficientScope, detail)
    }

    /// 403: the key is for some projects, and this is about all.
    pub fn limited_to_projects() -> Self {
        let detail = "The API key is limited to some projects. Use a key for all of them.";
        Self::new(ProblemCode::InsufficientScope, detail)
    }

    /// 404: there is no such project, or the key may not see it.
    pub fn project_not_found() -> Self {
        let detail = "There is no project of this id or slug that the API key may see.";
        Self::new(ProblemCode::ProjectNotFound, detail)
    }

    /// 404: some of the projects that a body names do not exist, or the key may not see them.
    pub fn projects_not_found(names: &[&str]) -> Self {
        const MAX_CHARACTERS: usize = 100;
        let names: Vec<String> =
            names.iter().map(|name| name.chars().take(MAX_CHARACTERS).collect()).collect();
        let names = names.join(", ");
        let detail =
            format!("There is no project of these names that the API key may see: {names}.");
        Self::new(ProblemCode::ProjectNotFound, detail)
    }

    /// 412: the resource is not of the version that the caller has seen.
    pub fn version_mismatch(version: u64) -> Self {
        let detail = format!(
            "The resource is of version {version}, not of the one in if-match. Read it again."
        );
        Self::new(ProblemCode::VersionMismatch, detail)
    }

    /// 409: others kept changing the same data until the retries ran out.
    pub fn conflict(cause: impl Into<String>) -> Self {
        let detail = "Other requests kept changing the same data. Try again.";
        Self {
            cause: Some(cause.into()),
            ..Self::new(ProblemCode::Conflict, detail).retry_after(1)
        }
    }

    /// 409: the idempotency key was used for another request.
    pub fn idempotency_conflict() -> Self {
        let detail = "The idempotency key was used for another request. Use a new key for each.";
        Self::new(ProblemCode::IdempotencyConflict, detail)
    }

    /// 409: the first request with the idempotency key still runs.
    pub fn idempotency_in_progress() -> Self {
        let detail = "The first request with this idempotency key is still running. Try again.";
        Self::new(ProblemCode::IdempotencyInProgress, detail).retry_after(1)
    }

    /// 429: more than the limit was sent this minute.
    pub fn throttled(limit: NonZeroU32, seconds: u16) -> Self {
        let detail =
            format!("At most {limit} are taken a minute. Send the next after {seconds} s.");
        Self::new(ProblemCode::Throttled, detail).retry_after(seconds)
    }

    /// 429: more was sent at once than can be stored.
    pub fn overloaded(seconds: u16) -> Self {
        let detail = format!("More is sent than can be stored. Send the next after {seconds} s.");
        Self::new(ProblemCode::Throttled, detail).retry_after(seconds)
    }

    /// 500. The cause goes to the log only.
    pub fn internal(cause: impl Into<String>) -> Self {
        let detail = "Something went wrong here. Quote the request id when you report it.";
        Self { cause: Some(cause.into()), ..Self::new(ProblemCode::Internal, detail) }
    }

    /// 503. The cause goes to the log only.
    pub fn unavailable(cause: impl Into<String>) -> Self {
        let detail = "The service cannot reach its data at the moment. Try again.";
        Self {
            cause: Some(cause.into()),
            ..Self::new(ProblemCode::Unavailable, detail).retry_after(1)
        }
    }

    /// 503: the request was given up after `seconds`. What it wrote, if anything, is whole.
    pub fn timed_out(seconds: f32) -> Self {
        let detail = format!(
            "The request was not done within {seconds} s. It may still have been carried out: send \
             it again with the same idempotency-key. A question over much data is answered sooner \
             for a shorter range or fewer projects."
        );
        let cause = Some("the request took too long".to_owned());
        Self { cause, ..Self::new(ProblemCode::Unavailable, detail).retry_after(1) }
    }

    /// The problem with a time after which to try again.
    #[must_use]
    pub fn retry_after(mut self, seconds: u16) -> Self {
        self.retry_after_seconds = Some(seconds);
        self
    }

    /// The problem with the categories that are limited, in the form of the caller's protocol.
    #[must_use]
    pub fn limiting(mut self, categories: &'static str) -> Self {
        self.limited = Some(categories);
        self
    }

    /// The categories that are limited, if the problem names them.
    pub fn limited(&self) -> Option<&'static str> {
        self.limited
    }

    /// The kind of the problem.
    pub fn code(&self) -> ProblemCode {
        self.code
    }

    /// What caused the problem, for the log.
    pub fn cause(&self) -> Option<&str> {
        self.cause.as_deref()
    }

    /// The HTTP status code.
    pub fn status(&self) -> StatusCode {
        self.code.status()
    }

    /// What is wrong and what to do, for the caller.
    pub fn detail(&self) -> &str {
        &self.detail
    }

    /// After how many seconds to try again, if the problem says so.
    pub fn seconds_to_wait(&self) -> Option<u16> {
        self.retry_after_seconds
    }

    /// An answer with the time after which to try again, if the problem has one.
    pub fn with_retry_after(&self, answer: ApiResponse) -> ApiResponse {
        match self.retry_after_seconds {
            Some(seconds) => answer.with_header(RETRY_AFTER, seconds.into()),
            None => answer,
        }
    }

    /// The problem as RFC 9457 writes it, for the request `request_id`.
    pub fn to_answer(&self, request_id: &str) -> ApiResponse {
        let (code, status, title) = self.code.parts();
        let violations = self.violations.listed();
        let body = ProblemBody {
            problem_type: format!("/problems/{code}"),
            title,
            status: status.as_u16(),
            detail: &self.detail,
            code,
            request_id,
            errors: (!violations.is_empty()).then_some(violations),
        };
        // Nothing in the body can fail to serialize; an empty answer keeps the status all the same.
        let mut answer =
            ApiResponse::json(status, &body).unwrap_or_else(|_| ApiResponse::empty(status));
        if status == StatusCode::UNAUTHORIZED {
            answer = answer.with_header(WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
        }
        self.with_retry_after(answer)
    }
}

/// The first few of a list, and how many more there are.
pub fn named_of(items: &[impl ToString]) -> String {
    const MAX_NAMED: usize = 10;
    let named: Vec<String> = items.iter().take(MAX_NAMED).map(ToString::to_string).collect();
    let named = named.join(", ");
    match items.len().saturating_sub(MAX_NAMED) {
        0 => named,
        more => format!("{named} and {more} more"),
    }
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct ProblemBody<'p> {
    #[serde(rename = "type")]
    problem_type: String,
    title: &'static str,
    status: u16,
    detail: &'p str,
    code: &'static str,
    request_id: &'p str,
    #[serde(skip_serializing_if = "Option::is_none")]
    errors: Option<&'p [Violation]>,
}

impl From<Violations> for Problem {
    fn from(violations: Violations) -> Self {
        let (count, listed) = (violations.count(), violations.listed().len());
        let detail = match count {
            1 => "The request has 1 error; see `errors`.".to_owned(),
            _ if count > listed => {
                format!("The request has {count} errors; `errors` lists the first {listed}.")
            }
            _ => format!("The request has {count} errors; see `errors`."),
        };
        Self { violations, ..Self::new(ProblemCode::ValidationFailed, detail) }
    }
}

impl From<Malformed> for Problem {
    fn from(malformed: Malformed) -> Self {
        let detail = format!("The body is not JSON as this API reads it: {malformed}.");
        Self::new(ProblemCode::MalformedJson, detail)
    }
}

impl From<StoreError> for Problem {
    fn from(error: StoreError) -> Self {
        let cause = error.to_string();
        match error {
            StoreError::Unavailable(_) | StoreError::Throttled { .. } => Self::unavailable(cause),
            StoreError::Contended(_) => Self::conflict(cause),
            StoreError::Refused(_)
            | StoreError::Damaged { .. }
            | StoreError::OtherService { .. } => Self::internal(cause),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::json::{JsonPath, ViolationCode};
    use lambda_http::Body;

    fn shown(problem: &Problem) -> (serde_json::Value, lambda_http::http::HeaderMap) {
        let answer = problem.to_answer("r-1");
        let (parts, body) = answer.into_response("r-1").into_parts();
        let Body::Text(body) = body else { panic!("a problem has a body") };
        (serde_json::from_str(&body).unwrap(), parts.headers)
    }

    #[test]
    fn shows_the_members_of_the_contract() {
        let (body, headers) = shown(&Problem::project_not_found());
        let expected = serde_json::json!({
            "type": "/problems/project_not_found",
            "title": "Project not found",
            "status": 404,
            "detail": "There is no project of this id or slug that the API key may see.",
            "code": "project_not_found",
            "requestId": "r-1",
        });
        assert_eq!(body, expected);
        assert_eq!(headers["content-type"], "application/json");
    }

    #[test]
    fn lists_violations_and_counts_them() {
        let mut violations = Violations::default();
        violations.note(
            &JsonPath::Root.member("key"),
            ViolationCode::Required,
            "`key` is required",
        );
        let (body, _) = shown(&violations.clone().into());
        assert_eq!(body["detail"], "The request has 1 error; see `errors`.");
        assert_eq!(
            body["errors"],
            serde_json::json!([
                {"pointer": "/key", "code": "required", "message": "`key` is required"}
            ])
        );
        for index in 0..2_000 {
            violations.note(&JsonPath::Root.item(index), ViolationCode::InvalidType, "no");
        }
        let (body, _) = shown(&violations.into());
        assert_eq!(body["detail"], "The request has 2001 errors; `errors` lists the first 1000.");
    }

    #[test]
    fn never_shows_a_cause() {
        for problem in [
            Problem::internal("secret cause"),
            StoreError::Unavailable("secret cause".into()).into(),
            StoreError::Contended("secret cause".into()).into(),
            StoreError::Refused("secret cause".into()).into(),
        ] {
            assert!(problem.cause().is_some_and(|cause| cause.contains("secret cause")));
            let (body, _) = shown(&problem);
            assert!(!body.to_string().contains("secret"), "{body}");
        }
    }

    #[test]
    fn tells_how_to_authenticate_and_when_to_retry() {
        let (_, headers) = shown(&Problem::missing_api_key());
        assert_eq!(headers["www-authenticate"], "Bearer");
        let (_, headers) = shown(&Problem::unavailable("x"));
        assert_eq!(headers["retry-after"], "1");
    }
}
