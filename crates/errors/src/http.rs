//! What error tracking adds to requests and problems, and how Sentry's SDKs are answered.

use lambda_http::http::HeaderValue;
use serde::Serialize;

use shared::http::{
    ApiRequest, ApiResponse, Problem, ProblemCode, Protocol, RATE_LIMITS, StatusCode, header_value,
};

use super::ErrorId;
use super::ingestion::IngestionFault;
use super::query::time_bucket::QueryRange;
use super::store::MAX_TOMBSTONES;

/// The data categories of Sentry's protocol whose items are accepted and dropped. Not among them are
/// `attachment` and `internal`, which Sentry promises never to limit, and `default`, which can be anything.
pub const DROPPED_CATEGORIES: &str = "transaction;span;session;replay;profile;profile_chunk;monitor;\
     feedback;log_item;trace_metric";
/// Seconds for which an SDK holds these back: the longest that a later version misses what it keeps.
const SECONDS_OF_DROPPING: u16 = 3_600;

/// In how many seconds some of what is to be removed has been.
const SECONDS_OF_REMOVAL: u16 = 600;

/// The error in the path. A malformed id names no error, so it is a 404 as well.
pub fn error_id(incoming: &ApiRequest) -> Result<ErrorId, Problem> {
    let id = incoming.path_parameter("errorId");
    id.as_deref().and_then(ErrorId::parse).ok_or_else(error_not_found)
}

/// The answer with the categories that an SDK need not send. SDKs read the header with any status.
pub fn with_dropped_categories(answer: ApiResponse) -> Result<ApiResponse, Problem> {
    let limits = rate_limits(SECONDS_OF_DROPPING, DROPPED_CATEGORIES, "not_supported")?;
    Ok(answer.with_header(RATE_LIMITS, limits))
}

/// Returns the response with headers that describe its buckets.
#[must_use]
pub fn with_buckets_of(answer: ApiResponse, range: &QueryRange) -> ApiResponse {
    answer
        .with_number("x-bucket-seconds", range.bucket_size().seconds())
        .with_number("x-range-from", range.from().as_millis())
        .with_number("x-range-to", range.to().as_millis())
}

/// 404: the project has no such error.
pub fn error_not_found() -> Problem {
    Problem::new(ProblemCode::ErrorNotFound, "The project has no error of this id.")
}

/// 429: the events of [`MAX_TOMBSTONES`] errors are still to be removed.
pub fn too_many_deletions() -> Problem {
    let detail = format!(
        "The events of {MAX_TOMBSTONES} deleted errors are still being removed. Delete the next \
         after {SECONDS_OF_REMOVAL} s."
    );
    Problem::new(ProblemCode::Throttled, detail).retry_after(SECONDS_OF_REMOVAL)
}

/// 400: a Sentry endpoint that is not taken, such as `minidump`.
pub fn unknown_endpoint() -> Problem {
    let detail = "Send events to envelope/ or store/; other endpoints are not supported.";
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

/// Sentry's: what SDKs send and read.
pub const SENTRY: Protocol = Protocol {
    name: "Sentry",
    answer_problem: |problem, _| to_sentry_answer(problem),
    request_headers: &["x-sentry-auth", "content-encoding", "sentry-trace", "baggage"],
};

/// The value of Sentry's header: seconds, categories (none for all), scope, reason.
fn rate_limits(seconds: u16, categories: &str, reason: &str) -> Result<HeaderValue, Problem> {
    header_value(&format!("{seconds}:{categories}:project:{reason}"))
}

/// What SDKs expect: a `detail`, and a time after which to try again with 429 alone, since they take it
/// for a ban of all that they send. What is over the quota is said in the form of Sentry's Relay as
/// well.
fn to_sentry_answer(problem: &Problem) -> ApiResponse {
    #[derive(Serialize)]
    struct Body<'p> {
        detail: &'p str,
    }
    let status = match problem.code() {
        // SDKs know of no conflict.
        ProblemCode::Conflict => StatusCode::SERVICE_UNAVAILABLE,
        code => code.status(),
    };
    let answer = ApiResponse::json(status, &Body { detail: problem.detail() });
    let answer = answer.unwrap_or_else(|_| ApiResponse::empty(status));
    let (ProblemCode::Throttled, Some(seconds)) = (problem.code(), problem.seconds_to_wait())
    else {
        return answer;
    };
    let answer = problem.with_retry_after(answer);
    let (categories, reason) = match problem.limited() {
        Some(categories) => (categories, "envelopes_per_minute"),
        None => ("", "events_per_minute"),
    };
    match rate_limits(seconds, categories, reason) {
        Ok(limits) => answer.with_header(RATE_LIMITS, limits),
        Err(_) => answer,
    }
}
