//! Tables `feature-flags` and `flag-changes`.

mod changes;
mod erasure;
mod evaluation;
mod flags;
mod history;
mod items;
mod prerequisites;
mod segments;

pub use changes::{FlagDeletion, FlagReplacement};
pub use evaluation::{ExportedFlags, FlagSetRevision, StoredFlags};
pub use flags::{FlagCreation, ListedFlags};
pub use history::{ListedChange, NewestChanges};
pub use segments::{SegmentCreation, SegmentDeletion, SegmentReplacement};

use shared::dynamodb::Store;

/// Tables `feature-flags` and `flag-changes`.
#[derive(Debug, Clone, Copy)]
pub struct FlagStore<'a> {
    db: &'a Store,
}

impl<'a> FlagStore<'a> {
    /// Returns a store for these tables.
    pub fn new(db: &'a Store) -> Self {
        Self { db }
    }
}
