//! Event queries: time ranges, filters, searches and counts.

pub mod breakdown;
mod case_folding;
pub mod categories;
pub mod count;
pub mod counted_run;
pub mod day_plan;
pub mod error_events;
pub mod error_filter;
pub mod errors;
pub mod event_query;
pub mod filter;
pub mod search;
pub mod summary;
pub mod time_bucket;
pub mod timeseries;
mod users;
