//! Chunks of bundles, as they arrive.

use std::collections::{BTreeSet, HashMap};
use std::time::Duration;

use aws_sdk_dynamodb::types::AttributeValue;

use shared::dynamodb::StoreError;
use shared::dynamodb::item::{Item, ItemReader, b, item_at, key, n};
use shared::projects::project::Organization;
use shared::timestamp::Timestamp;

use super::{SourceMapStore, TABLE};
use crate::bundle::Checksum;

/// Time that a chunk is kept. A build uploads and assembles within minutes.
const RETENTION: Duration = Duration::from_hours(24);
/// Time before its expiry from which a chunk counts as missing, so that a queued assembly finds it.
const MARGIN: Duration = Duration::from_hours(1);

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

    /// Returns the chunks that are stored.
    pub async fn find_chunks(
        self,
        organization: &Organization,
        checksums: &[Checksum],
        now: Timestamp,
    ) -> Result<HashMap<Checksum, Vec<u8>>, StoreError> {
        let mut missing: BTreeSet<&Checksum> = checksums.iter().collect();
        let mut chunks = HashMap::new();
        // Large items first at half the price; then those that were just written.
        let stored = self.db.get_all_eventually(TABLE, chunk_keys(organization, &missing));
        read_chunks(stored.await?, organization, now, &mut chunks)?;
        missing.retain(|checksum| !chunks.contains_key(*checksum));
        let stored = self.db.get_all(TABLE, chunk_keys(organization, &missing)).await?;
        read_chunks(stored, organization, now, &mut chunks)?;
        Ok(chunks)
    }

    /// Removes chunks.
    pub(super) async fn delete_chunks(
        self,
        organization: &Organization,
        checksums: &[Checksum],
    ) -> Result<(), StoreError> {
        let distinct = checksums.iter().collect();
        self.db.delete_all(TABLE, chunk_keys(organization, &distinct)).await
    }
}

fn chunk_pk(organization: &Organization, checksum: &str) -> String {
    format!("chunk#{organization}#{checksum}")
}

fn chunk_key(organization: &Organization, checksum: &Checksum) -> Item {
    key(&chunk_pk(organization, &checksum.to_string()), "chunk")
}

fn chunk_keys(organization: &Organization, checksums: &BTreeSet<&Checksum>) -> Vec<Item> {
    checksums.iter().map(|checksum| chunk_key(organization, checksum)).collect()
}

fn read_chunks(
    items: Vec<Item>,
    organization: &Organization,
    now: Timestamp,
    chunks: &mut HashMap<Checksum, Vec<u8>>,
) -> Result<(), StoreError> {
    let prefix = chunk_pk(organization, "");
    let least = u64::try_from(now.plus(MARGIN).as_seconds()).unwrap_or_default();
    for mut item in items {
        let reader = ItemReader { table: TABLE, item: &item };
        let checksum = reader.parsed("pk", |pk| Checksum::parse(pk.strip_prefix(&prefix)?))?;
        if reader.count("expiresAt")? > least
            && let Some(AttributeValue::B(bytes)) = item.remove("bytes")
        {
            chunks.insert(checksum, bytes.into_inner());
        }
    }
    Ok(())
}
