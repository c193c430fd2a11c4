//! Requests and problems of error tracking, and responses to Sentry's SDKs.

use lambda_http::http::HeaderValue;
use serde::Serialize;

use shared::http::{
    ApiRequest, ApiResponse, Problem, ProblemCode, Protocol, RATE_LIMITS, StatusCode, header_value,
};

use super::ErrorId;
use super::ingestion::IngestionFault;
use super::query::time_bucket::QueryRange;
use super::store::MAX_TOMBSTONES;

/// Data categories of Sentry's protocol whose items are accepted and dropped. Sentry promises never
/// to limit `attachment` and `internal`, and `default` can be anything, so these are absent.
pub const DROPPED_CATEGORIES: &str = "transaction;span;session;profile;profile_chunk;monitor;log_item;\
     trace_metric";
/// Data category of session replays, which have their own limit.
pub const REPLAY_CATEGORY: &str = "replay";
/// Seconds for which an SDK holds these categories back. This is the longest time that a later
/// version misses categories that it keeps.
const SECONDS_OF_DROPPING: u16 = 3_600;

/// Seconds after which some of the pending removals are done.
const SECONDS_OF_REMOVAL: u16 = 600;

/// Returns the error id in the path. A malformed id names no error, so it also returns 404.
pub fn error_id(incoming: &ApiRequest) -> Result<ErrorId, Problem> {
    let id = incoming.path_parameter("errorId");
    id.as_deref().and_then(ErrorId::parse).ok_or_else(error_not_found)
}

/// Adds the categories that an SDK need not send. SDKs read the header with any status.
pub fn with_dropped_categories(response: ApiResponse) -> Result<ApiResponse, Problem> {
    let limits = rate_limits(SECONDS_OF_DROPPING, DROPPED_CATEGORIES, "not_supported")?;
    Ok(response.with_header(RATE_LIMITS, limits))
}

/// Returns the response with headers that describe its buckets.
#[must_use]
pub fn with_buckets_of(response: ApiResponse, range: &QueryRange) -> ApiResponse {
    response
        .with_number("x-bucket-seconds", range.bucket_size().seconds())
        .with_number("x-range-from", range.from().as_millis())
        .with_number("x-range-to", range.to().as_millis())
}

/// 404: the project has no such error.
pub fn error_not_found() -> Problem {
    Problem::new(ProblemCode::ErrorNotFound, "The project has no error with this ID. Check the ID.")
}

/// 429: the events of [`MAX_TOMBSTONES`] errors are not removed yet.
pub fn too_many_deletions() -> Problem {
    let detail = format!(
        "The limit of {MAX_TOMBSTONES} error deletions in progress is reached. Retry in \
         {SECONDS_OF_REMOVAL} s."
    );
    Problem::new(ProblemCode::Throttled, detail).retry_after(SECONDS_OF_REMOVAL)
}

/// 400: an unsupported Sentry endpoint, such as `minidump`.
pub fn unknown_endpoint() -> Problem {
    let detail = "This endpoint is not supported. Send events to envelope/ or store/.";
    Problem::new(ProblemCode::MalformedEnvelope, detail)
}

impl From<IngestionFault> for Problem {
    fn from(fault: IngestionFault) -> Self {
        let code = match fault {
            IngestionFault::Malformed(_) => ProblemCode::MalformedEnvelope,
            IngestionFault::TooLarge(_) => ProblemCode::BodyTooLarge,
            IngestionFault::Unauthorized => ProblemCode::InvalidDsnKey,
        };
        Self::new(code, fault.to_string())
    }
}

/// Sentry's protocol, as SDKs speak it.
pub const SENTRY: Protocol = Protocol {
    name: "Sentry",
    problem_response: |problem, _| to_sentry_response(problem),
    request_headers: &["x-sentry-auth", "content-encoding", "sentry-trace", "baggage"],
};

/// Returns the value of Sentry's header: seconds, categories (none for all), scope, reason.
fn rate_limits(seconds: u16, categories: &str, reason: &str) -> Result<HeaderValue, Problem> {
    header_value(&format!("{seconds}:{categories}:project:{reason}"))
}

/// Returns a problem as SDKs expect it, with a `detail`.
///
/// Only 429 has a retry time, since SDKs read it as a ban on everything that they send. An exceeded
/// quota is also reported in the form of Sentry's Relay.
fn to_sentry_response(problem: &Problem) -> ApiResponse {
    #[derive(Serialize)]
    struct Body<'p> {
        detail: &'p str,
    }
    let status = match problem.code() {
        // SDKs do not know 409.
        ProblemCode::Conflict => StatusCode::SERVICE_UNAVAILABLE,
        code => code.status(),
    };
    let response = ApiResponse::json(status, &Body { detail: problem.detail() });
    let response = response.unwrap_or_else(|_| ApiResponse::empty(status));
    let (ProblemCode::Throttled, Some(seconds)) = (problem.code(), problem.seconds_to_wait())
    else {
        return response;
    };
    let response = problem.with_retry_after(response);
    let (categories, reason) = match problem.limited() {
        Some(REPLAY_CATEGORY) => (REPLAY_CATEGORY, "replays_per_minute"),
        Some(categories) => (categories, "envelopes_per_minute"),
        None => ("", "events_per_minute"),
    };
    match rate_limits(seconds, categories, reason) {
        Ok(limits) => response.with_header(RATE_LIMITS, limits),
        Err(_) => response,
    }
}
