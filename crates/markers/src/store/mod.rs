//! Table `event-markers`.

mod activity;
mod automatic;
mod collections;
mod erasure;
mod purge;

pub use activity::NewestMarkers;
pub use collections::{CollectionCreation, CollectionDeletion, EventAddition};

use shared::dynamodb::Store;

/// Table `event-markers`.
#[derive(Debug, Clone, Copy)]
pub struct MarkerStore<'a> {
    db: &'a Store,
}

impl<'a> MarkerStore<'a> {
    /// Returns a store for this table.
    pub fn new(db: &'a Store) -> Self {
        Self { db }
    }
}
