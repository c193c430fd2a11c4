//! Errors on the wire: the fields of RFC 9457, a stable code, and all violations of an invalid
//! request (`docs/api-conventions.md`, "Errors").

use std::fmt::Display;
use std::num::NonZeroU32;

use lambda_http::http::StatusCode;
use lambda_http::http::header::{HeaderValue, RETRY_AFTER, WWW_AUTHENTICATE};
use serde::Serialize;

use crate::dynamodb::StoreError;
use crate::json::{Malformed, Violation, Violations};

use super::ApiResponse;

/// Declares the codes, each with its name on the wire, its status and its title.
macro_rules! problem_codes {
    ($($code:ident, $name:literal, $status:ident, $title:literal;)+) => {
        /// The stable, machine-readable kind of a problem. Each is documented in `openapi.yaml`.
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        #[allow(missing_docs)] // Only openapi.yaml documents their meanings.
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
    InvalidSession, "invalid_session", UNAUTHORIZED, "Invalid session";
    InvalidToken, "invalid_token", BAD_REQUEST, "Invalid token";
    InvalidCode, "invalid_code", BAD_REQUEST, "Invalid code";
    CodeRequired, "code_required", FORBIDDEN, "Code required";
    SessionRequired, "session_required", FORBIDDEN, "Session required";
    CrossSiteRequest, "cross_site_request", FORBIDDEN, "Cross-site request";
    InsufficientRole, "insufficient_role", FORBIDDEN, "Insufficient role";
    OidcNotConfigured, "oidc_not_configured", NOT_FOUND, "OpenID Connect not configured";
    OrganizationNotFound, "organization_not_found", NOT_FOUND, "Organization not found";
    MemberNotFound, "member_not_found", NOT_FOUND, "Member not found";
    InvitationNotFound, "invitation_not_found", NOT_FOUND, "Invitation not found";
    ApiKeyNotFound, "api_key_not_found", NOT_FOUND, "API key not found";
    LastOwner, "last_owner", CONFLICT, "Last owner";
    MemberExists, "member_exists", CONFLICT, "Member exists";
    InvitationExists, "invitation_exists", CONFLICT, "Invitation exists";
    ProjectExists, "project_exists", CONFLICT, "Project exists";
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
    SourceMapLimitReached, "source_map_limit_reached", CONFLICT, "Source map limit reached";
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
    /// Returns the code's name on the wire.
    pub fn as_str(self) -> &'static str {
        self.parts().0
    }

    /// Returns the HTTP status code.
    pub fn status(self) -> StatusCode {
        self.parts().1
    }

    /// Returns the title.
    pub fn title(self) -> &'static str {
        self.parts().2
    }
}

