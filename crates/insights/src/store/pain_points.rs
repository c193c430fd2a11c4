//! Pain points in the table `replay-insights`: their details and the batches that claim them.
//!
//! | pk | sk | item |
//! | --- | --- | --- |
//! | `pain-point#PROJECT#ID` | `pain-point` | a pain point, and the batch that claimed it |
//! | `batch#ID` | `batch` | whether the pain points of a batch belong to an insight |
//!
//! A request can add 500 pain points, more than one transaction can hold, and no pain point may get
//! into two insights. So a batch first claims the pain points. The transaction that then adds them
//! to an insight records that the batch is committed. A claim is valid if its batch is committed.
//!
//! If a request died, the next request with its pain points takes over the claims. It first records
//! that the dead batch is abandoned, so that it can never be committed. A rejected request abandons
//! its own batch. If two requests wait for each other, the later one abandons its batch.

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

use super::insights::TABLE;
use super::{InsightStore, packed, read_packed};
use crate::evidence::Evidence;
use crate::{PainPoint, PainPointId};

/// Maximum number of actions per transaction.
const MAX_ACTIONS: usize = 100;
/// Number of concurrent transactions; the largest request needs five.
const PARALLEL: usize = 5;
/// Time after which an uncommitted batch is never committed, longer than any request runs. Only the
/// wait of other requests depends on it, not the correctness of counts.
const BATCH_LIFETIME: Duration = Duration::from_secs(5);
/// Maximum number of attempts to resolve conflicting claims.
const MAX_ROUNDS: usize = 4;

uuid_type! {
    /// The pain points of one request: a UUID of version 7, which contains its time.
    BatchId, parse_uuid
}

impl BatchId {
    /// `true` if the batch's request can still be running.
    pub(super) fn may_be_running(self, now: Timestamp) -> bool {
        let Some(created) = self.0.get_timestamp() else { return false };
        let (seconds, nanos) = created.to_unix();
        let millis = i64::try_from(seconds).unwrap_or(i64::MAX).saturating_mul(1_000);
        let created = Timestamp::from_millis(millis.saturating_add(i64::from(nanos / 1_000_000)));
        now < created.plus(BATCH_LIFETIME)
    }
}

/// Outcome of a claim.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ClaimOutcome {
    /// The batch has claimed all pain points.
    Claimed,
    /// These pain points already belong to an insight. The batch is abandoned.
    Taken(Vec<PainPointId>),
    /// Later requests that are still running have claimed some of the pain points.
    InProgress,
    /// An earlier request that is still running has claimed some of the pain points. The batch is
    /// abandoned, so that two requests do not wait for each other.
    GivenUp,
}

/// The outcome of a finished batch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum BatchOutcome {
    Committed,
    Abandoned,
}

impl InsightStore<'_> {
    /// Claims pain points for a batch. Can be repeated with the same batch.
    pub async fn claim_pain_points(
        self,
        project: ProjectId,
        batch: BatchId,
        pain_points: &[&PainPoint],
        now: Timestamp,
    ) -> Result<ClaimOutcome, StoreError> {
        // Claims that can be overwritten: their batches can never be committed.
        let mut void = HashMap::new();
        for _ in 0..MAX_ROUNDS {
            let owners = self.try_to_claim(project, batch, pain_points, &void).await?;
            if owners.is_empty() {
                return Ok(ClaimOutcome::Claimed);
            }
            let batches: HashSet<BatchId> = owners.iter().map(|(_, owner)| *owner).collect();
            let mut outcomes = self.outcomes(&batches).await?;
            let taken = owners
                .iter()
                .filter(|(_, owner)| outcomes.get(owner) == Some(&BatchOutcome::Committed));
            let taken: Vec<PainPointId> = taken.map(|(id, _)| *id).collect();
            if !taken.is_empty() {
                self.give_up(batch).await?;
                return Ok(ClaimOutcome::Taken(taken));
            }
            let unknown = || batches.iter().filter(|owner| !outcomes.contains_key(owner));
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
            outcomes.extend(
                abandoned.into_iter().flatten().map(|owner| (owner, BatchOutcome::Abandoned)),
            );
            // If another outcome was recorded first, the next attempt reads it.
            void.extend(owners.into_iter().filter(|(_, owner)| outcomes.contains_key(owner)));
        }
        Ok(ClaimOutcome::InProgress)
    }

    /// Claims the unclaimed pain points, and returns the conflicting claims.
    async fn try_to_claim(
        self,
        project: ProjectId,
        batch: BatchId,
        pain_points: &[&PainPoint],
        void: &HashMap<PainPointId, BatchId>,
    ) -> Result<Vec<(PainPointId, BatchId)>, StoreError> {
        let groups: Vec<_> = pain_points
            .chunks(MAX_ACTIONS)
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
            .put(TABLE, write_pain_point(project, batch, pain_point)?)
            // `batch` is a reserved word.
            .condition_expression("attribute_not_exists(pk) OR #batch IN (:batch, :void)")
            .expression_attribute_names("#batch", "batch")
            .expression_attribute_values(":batch", s(batch))
            .expression_attribute_values(":void", s(void.unwrap_or(batch)))
            .return_values_on_condition_check_failure(ReturnValuesOnConditionCheckFailure::AllOld)
            .into_action()
    }

    /// Returns the outcomes of batches, without those that are neither committed nor abandoned.
    /// Strongly consistent, since a batch is committed before its request is completed.
    async fn outcomes(
        self,
        batches: &HashSet<BatchId>,
    ) -> Result<HashMap<BatchId, BatchOutcome>, StoreError> {
        let items =
            self.db.get_all(TABLE, batches.iter().copied().map(batch_key).collect()).await?;
        items.iter().map(read_outcome).collect()
    }

    /// Records that a batch is abandoned, so that its claims no longer conflict, and returns the
    /// batch. Returns `None` if it already has an outcome.
    pub async fn give_up(self, batch: BatchId) -> Result<Option<BatchId>, StoreError> {
        let abandoned = self.db.write_if(self.put_outcome(batch, BatchOutcome::Abandoned)).await?;
        Ok(abandoned.then_some(batch))
    }

    /// Returns the action that records that a batch is committed. Fails if it was abandoned.
    pub(super) fn put_committed(self, batch: BatchId) -> Result<TransactWriteItem, StoreError> {
        self.put_outcome(batch, BatchOutcome::Committed).into_action()
    }

    fn put_outcome(self, batch: BatchId, outcome: BatchOutcome) -> PutBuilder {
        self.db
            .put(TABLE, write_outcome(batch, outcome))
            .condition_expression("attribute_not_exists(pk)")
    }

    /// Returns the details of pain points in insights, by ID. Strongly consistent, since they can
    /// be new.
    pub async fn find_pain_points(
        self,
        project: ProjectId,
        ids: impl IntoIterator<Item = PainPointId>,
    ) -> Result<HashMap<PainPointId, PainPoint>, StoreError> {
        let keys: Vec<_> = ids.into_iter().map(|id| pain_point_key(project, id)).collect();
        let wanted = keys.len();
        let items = self.db.get_all(TABLE, keys).await?;
        if items.len() < wanted {
            // Each pain point of an insight was claimed before, and claims stay.
            return Err(StoreError::Damaged { table: TABLE, attribute: "pk" });
        }
        items.iter().map(|item| read_pain_point(item).map(|found| (found.id, found))).collect()
    }
}

