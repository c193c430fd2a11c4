//! Items of the table `feature-flags`, key `projectId` / `key`: each flag is one item;
//! [`super::segments`] describes segments.
//!
//! The item with the key `#` belongs to the project (flag keys start with a letter or digit). It
//! stores:
//!
//! - the revision of the project's flags, so that one small read shows whether any flag has changed
//! - the number of live flags, the number of segments and their total size
//! - the revision of the prerequisites, so that a write detects whether a chain changed after it
//!   was read

use aws_sdk_dynamodb::types::builders::PutBuilder;
use aws_sdk_dynamodb::types::{
    AttributeValue, ReturnValuesOnConditionCheckFailure, TransactWriteItem,
};
use uuid::Uuid;

use shared::dynamodb::item::{Item, ItemReader, item, item_at, n, s, ss};
use shared::dynamodb::request::IntoAction;
use shared::dynamodb::transaction::Cancellation;
use shared::dynamodb::{Cause, StoreError};
use shared::projects::project::ProjectId;
use shared::timestamp::Timestamp;

use super::FlagStore;
use crate::definition::Definition;
use crate::project_limit::signed;
use crate::segment::MAX_SEGMENTS;
use crate::{
    FeatureFlag, FlagKey, FlagType, MAX_LIVE_FLAGS, MAX_PROJECT_BYTES, Prerequisite, ProjectLimit,
    SegmentKey, VariantKey,
};

pub(super) const TABLE: &str = "feature-flags";
/// The index of flags with prerequisites, without archived flags, which depend on nothing.
pub(super) const BY_DEPENDENT: &str = "byDependent";
/// The index's sort key.
const DEPENDENT_KEY: &str = "dependentKey";
/// The sort key of the project's own item.
pub(super) const PROJECT_ITEM: &str = "#";
/// A lower bound of all flags' sort keys, above the project's item.
pub(super) const FIRST_FLAG: &str = "0";

/// Prefix of the items that mark freed sort keys of deleted flags and segments. They sort before
/// all items that queries read.
const FREED: &str = "!";

/// The changes and conditions that a transaction applies to the project's item. The revision is
/// always incremented.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct ProjectChange {
    pub(super) live_flags: CounterUpdate,
    pub(super) segments: CounterUpdate,
    /// Growth of the flags and segments, in bytes.
    pub(super) bytes: i64,
    /// `true` if the prerequisites of a flag change.
    pub(super) prerequisites_change: bool,
    /// The revision of the prerequisites that the transaction requires.
    pub(super) only_at_revision: Option<i64>,
}

/// The change of a counter.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) enum CounterUpdate {
    /// One more, within the limit.
    OneMore,
    #[default]
    Same,
    OneLess,
}

/// A limit for an attribute of the project's item.
struct CounterLimit {
    attribute: &'static str,
    /// Maximum value before the change.
    most: i64,
    /// Name of this value in the condition.
    value: &'static str,
    /// The limit that is reached if the attribute is larger.
    limit: ProjectLimit,
}

