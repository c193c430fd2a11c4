//! Table `errors`.

mod columns;
mod compaction;
mod daily_limit;
mod deletion;
mod erasure;
mod error_count;
mod error_hours;
mod errors;
mod event_matches;
mod events;
mod fingerprints;
mod head;
mod manifest;
mod packing;
mod queue;
mod reading;
mod releases;
mod rows;
mod tags;

pub use deletion::{Deletion, MAX_TOMBSTONES};
pub use error_hours::{ErrorSummary, EventCounts};
pub use errors::SeenEvent;
pub use event_matches::KeyRange;
pub use events::{CountOutcome, EVENT_RETENTION, ErrorOfEvent, EventsOfError};
pub use fingerprints::FingerprintEntry;
pub use packing::{NewErrorId, PackOutcome, PackingLimits};
pub use queue::{OpenLog, QueueBacklog, QueueEntry};
pub use reading::CountedProject;
pub use releases::{MAX_NEW_RELEASES, NewestReleases, Registrar, SeenRelease};
pub use tags::MAX_NEW_VALUES;

use shared::dynamodb::Store;

/// The store of table `errors`.
#[derive(Debug, Clone, Copy)]
pub struct ErrorStore<'a> {
    db: &'a Store,
}

impl<'a> ErrorStore<'a> {
    /// Returns the store in these tables.
    pub fn new(db: &'a Store) -> Self {
        Self { db }
    }
}
