//! Uploaded bundles: their state, the queue of those to assemble, and failures.

use std::collections::BTreeSet;
use std::time::Duration;

use aws_sdk_dynamodb::types::builders::{ConditionCheckBuilder, PutBuilder};
use serde::Serialize;
use shared::dynamodb::item::{Item, ItemReader, b, item_at, key, n, s, ss, time_key};
use shared::dynamodb::transaction::Transaction;
use shared::dynamodb::{Store, StoreError};
use shared::projects::project::{Organization, ProjectId};
use shared::timestamp::Timestamp;
use uuid::Uuid;

use super::{SourceMapStore, TABLE};
use crate::bundle::Checksum;

/// Time that a failure is shown.
const FAILURE_RETENTION: Duration = Duration::from_hours(30 * 24);
/// Failures that are shown.
const MAX_FAILURES: i32 = 20;
/// Bundles that the job reads at once.
const QUEUED_AT_ONCE: i32 = 20;
const QUEUE: &str = "assembly-queue";

/// An uploaded bundle, as the tool describes it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Upload {
    /// The organization of the chunks.
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
#[derive(Debug, Clone, PartialEq, Eq)]
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
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BundleRecord {
    /// The project.
    pub project: ProjectId,
    /// The upload.
    pub upload: Upload,
    /// The state.
    pub state: BundleState,
}

/// The exclusive right to assemble a bundle.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Lease {
    pub(super) id: Uuid,
    pub(super) checksum: Checksum,
    pub(super) release: Option<String>,
    pub(super) dist: Option<String>,
    pub(super) began: Timestamp,
}

/// A failed bundle, as people see it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Failure {
    /// The SHA-1 of the bundle.
    pub checksum: String,
    /// The release of the upload.
    pub release: Option<String>,
    /// The distribution of the upload.
    pub dist: Option<String>,
    /// The reason.
    pub detail: String,
    /// Time of the failure.
    pub failed_at: Timestamp,
    /// The stored form of the keys of its maps.
    #[serde(skip)]
    pub map_keys: BTreeSet<String>,
}

