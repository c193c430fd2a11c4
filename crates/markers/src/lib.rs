//! Event markers: collections of what one draws as vertical lines on a chart.

mod event_marker;
pub mod http;
pub mod store;

pub use event_marker::*;
