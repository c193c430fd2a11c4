//! Table `errors`.

mod columns;
mod errors;
mod events;
mod head;
mod manifest;
mod merging;
mod packing;
mod queue;
mod reading;
mod rows;
mod verification;

pub use events::{Counting, EVENT_RETENTION};
pub use packing::{NewErrorId, PackingLimits, Step};
pub use queue::{QueueEntry, Taken};
pub use reading::{Activity, ProjectEvents};
