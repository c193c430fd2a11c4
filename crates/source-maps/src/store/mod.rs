//! Table `source-maps`.

mod bundles;
mod chunks;
mod erasure;
mod maps;
mod resolving;
mod upkeep;

use aws_sdk_dynamodb::types::AttributeValue;
use serde::{Deserialize, Serialize};
use shared::dynamodb::item::{Item, ItemReader, key, s};
use shared::dynamodb::{Cause, Store, StoreError};
use shared::projects::project::ProjectId;
use uuid::Uuid;

use crate::MapKey;

pub use bundles::{BundleRecord, BundleState, Failure, Upload};
pub use chunks::Chunks;
pub use maps::{ListedMap, Lookup, StoredMap};
pub use resolving::{MapStatus, Resolution, SourceMapCache};
pub use upkeep::DueMap;

const TABLE: &str = "source-maps";

/// The store of table `source-maps`.
#[derive(Debug, Clone, Copy)]
pub struct SourceMapStore<'a> {
    db: &'a Store,
}

impl<'a> SourceMapStore<'a> {
    /// Returns the store in these tables.
    pub fn new(db: &'a Store) -> Self {
        Self { db }
    }
}

/// Returns the partition of a project's list of maps.
fn maps_pk(project: ProjectId) -> String {
    format!("maps#{project}")
}

/// Returns the key of the item by which frames find a map.
fn lookup_key(project: ProjectId, map_key: &MapKey) -> Item {
    key(&format!("map#{project}#{map_key}"), "map")
}

/// Returns the key of a piece. Each piece has its own partition, which spreads the writes of a map.
fn piece_key(project: ProjectId, map_id: Uuid, number: usize) -> Item {
    key(&format!("piece#{project}#{map_id}#{number}"), "piece")
}

fn json(value: &impl Serialize) -> Result<AttributeValue, StoreError> {
    let text = serde_json::to_string(value).map_err(|error| Cause::of_step("writing JSON", error));
    text.map(s).map_err(StoreError::Rejected)
}

fn read_json<'i, T: Deserialize<'i>>(
    reader: ItemReader<'i>,
    attribute: &'static str,
) -> Result<T, StoreError> {
    serde_json::from_str(reader.text(attribute)?).map_err(|_| reader.damaged(attribute))
}
