//! Table `feature-flags`: updates and deletes flags.
//!
//! A flag is written only if it is unchanged since it was read. If the change affects dependent
//! flags or adds prerequisites, the same transaction checks these.

use std::collections::BTreeSet;

use notifications::store::NotificationStore;
use shared::audit::AuditEntry;
use shared::dynamodb::StoreError;
use shared::dynamodb::item::s;
use shared::dynamodb::transaction::Transaction;
use shared::json::Violations;
use shared::timestamp::Timestamp;

use super::FlagStore;
use super::history::VersionedChange;
use super::items::{CounterUpdate, ProjectChange, TABLE, key, version_number};
use super::prerequisites::{ChainGuard, ViolationSource, prerequisite_violations};
use super::segments::{SegmentUsageDelta, unknown_segments};
use crate::history::ChangeKind;
use crate::{Dependencies, FeatureFlag, FlagKey, Prerequisite, ProjectLimit, VariantKey};

/// Outcome of a flag update.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FlagReplacement {
    /// Stored.
    Done,
    /// Not stored: the flag or the dependencies changed after they were read.
    Outdated,
    /// Not stored: the project would exceed this limit.
    LimitReached(ProjectLimit),
    /// Not stored: prerequisites or segments are missing or not allowed. Each violation has its
    /// place in the body.
    InvalidReferences(Violations),
    /// Not stored: these flags depend on something that the update removes.
    InUse(Vec<FlagKey>),
}

/// Outcome of a flag deletion.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FlagDeletion {
    /// Deleted.
    Done,
    /// Not deleted: the flag changed after it was read.
    Outdated,
}

/// The impact of a change on other flags.
struct DependencyImpact {
    live_flags: CounterUpdate,
    /// `true` if the flag's prerequisites change.
    prerequisites_change: bool,
    /// `true` if the flag gets a new prerequisite.
    adds_prerequisites: bool,
    /// `true` if a variant is lost that other flags can require.
    loses_variants: bool,
}

impl DependencyImpact {
    fn of(stored: &FeatureFlag, flag: &FeatureFlag) -> Self {
        let (before, after) = (active_prerequisites(stored), active_prerequisites(flag));
        let is_lost = |key: &VariantKey| lost(flag, key);
        Self {
            live_flags: match (stored.archived_at, flag.archived_at) {
                (Some(_), None) => CounterUpdate::OneMore,
                (None, Some(_)) => CounterUpdate::OneLess,
                _ => CounterUpdate::Same,
            },
            prerequisites_change: before != after,
            adds_prerequisites: after.iter().any(|it| !before.contains(it)),
            loses_variants: stored.archived_at.is_none()
                && stored.variants.iter().any(|variant| is_lost(&variant.key)),
        }
    }

    /// `true` if the change must be checked against the dependencies between the project's flags.
    fn needs_dependencies(&self) -> bool {
        self.adds_prerequisites || self.loses_variants
    }
}

/// Returns the prerequisites of a flag; an archived flag has none.
fn active_prerequisites(flag: &FeatureFlag) -> &[Prerequisite] {
    if flag.archived_at.is_none() { &flag.prerequisites } else { &[] }
}

/// `true` if a flag can no longer serve this variant.
fn lost(flag: &FeatureFlag, variant: &VariantKey) -> bool {
    flag.archived_at.is_some() || flag.variants.iter().all(|it| it.key != *variant)
}

