//! Table `feature-flags`: changing and deleting flags.
//!
//! A flag is put on the condition that it still is as it was read. Where a change touches what other
//! flags rest on, or what the flag rests on, that is checked by the same transaction.

use std::collections::BTreeSet;

use notifications::store::NotificationStore;
use shared::dynamodb::StoreError;
use shared::dynamodb::item::s;
use shared::dynamodb::transaction::Transaction;
use shared::json::Violations;
use shared::projects::api_key::Actor;
use shared::timestamp::Timestamp;

use super::FlagStore;
use super::history::VersionedChange;
use super::items::{CounterUpdate, ProjectChange, TABLE, key, version_number};
use super::prerequisites::{ChainGuard, ViolationSource, refusals};
use super::segments::{SegmentUsageDelta, unknown_segments};
use crate::history::ChangeKind;
use crate::{Dependencies, FeatureFlag, FlagKey, Prerequisite, ProjectLimit, VariantKey};

/// What became of a change of a flag.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FlagReplacement {
    /// It is stored.
    Done,
    /// It is not stored: the flag, or what the change rests on, is not as it was read.
    Outdated,
    /// It is not stored: the project would have more than it may have.
    LimitReached(ProjectLimit),
    /// It is not stored: it names flags and segments that do not fit what the project has, by their
    /// place in the body.
    ReferencesRefused(Violations),
    /// It is not stored: these flags depend on what it takes away.
    InUse(Vec<FlagKey>),
}

/// What became of the deletion of a flag.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FlagDeletion {
    /// It is gone.
    Done,
    /// It is there: it is not as it was read.
    Outdated,
}

/// What a change means for other flags.
struct DependencyImpact {
    live_flags: CounterUpdate,
    /// Whether what the flag depends on changes.
    prerequisites_change: bool,
    /// Whether it depends on anything that it did not depend on before.
    adds_prerequisites: bool,
    /// Whether anything is taken away that other flags may depend on.
    loses_variants: bool,
}

impl DependencyImpact {
    fn of(stored: &FeatureFlag, flag: &FeatureFlag) -> Self {
        let (before, after) = (prerequisites_in_force(stored), prerequisites_in_force(flag));
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

    /// Whether the change rests on how the project's flags depend on each other.
    fn rests_on_dependencies(&self) -> bool {
        self.adds_prerequisites || self.loses_variants
    }
}

/// An archived flag depends on nothing.
fn prerequisites_in_force(flag: &FeatureFlag) -> &[Prerequisite] {
    if flag.archived_at.is_none() { &flag.prerequisites } else { &[] }
}

/// Whether a flag cannot become this variant any more.
fn lost(flag: &FeatureFlag, variant: &VariantKey) -> bool {
    flag.archived_at.is_some() || flag.variants.iter().all(|it| it.key != *variant)
}

impl FlagStore<'_> {
    /// Replaces a flag that is still as it was read, adds to its history, and announces it. A change that concerns
    /// no other flag is one round trip; one that others may depend on reads how they do.
    pub async fn replace_flag(
        self,
        stored: &FeatureFlag,
        flag: &FeatureFlag,
        kind: ChangeKind,
        author: &Actor,
    ) -> Result<FlagReplacement, StoreError> {
        let effect = DependencyImpact::of(stored, flag);
        let mut project = ProjectChange {
            live_flags: effect.live_flags,
            bytes: flag.project_bytes() - stored.project_bytes(),
            prerequisites_change: effect.prerequisites_change,
            ..ProjectChange::default()
        };
        let mut transaction = Transaction::default();
        transaction.add("flag", self.put_flag(flag, Some(stored))?)?;
        if effect.rests_on_dependencies() {
            let state = self.prerequisites_state(flag.project_id).await?;
            if let Some(refused) = self.refuse(stored, flag, &effect, state).await? {
                return Ok(refused);
            }
            project.only_at_state = Some(state);
            if effect.adds_prerequisites {
                for prerequisite in &flag.prerequisites {
                    let guard = ChainGuard::ReadAt(state);
                    let check = self.require(flag.project_id, prerequisite, guard)?;
                    transaction.add("prerequisite", check)?;
                }
            }
        }
        transaction.add("project", self.change_project(flag.project_id, project)?)?;
        let uses = SegmentUsageDelta::between(&stored.segments(), &flag.segments());
        self.count_uses(flag.project_id, &uses, &mut transaction)?;
        let change = VersionedChange { stored: Some(stored), flag, kind, author };
        transaction.add("history", self.record_change(change)?)?;
        let domain_event = flag.changed(Some(stored), kind, author);
        transaction
            .add("announcement", NotificationStore::new(self.db).announce(&domain_event)?)?;
        let Some(cancelled) = self.db.commit_all(transaction).await? else {
            return Ok(FlagReplacement::Done);
        };
        if cancelled.failed("flag") {
            return Ok(FlagReplacement::Outdated);
        }
        let missing = uses.missing(&cancelled);
        if !missing.is_empty() {
            return Ok(FlagReplacement::ReferencesRefused(unknown_segments(flag, &missing)));
        }
        let limit = project.limit_reached(&cancelled)?;
        Ok(limit.map_or(FlagReplacement::Outdated, FlagReplacement::LimitReached))
    }

    /// Why a change is not possible in a state of the project's prerequisites.
    async fn refuse(
        self,
        stored: &FeatureFlag,
        flag: &FeatureFlag,
        effect: &DependencyImpact,
        state: i64,
    ) -> Result<Option<FlagReplacement>, StoreError> {
        let dependencies = match state {
            // No flag has ever depended on another.
            0 => Dependencies::default(),
            _ => self.read_dependencies(flag.project_id).await?,
        };
        if effect.adds_prerequisites {
            let blamed = if stored.prerequisites == flag.prerequisites {
                ViolationSource::Archived
            } else {
                ViolationSource::Prerequisites
            };
            let keys: Vec<FlagKey> =
                flag.prerequisites.iter().map(|it| it.flag_key.clone()).collect();
            let links = self.read_links_of(flag.project_id, &keys).await?;
            let violations = refusals(flag, &links, &dependencies, blamed);
            if !violations.is_empty() {
                return Ok(Some(FlagReplacement::ReferencesRefused(violations)));
            }
        }
        if effect.loses_variants {
            let dependents = dependencies.dependents_of(&flag.key, |variant| lost(flag, variant));
            if !dependents.is_empty() {
                return Ok(Some(FlagReplacement::InUse(dependents)));
            }
        }
        Ok(None)
    }

    /// Deletes an archived flag that is still as it was read, and announces that. Nothing depends on it: what
    /// others depend on cannot be archived, and nothing can come to depend on what is. Its history leads nowhere
    /// from then on, and expires. Its key is marked: whoever has it next is told from it.
    pub async fn delete_flag(
        self,
        stored: &FeatureFlag,
        author: &Actor,
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
        let domain_event = stored.deleted(author, now);
        transaction
            .add("announcement", NotificationStore::new(self.db).announce(&domain_event)?)?;
        transaction.add("freed", self.mark_freed(stored.project_id, stored.key.as_str())?)?;
        let cancelled = self.db.commit_all(transaction).await?;
        Ok(if cancelled.is_none() { FlagDeletion::Done } else { FlagDeletion::Outdated })
    }
}
