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

    /// Returns the bytes of a bundle, or the chunks that are missing.
    pub async fn find_chunks(
        self,
        upload: &Upload,
        now: Timestamp,
    ) -> Result<Result<Vec<u8>, Vec<Checksum>>, StoreError> {
        let least = u64::try_from(now.plus(MARGIN).as_seconds()).unwrap_or_default();
        let mut missing: BTreeSet<Checksum> = upload.chunks.iter().cloned().collect();
        let mut chunks: BTreeMap<Checksum, Vec<u8>> = BTreeMap::new();
        // Large items first at half the price; then those that were just written.
        for just_written in [false, true] {
            let keys = missing.iter().map(|it| chunk_key(&upload.organization, it)).collect();
            let items = if just_written {
                self.db.get_all(TABLE, keys).await?
            } else {
                self.db.get_all_eventually(TABLE, keys).await?
            };
            for mut item in items {
                let reader = ItemReader { table: TABLE, item: &item };
                let checksum = reader.parsed("pk", |pk| Checksum::parse(pk.rsplit('#').next()?))?;
                if reader.count("expiresAt")? > least
                    && let Some(AttributeValue::B(bytes)) = item.remove("bytes")
                {
                    missing.remove(&checksum);
                    chunks.insert(checksum, bytes.into_inner());
                }
            }
        }
        if !missing.is_empty() {
            return Ok(Err(missing.into_iter().collect()));
        }
        let parts = upload.chunks.iter().filter_map(|it| chunks.get(it)).map(Vec::as_slice);
        Ok(Ok(parts.collect::<Vec<_>>().concat()))
    }
}

pub(super) fn chunk_key(organization: &Organization, checksum: &Checksum) -> Item {
    key(&format!("chunk#{organization}#{checksum}"), "chunk")
}
