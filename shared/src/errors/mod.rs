//! Error tracking without any I/O (`contract.md` §6): what SDKs send, how it is grouped, packed and
//! counted. `ingestion` is the way in, `timeseries` the way out.

mod asset_name;
mod case_folding;
mod frame_identity;
mod message_template;

pub mod attribute;
pub mod count;
pub mod day;
pub mod day_plan;
pub mod day_state;
pub mod decimal;
pub mod failure;
pub mod filter;
pub mod fingerprint;
pub mod ingestion;
pub mod row;
pub mod search;
pub mod segment;
pub mod time_bucket;
pub mod timeseries;
