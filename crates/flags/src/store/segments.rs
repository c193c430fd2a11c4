//! Table `feature-flags`: segments, stored beside the project's flags so that one query reads both.
//!
//! A segment counts the flags that use it, including archived ones. A transaction that changes a
//! flag's segments also updates their counters and requires that new ones exist. A segment in use
//! cannot be deleted, so no flag names a missing segment.

use std::collections::BTreeSet;

use aws_sdk_dynamodb::types::{AttributeValue, ReturnValuesOnConditionCheckFailure};

use shared::audit::AuditEntry;
use shared::dynamodb::idempotency::{Idempotent, Replay};
use shared::dynamodb::item::{Item, ItemReader, item_at, n, s};
use shared::dynamodb::page::one_more_than;
use shared::dynamodb::transaction::{Cancellation, Transaction, TransactionOutcome};
use shared::dynamodb::{Cause, StoreError};
use shared::idempotency::{IdempotentRequest, StoredResponse};
use shared::json::{JsonPath, ViolationCode, Violations};
use shared::page::{Page, PageRequest};
use shared::projects::project::ProjectId;
use shared::timestamp::Timestamp;

use super::FlagStore;
use super::items::{
    CounterUpdate, FIRST_FLAG, IS_SUCCESSOR, ProjectChange, TABLE, key, read_id, read_is_successor,
    read_key, read_version, version_number,
};
use crate::condition::Condition;
use crate::{FeatureFlag, FlagKey, ProjectLimit, Segment, SegmentKey};

/// Prefix of segments' sort keys. They sort directly before those of flags, and no flag or segment
/// key contains it.
const SEGMENT: &str = "/";
/// The attribute that counts the flags using a segment.
const USERS: &str = "users";
/// Maximum number of using flags that an error names.
const MAX_NAMED_USERS: usize = 10;
/// Maximum number of pages to read in search of these flags.
const MAX_USER_PAGES: u32 = 4;

/// Outcome of a segment creation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SegmentCreation {
    /// The stored segment.
    Created(Segment),
    /// The project has a segment with this key.
    KeyTaken,
    /// The project would exceed this limit.
    LimitReached(ProjectLimit),
    /// The idempotency key was used before.
    Replay(Replay),
}

/// Outcome of a segment update.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SegmentReplacement {
    /// Stored.
    Done,
    /// Not stored: the segment changed after it was read.
    Outdated,
    /// Not stored: the project would exceed this limit.
    LimitReached(ProjectLimit),
}

/// Outcome of a segment deletion.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SegmentDeletion {
    /// Deleted.
    Done,
    /// Not deleted: the segment changed after it was read.
    Outdated,
    /// Not deleted: flags use it, possibly archived ones.
    InUse {
        /// Number of these flags.
        count: u64,
        /// Some of these flags.
        among: Vec<FlagKey>,
    },
}

/// The segments that a flag starts and stops using.
#[derive(Debug, Default)]
pub(super) struct SegmentUsageDelta {
    begun: Vec<SegmentKey>,
    ended: Vec<SegmentKey>,
}

impl SegmentUsageDelta {
    /// Returns the difference between two sets of segments.
    pub(super) fn between(before: &BTreeSet<SegmentKey>, after: &BTreeSet<SegmentKey>) -> Self {
        Self {
            begun: after.difference(before).cloned().collect(),
            ended: before.difference(after).cloned().collect(),
        }
    }

    /// Returns the missing segments, for which actions of [`FlagStore::count_uses`] failed.
    pub(super) fn missing(&self, cancelled: &Cancellation) -> BTreeSet<&SegmentKey> {
        let begun = self.begun.iter().enumerate();
        let missing = begun.filter(|(index, _)| cancelled.failed_at("begun use", *index));
        missing.map(|(_, key)| key).collect()
    }
}

/// Returns a violation for each value that names a missing segment.
pub(super) fn unknown_segments(flag: &FeatureFlag, missing: &BTreeSet<&SegmentKey>) -> Violations {
    let mut violations = Violations::default();
    let rules = JsonPath::Root.member("rules");
    for (rule_index, rule) in flag.rules.iter().enumerate() {
        let rule_place = rules.item(rule_index);
        let conditions = rule_place.member("conditions");
        for (index, condition) in rule.conditions.iter().enumerate() {
            if !condition.operator.is_about_segments() {
                continue;
            }
            let condition_place = conditions.item(index);
            let values = condition_place.member("values");
            for (index, value) in condition.values.iter().enumerate() {
                if missing.iter().any(|key| key.as_str() == value) {
                    let message = "the project has no segment with this key";
                    violations.note(&values.item(index), ViolationCode::UnknownSegment, message);
                }
            }
        }
    }
    violations
}

