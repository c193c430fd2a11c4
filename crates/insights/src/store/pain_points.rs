//! Pain points, in table `replay-insights`: their details, and who may count them.
//!
//! | pk | sk | item |
//! | --- | --- | --- |
//! | `pain-point#PROJECT#ID` | `pain-point` | a pain point, and the batch that brought it |
//! | `batch#ID` | `batch` | whether the pain points of a batch belong to an insight |
//!
//! A request may bring 500 pain points, more than one transaction holds, and none of them may get
//! into two insights. So the pain points are claimed first, for a batch; then the transaction that
//! makes them members of an insight writes that the batch is committed. A claim counts if its batch
//! is committed. Claims of a request that died are taken over by whoever brings the same pain points
//! next, after writing that the dead batch is abandoned: then it can never be committed. A request that
//! is refused abandons its own batch, and so does the later one of two requests that wait for each
//! other.

use std::collections::{HashMap, HashSet};
use std::time::Duration;

use aws_sdk_dynamodb::types::builders::PutBuilder;
use aws_sdk_dynamodb::types::{
    AttributeValue, ReturnValuesOnConditionCheckFailure, TransactWriteItem,
};
use futures_util::stream::{self, StreamExt, TryStreamExt};

use shared::dynamodb::StoreError;
use shared::dynamodb::item::{Item, ItemReader, item_at, key, s};
use shared::dynamodb::request::IntoAction;
use shared::dynamodb::transaction::Transaction;
use shared::projects::project::ProjectId;
use shared::timestamp::Timestamp;
use shared::uuid_type;

use super::InsightStore;
use super::insights::TABLE;
use crate::{PainPoint, PainPointId};

/// The most actions of a transaction.
const CLAIMS_AT_ONCE: usize = 100;
/// Transactions under way at once: the largest request needs five.
const PARALLEL: usize = 5;
/// After this time, longer than any request runs, a batch that is not committed never will be. Only
/// how long others wait depends on it, not that every pain point is counted once.
const BATCH_LIFETIME: Duration = Duration::from_secs(5);
/// How often claims that were in the way are looked into.
const MAX_ROUNDS: usize = 4;

uuid_type! {
    /// The pain points that one request brings; a UUID of version 7, which tells when it came.
    BatchId, parse_uuid
}

impl BatchId {
    /// Whether its request may still be running.
    pub(super) fn may_be_running(self, now: Timestamp) -> bool {
        let Some(made) = self.0.get_timestamp() else { return false };
        let (seconds, nanos) = made.to_unix();
        let millis = i64::try_from(seconds).unwrap_or(i64::MAX).saturating_mul(1_000);
        let made = Timestamp::from_millis(millis.saturating_add(i64::from(nanos / 1_000_000)));
        now < made.plus(BATCH_LIFETIME)
    }
}

/// What became of a claim.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ClaimOutcome {
    /// All pain points are the batch's.
    Claimed,
    /// These belong to an insight already. The batch is given up.
    Taken(Vec<PainPointId>),
    /// Other requests that are still running, and came later, bring some of them.
    InProgress,
    /// Another request that is still running, and came first, brings some of them. The batch is given
    /// up: of two requests that each wait for the other, one has to make way.
    GivenUp,
}

/// What is known of a batch that has ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum BatchOutcome {
    Committed,
    Abandoned,
}

