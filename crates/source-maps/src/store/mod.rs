//! Table `source-maps`.

mod bundles;
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
use crate::bundle::Checksum;

pub use bundles::{BundleRecord, BundleState, Failure, Upload};
pub use maps::{ListedMap, Lookup, StoredMap};
pub use resolving::{MapStatus, Resolution, Resolver, SourceMapCache};
pub use upkeep::DueMap;

const TABLE: &str = "source-maps";
/// The lists of a project.
const BUNDLES: &str = "bundles";
const FAILURES: &str = "failures";
const MAPS: &str = "maps";
/// The partition of bundles that wait for the job.
const QUEUE: &str = "assembly-queue";

/// The store of what several projects share: chunks, and the lists of the job.
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

/// The store of a project's bundles and maps.
#[derive(Debug, Clone, Copy)]
pub struct ProjectMaps<'a> {
    db: &'a Store,
    project: ProjectId,
}

impl<'a> ProjectMaps<'a> {
    /// Returns the project's store in these tables.
    pub fn new(db: &'a Store, project: ProjectId) -> Self {
        Self { db, project }
    }

    /// Returns the partition of a list of the project.
    fn pk(self, list: &str) -> String {
        format!("{list}#{}", self.project)
    }

    fn bundle_key(self, checksum: &Checksum) -> Item {
        key(&self.pk(BUNDLES), &checksum.to_string())
    }

    fn queue_key(self, checksum: &Checksum) -> Item {
        key(QUEUE, &format!("{}#{checksum}", self.project))
    }

    /// Returns the key of the item by which frames find a map.
    fn lookup_key(self, map_key: &MapKey) -> Item {
        key(&format!("map#{}#{map_key}", self.project), "map")
    }

    /// Returns the key of a piece. Each piece has its own partition, which spreads the writes of a
    /// map.
    fn piece_key(self, map_id: Uuid, number: usize) -> Item {
        key(&format!("piece#{}#{map_id}#{number}", self.project), "piece")
    }
}

fn json(value: &impl Serialize) -> Result<AttributeValue, StoreError> {
    let text = serde_json::to_string(value).map_err(|error| Cause::of_step("writing JSON", error));
    text.map(s).map_err(StoreError::Rejected)
}

fn read_json<'i, T: Deserialize<'i>>(
    item: &'i Item,
    attribute: &'static str,
) -> Result<T, StoreError> {
    ItemReader { table: TABLE, item }.parsed(attribute, |text| serde_json::from_str(text).ok())
}
