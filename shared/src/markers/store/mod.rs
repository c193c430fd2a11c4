//! Table `event-markers`.

mod collections;
mod purge;

pub use collections::{CollectionCreation, CollectionDeletion, EventAddition};
