//! Error tracking: what SDKs send, how it is grouped into errors, packed, counted and stored.
//! [`ingestion`] is the way in, [`query`] the way out.

pub mod attribute;
mod delivery;
mod error;
mod event_id;
pub mod grouping;
mod http;
pub mod ingestion;
pub mod log;
pub mod query;
pub mod spike;
pub mod store;

pub use delivery::{
    FoundError, Remembered, add_event_shards, add_log_shards, count_delivery, find_error_of,
    find_ingest_project, open_log, remember_error, see_error,
};
pub use error::*;
pub use event_id::{EventId, NotAnEventId};
pub use http::SENTRY;