impl InsightStore<'_> {
    /// Claims pain points for a batch. May be repeated with the same batch.
    pub async fn claim_pain_points(
        self,
        project: ProjectId,
        batch: BatchId,
        pain_points: &[&PainPoint],
        now: Timestamp,
    ) -> Result<ClaimOutcome, StoreError> {
        // Whose claims may be overwritten: those of batches that can never be committed.
        let mut void = HashMap::new();
        for _ in 0..MAX_ROUNDS {
            let owners = self.try_to_claim(project, batch, pain_points, &void).await?;
            if owners.is_empty() {
                return Ok(ClaimOutcome::Claimed);
            }
            let batches: HashSet<BatchId> = owners.iter().map(|(_, owner)| *owner).collect();
            let mut fates = self.fates(&batches).await?;
            let taken = owners
                .iter()
                .filter(|(_, owner)| fates.get(owner) == Some(&BatchOutcome::Committed));
            let taken: Vec<PainPointId> = taken.map(|(id, _)| *id).collect();
            if !taken.is_empty() {
                self.give_up(batch).await?;
                return Ok(ClaimOutcome::Taken(taken));
            }
            let unknown = || batches.iter().filter(|owner| !fates.contains_key(owner));
            if let Some(first) = unknown().filter(|owner| owner.may_be_running(now)).min() {
                if batch < *first {
                    return Ok(ClaimOutcome::InProgress);
                }
                self.give_up(batch).await?;
                return Ok(ClaimOutcome::GivenUp);
            }
            let abandoning: Vec<_> = unknown().map(|owner| self.give_up(*owner)).collect();
            let abandoned: Vec<Option<BatchId>> =
                stream::iter(abandoning).buffer_unordered(PARALLEL).try_collect().await?;
            fates.extend(
                abandoned.into_iter().flatten().map(|owner| (owner, BatchOutcome::Abandoned)),
            );
            // Where another fate came first, the next round finds out which.
            void.extend(owners.into_iter().filter(|(_, owner)| fates.contains_key(owner)));
        }
        Ok(ClaimOutcome::InProgress)
    }

    /// Claims what nobody else has claimed, and answers whose claims are in the way.
    async fn try_to_claim(
        self,
        project: ProjectId,
        batch: BatchId,
        pain_points: &[&PainPoint],
        void: &HashMap<PainPointId, BatchId>,
    ) -> Result<Vec<(PainPointId, BatchId)>, StoreError> {
        let groups: Vec<_> = pain_points
            .chunks(CLAIMS_AT_ONCE)
            .map(|group| self.claim_group(project, batch, group, void))
            .collect();
        stream::iter(groups).buffer_unordered(PARALLEL).try_concat().await
    }

    async fn claim_group(
        self,
        project: ProjectId,
        batch: BatchId,
        group: &[&PainPoint],
        void: &HashMap<PainPointId, BatchId>,
    ) -> Result<Vec<(PainPointId, BatchId)>, StoreError> {
        let mut transaction = Transaction::default();
        for pain_point in group {
            let void = void.get(&pain_point.id).copied();
            transaction.add("claim", self.put_claim(project, batch, pain_point, void)?)?;
        }
        match self.db.commit_all(transaction).await? {
            None => Ok(Vec::new()),
            Some(cancellation) => {
                let owners = cancellation.items("claim").map(read_owner);
                let owners: Vec<_> = owners.collect::<Result<_, _>>()?;
                if owners.is_empty() { Err(cancellation.into_error()) } else { Ok(owners) }
            }
        }
    }

    fn put_claim(
        self,
        project: ProjectId,
        batch: BatchId,
        pain_point: &PainPoint,
        void: Option<BatchId>,
    ) -> Result<TransactWriteItem, StoreError> {
        self.db
            .put(TABLE, write_pain_point(project, batch, pain_point))
            // `batch` is a reserved word.
            .condition_expression("attribute_not_exists(pk) OR #batch IN (:batch, :void)")
            .expression_attribute_names("#batch", "batch")
            .expression_attribute_values(":batch", s(batch))
            .expression_attribute_values(":void", s(void.unwrap_or(batch)))
            .return_values_on_condition_check_failure(ReturnValuesOnConditionCheckFailure::AllOld)
            .into_action()
    }

    /// What became of batches; those that are neither committed nor abandoned are left out.
    /// Strongly consistent: a batch is committed before its request is answered.
    async fn fates(
        self,
        batches: &HashSet<BatchId>,
    ) -> Result<HashMap<BatchId, BatchOutcome>, StoreError> {
        let items =
            self.db.get_all(TABLE, batches.iter().copied().map(batch_key).collect()).await?;
        items.iter().map(read_fate).collect()
    }

    /// Writes that a batch is abandoned, so that its claims are in nobody's way, and answers it; unless
    /// it has a fate already.
    pub async fn give_up(self, batch: BatchId) -> Result<Option<BatchId>, StoreError> {
        let abandoned = self.db.write_if(self.put_fate(batch, BatchOutcome::Abandoned)).await?;
        Ok(abandoned.then_some(batch))
    }

    /// The action that writes that a batch is committed, and fails if it was abandoned.
    pub(super) fn put_committed(self, batch: BatchId) -> Result<TransactWriteItem, StoreError> {
        self.put_fate(batch, BatchOutcome::Committed).into_action()
    }

    fn put_fate(self, batch: BatchId, fate: BatchOutcome) -> PutBuilder {
        self.db.put(TABLE, write_fate(batch, fate)).condition_expression("attribute_not_exists(pk)")
    }

    /// The details of pain points that belong to an insight, by id. Strongly consistent: they may
    /// just have been added.
    pub async fn find_pain_points(
        self,
        project: ProjectId,
        ids: impl IntoIterator<Item = PainPointId>,
    ) -> Result<HashMap<PainPointId, PainPoint>, StoreError> {
        let keys: Vec<_> = ids.into_iter().map(|id| pain_point_key(project, id)).collect();
        let wanted = keys.len();
        let items = self.db.get_all(TABLE, keys).await?;
        if items.len() < wanted {
            // Whatever belongs to an insight was claimed before, and a claim stays.
            return Err(StoreError::Damaged { table: TABLE, attribute: "pk" });
        }
        items.iter().map(|item| read_pain_point(item).map(|found| (found.id, found))).collect()
    }
}

