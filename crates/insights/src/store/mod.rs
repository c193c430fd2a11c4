//! Table `replay-insights`.

mod erasure;
mod insights;
mod pain_points;
mod replays;

pub use insights::{InsightWrite, RequestRecord};
pub use pain_points::{BatchId, ClaimOutcome};
pub use replays::{Change, FactsOutcome};

use shared::dynamodb::Store;

/// Table `replay-insights`.
#[derive(Debug, Clone, Copy)]
pub struct InsightStore<'a> {
    db: &'a Store,
}

impl<'a> InsightStore<'a> {
    /// Returns a store for this table.
    pub fn new(db: &'a Store) -> Self {
        Self { db }
    }
}
