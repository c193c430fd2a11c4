//! Table `feature-flags`: creates, finds and lists flags. [`super::items`] describes the items.

use std::collections::{BTreeSet, HashSet};

use notifications::store::NotificationStore;
use shared::audit::AuditEntry;
use shared::dynamodb::StoreError;
use shared::dynamodb::idempotency::{Idempotent, Replay};
use shared::dynamodb::item::{Item, ItemReader, s};
use shared::dynamodb::page::one_more_than;
use shared::dynamodb::transaction::{Transaction, TransactionOutcome};
use shared::idempotency::{IdempotentRequest, StoredResponse};
use shared::json::Violations;
use shared::page::{Page, PageRequest};
use shared::projects::project::ProjectId;

use super::FlagStore;
use super::history::VersionedChange;
use super::items::{CounterUpdate, FIRST_FLAG, ProjectChange, TABLE, key, read_flag};
use super::prerequisites::{
    ChainGuard, ViolationSource, dependencies_among, prerequisite_violations,
};
use super::segments::{SegmentUsageDelta, unknown_segments};
use crate::history::ChangeKind;
use crate::{FeatureFlag, FlagKey, ProjectLimit};

/// Outcome of a flag creation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FlagCreation {
    /// The stored flag.
    Created(Box<FeatureFlag>),
    /// The project has a flag with this key, perhaps an archived one.
    KeyTaken,
    /// The project would exceed this limit.
    LimitReached(ProjectLimit),
    /// Prerequisites or segments are missing or not allowed. Each violation has its place in the
    /// body.
    InvalidReferences(Violations),
    /// The idempotency key was used before.
    Replay(Replay),
}

/// The flags that a list includes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ListedFlags {
    /// Unarchived flags.
    Live,
    /// All flags.
    All,
}

/// Maximum attempts at a creation. A reused key takes a second attempt, changing prerequisites take
/// more.
const MAX_ATTEMPTS: u32 = 5;
/// Maximum queries per page of live flags. After that, the page is returned as it is.
const MAX_QUERIES: u32 = 10;

