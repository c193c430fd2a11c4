//! HTTP: reading requests, writing answers. The only module that knows how errors look on the wire.

mod answer;
mod cors;
mod cursor;
mod if_match;
mod incoming;
mod ofrep;
mod page;
mod problem;
mod protocol;

pub use answer::Answer;
pub use cors::{EXPOSED_HEADERS, preflight};
pub use cursor::CursorKey;
pub use if_match::IfMatch;
pub use incoming::Incoming;
pub use lambda_http::http::StatusCode;
pub use page::{page_answer, read_page_request};
pub use problem::{Problem, ProblemCode};
pub use protocol::Protocol;