/// The only error type that reaches the wire. Its cause is only logged.
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
    /// Creates a problem. `detail` states the problem and the remedy for the caller.
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

    /// 401: the request has no key.
    pub fn missing_api_key() -> Self {
        let detail = "The request has no API key. Send one in the header `x-api-key`, or as \
                      `Authorization: Bearer KEY`.";
        Self::new(ProblemCode::MissingApiKey, detail)
    }

    /// 401: the key is unknown, wrong, revoked or expired. The response does not distinguish these
    /// cases.
    pub fn invalid_api_key() -> Self {
        let detail = "The API key is invalid, expired or revoked. Check it, or create one with \
                      `waymark key create`.";
        Self::new(ProblemCode::InvalidApiKey, detail)
    }

    /// 401: the session is unknown, has expired or was ended.
    pub fn invalid_session() -> Self {
        Self::new(ProblemCode::InvalidSession, "The session has ended. Sign in again.")
    }

    /// 403: the operation works only for signed-in users.
    pub fn session_required() -> Self {
        let detail = "This operation needs a session. Sign in, and send no API key.";
        Self::new(ProblemCode::SessionRequired, detail)
    }

    /// 403: a page of another site could have sent the request.
    pub fn cross_site_request() -> Self {
        let detail = "The request has a session, but no proof of its origin. Send the header \
                      `x-waymark-console: 1`.";
        Self::new(ProblemCode::CrossSiteRequest, detail)
    }

    /// 403: the key lacks the scope.
    pub fn insufficient_scope(scope: impl Display) -> Self {
        let detail = format!("The API key lacks the scope {scope}. Use a key that has it.");
        Self::new(ProblemCode::InsufficientScope, detail)
    }

    /// 403: the key is limited to some projects, but the request concerns all.
    pub fn limited_to_projects() -> Self {
        let detail = "The API key is limited to some projects. Use a key for all projects of the \
                      organization.";
        Self::new(ProblemCode::InsufficientScope, detail)
    }

    /// 404: the project does not exist, or the key cannot see it.
    pub fn project_not_found() -> Self {
        let detail = "The project does not exist, or the API key cannot see it. Check the ID or \
                      slug.";
        Self::new(ProblemCode::ProjectNotFound, detail)
    }

    /// 404: some projects in a body do not exist, or the key cannot see them.
    pub fn projects_not_found(names: &[&str]) -> Self {
        const MAX_CHARACTERS: usize = 100;
        let names: Vec<String> =
            names.iter().map(|name| name.chars().take(MAX_CHARACTERS).collect()).collect();
        let names = names.join(", ");
        let detail = format!(
            "These projects do not exist, or the API key cannot see them: {names}. Check the IDs \
             or slugs."
        );
        Self::new(ProblemCode::ProjectNotFound, detail)
    }

    /// 412: the resource does not have the version that the caller has seen.
    pub fn version_mismatch(version: u64) -> Self {
        let detail = format!(
            "The resource is at version {version}, not the one in `if-match`. Fetch it and retry."
        );
        Self::new(ProblemCode::VersionMismatch, detail)
    }

    /// 409: concurrent requests changed the same data until the retries ran out.
    pub fn conflict(cause: impl Into<String>) -> Self {
        let detail = "Concurrent requests changed the same data. Retry in 1 s.";
        Self {
            cause: Some(cause.into()),
            ..Self::new(ProblemCode::Conflict, detail).retry_after(1)
        }
    }

    /// 409: the idempotency key was used for a different request.
    pub fn idempotency_conflict() -> Self {
        let detail = "This idempotency key was used for a different request. Use a new key.";
        Self::new(ProblemCode::IdempotencyConflict, detail)
    }

    /// 409: the first request with the idempotency key is still running.
    pub fn idempotency_in_progress() -> Self {
        let detail = "The first request with this idempotency key is still in progress. Retry in 1 \
                      s.";
        Self::new(ProblemCode::IdempotencyInProgress, detail).retry_after(1)
    }

    /// 429: the sender exceeded the limit of this minute.
    pub fn throttled(limit: NonZeroU32, seconds: u16) -> Self {
        let detail =
            format!("Rate limit exceeded: at most {limit} per minute. Retry in {seconds} s.");
        Self::new(ProblemCode::Throttled, detail).retry_after(seconds)
    }

    /// 429: more data arrived than can be stored.
    pub fn overloaded(seconds: u16) -> Self {
        let detail =
            format!("More events arrive than the service can store. Retry in {seconds} s.");
        Self::new(ProblemCode::Throttled, detail).retry_after(seconds)
    }

    /// 500. The cause is only logged.
    pub fn internal(cause: impl Into<String>) -> Self {
        let detail = "The service failed to process the request. Retry; if it fails again, report \
                      the request ID.";
        Self { cause: Some(cause.into()), ..Self::new(ProblemCode::Internal, detail) }
    }

    /// 503. The cause is only logged.
    pub fn unavailable(cause: impl Into<String>) -> Self {
        let detail = "The service is temporarily unavailable. Retry in 1 s.";
        Self {
            cause: Some(cause.into()),
            ..Self::new(ProblemCode::Unavailable, detail).retry_after(1)
        }
    }

    /// 503: the request was stopped after `seconds`. No write is partial.
    pub fn timed_out(seconds: f32) -> Self {
        let detail = format!(
            "The request did not finish within {seconds} s; its changes are possibly applied. Retry \
             with the same `Idempotency-Key`; in a query, use a shorter range or fewer projects."
        );
        let cause = Some("the request took too long".to_owned());
        Self { cause, ..Self::new(ProblemCode::Unavailable, detail).retry_after(1) }
    }

    /// Sets the time after which to retry.
    #[must_use]
    pub fn retry_after(mut self, seconds: u16) -> Self {
        self.retry_after_seconds = Some(seconds);
        self
    }

    /// Sets the limited categories, in the form of the caller's protocol.
    #[must_use]
    pub fn limiting(mut self, categories: &'static str) -> Self {
        self.limited = Some(categories);
        self
    }

    /// Returns the limited categories, if any.
    pub fn limited(&self) -> Option<&'static str> {
        self.limited
    }

    /// Returns the code.
    pub fn code(&self) -> ProblemCode {
        self.code
    }

    /// Returns the cause, for the log.
    pub fn cause(&self) -> Option<&str> {
        self.cause.as_deref()
    }

    /// Returns the HTTP status code.
    pub fn status(&self) -> StatusCode {
        self.code.status()
    }

    /// Returns the problem and the remedy, for the caller.
    pub fn detail(&self) -> &str {
        &self.detail
    }

    /// Returns the seconds after which to retry, if set.
    pub fn seconds_to_wait(&self) -> Option<u16> {
        self.retry_after_seconds
    }

    /// Adds the time after which to retry to a response, if set.
    pub fn with_retry_after(&self, response: ApiResponse) -> ApiResponse {
        match self.retry_after_seconds {
            Some(seconds) => response.with_header(RETRY_AFTER, seconds.into()),
            None => response,
        }
    }

    /// Returns the response in the form of RFC 9457, for the request `request_id`.
    pub fn to_response(&self, request_id: &str) -> ApiResponse {
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
        // Serialization cannot fail; an empty response would still have the status.
        let mut response =
            ApiResponse::json(status, &body).unwrap_or_else(|_| ApiResponse::empty(status));
        if status == StatusCode::UNAUTHORIZED {
            response = response.with_header(WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
        }
        self.with_retry_after(response)
    }
}

