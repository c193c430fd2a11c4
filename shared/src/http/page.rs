//! Pages of lists (`docs/api-conventions.md`, "Lists and cursors"): `?limit` and `?cursor` in
//! requests, `{items, nextCursor}` in responses.

use lambda_http::http::StatusCode;
use serde::Serialize;

use crate::json::{FieldError, ViolationCode, Violations};
use crate::page::{Page, PageRequest};

use super::{ApiRequest, ApiResponse, CursorKey, Problem};

const DEFAULT_LIMIT: u32 = 50;
const MAX_LIMIT: u32 = 100;

/// Reads `limit` of a request. Records violations.
pub fn read_limit(incoming: &ApiRequest, violations: &mut Violations) -> Option<u32> {
    let limit = incoming.query_parameter("limit", violations, |text| {
        let limit = text.parse().ok().filter(|limit| (1..=MAX_LIMIT).contains(limit));
        limit.ok_or_else(|| {
            let message = format_args!("must be a whole number from 1 to {MAX_LIMIT}");
            FieldError::new(ViolationCode::OutOfRange, message)
        })
    });
    limit.map(|limit| limit.unwrap_or(DEFAULT_LIMIT))
}

/// Reads `limit` and `cursor` of a request for a page. Records violations.
pub fn read_page_request(
    key: &CursorKey,
    incoming: &ApiRequest,
    violations: &mut Violations,
) -> Option<PageRequest> {
    let limit = read_limit(incoming, violations);
    let after =
        incoming.query_parameter("cursor", violations, |cursor| key.open(&list(incoming), cursor));
    let page = limit.zip(after);
    page.map(|(limit, after)| PageRequest { limit, after })
}

/// Reads `limit` and `cursor` of a request for a page, which has no other parameters.
pub fn page_request(key: &CursorKey, incoming: &ApiRequest) -> Result<PageRequest, Problem> {
    let mut violations = Violations::default();
    let page_request = read_page_request(key, incoming, &mut violations);
    Ok(violations.into_result(page_request)?)
}

/// Opens a cursor from a body, for the list that is requested.
pub fn open_cursor(
    key: &CursorKey,
    incoming: &ApiRequest,
    cursor: &str,
) -> Result<String, FieldError> {
    key.open(&list(incoming), cursor)
}

/// Returns the cursor for a position in the requested list.
pub fn seal_cursor(key: &CursorKey, incoming: &ApiRequest, position: &str) -> String {
    key.seal(&list(incoming), position)
}

/// Returns the response with a page of the requested list.
pub fn page_response(
    key: &CursorKey,
    incoming: &ApiRequest,
    page: &Page<impl Serialize>,
) -> Result<ApiResponse, Problem> {
    let next_cursor = next_cursor(key, incoming, page);
    ApiResponse::json(StatusCode::OK, &PageBody { items: &page.items, next_cursor })
}

/// Returns the cursor after a page of the requested list, for bodies with further members.
pub fn next_cursor<T>(key: &CursorKey, incoming: &ApiRequest, page: &Page<T>) -> Option<String> {
    page.end.as_ref().map(|end| key.seal(&list(incoming), end))
}

/// Returns the list for which a cursor is valid: the operation and the path as sent.
fn list(incoming: &ApiRequest) -> String {
    format!("{}/{}", incoming.operation(), incoming.path())
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct PageBody<'p, T> {
    items: &'p [T],
    next_cursor: Option<String>,
}