impl FlagStore<'_> {
    /// Puts a flag on the condition that its key is free, or that `replaced` is unchanged.
    pub(super) fn put_flag(
        self,
        flag: &FeatureFlag,
        replaced: Option<&FeatureFlag>,
    ) -> Result<PutBuilder, StoreError> {
        let put = self.db.put(TABLE, write_flag(flag)?);
        Ok(match replaced {
            None => put.condition_expression("attribute_not_exists(projectId)"),
            // Another flag can have reused the key, so compare the ID too.
            Some(replaced) => put
                .condition_expression("id = :id AND version = :version")
                .expression_attribute_values(":id", s(replaced.id))
                .expression_attribute_values(":version", version_number(replaced.version)),
        })
    }

    /// Returns the action that marks a flag's or segment's sort key as freed.
    pub(super) fn mark_freed(
        self,
        project: ProjectId,
        sort_key: &str,
    ) -> Result<TransactWriteItem, StoreError> {
        self.db.put(TABLE, freed_key(project, sort_key)).into_action()
    }

    /// Returns the action that checks that a sort key was never freed.
    pub(super) fn require_never_freed(
        self,
        project: ProjectId,
        sort_key: &str,
    ) -> Result<TransactWriteItem, StoreError> {
        self.db
            .check(TABLE, freed_key(project, sort_key))
            .condition_expression("attribute_not_exists(projectId)")
            .into_action()
    }

    /// Returns the action on the project's item. Every transaction that changes data for
    /// evaluations needs it, since it increments the revision.
    pub(super) fn change_project(
        self,
        project: ProjectId,
        change: ProjectChange,
    ) -> Result<TransactWriteItem, StoreError> {
        let mut additions = vec!["flagsState :one"];
        let mut values = vec![(":one", n(1))];
        let mut conditions = Vec::new();
        for CounterLimit { attribute, most, value, .. } in change.counter_limits() {
            conditions
                .push(format!("(attribute_not_exists({attribute}) OR {attribute} <= {value})"));
            values.push((value, n(most)));
        }
        match change.live_flags {
            CounterUpdate::OneMore => additions.push("liveFlags :one"),
            CounterUpdate::Same => {}
            CounterUpdate::OneLess => {
                additions.push("liveFlags :minusOne");
                values.push((":minusOne", n(-1)));
            }
        }
        match change.segments {
            CounterUpdate::OneMore => additions.push("segmentCount :one"),
            CounterUpdate::Same => {}
            CounterUpdate::OneLess => {
                additions.push("segmentCount :minusOne");
                values.push((":minusOne", n(-1)));
            }
        }
        if change.bytes != 0 {
            additions.push("flagBytes :bytes");
            values.push((":bytes", n(change.bytes)));
        }
        if change.prerequisites_change {
            additions.push("prerequisitesState :one");
        }
        match change.only_at_revision {
            // A project that never had prerequisites has no revision, which reads as 0.
            Some(0) => conditions.push("attribute_not_exists(prerequisitesState)".to_owned()),
            Some(revision) => {
                conditions.push("prerequisitesState = :revision".to_owned());
                values.push((":revision", n(revision)));
            }
            None => {}
        }
        let values = values.into_iter().map(|(name, value)| (name.to_owned(), value)).collect();
        let condition = Some(conditions.join(" AND ")).filter(|condition| !condition.is_empty());
        self.db
            .update(TABLE, key(project, PROJECT_ITEM))
            .set_condition_expression(condition)
            .update_expression(format!("ADD {}", additions.join(", ")))
            .set_expression_attribute_values(Some(values))
            .return_values_on_condition_check_failure(ReturnValuesOnConditionCheckFailure::AllOld)
            .into_action()
    }
}

impl ProjectChange {
    /// Returns the limits that the change must respect.
    fn counter_limits(self) -> impl Iterator<Item = CounterLimit> {
        let one_more = |count, attribute, value, most: u32, limit| {
            let most = i64::from(most) - 1;
            (count == CounterUpdate::OneMore).then_some(CounterLimit {
                attribute,
                most,
                value,
                limit,
            })
        };
        let most = signed(MAX_PROJECT_BYTES).saturating_sub(self.bytes);
        let (attribute, value, limit) = ("flagBytes", ":mostBytes", ProjectLimit::Bytes);
        let bytes = (self.bytes > 0).then_some(CounterLimit { attribute, most, value, limit });
        let (flags, segments) = (ProjectLimit::LiveFlags, ProjectLimit::Segments);
        [
            one_more(self.live_flags, "liveFlags", ":mostFlags", MAX_LIVE_FLAGS, flags),
            one_more(self.segments, "segmentCount", ":mostSegments", MAX_SEGMENTS, segments),
            bytes,
        ]
        .into_iter()
        .flatten()
    }

    /// Returns the limit that made the action "project" fail, if one did.
    pub(super) fn limit_reached(
        self,
        cancelled: &Cancellation,
    ) -> Result<Option<ProjectLimit>, StoreError> {
        let Some(item) = cancelled.items("project").next() else { return Ok(None) };
        let reader = ItemReader { table: TABLE, item };
        for CounterLimit { attribute, most, limit, .. } in self.counter_limits() {
            if reader.optional_integer(attribute)?.unwrap_or_default() > most {
                return Ok(Some(limit));
            }
        }
        Ok(None)
    }
}

pub(super) fn key(project: ProjectId, sort_key: &str) -> Item {
    item([("projectId", s(project)), ("key", s(sort_key))])
}

/// Returns the key of the item that marks a freed sort key.
fn freed_key(project: ProjectId, sort_key: &str) -> Item {
    key(project, &format!("{FREED}{sort_key}"))
}

/// The attribute that marks flags and segments with a reused key.
pub(super) const IS_SUCCESSOR: &str = "isSuccessor";

/// Returns `true` if a deleted flag or segment had this key before.
pub(super) fn read_is_successor(reader: ItemReader<'_>) -> Result<bool, StoreError> {
    Ok(reader.optional_boolean(IS_SUCCESSOR)?.unwrap_or_default())
}

pub(super) fn version_number(version: u64) -> AttributeValue {
    AttributeValue::N(version.to_string())
}

