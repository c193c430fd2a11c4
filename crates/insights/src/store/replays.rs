//! Derived pain points in the table `replay-insights`: replays, and the insights of signatures.
//!
//! | pk | sk | item |
//! | --- | --- | --- |
//! | `replay#PROJECT#REPLAY` | `replay` | the facts about a replay, and which pain points are stored |
//! | `signature#PROJECT#SIGNATURE` | `signature` | the insight of a signature, when it was last used |
//!
//! Each change is one transaction with the replay, if the replay and the insight are unchanged. So a
//! pain point is stored if and only if its replay says so, after any crash.

use std::time::Duration;

use aws_sdk_dynamodb::types::AttributeValue;
use uuid::Uuid;

use shared::dynamodb::item::{Item, ItemReader, b, item_at, key, n, s};
use shared::dynamodb::transaction::Transaction;
use shared::dynamodb::{Cause, ConflictRetry, StoreError};
use shared::projects::project::ProjectId;
use shared::telemetry::{SENDERS_OVER_QUOTA, log_bound_met};
use shared::timestamp::Timestamp;

use super::insights::{TABLE, insight_key};
use super::pain_points::{pain_point_key, write_pain_point};
use super::{BatchId, InsightStore};
use crate::recordings::{ClickId, Facts, Replay, ReplayId, Step};
use crate::signature::Signature;
use crate::{Insight, InsightId, PainPoint, PainPointId};

/// Time for which facts are kept after the last one. A replay lasts at most an hour.
const RETENTION: Duration = Duration::from_hours(7 * 24);
/// Most insights that replays and feedback create in a project per hour. A page with more kinds of
/// trouble does not exist; an attacker can make up any number.
const NEW_INSIGHTS_PER_HOUR: u64 = 200;
/// Most bytes of a replay's facts. The SDK sends far fewer within an hour; an item can have 400 kB.
const MAX_FACTS_BYTES: usize = 300_000;
/// Most insights between the one that a signature names and its owner.
const MAX_HOPS: usize = 100;

/// The circumstances of a change: the project, a source of IDs, and the time.
#[derive(Clone, Copy)]
pub struct Change<'c> {
    /// The project.
    pub project: ProjectId,
    /// Returns a new ID.
    pub new_id: &'c (dyn Fn() -> Uuid + Sync),
    /// The current time.
    pub now: Timestamp,
}

/// The outcome of one transaction.
enum StepOutcome {
    Done,
    /// Nothing is stored: another request changed an item.
    Outdated,
    /// Nothing is stored: pain points with these IDs exist.
    Exist(Vec<PainPointId>),
    /// Nothing is stored: the replay is too large.
    TooLarge,
}

