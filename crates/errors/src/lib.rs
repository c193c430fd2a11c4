//! Error tracking: what SDKs send, how it is grouped into errors, packed, counted and stored.
//! [`ingestion`] is the way in, [`query`] the way out.

pub mod attribute;
mod error;
mod event_id;
pub mod grouping;
pub mod http;
pub mod ingestion;
pub mod log;
pub mod query;
pub mod spike;
pub mod store;
pub mod user_agent;

pub use error::*;
pub use event_id::{EventId, NotAnEventId};
pub use http::SENTRY;
