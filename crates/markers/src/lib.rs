//! Event markers: collections of events that charts draw as vertical lines.

mod event_marker;
pub mod http;
pub mod store;

pub use event_marker::*;
