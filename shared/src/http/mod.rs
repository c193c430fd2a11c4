//! HTTP: reading requests, writing answers. The only module that knows how errors look on the wire.

mod answer;
mod cors;
mod incoming;
mod problem;

pub use answer::Answer;
pub use cors::{EXPOSED_HEADERS, preflight};
pub use incoming::Incoming;
pub use problem::{Problem, ProblemCode};
