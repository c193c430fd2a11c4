//! Uploaded bundles: their chunks and their state, the queue of those to assemble, and failures.

use std::collections::BTreeSet;
use std::time::Duration;

use aws_sdk_dynamodb::types::builders::PutBuilder;
use serde::{Deserialize, Serialize};
use shared::dynamodb::StoreError;
use shared::dynamodb::immutable_items::place;
use shared::dynamodb::item::{Item, ItemReader, b, item_at, key, n, ss, time_key};
use shared::dynamodb::request::IntoAction;
use shared::projects::project::ProjectId;
use shared::timestamp::Timestamp;

use super::{FAILURES, ProjectMaps, QUEUE, SourceMapStore, TABLE, json, read_json};
use crate::MapKey;
use crate::bundle::Checksum;

/// Time that a failure is shown.
const FAILURE_RETENTION: Duration = Duration::from_hours(30 * 24);
/// Failures that are shown.
const MAX_FAILURES: i32 = 20;
/// Bundles that the job reads at once.
const QUEUED_AT_ONCE: i32 = 20;
/// Time that a chunk is kept. A build uploads and assembles within minutes.
const CHUNK_RETENTION: Duration = Duration::from_hours(24);
/// Time before its expiry from which a chunk counts as missing, so that a queued assembly finds it.
const CHUNK_MARGIN: Duration = Duration::from_hours(1);

/// An uploaded bundle, as the tool describes it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Upload {
    /// The organization of the chunks.
    pub organization: String,
    /// The SHA-1 of the whole bundle.
    pub checksum: Checksum,
    /// The SHA-1 of each chunk, in order.
    pub chunks: Vec<Checksum>,
    /// The release.
    pub release: Option<String>,
    /// The distribution.
    pub dist: Option<String>,
}

/// The state of a bundle in a project.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum BundleState {
    /// The job will assemble the bundle.
    Queued,
    /// An invocation assembles the bundle until this time.
    Assembling(Timestamp),
    /// All maps of the bundle are current.
    Assembled,
    /// The assembly failed.
    Failed {
        /// The reason.
        detail: String,
        /// Time of the failure.
        at: Timestamp,
    },
}

/// A bundle of a project.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct BundleRecord {
    /// The upload.
    pub upload: Upload,
    /// The state.
    pub state: BundleState,
}

/// A failed bundle, as people see it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Failure {
    /// The SHA-1 of the bundle.
    pub checksum: Checksum,
    /// The release of the upload.
    pub release: Option<String>,
    /// The distribution of the upload.
    pub dist: Option<String>,
    /// The reason.
    pub detail: String,
    /// Time of the failure.
    pub failed_at: Timestamp,
    /// The keys of its maps.
    #[serde(skip)]
    pub map_keys: BTreeSet<MapKey>,
}

impl SourceMapStore<'_> {
    /// Stores a chunk whose checksum was verified. A repeat extends its life.
    pub async fn put_chunk(
        self,
        organization: &str,
        checksum: &Checksum,
        bytes: &[u8],
        now: Timestamp,
    ) -> Result<(), StoreError> {
        let attributes =
            [("bytes", b(bytes)), ("expiresAt", n(now.plus(CHUNK_RETENTION).as_seconds()))];
        self.db.put_over(TABLE, item_at(chunk_key(organization, checksum), attributes)).await
    }

    /// Returns the bytes of a bundle, or the chunks that are missing.
    pub async fn find_chunks(
        self,
        upload: &Upload,
        now: Timestamp,
    ) -> Result<Result<Vec<u8>, BTreeSet<Checksum>>, StoreError> {
        let least = u64::try_from(now.plus(CHUNK_MARGIN).as_seconds()).unwrap_or_default();
        let lasts = |item: &Item| {
            let expires_at = ItemReader { table: TABLE, item }.count("expiresAt");
            expires_at.is_ok_and(|expires_at| expires_at > least)
        };
        let distinct: BTreeSet<&Checksum> = upload.chunks.iter().collect();
        let key_of = |chunk: &Checksum| chunk_key(&upload.organization, chunk);
        let keys = distinct.iter().map(|chunk| key_of(chunk)).collect();
        let items = self.db.get_all_large(TABLE, keys, lasts).await?;
        let (mut bundle, mut missing) = (Vec::new(), BTreeSet::new());
        for chunk in &upload.chunks {
            match items.get(&place(&key_of(chunk))) {
                Some(item) => bundle.extend(ItemReader { table: TABLE, item }.blob("bytes")?),
                None => drop(missing.insert(chunk.clone())),
            }
        }
        Ok(if missing.is_empty() { Ok(bundle) } else { Err(missing) })
    }

    /// Returns bundles that wait for the job, with the time since when.
    pub async fn list_queued(self) -> Result<Vec<(ProjectId, Checksum, Timestamp)>, StoreError> {
        let query = self.db.partition(TABLE, QUEUE).limit(QUEUED_AT_ONCE);
        let items = query.send().await?.items.unwrap_or_default();
        items.iter().map(|item| read_json(item, "entry")).collect()
    }
}

