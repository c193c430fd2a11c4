//! Table `replay-insights`, key `pk` / `sk`: insights and the chunks with their members.
//! [`super::pain_points`] describes the table's other items.
//!
//! | pk | sk | item |
//! | --- | --- | --- |
//! | `project#ID` | `insight#ID` | an insight, with references to its chunks |
//! | `chunk#ID` | `chunk` | up to 400 members of one insight |
//! | `split#HASH` | `split` | the insight that a split created |
//!
//! One transaction writes an insight's item and its chunks, with the insight's version as its
//! condition. Reads are separate: each chunk must have the revision that the insight references. So
//! an insight is always read as it was at one time.

use std::collections::{HashMap, HashSet};

use aws_sdk_dynamodb::types::{AttributeValue, TransactWriteItem};
use futures_util::future::try_join_all;
use uuid::Uuid;

use notifications::store::NotificationStore;
use shared::dynamodb::idempotency::{Idempotent, Replay};
use shared::dynamodb::item::{Item, ItemReader, b, item_at, key, n, s, time_key};
use shared::dynamodb::last_seen::{LastSeenList, index_attributes, position_of};
use shared::dynamodb::request::IntoAction;
use shared::dynamodb::transaction::{Transaction, TransactionOutcome};
use shared::dynamodb::{ConflictRetry, StoreError};
use shared::page::{Page, PageRequest};
use shared::projects::project::ProjectId;
use shared::timestamp::Timestamp;

use super::pain_points::BatchId;
use super::{InsightStore, packed, read_packed};
use crate::membership::{Chunk, ChunkReference, Membership};
use crate::{DerivedState, Insight, InsightId, InsightStatus, StatusFilter};

pub(super) const TABLE: &str = "replay-insights";
/// Prefix of insights' sort keys.
const INSIGHT: &str = "insight#";
/// Number of insights per page of open insights without recent pain points.
const UNSEEN_PER_PAGE: i32 = 50;
/// Maximum number of chunks to read for one page of insights: 4.6 MB.
const MAX_CHUNKS_PER_PAGE: usize = 200;

/// The record that a transaction writes in addition to insights.
#[derive(Debug, Clone, Copy)]
pub enum RequestRecord {
    /// No record.
    None,
    /// The pain points of this batch now belong to an insight.
    Batch(BatchId),
    /// The insight that a split with this fingerprint created.
    Split {
        /// The split's fingerprint.
        fingerprint: u128,
        /// The created insight.
        made: InsightId,
    },
}

/// Outcome of a write of insights.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum InsightWrite {
    /// All changes are stored.
    Done,
    /// Nothing is stored: an insight changed after it was read.
    Outdated,
    /// Nothing is stored: the batch took too long, and another request abandoned it.
    BatchAbandoned,
    /// Nothing is stored: the idempotency key was used before.
    Replay(Replay),
}

/// Chunks that were read, by id and revision.
type ReadChunks = HashMap<(Uuid, u32), Chunk>;

fn keyed_chunk(item: &Item) -> Result<((Uuid, u32), Chunk), StoreError> {
    read_chunk(item).map(|chunk| ((chunk.reference.id, chunk.reference.revision), chunk))
}

/// An insight whose members are not read yet.
pub(super) struct Head {
    insight: Insight,
    pub(super) chunks: Vec<ChunkReference>,
}

