//! HTTP: reading requests, writing answers. The only module that knows how errors look on the wire.

mod answer;
mod cors;
mod cursor;
mod html;
mod if_match;
mod incoming;
mod origin;
mod page;
mod problem;
mod protocol;
mod version_tag;

pub use answer::Answer;
pub use answer::header_value;
pub use cors::{EXPOSED_HEADERS, RATE_LIMITS, preflight};
pub use cursor::CursorKey;
pub use if_match::IfMatch;
pub use incoming::Incoming;
pub use incoming::JSON;
pub(crate) use incoming::root_of_trace;
pub use lambda_http::http::{Method, StatusCode};
pub use origin::OriginSecrets;
pub use page::{open_cursor, page_answer, read_page_request};
pub use problem::named_of;
pub use problem::{Problem, ProblemCode};
pub use protocol::Protocol;
pub use version_tag::VersionTag;