fn write_flag(flag: &FeatureFlag) -> Result<Item, StoreError> {
    let definition = serde_json::to_string(&Definition::of(flag))
        .map_err(|error| StoreError::Rejected(Cause::of_step("a flag cannot be written", error)))?;
    let mut item = item_at(
        key(flag.project_id, flag.key.as_str()),
        [
            ("id", s(flag.id)),
            ("name", s(&flag.name)),
            ("description", s(&flag.description)),
            ("type", s(flag.flag_type.as_str())),
            ("enabled", AttributeValue::Bool(flag.enabled)),
            ("version", version_number(flag.version)),
            ("definition", s(definition)),
            ("createdAt", s(flag.created_at)),
            ("updatedAt", s(flag.updated_at)),
        ],
    );
    let depends = flag.archived_at.is_none() && !flag.prerequisites.is_empty();
    let optional = [
        ("archivedAt", flag.archived_at.map(s)),
        // Other flags' transactions check these attributes, so they are not part of the definition.
        ("variantKeys", ss(flag.variants.iter().map(|variant| &variant.key))),
        ("prerequisites", write_prerequisites(&flag.prerequisites)),
        ("segments", ss(flag.segments())),
        (IS_SUCCESSOR, flag.is_successor.then_some(AttributeValue::Bool(true))),
        (DEPENDENT_KEY, depends.then(|| s(&flag.key))),
    ];
    for (name, value) in optional {
        item.extend(value.map(|value| (name.to_owned(), value)));
    }
    Ok(item)
}

fn write_prerequisites(prerequisites: &[Prerequisite]) -> Option<AttributeValue> {
    let written = prerequisites.iter().map(|Prerequisite { flag_key, variant }| {
        AttributeValue::M(item([("flagKey", s(flag_key)), ("variant", s(variant))]))
    });
    (!prerequisites.is_empty()).then(|| AttributeValue::L(written.collect()))
}

/// Reads a flag, archived or not.
pub(super) fn read_flag(project_id: ProjectId, item: &Item) -> Result<FeatureFlag, StoreError> {
    let reader = ItemReader { table: TABLE, item };
    let time = |text: &str| Timestamp::parse_rfc3339(text).ok();
    let definition = Definition::parse(reader.text("definition")?);
    let definition = definition.map_err(|_| reader.damaged("definition"))?;
    Ok(FeatureFlag {
        id: read_id(reader)?,
        project_id,
        key: read_key(item)?,
        name: reader.text("name")?.to_owned(),
        description: reader.text("description")?.to_owned(),
        flag_type: reader.parsed("type", |name| FlagType::parse(name).ok())?,
        enabled: reader.optional_boolean("enabled")?.ok_or_else(|| reader.damaged("enabled"))?,
        archived_at: reader.optional_parsed("archivedAt", time)?,
        version: read_version(reader)?,
        variants: definition.variants.into_owned(),
        off_variant: definition.off_variant.map(std::borrow::Cow::into_owned),
        fallthrough: definition.fallthrough.into_owned(),
        rules: definition.rules.into_owned(),
        targets: definition.targets.into_owned(),
        prerequisites: read_prerequisites(item)?,
        created_at: reader.parsed("createdAt", time)?,
        updated_at: reader.parsed("updatedAt", time)?,
        is_successor: read_is_successor(reader)?,
    })
}

pub(super) fn read_key(item: &Item) -> Result<FlagKey, StoreError> {
    ItemReader { table: TABLE, item }.parsed("key", |text| FlagKey::parse(text).ok())
}

pub(super) fn read_id(reader: ItemReader<'_>) -> Result<Uuid, StoreError> {
    reader.parsed("id", |text| Uuid::try_parse(text).ok())
}

pub(super) fn read_version(reader: ItemReader<'_>) -> Result<u64, StoreError> {
    reader.optional_count("version")?.ok_or_else(|| reader.damaged("version"))
}

/// Returns the segments that a flag names. Ignores invalid keys, which fail when the flag is
/// compiled.
pub(super) fn read_segment_keys(item: &Item) -> Vec<SegmentKey> {
    let named = ItemReader { table: TABLE, item }.text_set("segments").unwrap_or_default();
    named.iter().filter_map(|key| SegmentKey::parse(key).ok()).collect()
}

pub(super) fn read_prerequisites(item: &Item) -> Result<Vec<Prerequisite>, StoreError> {
    let read = |written: &AttributeValue| {
        let AttributeValue::M(members) = written else { return None };
        let text = |name| members.get(name)?.as_s().ok();
        Some(Prerequisite {
            flag_key: FlagKey::parse(text("flagKey")?).ok()?,
            variant: VariantKey::parse(text("variant")?).ok()?,
        })
    };
    let prerequisites = match item.get("prerequisites") {
        None => Some(Vec::new()),
        Some(AttributeValue::L(prerequisites)) => prerequisites.iter().map(read).collect(),
        Some(_) => None,
    };
    prerequisites.ok_or_else(|| ItemReader { table: TABLE, item }.damaged("prerequisites"))
}