/// Returns the first items of a list, and the number of further items.
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
        let detail =
            format!("The body cannot be parsed as JSON: {malformed}. Correct it and retry.");
        Self::new(ProblemCode::MalformedJson, detail)
    }
}

impl From<StoreError> for Problem {
    fn from(error: StoreError) -> Self {
        let cause = error.to_string();
        match error {
            StoreError::Unavailable(_) | StoreError::Throttled { .. } => Self::unavailable(cause),
            StoreError::Contended(_) => Self::conflict(cause),
            StoreError::Rejected(_)
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
        let response = problem.to_response("r-1");
        let (parts, body) = response.into_response("r-1").into_parts();
        let Body::Text(body) = body else { panic!("the problem has no body") };
        (serde_json::from_str(&body).unwrap(), parts.headers)
    }

    #[test]
    fn bodies_have_the_documented_fields() {
        let (body, headers) = shown(&Problem::project_not_found());
        let expected = serde_json::json!({
            "type": "/problems/project_not_found",
            "title": "Project not found",
            "status": 404,
            "detail": "The project does not exist, or the API key cannot see it. Check the ID or \
                       slug.",
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
    fn causes_are_never_shown() {
        for problem in [
            Problem::internal("secret cause"),
            StoreError::Unavailable("secret cause".into()).into(),
            StoreError::Contended("secret cause".into()).into(),
            StoreError::Rejected("secret cause".into()).into(),
        ] {
            assert!(problem.cause().is_some_and(|cause| cause.contains("secret cause")));
            let (body, _) = shown(&problem);
            assert!(!body.to_string().contains("secret"), "{body}");
        }
    }

    #[test]
    fn headers_name_authentication_and_retry_time() {
        let (_, headers) = shown(&Problem::missing_api_key());
        assert_eq!(headers["www-authenticate"], "Bearer");
        let (_, headers) = shown(&Problem::unavailable("x"));
        assert_eq!(headers["retry-after"], "1");
    }
}
