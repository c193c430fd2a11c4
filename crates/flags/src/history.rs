//! Flag history: one record per change (`docs/semantics/feature-flags.md`, "History").

use std::collections::BTreeMap;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use shared::audit::AuditAction;
use shared::projects::api_key::{KeyId, UserId};
use shared::timestamp::Timestamp;

use super::{FeatureFlag, Prerequisite, Rule, Serve, Target, Variant, VariantKey};

/// Retention of change records.
pub const RETENTION: Duration = Duration::from_hours(400 * 24);

/// The fields of a flag that changes list, in order. Other fields never change, or change with each
/// version.
const FIELDS: [&str; 12] = [
    "key",
    "name",
    "description",
    "type",
    "enabled",
    "archivedAt",
    "variants",
    "offVariant",
    "fallthrough",
    "rules",
    "targets",
    "prerequisites",
];

shared::named_enum! {
    /// The kind of a change.
    #[derive(Debug, Clone, Copy, PartialEq, Eq)]
    pub enum ChangeKind {
        /// The flag was created.
        Created = "created",
        /// The flag was changed.
        Updated = "updated",
        /// The flag was archived, perhaps with other changes.
        Archived = "archived",
        /// The flag was unarchived, perhaps with other changes.
        Unarchived = "unarchived",
        /// An earlier version was restored.
        Restored = "restored",
    }
}

impl ChangeKind {
    /// Returns the action of the change in the audit log.
    pub fn audit_action(self) -> AuditAction {
        match self {
            Self::Created => AuditAction::FlagCreated,
            Self::Updated => AuditAction::FlagUpdated,
            Self::Archived => AuditAction::FlagArchived,
            Self::Unarchived => AuditAction::FlagUnarchived,
            Self::Restored => AuditAction::FlagRestored,
        }
    }

    /// Returns the kind of a change that is not a restoration.
    pub fn of(stored: &FeatureFlag, flag: &FeatureFlag) -> Self {
        match (stored.archived_at, flag.archived_at) {
            (None, Some(_)) => Self::Archived,
            (Some(_), None) => Self::Unarchived,
            _ => Self::Updated,
        }
    }
}

/// A flag change, with the fields of `openapi.yaml` in the same order.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct FlagChange {
    /// The version that the change created.
    pub version: u64,
    /// Time of the change.
    pub at: Timestamp,
    /// The user who made the change; `None` for the command.
    pub user: Option<UserId>,
    /// The API key that made the change; `None` for the command.
    pub key_id: Option<KeyId>,
    /// The kind of the change.
    pub kind: ChangeKind,
    /// The changed fields, in the order of a flag's fields.
    pub changes: Vec<MemberChange>,
}

/// A changed field of a flag.
#[derive(Debug, Serialize)]
pub struct MemberChange {
    /// The field's name.
    pub member: &'static str,
    /// The previous value; null for a new flag.
    pub from: Option<Box<RawValue>>,
    /// The new value.
    pub to: Option<Box<RawValue>>,
}

type Members = BTreeMap<String, Box<RawValue>>;

/// The stored record of a change: the whole flag after it, and the previous values of the changed
/// fields. Each record is complete even if others have expired.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct ChangeRecord {
    flag: Members,
    /// `None` for a new flag.
    before: Option<Members>,
}

impl ChangeRecord {
    /// Returns the record of a change from `stored` (`None` for a new flag) to `flag`.
    pub(super) fn of(stored: Option<&FeatureFlag>, flag: &FeatureFlag) -> serde_json::Result<Self> {
        let flag = members(flag)?;
        let mut before = stored.map(members).transpose()?;
        if let Some(before) = &mut before {
            before.retain(|name, value| flag.get(name).is_none_or(|it| it.get() != value.get()));
        }
        Ok(Self { flag, before })
    }

    /// Returns the changed fields. For a new flag, returns all fields with a value.
    pub(super) fn changes(&self) -> Vec<MemberChange> {
        let value = |members: &Members, name| {
            members.get(name).filter(|value| value.get() != "null").cloned()
        };
        let change = |member: &'static str| {
            let to = value(&self.flag, member);
            let from = match &self.before {
                None if to.is_none() => return None,
                None => None,
                Some(before) if before.contains_key(member) => value(before, member),
                Some(_) => return None,
            };
            Some(MemberChange { member, from, to })
        };
        FIELDS.into_iter().filter_map(change).collect()
    }

    /// Returns the restorable part of the flag after the change.
    pub(super) fn state(&self) -> serde_json::Result<FlagState> {
        serde_json::from_str(&serde_json::to_string(&self.flag)?)
    }
}

fn members(flag: &FeatureFlag) -> serde_json::Result<Members> {
    let mut members: Members = serde_json::from_str(&serde_json::to_string(flag)?)?;
    members.retain(|name, _| FIELDS.contains(&name.as_str()));
    Ok(members)
}

/// The part of a flag that can be restored: all fields that can change, except whether it is
/// archived.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct FlagState {
    name: String,
    description: String,
    enabled: bool,
    variants: Vec<Variant>,
    // Without this attribute, serde would read a missing field as null.
    #[serde(deserialize_with = "Option::deserialize")]
    off_variant: Option<VariantKey>,
    fallthrough: Serve,
    rules: Vec<Rule>,
    targets: Vec<Target>,
    prerequisites: Vec<Prerequisite>,
}

impl FlagState {
    /// Returns the flag restored to this state at `now`. If anything differs, the version is
    /// incremented.
    pub fn restored(self, flag: &FeatureFlag, now: Timestamp) -> FeatureFlag {
        let restored = FeatureFlag {
            name: self.name,
            description: self.description,
            enabled: self.enabled,
            variants: self.variants,
            off_variant: self.off_variant,
            fallthrough: self.fallthrough,
            rules: self.rules,
            targets: self.targets,
            prerequisites: self.prerequisites,
            ..flag.clone()
        };
        restored.with_version_after(flag, now)
    }
}

#[cfg(test)]
mod tests;
