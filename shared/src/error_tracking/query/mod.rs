//! What is asked of events: ranges, filters and searches in, counts out.

mod case_folding;
pub mod count;
pub mod day_plan;
pub mod filter;
pub mod search;
pub mod time_bucket;
pub mod timeseries;