impl InsightStore<'_> {
    /// Like [`Self::find_pain_points`], without unreadable pain points.
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
        // Each pain point of an insight was claimed before, and claims stay.
        for key in ids.iter().map(|id| pain_point_key(project, *id)) {
            if items.iter().all(|item| item.get("pk") != key.get("pk")) {
                self.db.report_damaged(TABLE, &key, "pk");
            }
        }
        Ok(found)
    }
}

pub(super) fn pain_point_key(project: ProjectId, id: PainPointId) -> Item {
    key(&format!("pain-point#{project}#{id}"), "pain-point")
}

pub(super) fn batch_key(batch: BatchId) -> Item {
    key(&format!("batch#{batch}"), "batch")
}

pub(super) fn write_pain_point(
    project: ProjectId,
    batch: BatchId,
    pain_point: &PainPoint,
) -> Result<Item, StoreError> {
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
    let user_id = pain_point.user_id.as_ref().map(|id| ("userId", s(id)));
    let evidence = pain_point.evidence.as_ref();
    let error_id = evidence.and_then(|it| it.error_id.as_ref()).map(|id| ("errorId", s(id)));
    let evidence = evidence.map(packed).transpose()?.map(|packed| ("evidence", packed));
    let optional = [user_id, evidence, error_id].into_iter().flatten();
    item.extend(optional.map(|(name, value)| (name.to_owned(), value)));
    Ok(item)
}

fn read_pain_point(item: &Item) -> Result<PainPoint, StoreError> {
    let reader = ItemReader { table: TABLE, item };
    let optional = |name| reader.optional_text(name).map(|text| text.map(str::to_owned));
    let evidence = read_packed::<Evidence>(reader, "evidence")?;
    // Later facts change the error.
    let error_id = optional("errorId")?;
    Ok(PainPoint {
        id: reader.parsed("id", PainPointId::parse)?,
        session_id: reader.text("sessionId")?.to_owned(),
        user_id: optional("userId")?,
        occurred_at: reader.time("occurredAt")?,
        title: reader.text("title")?.to_owned(),
        excerpt: reader.text("excerpt")?.to_owned(),
        evidence: evidence.map(|evidence| Evidence { error_id, ..evidence }),
    })
}

/// Returns a pain point's ID and the batch that claimed it.
fn read_owner(item: &Item) -> Result<(PainPointId, BatchId), StoreError> {
    let reader = ItemReader { table: TABLE, item };
    let id = reader.parsed("id", PainPointId::parse)?;
    Ok((id, reader.parsed("batch", BatchId::parse)?))
}

fn write_outcome(batch: BatchId, outcome: BatchOutcome) -> Item {
    let mut item = batch_key(batch);
    item.insert("committed".to_owned(), AttributeValue::Bool(outcome == BatchOutcome::Committed));
    item
}

fn read_outcome(item: &Item) -> Result<(BatchId, BatchOutcome), StoreError> {
    let reader = ItemReader { table: TABLE, item };
    let id = |pk: &str| pk.strip_prefix("batch#").and_then(BatchId::parse);
    let committed = reader.optional_boolean("committed")?;
    let committed = committed.ok_or_else(|| reader.damaged("committed"))?;
    let outcome = if committed { BatchOutcome::Committed } else { BatchOutcome::Abandoned };
    Ok((reader.parsed("pk", id)?, outcome))
}