impl SourceMapStore<'_> {
    /// Returns a bundle of a project.
    pub async fn find_bundle(
        self,
        project: ProjectId,
        checksum: Checksum,
    ) -> Result<Option<BundleRecord>, StoreError> {
        let item = self.db.get(TABLE, key_of(project, checksum)).await?;
        item.as_ref().map(read).transpose()
    }

    /// Starts the assembly of a bundle, unless another invocation assembles it. A lease ends after
    /// `most`.
    pub async fn lease(
        self,
        project: ProjectId,
        upload: &Upload,
        id: Uuid,
        most: Duration,
        now: Timestamp,
    ) -> Result<Option<Lease>, StoreError> {
        let state = BundleState::Assembling(now.plus(most));
        let mut item = item_of(project, upload, &state);
        item.insert("lease".to_owned(), s(id));
        let put = self.put_unless_leased(item, now);
        let Upload { checksum, release, dist, .. } = upload.clone();
        let is_leased = self.db.write_if(put).await?;
        Ok(is_leased.then_some(Lease { id, checksum, release, dist, began: now }))
    }

    /// Queues a bundle for the job, unless an invocation assembles it.
    pub async fn queue_bundle(
        self,
        project: ProjectId,
        upload: &Upload,
        now: Timestamp,
    ) -> Result<(), StoreError> {
        let mut tx = Transaction::default();
        let item = item_of(project, upload, &BundleState::Queued);
        tx.add("bundle", self.put_unless_leased(item, now))?;
        let sk = format!("{project}#{}", upload.checksum);
        let entry =
            [("project", s(project)), ("checksum", s(upload.checksum)), ("at", n(now.as_millis()))];
        tx.add("queue", self.db.put(TABLE, item_at(key(QUEUE, &sk), entry)))?;
        match self.db.commit_all(tx).await? {
            Some(cancelled) if !cancelled.failed("bundle") => Err(cancelled.into_error()),
            _ => Ok(()),
        }
    }

    /// Returns bundles that wait for the job, with the time since when.
    pub async fn list_queued(self) -> Result<Vec<(ProjectId, Checksum, Timestamp)>, StoreError> {
        let query = self.db.query(TABLE).consistent_read(true);
        let query = query
            .key_condition_expression("pk = :pk")
            .expression_attribute_values(":pk", s(QUEUE))
            .limit(QUEUED_AT_ONCE);
        let items = query.send().await?.items.unwrap_or_default();
        let read = |item: &Item| {
            let reader = ItemReader { table: TABLE, item };
            let project = reader.parsed("project", ProjectId::parse)?;
            Ok((project, reader.parsed("checksum", Checksum::parse)?, reader.millis("at")?))
        };
        items.iter().map(read).collect()
    }

    /// Removes a bundle from the queue.
    pub async fn dequeue(self, project: ProjectId, checksum: Checksum) -> Result<(), StoreError> {
        self.db.delete_all(TABLE, vec![key(QUEUE, &format!("{project}#{checksum}"))]).await
    }

    /// Notes that all maps of a bundle are published.
    pub async fn finish(
        self,
        project: ProjectId,
        upload: &Upload,
        lease: &Lease,
    ) -> Result<(), StoreError> {
        self.end_lease(project, upload, lease, &BundleState::Assembled).await
    }

    /// Gives a lease back, so that the assembly can be tried again.
    pub async fn release(
        self,
        project: ProjectId,
        upload: &Upload,
        lease: &Lease,
    ) -> Result<(), StoreError> {
        self.end_lease(project, upload, lease, &BundleState::Assembling(lease.began)).await
    }

    /// Sets the state of a leased bundle, without the lease. If the bundle was removed, a map was
    /// replaced in the meantime.
    async fn end_lease(
        self,
        project: ProjectId,
        upload: &Upload,
        lease: &Lease,
        state: &BundleState,
    ) -> Result<(), StoreError> {
        let put = self.db.put(TABLE, item_of(project, upload, state));
        let put = put
            .condition_expression("lease = :lease")
            .expression_attribute_values(":lease", s(lease.id));
        self.db.write_if(put).await.map(drop)
    }

    fn put_unless_leased(self, item: Item, now: Timestamp) -> PutBuilder {
        let put = self.db.put(TABLE, item);
        put.condition_expression("attribute_not_exists(#until) OR #until < :now")
            .expression_attribute_names("#until", "until")
            .expression_attribute_values(":now", n(now.as_millis()))
    }

    /// Notes that the assembly of a bundle failed.
    pub async fn fail(
        self,
        project: ProjectId,
        upload: &Upload,
        detail: &str,
        map_keys: &BTreeSet<String>,
        now: Timestamp,
    ) -> Result<(), StoreError> {
        let state = BundleState::Failed { detail: detail.to_owned(), at: now };
        let mut tx = Transaction::default();
        tx.add("bundle", self.db.put(TABLE, item_of(project, upload, &state)))?;
        let mut failure = item_at(
            key(&failures_pk(project), &format!("{}#{}", time_key(now), upload.checksum)),
            [
                ("checksum", s(upload.checksum)),
                ("detail", s(detail)),
                ("failedAt", s(now)),
                ("expiresAt", n(now.plus(FAILURE_RETENTION).as_seconds())),
            ],
        );
        let optional = [
            ("release", upload.release.as_ref().map(s)),
            ("dist", upload.dist.as_ref().map(s)),
            ("mapKeys", ss(map_keys)),
        ];
        let optional = optional.into_iter().filter_map(|(name, it)| Some((name.to_owned(), it?)));
        failure.extend(optional);
        tx.add("failure", self.db.put(TABLE, failure))?;
        match self.db.commit_all(tx).await? {
            None => Ok(()),
            Some(cancelled) => Err(cancelled.into_error()),
        }
    }

    /// Returns the latest failures of a project, the newest first.
    pub async fn list_failures(
        self,
        project: ProjectId,
        now: Timestamp,
    ) -> Result<Vec<Failure>, StoreError> {
        let query = self.db.query(TABLE).scan_index_forward(false).consistent_read(true);
        let query = query
            .key_condition_expression("pk = :pk")
            .filter_expression("expiresAt > :now")
            .expression_attribute_values(":pk", s(failures_pk(project)))
            .expression_attribute_values(":now", n(now.as_seconds()))
            .limit(MAX_FAILURES);
        let items = query.send().await?.items.unwrap_or_default();
        items.iter().map(read_failure).collect()
    }
}