impl InsightStore<'_> {
    /// As [`Self::find_pain_points`], without those that cannot be read.
    pub async fn list_pain_points(
        self,
        project: ProjectId,
        ids: &[PainPointId],
    ) -> Result<HashMap<PainPointId, PainPoint>, StoreError> {
        let keys = ids.iter().map(|id| pain_point_key(project, *id)).collect();
        let items = self.db.get_all(TABLE, keys).await?;
        let found: HashMap<_, _> = self
            .db
            .undamaged(&items, |item| read_pain_point(item).map(|found| (found.id, found)))?;
        // Whatever belongs to an insight was claimed before, and a claim stays.
        for key in ids.iter().map(|id| pain_point_key(project, *id)) {
            if items.iter().all(|item| item.get("pk") != key.get("pk")) {
                self.db.report_damaged(TABLE, &key, "pk");
            }
        }
        Ok(found)
    }
}

fn pain_point_key(project: ProjectId, id: PainPointId) -> Item {
    key(&format!("pain-point#{project}#{id}"), "pain-point")
}

pub(super) fn batch_key(batch: BatchId) -> Item {
    key(&format!("batch#{batch}"), "batch")
}

fn write_pain_point(project: ProjectId, batch: BatchId, pain_point: &PainPoint) -> Item {
    let mut item = item_at(
        pain_point_key(project, pain_point.id),
        [
            ("id", s(pain_point.id)),
            ("batch", s(batch)),
            ("sessionId", s(&pain_point.session_id)),
            ("occurredAt", s(pain_point.occurred_at)),
            ("title", s(&pain_point.title)),
            ("excerpt", s(&pain_point.excerpt)),
        ],
    );
    if let Some(user_id) = &pain_point.user_id {
        item.insert("userId".to_owned(), s(user_id));
    }
    item
}

fn read_pain_point(item: &Item) -> Result<PainPoint, StoreError> {
    let reader = ItemReader { table: TABLE, item };
    Ok(PainPoint {
        id: reader.parsed("id", PainPointId::parse)?,
        session_id: reader.text("sessionId")?.to_owned(),
        user_id: reader.optional_text("userId")?.map(str::to_owned),
        occurred_at: reader.time("occurredAt")?,
        title: reader.text("title")?.to_owned(),
        excerpt: reader.text("excerpt")?.to_owned(),
    })
}

/// A pain point, and the batch that has claimed it.
fn read_owner(item: &Item) -> Result<(PainPointId, BatchId), StoreError> {
    let reader = ItemReader { table: TABLE, item };
    let id = reader.parsed("id", PainPointId::parse)?;
    Ok((id, reader.parsed("batch", BatchId::parse)?))
}

fn write_fate(batch: BatchId, fate: BatchOutcome) -> Item {
    let mut item = batch_key(batch);
    item.insert("committed".to_owned(), AttributeValue::Bool(fate == BatchOutcome::Committed));
    item
}

fn read_fate(item: &Item) -> Result<(BatchId, BatchOutcome), StoreError> {
    let reader = ItemReader { table: TABLE, item };
    let id = |pk: &str| pk.strip_prefix("batch#").and_then(BatchId::parse);
    let committed = reader.optional_boolean("committed")?;
    let committed = committed.ok_or_else(|| reader.damaged("committed"))?;
    let fate = if committed { BatchOutcome::Committed } else { BatchOutcome::Abandoned };
    Ok((reader.parsed("pk", id)?, fate))
}
