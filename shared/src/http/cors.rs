//! Cross-origin requests (`docs/api-conventions.md`, "Cross-origin requests"). Every page can send
//! them, since access needs a key.

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
/// The response headers that a page's script can read.
pub const EXPOSED_HEADERS: &str = "etag, location, retry-after, x-request-id, \
     idempotency-replayed, x-bucket-seconds, x-range-from, x-range-to";
/// A response header that scripts can also read if present: the event types that an SDK must hold
/// back.
pub const RATE_LIMITS: HeaderName = HeaderName::from_static("x-sentry-rate-limits");
/// Longest time that a browser can cache the response to a preflight, in seconds. Browsers have
/// lower limits.
const MAX_AGE: &str = "86400";

/// Returns the response to a preflight request for an operation with this protocol.
pub fn preflight(protocol: &Protocol) -> Result<ApiResponse, Problem> {
    let allowed_headers = [&ALLOWED_HEADERS, protocol.request_headers].concat().join(", ");
    Ok(ApiResponse::empty(StatusCode::NO_CONTENT)
        .with_header(ACCESS_CONTROL_ALLOW_METHODS, HeaderValue::from_static(ALLOWED_METHODS))
        .with_header(ACCESS_CONTROL_ALLOW_HEADERS, header_value(&allowed_headers)?)
        .with_header(ACCESS_CONTROL_MAX_AGE, HeaderValue::from_static(MAX_AGE)))
}

/// Lets scripts of every page read a response, including errors.
pub(super) fn expose(headers: &mut HeaderMap) {
    headers.insert(ACCESS_CONTROL_ALLOW_ORIGIN, HeaderValue::from_static("*"));
    headers.insert(ACCESS_CONTROL_EXPOSE_HEADERS, HeaderValue::from_static(EXPOSED_HEADERS));
    if headers.contains_key(RATE_LIMITS) {
        headers.append(ACCESS_CONTROL_EXPOSE_HEADERS, RATE_LIMITS.into());
    }
}
