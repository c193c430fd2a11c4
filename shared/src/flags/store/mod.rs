//! Table `feature-flags`.

mod changes;
mod erasure;
mod evaluation;
mod flags;
mod items;
mod prerequisites;
mod segments;

pub use changes::{FlagDeletion, FlagReplacement};
pub use evaluation::StoredFlags;
pub use flags::{FlagCreation, ListedFlags};
pub use segments::{SegmentCreation, SegmentDeletion, SegmentReplacement};