impl FlagStore<'_> {
    /// Stores a new segment, and the response if the request has an idempotency key.
    ///
    /// One transaction checks that the key is free and that the project stays within its limits. If
    /// a deleted segment had the key, a second transaction marks the new segment as a successor.
    /// `respond` returns the response to store.
    pub async fn create_segment<E: From<StoreError>>(
        self,
        mut segment: Segment,
        entry: &AuditEntry,
        request: Option<&IdempotentRequest>,
        respond: impl Fn(&Segment) -> Result<StoredResponse, E>,
    ) -> Result<SegmentCreation, E> {
        let change = ProjectChange {
            segments: CounterUpdate::OneMore,
            bytes: segment.project_bytes(),
            ..ProjectChange::default()
        };
        for _ in 0..2 {
            let response = request.map(|_| respond(&segment)).transpose()?;
            let idempotent = Idempotent::of(request, response.as_ref());
            let transaction = self.creation_of_segment(&segment, change, entry)?;
            let commit = self.db.commit(transaction, idempotent, segment.created_at);
            let cancelled = match commit.await? {
                TransactionOutcome::Done => return Ok(SegmentCreation::Created(segment)),
                TransactionOutcome::Replay(replay) => return Ok(SegmentCreation::Replay(replay)),
                TransactionOutcome::Rejected(cancelled) => cancelled,
            };
            if cancelled.failed("never freed") {
                segment.is_successor = true;
            } else if cancelled.failed("segment") {
                return Ok(SegmentCreation::KeyTaken);
            } else if let Some(limit) = change.limit_reached(&cancelled)? {
                return Ok(SegmentCreation::LimitReached(limit));
            } else {
                return Err(cancelled.into_error().into());
            }
        }
        Err(StoreError::Contended("the key was just freed".into()).into())
    }

    fn creation_of_segment(
        self,
        segment: &Segment,
        change: ProjectChange,
        entry: &AuditEntry,
    ) -> Result<Transaction, StoreError> {
        let put = self.db.put(TABLE, write_segment(segment)?);
        let mut transaction = Transaction::default();
        transaction.add("segment", put.condition_expression("attribute_not_exists(projectId)"))?;
        transaction.add("project", self.change_project(segment.project_id, change)?)?;
        transaction.add("audit", self.db.audit(entry)?)?;
        if !segment.is_successor {
            let check = self.require_never_freed(segment.project_id, &sort_key(&segment.key))?;
            transaction.add("never freed", check)?;
        }
        Ok(transaction)
    }

    /// Returns a segment by its key. Strongly consistent, so that completed writes are visible and
    /// the next write can build on the segment.
    pub async fn find_segment(
        self,
        project: ProjectId,
        segment: &SegmentKey,
    ) -> Result<Option<Segment>, StoreError> {
        let found = self.db.get(TABLE, key(project, &sort_key(segment))).await?;
        found.as_ref().map(|item| read_segment(project, item)).transpose()
    }

    /// Returns a project's segments, sorted by key. Strongly consistent.
    pub async fn list_segments(
        self,
        project: ProjectId,
        page_request: &PageRequest,
    ) -> Result<Page<Segment>, StoreError> {
        let start = page_request.after.as_ref().map(|after| key(project, after));
        let output = self
            .db
            .query(TABLE)
            .consistent_read(true)
            .key_condition_expression("projectId = :project AND begins_with(#key, :segment)")
            .expression_attribute_names("#key", "key")
            .expression_attribute_values(":project", s(project))
            .expression_attribute_values(":segment", s(SEGMENT))
            .set_exclusive_start_key(start)
            .limit(one_more_than(page_request.limit))
            .send()
            .await?;
        // Pages end at the stored text, which can be an invalid key.
        let end_of = |item: &Item| ItemReader { table: TABLE, item }.text("key").map(str::to_owned);
        let read = |item: &Item| read_segment(project, item);
        let more = output.last_evaluated_key.is_some();
        self.db.page(output.items.unwrap_or_default(), more, page_request.limit, end_of, read)
    }

    /// Replaces a segment that is unchanged since it was read. One round trip, whether flags use it
    /// or not.
    pub async fn replace_segment(
        self,
        stored: &Segment,
        segment: &Segment,
        entry: &AuditEntry,
    ) -> Result<SegmentReplacement, StoreError> {
        // An update, not a put, since the usage counter can have changed.
        let update = self
            .db
            .update(TABLE, key(segment.project_id, &sort_key(&segment.key)))
            .condition_expression("id = :id AND version = :readVersion")
            .update_expression(
                "SET #name = :name, #conditions = :conditions, version = :version, \
                 updatedAt = :updatedAt",
            )
            .expression_attribute_names("#name", "name")
            .expression_attribute_names("#conditions", "conditions")
            .expression_attribute_values(":id", s(stored.id))
            .expression_attribute_values(":readVersion", version_number(stored.version))
            .expression_attribute_values(":name", s(&segment.name))
            .expression_attribute_values(":conditions", s(write_conditions(segment)?))
            .expression_attribute_values(":version", version_number(segment.version))
            .expression_attribute_values(":updatedAt", s(segment.updated_at));
        let bytes = segment.project_bytes() - stored.project_bytes();
        let change = ProjectChange { bytes, ..ProjectChange::default() };
        let project = self.change_project(segment.project_id, change)?;
        let mut transaction = Transaction::default();
        transaction.add("segment", update)?;
        transaction.add("project", project)?;
        transaction.add("audit", self.db.audit(entry)?)?;
        let Some(cancelled) = self.db.commit_all(transaction).await? else {
            return Ok(SegmentReplacement::Done);
        };
        Ok(match change.limit_reached(&cancelled)? {
            Some(limit) if !cancelled.failed("segment") => SegmentReplacement::LimitReached(limit),
            _ => SegmentReplacement::Outdated,
        })
    }

    /// Deletes a segment that is unchanged since it was read and that no flag uses. Its key is
    /// marked as freed, which distinguishes later segments with this key. One round trip, unless
    /// flags use the segment: then some of them are read.
    pub async fn delete_segment(
        self,
        stored: &Segment,
        entry: &AuditEntry,
    ) -> Result<SegmentDeletion, StoreError> {
        let delete = self.db
            .delete(TABLE, key(stored.project_id, &sort_key(&stored.key)))
            .condition_expression(
                "id = :id AND version = :version AND (attribute_not_exists(#users) OR #users = :none)",
            )
            .expression_attribute_names("#users", USERS)
            .expression_attribute_values(":id", s(stored.id))
            .expression_attribute_values(":version", version_number(stored.version))
            .expression_attribute_values(":none", n(0))
            .return_values_on_condition_check_failure(ReturnValuesOnConditionCheckFailure::AllOld);
        let change = ProjectChange {
            segments: CounterUpdate::OneLess,
            bytes: -stored.project_bytes(),
            ..ProjectChange::default()
        };
        let project = self.change_project(stored.project_id, change)?;
        let freed = self.mark_freed(stored.project_id, &sort_key(&stored.key))?;
        let mut transaction = Transaction::default();
        transaction.add("segment", delete)?;
        transaction.add("project", project)?;
        transaction.add("freed", freed)?;
        transaction.add("audit", self.db.audit(entry)?)?;
        let Some(cancelled) = self.db.commit_all(transaction).await? else {
            return Ok(SegmentDeletion::Done);
        };
        let Some(item) = cancelled.items("segment").next() else {
            return Ok(SegmentDeletion::Outdated);
        };
        let reader = ItemReader { table: TABLE, item };
        let is_as_read = read_id(reader)? == stored.id && read_version(reader)? == stored.version;
        match reader.optional_count(USERS)? {
            Some(count) if is_as_read && count > 0 => {
                let among = self.users_of(stored.project_id, &stored.key).await?;
                Ok(SegmentDeletion::InUse { count, among })
            }
            _ => Ok(SegmentDeletion::Outdated),
        }
    }

    /// Returns some of the flags that use a segment, sorted by key. Eventually consistent and
    /// limited to a few reads, since only an error message needs them.
    async fn users_of(
        self,
        project: ProjectId,
        segment: &SegmentKey,
    ) -> Result<Vec<FlagKey>, StoreError> {
        let mut users = Vec::new();
        let mut start = None;
        for _ in 0..MAX_USER_PAGES {
            let output = self
                .db
                .query(TABLE)
                .key_condition_expression("projectId = :project AND #key >= :first")
                .filter_expression("contains(#segments, :segment)")
                .expression_attribute_names("#segments", "segments")
                .expression_attribute_names("#key", "key")
                .expression_attribute_values(":project", s(project))
                .expression_attribute_values(":first", s(FIRST_FLAG))
                .expression_attribute_values(":segment", s(segment))
                .set_exclusive_start_key(start)
                .send()
                .await?;
            for item in output.items.unwrap_or_default() {
                users.push(read_key(&item)?);
            }
            start = output.last_evaluated_key;
            if start.is_none() || users.len() >= MAX_NAMED_USERS {
                break;
            }
        }
        users.truncate(MAX_NAMED_USERS);
        Ok(users)
    }

    /// Adds the actions that count the segments a flag uses. New uses come first, each with the
    /// condition that the segment exists.
    pub(super) fn count_uses(
        self,
        project: ProjectId,
        change: &SegmentUsageDelta,
        transaction: &mut Transaction,
    ) -> Result<(), StoreError> {
        let count = |segment: &SegmentKey, by: i64| {
            self.db
                .update(TABLE, key(project, &sort_key(segment)))
                .condition_expression("attribute_exists(projectId)")
                .update_expression("ADD #users :by")
                .expression_attribute_names("#users", USERS)
                .expression_attribute_values(":by", n(by))
        };
        for segment in &change.begun {
            transaction.add("begun use", count(segment, 1))?;
        }
        for segment in &change.ended {
            transaction.add("ended use", count(segment, -1))?;
        }
        Ok(())
    }
}

