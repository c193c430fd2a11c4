//! HTTP: parses requests, writes responses, and defines the wire format of errors.

mod cors;
mod cursor;
mod html;
mod if_match;
mod origin;
mod page;
mod problem;
mod protocol;
mod request;
mod response;
mod version_tag;

pub use cors::{EXPOSED_HEADERS, RATE_LIMITS, preflight};
pub use cursor::CursorKey;
pub use if_match::IfMatch;
pub use lambda_http::http::{Method, StatusCode};
pub(crate) use origin::ORIGIN_SECRET;
pub use origin::OriginSecrets;
pub use page::{
    next_cursor, open_cursor, page_request, page_response, read_limit, read_page_request,
    seal_cursor,
};
pub use problem::named_of;
pub use problem::{Problem, ProblemCode};
pub use protocol::Protocol;
pub use request::ApiRequest;
pub use request::JSON;
pub(crate) use request::root_of_trace;
pub(crate) use request::{BASE_URL, EDGE};
pub use response::header_value;
pub use response::{ApiResponse, ApiResult};
pub use version_tag::VersionTag;
