//! Table `notifications`, whose outbox is written by `projects`, where everything that happens can reach it.

mod addresses;
mod erasure;
mod feed;
mod outbox;
mod passes;

pub use addresses::{KnownUser, UserName};
pub use erasure::NotificationSweep;
pub use feed::{Feed, Looked};
pub use outbox::{
    BatchPage, EVENTS_AT_ONCE, EventBatch, LEASE, Outlets, Shard, TAKEN_AT_ONCE, Waiting,
};
pub use passes::Pass;

use crate::projects::store::outbox::OUTBOX_TABLE as TABLE;
