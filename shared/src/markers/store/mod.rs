//! Table `event-markers`.

mod collections;
mod erasure;
mod purge;

pub use collections::{CollectionCreation, CollectionDeletion, EventAddition};
