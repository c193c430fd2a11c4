//! Items of the table `feature-flags`, key `projectId` / `key`: each flag whole, in one item; segments are
//! in [`super::segments`].
//!
//! The item under the key `#` (no flag's, since those start with a letter or digit) belongs to the
//! project. It numbers the state that its flags are in, so that whoever has read them learns from one
//! small read that none has changed; it counts the live flags, the segments and the bytes of all; and it numbers the state of the
//! prerequisites between them, so that whoever has read a chain of them can make sure at the write that
//! it still is as read.

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
/// The index of the flags that depend on others, archived ones left out: an archived flag depends on
/// nothing.
pub(super) const BY_DEPENDENT: &str = "byDependent";
/// The sort key of the index.
const DEPENDENT_KEY: &str = "dependentKey";
/// The sort key of the item that belongs to the project.
pub(super) const PROJECT_ITEM: &str = "#";
/// No sort key of a flag is below, that of the project's item is.
pub(super) const FIRST_FLAG: &str = "0";

/// What the sort key of an item begins with that marks another sort key, of which a flag or segment was
/// deleted: it comes before all that queries read.
const FREED: &str = "!";

/// What a transaction does to the item that belongs to the project beside growing the number of its
/// flags' state, and on which condition.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct ProjectChange {
    pub(super) live_flags: CounterUpdate,
    pub(super) segments: CounterUpdate,
    /// By how many bytes its flags and segments grow.
    pub(super) bytes: i64,
    /// Whether any flag's prerequisites change.
    pub(super) prerequisites_change: bool,
    /// The state of the prerequisites that the transaction rests on.
    pub(super) only_at_state: Option<i64>,
}

/// What becomes of a number of what a project has.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) enum CounterUpdate {
    /// One more, if there is room.
    OneMore,
    #[default]
    Same,
    OneLess,
}

/// Room in a number of the project's item.
struct CounterLimit {
    attribute: &'static str,
    /// What it may be at most before the change.
    most: i64,
    /// The name of that in the condition.
    value: &'static str,
    /// The limit that is reached if it is more.
    limit: ProjectLimit,
}

impl FlagStore<'_> {
    /// Puts a flag on a condition, which may ask for an earlier version.
    pub(super) fn put_flag(
        self,
        flag: &FeatureFlag,
        replaced: Option<&FeatureFlag>,
    ) -> Result<PutBuilder, StoreError> {
        let put = self.db.put(TABLE, write_flag(flag)?);
        Ok(match replaced {
            None => put.condition_expression("attribute_not_exists(projectId)"),
            // A key that was freed may belong to another flag by now.
            Some(replaced) => put
                .condition_expression("id = :id AND version = :version")
                .expression_attribute_values(":id", s(replaced.id))
                .expression_attribute_values(":version", version_number(replaced.version)),
        })
    }

    /// The action that marks a flag's or segment's sort key as one that was in use.
    pub(super) fn mark_freed(
        self,
        project: ProjectId,
        sort_key: &str,
    ) -> Result<TransactWriteItem, StoreError> {
        self.db.put(TABLE, freed_key(project, sort_key)).into_action()
    }

    /// The action that checks that nothing that was deleted had a flag's or segment's sort key.
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

    /// The action on the project's item that belongs into every transaction which changes what
    /// evaluations read: it grows the number of the flags' state.
    pub(super) fn change_project(
        self,
        project: ProjectId,
        change: ProjectChange,
    ) -> Result<TransactWriteItem, StoreError> {
        let mut additions = vec!["flagsState :one"];
        let mut values = vec![(":one", n(1))];
        let mut conditions = Vec::new();
        for CounterLimit { attribute, most, value, .. } in change.rooms() {
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
        match change.only_at_state {
            // A project whose flags never had prerequisites has no number yet; that reads as 0.
            Some(0) => conditions.push("attribute_not_exists(prerequisitesState)".to_owned()),
            Some(state) => {
                conditions.push("prerequisitesState = :state".to_owned());
                values.push((":state", n(state)));
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
    /// What a project must have room for.
    fn rooms(self) -> impl Iterator<Item = CounterLimit> {
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
        for CounterLimit { attribute, most, limit, .. } in self.rooms() {
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

/// The key of the item that marks a sort key as one that was in use.
fn freed_key(project: ProjectId, sort_key: &str) -> Item {
    key(project, &format!("{FREED}{sort_key}"))
}

/// The attribute of what has the sort key of something that was deleted.
pub(super) const IS_SUCCESSOR: &str = "isSuccessor";

/// Whether something has the sort key of something that was deleted.
pub(super) fn read_is_successor(reader: ItemReader<'_>) -> Result<bool, StoreError> {
    Ok(reader.optional_boolean(IS_SUCCESSOR)?.unwrap_or_default())
}

pub(super) fn version_number(version: u64) -> AttributeValue {
    AttributeValue::N(version.to_string())
}

fn write_flag(flag: &FeatureFlag) -> Result<Item, StoreError> {
    let definition = serde_json::to_string(&Definition::of(flag))
        .map_err(|error| StoreError::Refused(Cause::of_step("a flag cannot be written", error)))?;
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
        // What other flags' transactions look at stands apart from the definition.
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

/// The segments that a flag names. What is no key of one is none: whoever reads the flag is told so.
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
