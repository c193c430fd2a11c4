//! Table `feature-flags`.

mod changes;
mod evaluation;
mod flags;
mod items;
mod prerequisites;

pub use changes::{FlagDeletion, FlagReplacement};
pub use evaluation::StoredFlags;
pub use flags::{FlagCreation, ListedFlags};
