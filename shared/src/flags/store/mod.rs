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
pub use evaluation::{ExportedFlags, FlagsState, StoredFlags};
pub use flags::{FlagCreation, ListedFlags};
pub use segments::{SegmentCreation, SegmentDeletion, SegmentReplacement};
