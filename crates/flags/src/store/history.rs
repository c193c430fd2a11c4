//! Table `flag-changes`, key `flagId` / `version`: one item per version of a flag, put by the
//! transaction that creates the version. So the history has no gaps and no versions that never
//! existed.
//!
//! The key uses the flag's ID, since a new flag can reuse a freed flag key.

use aws_sdk_dynamodb::types::{AttributeValue, TransactWriteItem};

use notifications::domain_event::DELETED;
use shared::dynamodb::item::{Item, ItemReader, b, item, item_at, n, s};
use shared::dynamodb::page::one_more_than;
use shared::dynamodb::request::IntoAction;
use shared::dynamodb::{Cause, StoreError};
use shared::json::bytes_within_json;
use shared::page::{Page, PageRequest};
use shared::projects::api_key::{Actor, KeyId, UserId};
use shared::projects::project::ProjectId;
use shared::timestamp::Timestamp;

use super::FlagStore;
use super::items::version_number;
use crate::history::{ChangeKind, ChangeRecord, FlagChange, FlagState, RETENTION};
use crate::{FeatureFlag, MAX_FLAG_BYTES, announcement};

pub(super) const TABLE: &str = "flag-changes";
/// The index by project and time.
const BY_PROJECT: &str = "byProject";
/// zstd's default level; higher levels cost more time than they save.
const COMPRESSION_LEVEL: i32 = 3;
/// Maximum size of a record in bytes: the flag, the previous values and some names.
const MAX_RECORD_BYTES: usize = 2 * MAX_FLAG_BYTES + 20_000;
/// Maximum size of a change in a response without its values, in bytes.
const FRAME_BYTES: usize = 2_000;

/// A change in a list of a project's changes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ListedChange {
    /// The flag's ID.
    pub flag_id: String,
    /// The flag's version after the change.
    pub version: u64,
    /// The flag's key.
    pub flag_key: String,
    /// Time of the change.
    pub at: Timestamp,
    /// The aspect that matters most, such as `turned on`.
    pub summary: String,
    /// The author; `None` for the command.
    pub user: Option<UserId>,
}

/// The newest changes of a project's flags, and the number of the others.
#[derive(Debug)]
pub struct NewestChanges {
    /// The changes, newest first.
    pub changes: Vec<ListedChange>,
    /// The number of further changes.
    pub left_out: u64,
    /// `false` if there can be more of them.
    pub is_exact: bool,
}

/// A change to record and its author.
#[derive(Debug, Clone, Copy)]
pub(super) struct VersionedChange<'a> {
    /// The flag before the change; `None` if it is new.
    pub(super) stored: Option<&'a FeatureFlag>,
    /// The flag after the change.
    pub(super) flag: &'a FeatureFlag,
    pub(super) kind: ChangeKind,
    pub(super) author: &'a Actor,
}

impl FlagStore<'_> {
    /// Returns the action that records a change. The condition on the flag already ensures that the
    /// version is new.
    pub(super) fn record_change(
        self,
        change: VersionedChange<'_>,
    ) -> Result<TransactWriteItem, StoreError> {
        self.db.put(TABLE, write_change(change)?).into_action()
    }

    /// Returns the action that records a deletion at `now`, for lists of the project's changes. The
    /// flag's own history is no longer reachable.
    pub(super) fn record_deletion(
        self,
        flag: &FeatureFlag,
        author: &Actor,
        now: Timestamp,
    ) -> Result<TransactWriteItem, StoreError> {
        let mut item = item_at(
            key(flag, version_number(flag.version.saturating_add(1))),
            [
                ("projectId", s(flag.project_id)),
                ("at", s(now)),
                ("expiresAt", n(now.plus(RETENTION).as_seconds())),
            ],
        );
        item.extend(listed_attributes(flag, DELETED, author));
        self.db.put(TABLE, item).into_action()
    }

    /// Returns up to `limit` changes of a project's flags from `from` until before `to`, in
    /// milliseconds, including those of deleted flags. Eventually consistent.
    pub async fn newest_changes(
        self,
        project: ProjectId,
        (from, to): (i64, i64),
        limit: u32,
        now: Timestamp,
    ) -> Result<NewestChanges, StoreError> {
        let last = Timestamp::from_millis(to.saturating_sub(1));
        let query = self
            .db
            .query(TABLE)
            .index_name(BY_PROJECT)
            .key_condition_expression("projectId = :project AND #at BETWEEN :from AND :last")
            .filter_expression("expiresAt > :now")
            .expression_attribute_names("#at", "at")
            .expression_attribute_values(":project", s(project))
            .expression_attribute_values(":from", s(Timestamp::from_millis(from)))
            .expression_attribute_values(":last", s(last))
            .expression_attribute_values(":now", n(now.as_seconds()));
        let newest = self.db.newest(query, limit).await?;
        let changes = self.db.undamaged(&newest.items, read_listed_change)?;
        Ok(NewestChanges { changes, left_out: newest.left_out, is_exact: newest.is_exact })
    }

    /// Returns the changes of a flag that are unexpired at `now`, latest first. Strongly
    /// consistent, so that every completed change is visible.
    pub async fn list_flag_changes(
        self,
        flag: &FeatureFlag,
        page_request: &PageRequest,
        now: Timestamp,
    ) -> Result<Page<FlagChange>, StoreError> {
        let after = page_request.after.as_deref();
        let start = after.map(|version| key(flag, AttributeValue::N(version.to_owned())));
        let output = self
            .db
            .query(TABLE)
            .consistent_read(true)
            .key_condition_expression("flagId = :flag")
            .filter_expression("expiresAt > :now")
            .expression_attribute_values(":flag", s(flag.id))
            .expression_attribute_values(":now", n(now.as_seconds()))
            .scan_index_forward(false)
            .set_exclusive_start_key(start)
            .limit(one_more_than(page_request.limit))
            .send()
            .await?;
        let end_of = |item: &Item| Ok(read_version(item)?.to_string());
        let more = output.last_evaluated_key.is_some();
        let items = output.items.unwrap_or_default();
        self.db.page_of_size(items, more, page_request.limit, response_bytes, end_of, read_change)
    }

    /// Returns a flag's state in one of its versions, if the record is unexpired at `now`. Strongly
    /// consistent.
    pub async fn find_flag_state(
        self,
        flag: &FeatureFlag,
        version: u64,
        now: Timestamp,
    ) -> Result<Option<FlagState>, StoreError> {
        let found = self.db.get(TABLE, key(flag, version_number(version))).await?;
        let Some(item) = found else { return Ok(None) };
        let reader = ItemReader { table: TABLE, item: &item };
        if reader.optional_integer("expiresAt")?.is_some_and(|at| at <= now.as_seconds()) {
            return Ok(None);
        }
        let state = read_record(reader)?.state();
        state.map(Some).map_err(|_| reader.damaged("record"))
    }
}