impl FlagStore<'_> {
    /// Returns the keys of existing flags, including archived and unreadable ones. Strongly
    /// consistent.
    pub async fn existing_flags(
        self,
        project: ProjectId,
        keys: &[String],
    ) -> Result<HashSet<String>, StoreError> {
        let places = keys.iter().map(|flag| key(project, flag)).collect();
        let items = self.db.get_all(TABLE, places).await?;
        let read = |item: &Item| Ok(ItemReader { table: TABLE, item }.text("key")?.to_owned());
        items.iter().map(read).collect()
    }

    /// Stores a new flag with its first history record and audit entry, announces it, and stores the
    /// response if the request has an idempotency key.
    ///
    /// One transaction checks that the key is free, that the project stays within its limits, and
    /// that all prerequisites and segments exist. It is the only round trip, with two exceptions.
    /// If a prerequisite fails its check or has prerequisites itself, the chains are read. If a
    /// deleted flag had the key, a second transaction marks the new flag as a successor. `respond`
    /// returns the response to store.
    pub async fn create_flag<E: From<StoreError>>(
        self,
        mut flag: FeatureFlag,
        entry: &AuditEntry,
        request: Option<&IdempotentRequest>,
        respond: impl Fn(&FeatureFlag) -> Result<StoredResponse, E>,
    ) -> Result<FlagCreation, E> {
        let mut guard = ChainGuard::Leaves;
        let uses = SegmentUsageDelta::between(&BTreeSet::new(), &flag.segments());
        for _ in 0..MAX_ATTEMPTS {
            let response = request.map(|_| respond(&flag)).transpose()?;
            let idempotent = Idempotent::of(request, response.as_ref());
            let project = project_change(&flag, guard);
            let transaction = self.creation_of_flag(&flag, guard, project, &uses, entry)?;
            let commit = self.db.commit(transaction, idempotent, flag.created_at);
            let cancelled = match commit.await? {
                TransactionOutcome::Done => return Ok(FlagCreation::Created(Box::new(flag))),
                TransactionOutcome::Replay(replay) => return Ok(FlagCreation::Replay(replay)),
                TransactionOutcome::Rejected(cancelled) => cancelled,
            };
            if cancelled.failed("never freed") {
                flag.is_successor = true;
                continue;
            }
            let mut violations = unknown_segments(&flag, &uses.missing(&cancelled));
            let limit = project.limit_reached(&cancelled)?;
            let must_read_chains = cancelled.failed("prerequisite")
                || (cancelled.failed("project") && limit.is_none());
            if must_read_chains {
                let (revision, invalid) = self.check_prerequisites(&flag).await?;
                violations.append(invalid);
                guard = ChainGuard::ReadAt(revision);
            }
            if !violations.is_empty() {
                return Ok(FlagCreation::InvalidReferences(violations));
            } else if must_read_chains {
                // Try again with the chains: the prerequisites can be valid and have prerequisites
                // themselves.
            } else if cancelled.failed("flag") {
                return Ok(FlagCreation::KeyTaken);
            } else if let Some(limit) = limit {
                return Ok(FlagCreation::LimitReached(limit));
            } else {
                return Err(cancelled.into_error().into());
            }
        }
        Err(StoreError::Contended("prerequisites kept changing".into()).into())
    }

    fn creation_of_flag(
        self,
        flag: &FeatureFlag,
        guard: ChainGuard,
        project: ProjectChange,
        uses: &SegmentUsageDelta,
        entry: &AuditEntry,
    ) -> Result<Transaction, StoreError> {
        let mut transaction = Transaction::default();
        transaction.add("flag", self.put_flag(flag, None)?)?;
        transaction.add("project", self.change_project(flag.project_id, project)?)?;
        for prerequisite in &flag.prerequisites {
            let check = self.require(flag.project_id, prerequisite, guard)?;
            transaction.add("prerequisite", check)?;
        }
        self.count_uses(flag.project_id, uses, &mut transaction)?;
        let author = &entry.actor;
        let change = VersionedChange { stored: None, flag, kind: ChangeKind::Created, author };
        transaction.add("history", self.record_change(change)?)?;
        let domain_event = flag.changed(None, ChangeKind::Created, author);
        transaction
            .add("announcement", NotificationStore::new(self.db).announce(&domain_event)?)?;
        transaction.add("audit", self.db.audit(entry)?)?;
        if !flag.is_successor {
            let check = self.require_never_freed(flag.project_id, flag.key.as_str())?;
            transaction.add("never freed", check)?;
        }
        Ok(transaction)
    }

    /// Reads the chains that start at a new flag's prerequisites. Returns the revision of the
    /// project's prerequisites and the violations. No chain can lead to the flag, since no flag
    /// depends on one that does not exist yet.
    async fn check_prerequisites(
        self,
        flag: &FeatureFlag,
    ) -> Result<(i64, Violations), StoreError> {
        let revision = self.prerequisites_revision(flag.project_id).await?;
        let links = self.read_links(flag.project_id, &flag.prerequisites).await?;
        let dependencies = dependencies_among(&links);
        Ok((
            revision,
            prerequisite_violations(flag, &links, &dependencies, ViolationSource::Prerequisites),
        ))
    }

    /// Returns a flag by its key, archived or not. Strongly consistent, so that completed writes
    /// are visible and the next write can build on the flag.
    pub async fn find_flag(
        self,
        project: ProjectId,
        flag: &FlagKey,
    ) -> Result<Option<FeatureFlag>, StoreError> {
        let found = self.db.get(TABLE, key(project, flag.as_str())).await?;
        found.as_ref().map(|item| read_flag(project, item)).transpose()
    }

    /// Returns a project's flags, sorted by key. Strongly consistent. A page ends early if its
    /// flags are very large, or if there are very many archived flags between them.
    pub async fn list_flags(
        self,
        project: ProjectId,
        listed: ListedFlags,
        page_request: &PageRequest,
    ) -> Result<Page<FeatureFlag>, StoreError> {
        let limit = one_more_than(page_request.limit);
        let wanted = usize::try_from(limit).unwrap_or(usize::MAX);
        let mut items: Vec<Item> = Vec::new();
        let mut start = page_request.after.as_ref().map(|after| key(project, after));
        for _ in 0..MAX_QUERIES {
            let mut query = self
                .db
                .query(TABLE)
                .consistent_read(true)
                .key_condition_expression("projectId = :project AND #key >= :first")
                .expression_attribute_names("#key", "key")
                .expression_attribute_values(":project", s(project))
                .expression_attribute_values(":first", s(FIRST_FLAG))
                .set_exclusive_start_key(start.take())
                .limit(limit);
            if listed == ListedFlags::Live {
                query = query.filter_expression("attribute_not_exists(archivedAt)");
            }
            let output = query.send().await?;
            items.extend(output.items.unwrap_or_default());
            start = output.last_evaluated_key;
            // DynamoDB stopped at its size limit: flags this large fill a page.
            if start.is_none() || items.len() >= wanted || output.scanned_count < limit {
                break;
            }
        }
        // Pages end at the stored text, which can be an invalid key.
        let end_of = |item: &Item| ItemReader { table: TABLE, item }.text("key").map(str::to_owned);
        let read = |item: &Item| read_flag(project, item);
        let none_found = items.is_empty();
        let mut page = self.db.page(items, start.is_some(), page_request.limit, end_of, read)?;
        if let (true, Some(start)) = (none_found, &start) {
            page.end = Some(end_of(start)?);
        }
        Ok(page)
    }
}

/// Returns the change of the project's item for a new flag.
fn project_change(flag: &FeatureFlag, guard: ChainGuard) -> ProjectChange {
    ProjectChange {
        live_flags: CounterUpdate::OneMore,
        bytes: flag.project_bytes(),
        prerequisites_change: !flag.prerequisites.is_empty(),
        only_at_revision: match guard {
            ChainGuard::Leaves => None,
            ChainGuard::ReadAt(revision) => Some(revision),
        },
        ..ProjectChange::default()
    }
}
