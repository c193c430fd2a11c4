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
pub mod store;

pub use delivery::{add_log_shards, find_ingest_project, open_log, see_error};
pub use error::*;
pub use event_id::{EventId, NotAnEventId};
pub use http::SENTRY;