fn key(flag: &FeatureFlag, version: AttributeValue) -> Item {
    item([("flagId", s(flag.id)), ("version", version)])
}

fn write_change(change: VersionedChange<'_>) -> Result<Item, StoreError> {
    let VersionedChange { stored, flag, kind, author } = change;
    let unwritable =
        |error| StoreError::Rejected(Cause::of_step("a change of a flag cannot be written", error));
    let record = ChangeRecord::of(stored, flag).map_err(unwritable)?;
    let changes = serde_json::to_string(&record.changes()).map_err(unwritable)?;
    let text = serde_json::to_vec(&record).map_err(unwritable)?;
    let compressed = zstd::bulk::compress(&text, COMPRESSION_LEVEL).map_err(|error| {
        StoreError::Rejected(Cause::of_step("a change cannot be packed", error))
    })?;
    let bytes = i64::try_from(bytes_within_json(&changes)).unwrap_or(i64::MAX);
    let mut item = item_at(
        key(flag, version_number(flag.version)),
        [
            // Lets the erasure find changes of deleted flags too.
            ("projectId", s(flag.project_id)),
            ("at", s(flag.updated_at)),
            ("kind", s(kind.as_str())),
            ("record", b(&compressed)),
            ("responseBytes", n(bytes)),
            ("expiresAt", n(flag.updated_at.plus(RETENTION).as_seconds())),
        ],
    );
    item.extend(listed_attributes(flag, announcement::change(stored, flag, kind), author));
    Ok(item)
}

/// Returns the attributes of a change that only lists of a project's changes show, and its author.
fn listed_attributes(flag: &FeatureFlag, summary: &str, author: &Actor) -> Item {
    let mut item = item([("flagKey", s(&flag.key)), ("summary", s(summary))]);
    item.extend(author.user().map(|user| ("user".to_owned(), s(user))));
    if let Actor::Key { key_id, .. } = author {
        item.insert("keyId".to_owned(), s(key_id));
    }
    item
}

fn read_change(item: &Item) -> Result<FlagChange, StoreError> {
    let reader = ItemReader { table: TABLE, item };
    Ok(FlagChange {
        version: read_version(item)?,
        at: reader.time("at")?,
        user: reader.optional_parsed("user", |text| UserId::parse(text).ok())?,
        key_id: reader.optional_parsed("keyId", KeyId::parse)?,
        kind: reader.parsed("kind", ChangeKind::named)?,
        changes: read_record(reader)?.changes(),
    })
}

fn read_listed_change(item: &Item) -> Result<ListedChange, StoreError> {
    let reader = ItemReader { table: TABLE, item };
    Ok(ListedChange {
        flag_id: reader.text("flagId")?.to_owned(),
        version: read_version(item)?,
        flag_key: reader.text("flagKey")?.to_owned(),
        at: reader.time("at")?,
        summary: reader.text("summary")?.to_owned(),
        user: reader.optional_parsed("user", |text| UserId::parse(text).ok())?,
    })
}

fn read_version(item: &Item) -> Result<u64, StoreError> {
    ItemReader { table: TABLE, item }.count("version")
}

fn read_record(reader: ItemReader<'_>) -> Result<ChangeRecord, StoreError> {
    let text = zstd::bulk::decompress(reader.blob("record")?, MAX_RECORD_BYTES).ok();
    let record = text.and_then(|text| serde_json::from_slice(&text).ok());
    record.ok_or_else(|| reader.damaged("record"))
}

/// Returns the approximate size of a change in a response, in bytes. The item stores it because the
/// values are compressed.
fn response_bytes(item: &Item) -> usize {
    let stored = ItemReader { table: TABLE, item }.count("responseBytes");
    let bytes = stored.ok().and_then(|bytes| usize::try_from(bytes).ok());
    bytes.unwrap_or_default().saturating_add(FRAME_BYTES)
}
