//! Table `replay-insights`.

mod erasure;
mod insights;
mod pain_points;
mod replays;

pub use insights::{InsightWrite, RequestRecord};
pub use pain_points::{BatchId, ClaimOutcome};
pub use replays::Change;

use aws_sdk_dynamodb::types::AttributeValue;
use serde::Serialize;
use serde::de::DeserializeOwned;

use shared::dynamodb::item::{ItemReader, b};
use shared::dynamodb::{Cause, Store, StoreError};

use crate::packed::{pack, unpack};

/// Table `replay-insights`.
#[derive(Debug, Clone, Copy)]
pub struct InsightStore<'a> {
    db: &'a Store,
}

impl<'a> InsightStore<'a> {
    /// Returns a store for this table.
    pub fn new(db: &'a Store) -> Self {
        Self { db }
    }
}

/// Returns a packed value for an item.
fn packed(value: &impl Serialize) -> Result<AttributeValue, StoreError> {
    let packed = pack(value).map_err(|error| Cause::of_step("packing a value", error));
    packed.map(|packed| b(&packed)).map_err(StoreError::Rejected)
}

/// Reads a packed value, if the item has it.
fn read_packed<T: DeserializeOwned>(
    reader: ItemReader<'_>,
    attribute: &'static str,
) -> Result<Option<T>, StoreError> {
    if !reader.item.contains_key(attribute) {
        return Ok(None);
    }
    let unpacked = unpack(reader.blob(attribute)?);
    unpacked.map(Some).ok_or_else(|| reader.damaged(attribute))
}
