//! What became of a flag, change by change (`docs/semantics/feature-flags.md`, "History").

use std::collections::BTreeMap;
use std::time::Duration;

use serde::de::IntoDeserializer;
use serde::de::value::{self, StrDeserializer};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use shared::projects::api_key::{KeyId, UserId};
use shared::timestamp::Timestamp;

use super::{FeatureFlag, Prerequisite, Rule, Serve, Target, Variant, VariantKey};

/// How long a change is remembered.
pub const RETENTION: Duration = Duration::from_hours(400 * 24);

/// The members of a flag that changes are told of, in their order. What is left out never changes, or with
/// every change.
const MEMBERS: [&str; 12] = [
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

/// What a change did to a flag.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ChangeKind {
    /// It was made.
    Created,
    /// It was changed.
    Updated,
    /// It was archived, perhaps with other changes.
    Archived,
    /// It was brought back, perhaps with other changes.
    Unarchived,
    /// It became again what it was in an earlier version.
    Restored,
}

impl ChangeKind {
    /// The kind of this name.
    pub(super) fn parse(name: &str) -> Option<Self> {
        let name: StrDeserializer<'_, value::Error> = name.into_deserializer();
        Self::deserialize(name).ok()
    }

    /// Its name.
    pub(super) fn as_str(self) -> &'static str {
        match self {
            Self::Created => "created",
            Self::Updated => "updated",
            Self::Archived => "archived",
            Self::Unarchived => "unarchived",
            Self::Restored => "restored",
        }
    }

    /// What a change does that restores nothing.
    pub fn of(stored: &FeatureFlag, flag: &FeatureFlag) -> Self {
        match (stored.archived_at, flag.archived_at) {
            (None, Some(_)) => Self::Archived,
            (Some(_), None) => Self::Unarchived,
            _ => Self::Updated,
        }
    }
}

/// A change of a flag, with the members of `openapi.yaml` in their order.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct FlagChange {
    /// The version that it made.
    pub version: u64,
    /// When it was made.
    pub at: Timestamp,
    /// Who made it; `None` for the command.
    pub user: Option<UserId>,
    /// The API key with which it was made; `None` for the command.
    pub key_id: Option<KeyId>,
    /// What it did.
    pub kind: ChangeKind,
    /// What was different afterwards, in the order of a flag's members.
    pub changes: Vec<MemberChange>,
}

/// A member of a flag that is another after a change.
#[derive(Debug, Serialize)]
pub struct MemberChange {
    /// Its name.
    pub member: &'static str,
    /// Its value before; null for a new flag.
    pub from: Option<Box<RawValue>>,
    /// Its value afterwards.
    pub to: Option<Box<RawValue>>,
}

type Members = BTreeMap<String, Box<RawValue>>;

/// What is kept of a change: the flag as it was afterwards, whole, and what was different before. So each
/// entry tells its change by itself, whichever others have expired.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct ChangeRecord {
    flag: Members,
    /// `None` for a new flag.
    before: Option<Members>,
}

impl ChangeRecord {
    /// The record of a change that made `flag` of what was stored; of nothing if the flag is new.
    pub(super) fn of(stored: Option<&FeatureFlag>, flag: &FeatureFlag) -> serde_json::Result<Self> {
        let flag = members(flag)?;
        let mut before = stored.map(members).transpose()?;
        if let Some(before) = &mut before {
            before.retain(|name, value| flag.get(name).is_none_or(|it| it.get() != value.get()));
        }
        Ok(Self { flag, before })
    }

    /// What was different afterwards. Of a new flag, all that it has.
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
        MEMBERS.into_iter().filter_map(change).collect()
    }

    /// The flag as it was, as far as it can be again.
    pub(super) fn state(&self) -> serde_json::Result<FlagState> {
        serde_json::from_str(&serde_json::to_string(&self.flag)?)
    }
}

fn members(flag: &FeatureFlag) -> serde_json::Result<Members> {
    let mut members: Members = serde_json::from_str(&serde_json::to_string(flag)?)?;
    members.retain(|name, _| MEMBERS.contains(&name.as_str()));
    Ok(members)
}

/// What of a flag can be restored: all that a change can be of, but whether it is archived.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct FlagState {
    name: String,
    description: String,
    enabled: bool,
    variants: Vec<Variant>,
    // With a function of its own, a member that is missing is not taken for null.
    #[serde(deserialize_with = "Option::deserialize")]
    off_variant: Option<VariantKey>,
    fallthrough: Serve,
    rules: Vec<Rule>,
    targets: Vec<Target>,
    prerequisites: Vec<Prerequisite>,
}

impl FlagState {
    /// The flag as it is when it becomes this again at `now`. Its version is one more than before if
    /// anything is different, else the same.
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
        restored.numbered_after(flag, now)
    }
}

#[cfg(test)]
mod tests;