impl InsightStore<'_> {
    /// Returns an insight with its members, as it was at one time. Strongly consistent, so that
    /// completed writes are visible and the next write can build on the insight.
    pub async fn find_insight(
        self,
        project: ProjectId,
        id: InsightId,
    ) -> Result<Option<Insight>, StoreError> {
        let found = self.read_insight(project, id).await?;
        let kept_changing = "the insight kept changing while it was read";
        found.ok_or_else(|| StoreError::Unavailable(kept_changing.into()))
    }

    /// Returns the IDs of existing insights, including merged and unreadable ones. Strongly
    /// consistent.
    pub async fn existing_insights(
        self,
        project: ProjectId,
        ids: &[String],
    ) -> Result<HashSet<String>, StoreError> {
        let place = |id| key(&project_pk(project), &format!("{INSIGHT}{id}"));
        let items = self.db.get_all(TABLE, ids.iter().map(place).collect()).await?;
        let id = |sk: &str| sk.strip_prefix(INSIGHT).map(str::to_owned);
        items.iter().map(|item| ItemReader { table: TABLE, item }.parsed("sk", id)).collect()
    }

    /// Like [`Self::find_insight`], but `None` if the insight and its chunks never matched.
    async fn read_insight(
        self,
        project: ProjectId,
        id: InsightId,
    ) -> Result<Option<Option<Insight>>, StoreError> {
        let mut retry = ConflictRetry::default();
        while retry.next_attempt().await {
            let found = self.db.get(TABLE, insight_key(project, id)).await?;
            let Some(item) = found else { return Ok(Some(None)) };
            let head = read_head(project, &item)?;
            let ids = head.chunks.iter().map(|chunk| chunk.id);
            let items = self.chunk_items(ids).await?;
            let mut chunks = items.iter().map(keyed_chunk).collect::<Result<_, _>>()?;
            if let Some(insight) = assemble(head, &mut chunks) {
                return Ok(Some(Some(insight)));
            }
        }
        Ok(None)
    }

    /// Returns a project's insights, most recently seen first, merged ones last. Strongly
    /// consistent. A page ends early if its insights have very many members.
    pub async fn list_insights(
        self,
        project: ProjectId,
        status: Option<StatusFilter>,
        page_request: &PageRequest,
    ) -> Result<Page<Insight>, StoreError> {
        let list = LastSeenList {
            table: TABLE,
            pk: project_pk(project),
            status: status.map(StatusFilter::as_str),
        };
        let key_at = |position: &str| Some(insight_key(project, read_position(position)?));
        let read = |item: &Item| Ok((read_head(project, item)?, position_of(TABLE, item)?));
        let heads = self.db.page_by_last_seen(&list, page_request, key_at, read).await?;
        let mut insights = self.complete(project, heads).await?;
        // An insight that was read again can have another status.
        insights.items.retain(|insight| {
            status.is_none_or(|status| status.as_str() == insight.status.as_str())
        });
        Ok(insights)
    }

    /// Returns a page of the open insights whose last pain point precedes a time, oldest first, and
    /// the position at which the next page continues.
    pub async fn list_open_unseen(
        self,
        project: ProjectId,
        since: Timestamp,
        after: Option<String>,
    ) -> Result<(Vec<InsightId>, Option<String>), StoreError> {
        let prefix = format!("{}#", StatusFilter::OPEN.as_str());
        let output = self
            .db
            .query(TABLE)
            .index_name("byStatus")
            .consistent_read(true)
            .key_condition_expression("pk = :pk AND statusKey BETWEEN :after AND :since")
            .expression_attribute_values(":pk", s(project_pk(project)))
            .expression_attribute_values(":after", s(after.unwrap_or_else(|| prefix.clone())))
            .expression_attribute_values(":since", s(format!("{prefix}{}", time_key(since))))
            .limit(UNSEEN_PER_PAGE)
            .send()
            .await?;
        let items = output.items.unwrap_or_default();
        let id = |sk: &str| sk.strip_prefix(INSIGHT).and_then(InsightId::parse);
        let ids =
            self.db.undamaged(&items, |item| ItemReader { table: TABLE, item }.parsed("sk", id))?;
        let last = items.last().filter(|_| output.last_evaluated_key.is_some());
        let last = last.map(|item| ItemReader { table: TABLE, item }.text("statusKey"));
        // No position has this character after its end.
        Ok((ids, last.transpose()?.map(|position| format!("{position}!"))))
    }

    /// Reads the members of a page's insights.
    async fn complete(
        self,
        project: ProjectId,
        mut heads: Page<(Head, String)>,
    ) -> Result<Page<Insight>, StoreError> {
        let mut count = 0;
        let affordable = heads.items.iter().take_while(|(head, _)| {
            let first = count == 0;
            count += head.chunks.len();
            first || count <= MAX_CHUNKS_PER_PAGE
        });
        let affordable = affordable.count();
        if affordable < heads.items.len() {
            heads.items.truncate(affordable);
            heads.end = heads.items.last().map(|(_, position)| position.clone());
        }
        // If a merge happens during the query, two insights can reference the same chunk.
        let wanted = heads.items.iter().flat_map(|(head, _)| &head.chunks);
        let items = self.chunk_items(wanted.map(|chunk| chunk.id)).await?;
        let mut chunks = self.db.undamaged(&items, keyed_chunk)?;
        let insights = heads.items.into_iter().map(|(head, _)| {
            let id = head.insight.id;
            let assembled = assemble(head, &mut chunks);
            async move {
                match assembled {
                    None => self.read_listed(project, id).await,
                    insight => Ok(insight),
                }
            }
        });
        let insights = try_join_all(insights).await?.into_iter().flatten().collect();
        Ok(Page { items: insights, end: heads.end })
    }

    /// Returns a listed insight; `None` if it is gone or unreadable. Reports unreadable insights.
    async fn read_listed(
        self,
        project: ProjectId,
        id: InsightId,
    ) -> Result<Option<Insight>, StoreError> {
        let key = insight_key(project, id);
        let read = self.read_insight(project, id).await;
        let damaged = StoreError::Damaged { table: TABLE, attribute: "chunks" };
        let read = read.and_then(|found| found.ok_or(damaged));
        Ok(self.db.unless_damaged(&key, read)?.flatten())
    }

    async fn chunk_items(self, ids: impl Iterator<Item = Uuid>) -> Result<Vec<Item>, StoreError> {
        // DynamoDB rejects duplicate keys.
        let ids: HashSet<Uuid> = ids.collect();
        let keys = ids.into_iter().map(chunk_key).collect();
        self.db.get_all(TABLE, keys).await
    }

    /// Writes the changed insights if they are unchanged in the table, and announces the new ones,
    /// in one transaction.
    pub async fn save_insights(
        self,
        insights: &[&Insight],
        request_record: RequestRecord,
        idempotent: Option<Idempotent<'_>>,
        now: Timestamp,
    ) -> Result<InsightWrite, StoreError> {
        let changed = insights.iter().filter(|insight| insight.version != insight.stored_version);
        let mut transaction = Transaction::default();
        for insight in changed {
            self.add_insight(&mut transaction, insight, now)?;
        }
        if !transaction.is_empty()
            && let Some(record) = self.put_request_record(request_record)?
        {
            transaction.add("request", record)?;
        }
        if transaction.is_empty() && idempotent.is_none() {
            return Ok(InsightWrite::Done);
        }
        match self.db.commit(transaction, idempotent, now).await? {
            TransactionOutcome::Done => Ok(InsightWrite::Done),
            TransactionOutcome::Replay(replay) => Ok(InsightWrite::Replay(replay)),
            TransactionOutcome::Rejected(cancellation) => {
                if cancellation.failed("insight") {
                    Ok(InsightWrite::Outdated)
                } else if cancellation.failed("request") {
                    Ok(InsightWrite::BatchAbandoned)
                } else {
                    Err(cancellation.into_error())
                }
            }
        }
    }

    /// Adds the writes of a changed insight to a transaction, and the announcement of a new one.
    pub(super) fn add_insight(
        self,
        transaction: &mut Transaction,
        insight: &Insight,
        now: Timestamp,
    ) -> Result<(), StoreError> {
        transaction.add("insight", self.put_head(insight)?)?;
        if insight.stored_version == 0 {
            let created = NotificationStore::new(self.db).announce(&insight.created(now))?;
            transaction.add("announcement", created)?;
        }
        for chunk in insight.members.changed() {
            transaction.add("chunk", self.put_chunk(chunk)?)?;
        }
        for id in insight.members.removed() {
            transaction.add("chunk", self.delete_chunk(id)?)?;
        }
        Ok(())
    }

    fn put_head(self, insight: &Insight) -> Result<TransactWriteItem, StoreError> {
        let put = self
            .db
            .put(TABLE, write_head(insight)?)
            .condition_expression("attribute_not_exists(pk)");
        let put = match insight.stored_version {
            0 => put,
            version => put
                .condition_expression("version = :stored")
                .expression_attribute_values(":stored", version_number(version)),
        };
        put.into_action()
    }

    fn put_chunk(self, chunk: &Chunk) -> Result<TransactWriteItem, StoreError> {
        let mut item = chunk_key(chunk.reference.id);
        item.insert("revision".to_owned(), n(chunk.reference.revision));
        item.insert("members".to_owned(), b(&chunk.pack()));
        self.db.put(TABLE, item).into_action()
    }

    pub(super) fn delete_chunk(self, id: Uuid) -> Result<TransactWriteItem, StoreError> {
        self.db.delete(TABLE, chunk_key(id)).into_action()
    }

    fn put_request_record(
        self,
        request_record: RequestRecord,
    ) -> Result<Option<TransactWriteItem>, StoreError> {
        match request_record {
            RequestRecord::None => Ok(None),
            RequestRecord::Batch(batch) => self.put_committed(batch).map(Some),
            RequestRecord::Split { fingerprint, made } => {
                let mut item = split_key(fingerprint);
                item.insert("made".to_owned(), s(made));
                self.db.put(TABLE, item).into_action().map(Some)
            }
        }
    }

    /// Returns the insight that the latest split with this fingerprint created. Strongly
    /// consistent, since the caller has seen that the pain points were moved.
    pub async fn find_split(self, fingerprint: u128) -> Result<Option<InsightId>, StoreError> {
        let found = self.db.get(TABLE, split_key(fingerprint)).await?;
        let made = |item: &Item| ItemReader { table: TABLE, item }.parsed("made", InsightId::parse);
        found.as_ref().map(made).transpose()
    }
}