impl InsightStore<'_> {
    /// Adds facts about a replay, and changes insights until they agree with all facts. Can be
    /// repeated. Returns `false` and changes nothing if the replay has too many facts.
    ///
    /// # Errors
    /// [`StoreError::Contended`] if other requests kept changing the replay or its insights.
    pub async fn add_facts(
        self,
        change: Change<'_>,
        replay_id: &ReplayId,
        facts: &Facts,
    ) -> Result<bool, StoreError> {
        let mut existing = Vec::new();
        let mut retry = ConflictRetry::default();
        while retry.next_attempt().await {
            let mut replay = self.find_replay(change.project, replay_id).await?;
            let is_changed = replay.add(facts);
            let step = replay.next_step(replay_id);
            if step.is_none() && !is_changed {
                return Ok(true);
            }
            let is_last = step.is_none();
            match self.take_step(change, replay_id, &mut replay, step, &existing).await? {
                StepOutcome::Done if is_last => return Ok(true),
                StepOutcome::Done => retry = ConflictRetry::default(),
                StepOutcome::Outdated => {}
                StepOutcome::Exist(ids) => existing.extend(ids),
                StepOutcome::TooLarge => return Ok(false),
            }
        }
        Err(StoreError::Contended("a replay or its insights kept changing".into()))
    }

    /// Adds a pain point without facts, such as feedback. A known one counts once.
    ///
    /// # Errors
    /// [`StoreError::Contended`] if other requests kept changing the insight.
    pub async fn add_derived(
        self,
        change: Change<'_>,
        signature: Signature,
        pain_point: &PainPoint,
    ) -> Result<(), StoreError> {
        let mut retry = ConflictRetry::default();
        while retry.next_attempt().await {
            let mut transaction = Transaction::default();
            let added = self.add_points(change, &mut transaction, signature, &[pain_point]).await?;
            if added.is_none() {
                return Ok(());
            }
            match self.commit_step(transaction, &[pain_point]).await? {
                StepOutcome::Outdated | StepOutcome::TooLarge => {}
                StepOutcome::Done | StepOutcome::Exist(_) => return Ok(()),
            }
        }
        Err(StoreError::Contended("the insight kept changing".into()))
    }

    /// Applies a step and writes the replay, in one transaction.
    async fn take_step(
        self,
        change: Change<'_>,
        replay_id: &ReplayId,
        replay: &mut Replay,
        step: Option<Step>,
        existing: &[PainPointId],
    ) -> Result<StepOutcome, StoreError> {
        let mut transaction = Transaction::default();
        let mut added = Vec::new();
        match step {
            None => {}
            Some(Step::Withdraw(insight, signature, ids)) => {
                let points = ids.iter().map(|id| Replay::pain_point_id(replay_id, *id)).collect();
                self.withdraw(change, &mut transaction, insight, signature, points).await?;
                replay.note_withdrawn(&ids);
            }
            Some(Step::Add(signature, points)) => {
                // A client uploaded these, or the facts about the replay expired.
                let (known, new): (Vec<_>, Vec<_>) =
                    points.into_iter().partition(|(_, point)| existing.contains(&point.id));
                replay.note_added(&known, None);
                if !new.is_empty() {
                    let points: Vec<&PainPoint> = new.iter().map(|(_, point)| point).collect();
                    let insight =
                        self.add_points(change, &mut transaction, signature, &points).await?;
                    replay.note_added(&new, insight);
                    added = if insight.is_some() { new } else { Vec::new() };
                }
            }
            Some(Step::Link(links)) => {
                self.link(change.project, replay_id, &mut transaction, &links)?;
                replay.note_linked(&links);
            }
        }
        let facts = replay.pack().map_err(|error| Cause::of_step("packing a replay", error));
        let facts = facts.map_err(StoreError::Rejected)?;
        if facts.len() > MAX_FACTS_BYTES {
            return Ok(StepOutcome::TooLarge);
        }
        let item = item_at(
            replay_key(change.project, replay_id),
            [
                ("facts", b(&facts)),
                ("version", number(replay.version + 1)),
                ("expiresAt", n(change.now.plus(RETENTION).as_seconds())),
            ],
        );
        let put = self.db.put(TABLE, item);
        let put = match replay.version {
            0 => put.condition_expression("attribute_not_exists(pk)"),
            version => put
                .condition_expression("version = :stored")
                .expression_attribute_values(":stored", number(version)),
        };
        transaction.add("replay", put)?;
        let added: Vec<&PainPoint> = added.iter().map(|(_, point)| point).collect();
        self.commit_step(transaction, &added).await
    }

    async fn commit_step(
        self,
        transaction: Transaction,
        added: &[&PainPoint],
    ) -> Result<StepOutcome, StoreError> {
        let Some(cancelled) = self.db.commit_all(transaction).await? else {
            return Ok(StepOutcome::Done);
        };
        let is_known = |(index, _): &(usize, &&PainPoint)| cancelled.failed_at("claim", *index);
        let known = added.iter().enumerate().filter(is_known).map(|(_, point)| point.id);
        let known: Vec<PainPointId> = known.collect();
        let is_outdated = known.is_empty() || cancelled.failed("replay");
        Ok(if is_outdated { StepOutcome::Outdated } else { StepOutcome::Exist(known) })
    }

    /// Adds pain points to the insight that owns their signature, or to a new one. Returns the
    /// insight, or `None` if the project got too many new ones in this hour.
    async fn add_points(
        self,
        change: Change<'_>,
        transaction: &mut Transaction,
        signature: Signature,
        points: &[&PainPoint],
    ) -> Result<Option<InsightId>, StoreError> {
        let Change { project, new_id, now } = change;
        let named = self.find_signature(project, signature).await?;
        let owner = match named {
            Some(named) => self.find_owner(project, named, signature).await?,
            None => None,
        };
        if owner.is_none() {
            let sender = format!("insights#{project}");
            if self.db.count_in_hour(&sender, now).await? > NEW_INSIGHTS_PER_HOUR {
                log_bound_met(SENDERS_OVER_QUOTA, &sender, now);
                return Ok(None);
            }
        }
        let mut insight = owner.unwrap_or_else(|| {
            let title = points.first().map(|point| point.title.clone()).unwrap_or_default();
            Insight::new(InsightId::new(new_id()), project, title, String::new())
        });
        let oldest = insight.oldest_beyond(points.len());
        let ids: Vec<PainPointId> = oldest.iter().map(|it| it.id).collect();
        let details = self.list_pain_points(project, &ids).await?;
        let signature_of =
            |id| details.get(&id).and_then(|point| Some(point.evidence.as_ref()?.signature()));
        let dropped: Vec<_> =
            oldest.into_iter().map(|member| (member, signature_of(member.id))).collect();
        let joined = insight.join(points, signature, &dropped, now, new_id);
        joined.map_err(|_| StoreError::Contended("the owner of a signature was merged".into()))?;
        self.add_insight(transaction, &insight, now)?;
        if named != Some(insight.id) {
            let item = item_at(
                signature_key(project, signature),
                [("insight", s(insight.id)), ("usedAt", s(now))],
            );
            let put = self.db.put(TABLE, item);
            transaction.add(
                "signature",
                match named {
                    None => put.condition_expression("attribute_not_exists(pk)"),
                    Some(named) => put
                        .condition_expression("insight = :named")
                        .expression_attribute_values(":named", s(named)),
                },
            )?;
        }
        // The batch shows to uploads that the pain points belong to an insight.
        let batch = BatchId::new(new_id());
        transaction.add("batch", self.put_committed(batch)?)?;
        for point in points {
            let put = self
                .db
                .put(TABLE, write_pain_point(project, batch, point)?)
                .condition_expression("attribute_not_exists(pk) OR withdrawn = :true")
                .expression_attribute_values(":true", AttributeValue::Bool(true));
            transaction.add("claim", put)?;
        }
        Ok(Some(insight.id))
    }

    /// Removes pain points from their insight. Deletes an insight that then has none: it was
    /// created for an error, seconds before the verdict on the click arrived.
    async fn withdraw(
        self,
        change: Change<'_>,
        transaction: &mut Transaction,
        insight: InsightId,
        signature: Signature,
        ids: Vec<PainPointId>,
    ) -> Result<(), StoreError> {
        let Change { project, now, .. } = change;
        let found = self.find_owner(project, insight, signature).await?;
        let Some(mut insight) = found else { return Ok(()) };
        let removed = insight.withdraw(&ids, signature);
        let removed = removed.map_err(|_| StoreError::Contended("an insight was merged".into()))?;
        if removed.is_empty() {
            // Users split the pain points off. They stay where users moved them.
            return Ok(());
        }
        // The items stay readable, for concurrent requests that have read the insight.
        for id in &removed {
            let update = self
                .db
                .update(TABLE, pain_point_key(project, *id))
                .update_expression("SET withdrawn = :true")
                .expression_attribute_values(":true", AttributeValue::Bool(true));
            transaction.add("point", update)?;
        }
        if insight.is_empty() {
            let delete = self
                .db
                .delete(TABLE, insight_key(project, insight.id))
                .condition_expression("version = :stored")
                .expression_attribute_values(":stored", number(insight.stored_version));
            transaction.add("insight", delete)?;
            for chunk in insight.members.removed() {
                transaction.add("chunk", self.delete_chunk(chunk)?)?;
            }
            return Ok(());
        }
        let unknown = insight.unknown_latest();
        let details = self.find_pain_points(project, unknown).await?;
        insight.refresh_latest(&details);
        self.add_insight(transaction, &insight, now)
    }

    fn link(
        self,
        project: ProjectId,
        replay: &ReplayId,
        transaction: &mut Transaction,
        links: &[(ClickId, Option<String>)],
    ) -> Result<(), StoreError> {
        for (id, error) in links {
            let id = Replay::pain_point_id(replay, *id);
            let update = self
                .db
                .update(TABLE, pain_point_key(project, id))
                .condition_expression("attribute_exists(pk)");
            let update = match error {
                None => update.update_expression("REMOVE errorId"),
                Some(error) => update
                    .update_expression("SET errorId = :error")
                    .expression_attribute_values(":error", s(error)),
            };
            transaction.add("link", update)?;
        }
        Ok(())
    }

    /// Returns the insight to which pain points of a signature go now. Each split or merge moved
    /// the signature to a later owner.
    async fn find_owner(
        self,
        project: ProjectId,
        named: InsightId,
        signature: Signature,
    ) -> Result<Option<Insight>, StoreError> {
        let mut next = named;
        for _ in 0..MAX_HOPS {
            let Some(insight) = self.find_insight(project, next).await? else { return Ok(None) };
            let forward = insight.signatures.forward(signature);
            match forward.or_else(|| insight.status.merged_into()) {
                Some(to) => next = to,
                None => return Ok(Some(insight)),
            }
        }
        Err(StoreError::Damaged { table: TABLE, attribute: "forwards" })
    }

    async fn find_signature(
        self,
        project: ProjectId,
        signature: Signature,
    ) -> Result<Option<InsightId>, StoreError> {
        let found = self.db.get(TABLE, signature_key(project, signature)).await?;
        let insight =
            |item: &Item| ItemReader { table: TABLE, item }.parsed("insight", InsightId::parse);
        found.as_ref().map(insight).transpose()
    }

    async fn find_replay(
        self,
        project: ProjectId,
        replay: &ReplayId,
    ) -> Result<Replay, StoreError> {
        let Some(item) = self.db.get(TABLE, replay_key(project, replay)).await? else {
            return Ok(Replay::default());
        };
        let reader = ItemReader { table: TABLE, item: &item };
        let replay = Replay::unpack(reader.blob("facts")?, reader.count("version")?);
        replay.ok_or_else(|| reader.damaged("facts"))
    }
}

fn replay_key(project: ProjectId, replay: &ReplayId) -> Item {
    key(&format!("replay#{project}#{}", replay.as_str()), "replay")
}

fn signature_key(project: ProjectId, signature: Signature) -> Item {
    key(&format!("signature#{project}#{signature}"), "signature")
}

fn number(version: u64) -> AttributeValue {
    AttributeValue::N(version.to_string())
}
