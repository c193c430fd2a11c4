//! Tables `notifications` and `email-preferences`.

mod addresses;
mod announced;
mod dispatch;
mod erasure;
mod feed;
mod outbox;
mod passes;
mod preferences;

pub use addresses::{KnownUser, UserName};
pub use dispatch::{
    BatchPage, Channels, EVENT_BATCH_SIZE, EventBatch, LEASE, OUTBOX_PAGE_SIZE, OutboxPage, Shard,
};
pub use erasure::NotificationSweep;
pub use feed::{Feed, FeedCheckpoint};
pub use passes::Pass;

use outbox::OUTBOX_TABLE as TABLE;

use shared::dynamodb::Store;

/// Tables `notifications` and `email-preferences`.
#[derive(Debug, Clone, Copy)]
pub struct NotificationStore<'a> {
    db: &'a Store,
}

impl<'a> NotificationStore<'a> {
    /// Returns the store in these tables.
    pub fn new(db: &'a Store) -> Self {
        Self { db }
    }
}