/// Returns an insight with its members, if all its chunks have the referenced revisions.
fn assemble(head: Head, chunks: &mut ReadChunks) -> Option<Insight> {
    let read = head.chunks.iter().map(|reference| {
        let mut chunk = chunks.remove(&(reference.id, reference.revision))?;
        // The insight's reference marks the removed members.
        chunk.reference = *reference;
        Some(chunk)
    });
    let members = Membership::read(read.collect::<Option<_>>()?);
    Some(Insight { members, ..head.insight })
}

pub(super) fn project_pk(project: ProjectId) -> String {
    format!("project#{project}")
}

pub(super) fn insight_key(project: ProjectId, id: InsightId) -> Item {
    key(&project_pk(project), &format!("{INSIGHT}{id}"))
}

pub(super) fn chunk_key(id: Uuid) -> Item {
    key(&format!("chunk#{}", id.as_hyphenated()), "chunk")
}

fn split_key(fingerprint: u128) -> Item {
    key(&format!("split#{fingerprint:032x}"), "split")
}

fn version_number(version: u64) -> AttributeValue {
    AttributeValue::N(version.to_string())
}

/// Returns an insight's position in its project's list: the time it was last seen, then its ID.
/// Insights without a time sort before all others, so they are last in the list.
fn position(insight: &Insight) -> String {
    let last_seen = insight.latest.as_ref().map(|latest| time_key(latest.occurred_at));
    format!("{}#{}", last_seen.unwrap_or_default(), insight.id)
}

