//! Table `replay-insights`.

mod erasure;
mod insights;
mod pain_points;

pub use insights::{InsightWrite, RequestRecord};
pub use pain_points::{BatchId, Claim};