impl ProjectMaps<'_> {
    /// Returns a bundle.
    pub async fn find_bundle(
        self,
        checksum: &Checksum,
    ) -> Result<Option<BundleRecord>, StoreError> {
        let item = self.db.get(TABLE, self.bundle_key(checksum)).await?;
        item.map(|item| read_json(&item, "bundle")).transpose()
    }

    /// Notes that an invocation assembles a bundle until a time.
    pub async fn begin(self, upload: &Upload, until: Timestamp) -> Result<(), StoreError> {
        let put = self.put_bundle(upload, BundleState::Assembling(until))?;
        self.db.write_if(put).await.map(drop)
    }

    /// Ends the assembly of a bundle. If the bundle was removed, a map was replaced in the meantime.
    pub async fn end(self, upload: &Upload, state: BundleState) -> Result<(), StoreError> {
        let put = self.put_bundle(upload, state)?.condition_expression("attribute_exists(pk)");
        self.db.write_if(put).await.map(drop)
    }

    /// Queues a bundle for the job.
    pub async fn queue_bundle(self, upload: &Upload, now: Timestamp) -> Result<(), StoreError> {
        let entry = json(&(self.project, &upload.checksum, now))?;
        let entry = item_at(self.queue_key(&upload.checksum), [("entry", entry)]);
        let bundle = self.put_bundle(upload, BundleState::Queued)?.into_action()?;
        let queue = self.db.put(TABLE, entry).into_action()?;
        self.db.commit_all(vec![bundle, queue]).await.map(drop)
    }

    /// Removes a bundle from the queue.
    pub async fn dequeue(self, checksum: &Checksum) -> Result<(), StoreError> {
        self.db.delete_all(TABLE, vec![self.queue_key(checksum)]).await
    }

    /// Notes that the assembly of a bundle failed.
    pub async fn fail(
        self,
        upload: &Upload,
        detail: &str,
        map_keys: &BTreeSet<MapKey>,
        now: Timestamp,
    ) -> Result<(), StoreError> {
        let failure = Failure {
            checksum: upload.checksum.clone(),
            release: upload.release.clone(),
            dist: upload.dist.clone(),
            detail: detail.to_owned(),
            failed_at: now,
            map_keys: BTreeSet::new(),
        };
        let sk = format!("{}#{}", time_key(now), upload.checksum);
        let expires_at = n(now.plus(FAILURE_RETENTION).as_seconds());
        let attributes = [("failure", json(&failure)?), ("expiresAt", expires_at)];
        let mut item = item_at(key(&self.pk(FAILURES), &sk), attributes);
        item.extend(ss(map_keys).map(|keys| ("mapKeys".to_owned(), keys)));
        let state = BundleState::Failed { detail: failure.detail, at: now };
        let bundle = self.put_bundle(upload, state)?.into_action()?;
        let failure = self.db.put(TABLE, item).into_action()?;
        self.db.commit_all(vec![bundle, failure]).await.map(drop)
    }

    /// Returns the latest failures, the newest first.
    pub async fn list_failures(self, now: Timestamp) -> Result<Vec<Failure>, StoreError> {
        let query = self
            .db
            .partition(TABLE, self.pk(FAILURES))
            .scan_index_forward(false)
            .filter_expression("expiresAt > :now")
            .expression_attribute_values(":now", n(now.as_seconds()))
            .limit(MAX_FAILURES);
        let items = query.send().await?.items.unwrap_or_default();
        items.iter().map(read_failure).collect()
    }

    fn put_bundle(self, upload: &Upload, state: BundleState) -> Result<PutBuilder, StoreError> {
        let record = BundleRecord { upload: upload.clone(), state };
        let key = self.bundle_key(&upload.checksum);
        Ok(self.db.put(TABLE, item_at(key, [("bundle", json(&record)?)])))
    }
}

pub(super) fn chunk_key(organization: &str, checksum: &Checksum) -> Item {
    key(&format!("chunk#{organization}#{checksum}"), "chunk")
}

fn read_failure(item: &Item) -> Result<Failure, StoreError> {
    let keys = ItemReader { table: TABLE, item }.text_set("mapKeys")?;
    let map_keys = keys.iter().map(|key| MapKey::from(key.as_str())).collect();
    Ok(Failure { map_keys, ..read_json(item, "failure")? })
}