fn read_position(position: &str) -> Option<InsightId> {
    InsightId::parse(position.split_once('#')?.1)
}

fn write_head(insight: &Insight) -> Result<Item, StoreError> {
    let mut item = item_at(
        insight_key(insight.project_id, insight.id),
        [
            ("id", s(insight.id)),
            ("version", version_number(insight.version)),
            ("title", s(&insight.title)),
            ("description", s(&insight.description)),
            ("status", s(insight.status.as_str())),
            ("viewed", AttributeValue::Bool(insight.viewed)),
            ("chunks", b(&ChunkReference::pack_all(insight.members.references()))),
            ("derived", packed(&insight.derived_state())?),
        ],
    );
    let index_attributes = index_attributes(insight.status.as_str(), position(insight));
    item.extend(index_attributes.map(|(name, value)| (name.to_owned(), value)));
    if let Some(into) = insight.status.merged_into() {
        item.insert("mergedInto".to_owned(), s(into));
    }
    if let Some(before) = &insight.before_merge {
        item.insert("beforeMerge".to_owned(), packed(before)?);
    }
    Ok(item)
}

pub(super) fn read_head(project_id: ProjectId, item: &Item) -> Result<Head, StoreError> {
    let reader = ItemReader { table: TABLE, item };
    let status = match reader.text("status")? {
        "open" => InsightStatus::Open,
        "resolved" => InsightStatus::Resolved,
        "ignored" => InsightStatus::Ignored,
        "merged" => InsightStatus::Merged { into: reader.parsed("mergedInto", InsightId::parse)? },
        _ => return Err(reader.damaged("status")),
    };
    let version = reader.count("version")?;
    let chunks = ChunkReference::unpack_all(reader.blob("chunks")?);
    let derived = read_packed::<DerivedState>(reader, "derived")?;
    let DerivedState { latest, signatures, unlisted } = derived.unwrap_or_default();
    let before_merge = read_packed(reader, "beforeMerge")?;
    Ok(Head {
        insight: Insight {
            id: reader.parsed("id", InsightId::parse)?,
            project_id,
            version,
            stored_version: version,
            title: reader.text("title")?.to_owned(),
            description: reader.text("description")?.to_owned(),
            status,
            viewed: reader.optional_boolean("viewed")?.unwrap_or_default(),
            latest,
            members: Membership::default(),
            signatures,
            unlisted,
            before_merge,
        },
        chunks: chunks.map_err(|_| reader.damaged("chunks"))?,
    })
}

fn read_chunk(item: &Item) -> Result<Chunk, StoreError> {
    let reader = ItemReader { table: TABLE, item };
    let id = |pk: &str| pk.strip_prefix("chunk#").and_then(|id| Uuid::try_parse(id).ok());
    let revision = reader.optional_integer("revision")?;
    let revision = revision.and_then(|revision| revision.try_into().ok());
    let revision = revision.ok_or_else(|| reader.damaged("revision"))?;
    let reference = ChunkReference::new(reader.parsed("pk", id)?, revision);
    Chunk::unpack(reference, reader.blob("members")?).map_err(|_| reader.damaged("members"))
}
