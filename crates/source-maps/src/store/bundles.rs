//! Uploaded bundles: their state, the queue of those to assemble, and failures.

use std::collections::BTreeSet;
use std::time::Duration;

use serde::de::Error;
use serde::{Deserialize, Deserializer, Serialize};
use shared::dynamodb::StoreError;
use shared::dynamodb::item::{Item, ItemReader, item_at, key, n, ss, time_key};
use shared::dynamodb::transaction::Transaction;
use shared::projects::project::{Organization, ProjectId};
use shared::timestamp::Timestamp;

use super::{SourceMapStore, TABLE, json, read_json};
use crate::MapKey;
use crate::bundle::Checksum;

/// Time that a failure is shown.
const FAILURE_RETENTION: Duration = Duration::from_hours(30 * 24);
/// Failures that are shown.
const MAX_FAILURES: i32 = 20;
/// Bundles that the job reads at once.
const QUEUED_AT_ONCE: i32 = 20;
const QUEUE: &str = "assembly-queue";

/// An uploaded bundle, as the tool describes it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Upload {
    /// The organization of the chunks.
    #[serde(deserialize_with = "organization")]
    pub organization: Organization,
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
    /// Returns a bundle of a project.
    pub async fn find_bundle(
        self,
        project: ProjectId,
        checksum: &Checksum,
    ) -> Result<Option<BundleRecord>, StoreError> {
        let item = self.db.get(TABLE, key_of(project, checksum)).await?;
        item.as_ref().map(read).transpose()
    }

    /// Notes that an invocation assembles a bundle until a time.
    pub async fn begin(
        self,
        project: ProjectId,
        upload: &Upload,
        until: Timestamp,
    ) -> Result<(), StoreError> {
        let item = item_of(project, upload, BundleState::Assembling(until))?;
        self.db.write_if(self.db.put(TABLE, item)).await.map(drop)
    }

    /// Ends the assembly of a bundle. If the bundle was removed, a map was replaced in the meantime.
    pub async fn end(
        self,
        project: ProjectId,
        upload: &Upload,
        state: BundleState,
    ) -> Result<(), StoreError> {
        let put = self.db.put(TABLE, item_of(project, upload, state)?);
        let put = put.condition_expression("attribute_exists(pk)");
        self.db.write_if(put).await.map(drop)
    }

    /// Queues a bundle for the job.
    pub async fn queue_bundle(
        self,
        project: ProjectId,
        upload: &Upload,
        now: Timestamp,
    ) -> Result<(), StoreError> {
        let entry = json(&(project, &upload.checksum, now))?;
        let entry = item_at(queue_key(project, &upload.checksum), [("entry", entry)]);
        let mut tx = Transaction::default();
        tx.add("bundle", self.db.put(TABLE, item_of(project, upload, BundleState::Queued)?))?;
        tx.add("queue", self.db.put(TABLE, entry))?;
        self.db.commit_all(tx).await.map(drop)
    }

    /// Returns bundles that wait for the job, with the time since when.
    pub async fn list_queued(self) -> Result<Vec<(ProjectId, Checksum, Timestamp)>, StoreError> {
        let query = self.db.partition(TABLE, QUEUE).limit(QUEUED_AT_ONCE);
        let items = query.send().await?.items.unwrap_or_default();
        items.iter().map(|item| read_json(ItemReader { table: TABLE, item }, "entry")).collect()
    }

    /// Removes a bundle from the queue.
    pub async fn dequeue(self, project: ProjectId, checksum: &Checksum) -> Result<(), StoreError> {
        self.db.delete_all(TABLE, vec![queue_key(project, checksum)]).await
    }

    /// Notes that the assembly of a bundle failed.
    pub async fn fail(
        self,
        project: ProjectId,
        upload: &Upload,
        detail: &str,
        map_keys: &BTreeSet<MapKey>,
        now: Timestamp,
    ) -> Result<(), StoreError> {
        let Upload { checksum, release, dist, .. } = upload.clone();
        let (detail, map_keys) = (detail.to_owned(), ss(map_keys));
        let state = BundleState::Failed { detail: detail.clone(), at: now };
        let mut tx = Transaction::default();
        tx.add("bundle", self.db.put(TABLE, item_of(project, upload, state)?))?;
        let sk = format!("{}#{checksum}", time_key(now));
        let failure =
            Failure { checksum, release, dist, detail, failed_at: now, map_keys: BTreeSet::new() };
        let mut item = item_at(
            key(&failures_pk(project), &sk),
            [
                ("failure", json(&failure)?),
                ("expiresAt", n(now.plus(FAILURE_RETENTION).as_seconds())),
            ],
        );
        item.extend(map_keys.map(|keys| ("mapKeys".to_owned(), keys)));
        tx.add("failure", self.db.put(TABLE, item))?;
        self.db.commit_all(tx).await.map(drop)
    }

    /// Returns the latest failures of a project, the newest first.
    pub async fn list_failures(
        self,
        project: ProjectId,
        now: Timestamp,
    ) -> Result<Vec<Failure>, StoreError> {
        let query = self
            .db
            .partition(TABLE, failures_pk(project))
            .scan_index_forward(false)
            .filter_expression("expiresAt > :now")
            .expression_attribute_values(":now", n(now.as_seconds()))
            .limit(MAX_FAILURES);
        let items = query.send().await?.items.unwrap_or_default();
        items.iter().map(read_failure).collect()
    }
}

fn organization<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Organization, D::Error> {
    Organization::parse(&String::deserialize(deserializer)?).map_err(D::Error::custom)
}

pub(super) fn bundles_pk(project: ProjectId) -> String {
    format!("bundles#{project}")
}

pub(super) fn failures_pk(project: ProjectId) -> String {
    format!("failures#{project}")
}

pub(super) fn key_of(project: ProjectId, checksum: &Checksum) -> Item {
    key(&bundles_pk(project), &checksum.to_string())
}

pub(super) fn queue_key(project: ProjectId, checksum: &Checksum) -> Item {
    key(QUEUE, &format!("{project}#{checksum}"))
}

fn item_of(project: ProjectId, upload: &Upload, state: BundleState) -> Result<Item, StoreError> {
    let record = BundleRecord { upload: upload.clone(), state };
    Ok(item_at(key_of(project, &upload.checksum), [("bundle", json(&record)?)]))
}

pub(super) fn read(item: &Item) -> Result<BundleRecord, StoreError> {
    read_json(ItemReader { table: TABLE, item }, "bundle")
}

fn read_failure(item: &Item) -> Result<Failure, StoreError> {
    let reader = ItemReader { table: TABLE, item };
    let map_keys = reader.text_set("mapKeys")?.iter().map(|key| MapKey::from(key.as_str()));
    Ok(Failure { map_keys: map_keys.collect(), ..read_json(reader, "failure")? })
}
