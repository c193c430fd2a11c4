//! Table `errors`.

mod counts;
mod days;
mod errors;
mod events;
mod packing;

pub use counts::{Activity, ProjectEvents};
pub use days::ReadColumns;
pub use events::{Counting, EVENT_RETENTION};
pub use packing::{NewErrorId, PackingLimits};
