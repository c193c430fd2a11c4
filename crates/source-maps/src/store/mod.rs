//! Table `source-maps`.

mod bundles;
mod chunks;
mod erasure;
mod maps;
mod resolving;
mod upkeep;

use aws_sdk_dynamodb::types::AttributeValue;
use shared::dynamodb::item::{Item, ItemReader, key, n};
use shared::dynamodb::{Store, StoreError};
use shared::projects::project::ProjectId;

pub use bundles::{BundleRecord, BundleState, Failure, Lease, Upload};
pub use maps::{ListedMap, Lookup, StoredMap};
pub use resolving::{MapStatus, Resolution, SourceMapCache};
pub use upkeep::{DueMap, DueOutcome, RETENTION, UNPUBLISHED};

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
fn lookup_key(project: ProjectId, map_key: &str) -> Item {
    key(&format!("map#{project}#{map_key}"), "map")
}

/// The two lists of pieces.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum PieceKind {
    Table,
    Text,
}

/// Returns the key of a piece. Each piece has its own partition, which spreads the writes of a map.
fn piece_key(project: ProjectId, map_id: uuid::Uuid, kind: PieceKind, number: usize) -> Item {
    let kind = match kind {
        PieceKind::Table => "table",
        PieceKind::Text => "text",
    };
    key(&format!("piece#{project}#{map_id}#{kind}#{number}"), "piece")
}

/// Returns the keys of all pieces of a map.
fn piece_keys(
    project: ProjectId,
    map_id: uuid::Uuid,
    tables: usize,
    texts: usize,
) -> impl Iterator<Item = Item> {
    let tables = (0..tables).map(move |it| piece_key(project, map_id, PieceKind::Table, it));
    tables.chain((0..texts).map(move |it| piece_key(project, map_id, PieceKind::Text, it)))
}

fn count(count: impl TryInto<i64>) -> AttributeValue {
    n(count.try_into().unwrap_or(i64::MAX))
}

fn read_count(reader: ItemReader<'_>, name: &'static str) -> Result<usize, StoreError> {
    reader.count(name).map(|it| usize::try_from(it).unwrap_or(usize::MAX))
}
