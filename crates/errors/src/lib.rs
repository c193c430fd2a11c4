//! Error tracking: receives events from SDKs, groups them into errors, packs, counts and stores
//! them. Events enter through [`ingestion`], and [`query`] reads them.

pub mod attribute;
pub mod category;
mod error;
mod event_id;
pub mod grouping;
pub mod http;
pub mod ingestion;
pub mod log;
pub mod query;
pub mod spike;
pub mod store;
pub mod tag;
pub mod user_agent;

pub use error::*;
pub use event_id::{EventId, NotAnEventId};
pub use http::SENTRY;