pub(super) fn bundles_pk(project: ProjectId) -> String {
    format!("bundles#{project}")
}

pub(super) fn failures_pk(project: ProjectId) -> String {
    format!("failures#{project}")
}

pub(super) fn key_of(project: ProjectId, checksum: Checksum) -> Item {
    key(&bundles_pk(project), &checksum.to_string())
}

/// Returns the condition that an invocation has the lease of a bundle.
pub(super) fn check(db: &Store, project: ProjectId, lease: &Lease) -> ConditionCheckBuilder {
    let check = db.check(TABLE, key_of(project, lease.checksum));
    check.condition_expression("lease = :lease").expression_attribute_values(":lease", s(lease.id))
}

fn item_of(project: ProjectId, upload: &Upload, state: &BundleState) -> Item {
    let name = match state {
        BundleState::Queued => "queued",
        BundleState::Assembling(_) => "assembling",
        BundleState::Assembled => "assembled",
        BundleState::Failed { .. } => "failed",
    };
    let mut item = item_at(
        key_of(project, upload.checksum),
        [
            ("project", s(project)),
            ("organization", s(&upload.organization)),
            ("chunks", b(&Checksum::to_bytes(&upload.chunks))),
            ("state", s(name)),
        ],
    );
    let mut put = |name: &str, value| drop(item.insert(name.to_owned(), value));
    if let Some(release) = &upload.release {
        put("release", s(release));
    }
    if let Some(dist) = &upload.dist {
        put("dist", s(dist));
    }
    match state {
        BundleState::Queued | BundleState::Assembled => {}
        BundleState::Assembling(until) => put("until", n(until.as_millis())),
        BundleState::Failed { detail, at } => {
            put("detail", s(detail));
            put("failedAt", s(at));
        }
    }
    item
}

pub(super) fn read(item: &Item) -> Result<BundleRecord, StoreError> {
    let reader = ItemReader { table: TABLE, item };
    let optional = |name| reader.optional_text(name).map(|it| it.map(str::to_owned));
    let state = match reader.text("state")? {
        "queued" => BundleState::Queued,
        "assembling" => {
            let until = reader.optional_millis("until")?;
            BundleState::Assembling(until.unwrap_or(Timestamp::from_millis(0)))
        }
        "assembled" => BundleState::Assembled,
        "failed" => BundleState::Failed {
            detail: reader.text("detail")?.to_owned(),
            at: reader.time("failedAt")?,
        },
        _ => return Err(reader.damaged("state")),
    };
    let upload = Upload {
        organization: reader.parsed("organization", |text| Organization::parse(text).ok())?,
        checksum: reader.parsed("sk", Checksum::parse)?,
        chunks: Checksum::from_bytes(reader.blob("chunks")?),
        release: optional("release")?,
        dist: optional("dist")?,
    };
    Ok(BundleRecord { project: reader.parsed("project", ProjectId::parse)?, upload, state })
}

fn read_failure(item: &Item) -> Result<Failure, StoreError> {
    let reader = ItemReader { table: TABLE, item };
    let optional = |name| reader.optional_text(name).map(|it| it.map(str::to_owned));
    Ok(Failure {
        checksum: reader.text("checksum")?.to_owned(),
        release: optional("release")?,
        dist: optional("dist")?,
        detail: reader.text("detail")?.to_owned(),
        failed_at: reader.time("failedAt")?,
        map_keys: reader.text_set("mapKeys")?.iter().cloned().collect(),
    })
}