/// Returns a segment's sort key.
pub(super) fn sort_key(segment: &SegmentKey) -> String {
    format!("{SEGMENT}{segment}")
}

/// `true` if an item is a segment.
pub(super) fn is_segment(item: &Item) -> bool {
    let key = item.get("key").and_then(|key| key.as_s().ok());
    key.is_some_and(|key| key.starts_with(SEGMENT))
}

fn write_conditions(segment: &Segment) -> Result<String, StoreError> {
    serde_json::to_string(&segment.conditions)
        .map_err(|error| StoreError::Rejected(Cause::of_step("a segment cannot be written", error)))
}

fn write_segment(segment: &Segment) -> Result<Item, StoreError> {
    let mut item = item_at(
        key(segment.project_id, &sort_key(&segment.key)),
        [
            ("id", s(segment.id)),
            ("name", s(&segment.name)),
            ("conditions", s(write_conditions(segment)?)),
            ("version", version_number(segment.version)),
            ("createdAt", s(segment.created_at)),
            ("updatedAt", s(segment.updated_at)),
        ],
    );
    if segment.is_successor {
        item.insert(IS_SUCCESSOR.to_owned(), AttributeValue::Bool(true));
    }
    Ok(item)
}

pub(super) fn read_segment_key(item: &Item) -> Result<SegmentKey, StoreError> {
    let parse = |text: &str| SegmentKey::parse(text.strip_prefix(SEGMENT)?).ok();
    ItemReader { table: TABLE, item }.parsed("key", parse)
}

pub(super) fn read_segment(project_id: ProjectId, item: &Item) -> Result<Segment, StoreError> {
    let reader = ItemReader { table: TABLE, item };
    let time = |text: &str| Timestamp::parse_rfc3339(text).ok();
    let conditions: Vec<Condition> =
        reader.parsed("conditions", |text| serde_json::from_str(text).ok())?;
    Ok(Segment {
        id: read_id(reader)?,
        project_id,
        key: read_segment_key(item)?,
        name: reader.text("name")?.to_owned(),
        conditions,
        version: read_version(reader)?,
        created_at: reader.parsed("createdAt", time)?,
        updated_at: reader.parsed("updatedAt", time)?,
        is_successor: read_is_successor(reader)?,
    })
}
