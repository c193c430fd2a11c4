//! Chunks of bundles, as they arrive.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use aws_sdk_dynamodb::types::AttributeValue;

use shared::dynamodb::StoreError;
use shared::dynamodb::item::{Item, ItemReader, b, item_at, key, n};
use shared::projects::project::Organization;
use shared::timestamp::Timestamp;

use super::{SourceMapStore, TABLE, Upload};
use crate::bundle::Checksum;

/// Time that a chunk is kept. A build uploads and assembles within minutes.
const RETENTION: Duration = Duration::from_hours(24);
/// Time before its expiry from which a chunk counts as missing, so that a queued assembly finds it.
const MARGIN: Duration = Duration::from_hours(1);

/// The contents of chunks.
pub type Chunks = BTreeMap<Checksum, Vec<u8>>;

impl SourceMapStore<'_> {
    /// Stores a chunk whose checksum was verified. A repeat extends its life.
    pub async fn put_chunk(
        self,
        organization: &Organization,
        checksum: &Checksum,
        bytes: &[u8],
        now: Timestamp,
    ) -> Result<(), StoreError> {
        let attributes = [("bytes", b(bytes)), ("expiresAt", n(now.plus(RETENTION).as_seconds()))];
        self.db.put_over(TABLE, item_at(chunk_key(organization, checksum), attributes)).await
    }

    /// Returns the chunks of a bundle that are stored.
    pub async fn find_chunks(self, upload: &Upload, now: Timestamp) -> Result<Chunks, StoreError> {
        let mut chunks = Chunks::new();
        // Large items first at half the price; then those that were just written.
        let stored = self.db.get_all_eventually(TABLE, missing_keys(upload, &chunks)).await?;
        read_chunks(stored, now, &mut chunks)?;
        let stored = self.db.get_all(TABLE, missing_keys(upload, &chunks)).await?;
        read_chunks(stored, now, &mut chunks)?;
        Ok(chunks)
    }

    /// Removes the chunks of a bundle.
    pub(super) async fn delete_chunks(self, upload: &Upload) -> Result<(), StoreError> {
        self.db.delete_all(TABLE, missing_keys(upload, &Chunks::new())).await
    }
}

fn chunk_key(organization: &Organization, checksum: &Checksum) -> Item {
    key(&format!("chunk#{organization}#{checksum}"), "chunk")
}

/// Returns the keys of the chunks that a bundle has beside those that were found.
fn missing_keys(upload: &Upload, found: &Chunks) -> Vec<Item> {
    let distinct: BTreeSet<&Checksum> = upload.chunks.iter().collect();
    let missing = distinct.into_iter().filter(|it| !found.contains_key(it));
    missing.map(|checksum| chunk_key(&upload.organization, checksum)).collect()
}

fn read_chunks(items: Vec<Item>, now: Timestamp, chunks: &mut Chunks) -> Result<(), StoreError> {
    let least = u64::try_from(now.plus(MARGIN).as_seconds()).unwrap_or_default();
    for mut item in items {
        let reader = ItemReader { table: TABLE, item: &item };
        let checksum = reader.parsed("pk", |pk| Checksum::parse(pk.rsplit('#').next()?))?;
        if reader.count("expiresAt")? > least
            && let Some(AttributeValue::B(bytes)) = item.remove("bytes")
        {
            chunks.insert(checksum, bytes.into_inner());
        }
    }
    Ok(())
}
