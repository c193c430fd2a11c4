//! Cross-origin requests (`docs/api-conventions.md`, "Cross-origin requests"): any page may call,
//! since only a key gives access.

use lambda_http::http::header::{
    ACCESS_CONTROL_ALLOW_HEADERS, ACCESS_CONTROL_ALLOW_METHODS, ACCESS_CONTROL_ALLOW_ORIGIN,
    ACCESS_CONTROL_EXPOSE_HEADERS, ACCESS_CONTROL_MAX_AGE,
};
use lambda_http::http::{HeaderMap, HeaderName, HeaderValue, StatusCode};

use super::{ApiResponse, Problem, Protocol, header_value};

const ALLOWED_METHODS: &str = "GET, POST, PUT, PATCH, DELETE";
/// The request headers of every operation.
const ALLOWED_HEADERS: [&str; 6] =
    ["authorization", "x-api-key", "content-type", "if-match", "if-none-match", "idempotency-key"];
/// What a page's script may read of an answer.
pub const EXPOSED_HEADERS: &str = "etag, location, retry-after, x-request-id, \
     idempotency-replayed, x-bucket-seconds, x-range-from, x-range-to";
/// What it may read besides of the answers that have it: which kinds of reports an SDK is to keep back.
pub const RATE_LIMITS: HeaderName = HeaderName::from_static("x-sentry-rate-limits");
/// How long a browser may remember the answer to a preflight, in seconds; browsers cap it lower.
const MAX_AGE: &str = "86400";

/// The answer to a preflight request for an operation of a protocol.
pub fn preflight(protocol: &Protocol) -> Result<ApiResponse, Problem> {
    let allowed_headers = [&ALLOWED_HEADERS, protocol.request_headers].concat().join(", ");
    Ok(ApiResponse::empty(StatusCode::NO_CONTENT)
        .with_header(ACCESS_CONTROL_ALLOW_METHODS, HeaderValue::from_static(ALLOWED_METHODS))
        .with_header(ACCESS_CONTROL_ALLOW_HEADERS, header_value(&allowed_headers)?)
        .with_header(ACCESS_CONTROL_MAX_AGE, HeaderValue::from_static(MAX_AGE)))
}

/// Lets any page read an answer, an error's too.
pub(super) fn expose(headers: &mut HeaderMap) {
    headers.insert(ACCESS_CONTROL_ALLOW_ORIGIN, HeaderValue::from_static("*"));
    headers.insert(ACCESS_CONTROL_EXPOSE_HEADERS, HeaderValue::from_static(EXPOSED_HEADERS));
    if headers.contains_key(RATE_LIMITS) {
        headers.append(ACCESS_CONTROL_EXPOSE_HEADERS, RATE_LIMITS.into());
    }
}