impl FlagStore<'_> {
    /// Replaces a flag that is unchanged since it was read, records the change and announces it.
    /// One round trip, plus reads of the dependencies if the change affects them.
    pub async fn replace_flag(
        self,
        stored: &FeatureFlag,
        flag: &FeatureFlag,
        kind: ChangeKind,
        entry: &AuditEntry,
    ) -> Result<FlagReplacement, StoreError> {
        let impact = DependencyImpact::of(stored, flag);
        let mut project = ProjectChange {
            live_flags: impact.live_flags,
            bytes: flag.project_bytes() - stored.project_bytes(),
            prerequisites_change: impact.prerequisites_change,
            ..ProjectChange::default()
        };
        let mut transaction = Transaction::default();
        transaction.add("flag", self.put_flag(flag, Some(stored))?)?;
        if impact.needs_dependencies() {
            let revision = self.prerequisites_revision(flag.project_id).await?;
            if let Some(rejection) = self.rejection(stored, flag, &impact, revision).await? {
                return Ok(rejection);
            }
            project.only_at_revision = Some(revision);
            if impact.adds_prerequisites {
                for prerequisite in &flag.prerequisites {
                    let guard = ChainGuard::ReadAt(revision);
                    let check = self.require(flag.project_id, prerequisite, guard)?;
                    transaction.add("prerequisite", check)?;
                }
            }
        }
        transaction.add("project", self.change_project(flag.project_id, project)?)?;
        let uses = SegmentUsageDelta::between(&stored.segments(), &flag.segments());
        self.count_uses(flag.project_id, &uses, &mut transaction)?;
        let author = &entry.actor;
        let change = VersionedChange { stored: Some(stored), flag, kind, author };
        transaction.add("history", self.record_change(change)?)?;
        let domain_event = flag.changed(Some(stored), kind, author);
        transaction
            .add("announcement", NotificationStore::new(self.db).announce(&domain_event)?)?;
        transaction.add("audit", self.db.audit(entry)?)?;
        let Some(cancelled) = self.db.commit_all(transaction).await? else {
            return Ok(FlagReplacement::Done);
        };
        if cancelled.failed("flag") {
            return Ok(FlagReplacement::Outdated);
        }
        let missing = uses.missing(&cancelled);
        if !missing.is_empty() {
            return Ok(FlagReplacement::InvalidReferences(unknown_segments(flag, &missing)));
        }
        let limit = project.limit_reached(&cancelled)?;
        Ok(limit.map_or(FlagReplacement::Outdated, FlagReplacement::LimitReached))
    }

    /// Returns the reason to reject a change at this revision of the project's prerequisites.
    async fn rejection(
        self,
        stored: &FeatureFlag,
        flag: &FeatureFlag,
        impact: &DependencyImpact,
        revision: i64,
    ) -> Result<Option<FlagReplacement>, StoreError> {
        let dependencies = match revision {
            // No flag has ever had prerequisites.
            0 => Dependencies::default(),
            _ => self.read_dependencies(flag.project_id).await?,
        };
        if impact.adds_prerequisites {
            let source = if stored.prerequisites == flag.prerequisites {
                ViolationSource::Archived
            } else {
                ViolationSource::Prerequisites
            };
            let keys: Vec<FlagKey> =
                flag.prerequisites.iter().map(|it| it.flag_key.clone()).collect();
            let links = self.read_links_of(flag.project_id, &keys).await?;
            let violations = prerequisite_violations(flag, &links, &dependencies, source);
            if !violations.is_empty() {
                return Ok(Some(FlagReplacement::InvalidReferences(violations)));
            }
        }
        if impact.loses_variants {
            let dependents = dependencies.dependents_of(&flag.key, |variant| lost(flag, variant));
            if !dependents.is_empty() {
                return Ok(Some(FlagReplacement::InUse(dependents)));
            }
        }
        Ok(None)
    }

    /// Deletes an archived flag that is unchanged since it was read, and announces the deletion. No
    /// flag depends on it: a flag with dependents cannot be archived, and an archived flag cannot
    /// become a prerequisite.
    ///
    /// The flag's history becomes unreachable and expires. Its key is marked as freed, which
    /// distinguishes later flags with this key.
    pub async fn delete_flag(
        self,
        stored: &FeatureFlag,
        entry: &AuditEntry,
        now: Timestamp,
    ) -> Result<FlagDeletion, StoreError> {
        let delete = self
            .db
            .delete(TABLE, key(stored.project_id, stored.key.as_str()))
            .condition_expression(
                "id = :id AND version = :version AND attribute_exists(archivedAt)",
            )
            .expression_attribute_values(":id", s(stored.id))
            .expression_attribute_values(":version", version_number(stored.version));
        let change = ProjectChange { bytes: -stored.project_bytes(), ..ProjectChange::default() };
        let project = self.change_project(stored.project_id, change)?;
        let mut transaction = Transaction::default();
        transaction.add("flag", delete)?;
        transaction.add("project", project)?;
        let uses = SegmentUsageDelta::between(&stored.segments(), &BTreeSet::new());
        self.count_uses(stored.project_id, &uses, &mut transaction)?;
        transaction.add("history", self.record_deletion(stored, &entry.actor, now)?)?;
        let domain_event = stored.deleted(&entry.actor, now);
        transaction
            .add("announcement", NotificationStore::new(self.db).announce(&domain_event)?)?;
        transaction.add("audit", self.db.audit(entry)?)?;
        transaction.add("freed", self.mark_freed(stored.project_id, stored.key.as_str())?)?;
        let cancelled = self.db.commit_all(transaction).await?;
        Ok(if cancelled.is_none() { FlagDeletion::Done } else { FlagDeletion::Outdated })
    }
}
