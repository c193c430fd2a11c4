//! Operations on replay insights (`docs/semantics/replay-insights.md`), without I/O.
//!
//! Each pain point of a project is in exactly one insight. Operations change insights in memory.
//! The store then writes all changes in one transaction.

#[cfg(test)]
mod tests;

use std::collections::{HashMap, HashSet};
use std::time::Duration;

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use uuid::Uuid;

use notifications::domain_event::{DomainEvent, DomainEventKind, Visibility};
use shared::json::{JsonPath, ViolationCode, Violations};
use shared::page::{Page, PageRequest};
use shared::projects::project::ProjectId;
use shared::timestamp::Timestamp;

use super::membership::{ChunkReference, Member, Membership};
use super::statistics::{PERIOD, Statistics};
use crate::draft::InsightPatch;
use crate::signature::{Signature, Signatures, Unlisted};
use crate::{
    InsightId, InsightStatus, MAX_PAIN_POINTS, PainPoint, PainPointId, Percent, ReplayInsight,
};

/// Minimum number of sessions of a trending insight.
const TRENDING_SESSIONS: u32 = 10;
/// A trending insight has a higher trend than this.
const TRENDING_ABOVE: Percent = Percent { tenths: 1_000 };
/// Unit of the instance number of trend events.
const DAY: Duration = Duration::from_hours(24);

/// A replay insight with its members.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Insight {
    /// The insight's ID.
    pub id: InsightId,
    /// The project that owns the insight.
    pub project_id: ProjectId,
    /// The version, incremented by each change of the insight or its members; 1 on creation.
    pub version: u64,
    /// The stored version; 0 before creation.
    pub stored_version: u64,
    /// The title, one line.
    pub title: String,
    /// The description.
    pub description: String,
    /// The work status.
    pub status: InsightStatus,
    /// `true` if a user has viewed the insight.
    pub viewed: bool,
    /// The latest pain point; `None` if the insight is merged.
    pub latest: Option<Latest>,
    /// The pain points.
    pub members: Membership,
    /// The signatures of derived pain points.
    pub signatures: Signatures,
    /// Derived pain points beyond the maximum, which are no longer members.
    pub unlisted: Unlisted,
    /// The state before the merge, if the insight is merged.
    pub before_merge: Option<BeforeMerge>,
}

/// The state of two insights before a merge, for undoing it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct BeforeMerge {
    /// The digest of the receiver's pain points after the merge.
    pub receiver_digest: [u8; 32],
    /// The receiver's chunks that have only pain points of the merged insight.
    pub chunks: Vec<Uuid>,
    /// The other pain points of the merged insight.
    pub others: Vec<PainPointId>,
    /// The merged insight.
    pub source: DerivedState,
    /// The receiver.
    pub receiver: DerivedState,
}

/// The state of an insight that follows from its pain points, except the members.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct DerivedState {
    /// The latest pain point.
    pub latest: Option<Latest>,
    /// The signatures.
    pub signatures: Signatures,
    /// The pain points that are no longer members.
    pub unlisted: Unlisted,
}

/// The data that an insight shows of its latest pain point.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Latest {
    /// The pain point's ID.
    pub id: PainPointId,
    /// Time of the occurrence.
    pub occurred_at: Timestamp,
    /// An excerpt of the replay.
    pub excerpt: String,
}

impl Latest {
    fn order(&self) -> (Timestamp, PainPointId) {
        (self.occurred_at, self.id)
    }
}

impl From<&PainPoint> for Latest {
    fn from(pain_point: &PainPoint) -> Self {
        Self {
            id: pain_point.id,
            occurred_at: pain_point.occurred_at,
            excerpt: pain_point.excerpt.clone(),
        }
    }
}

/// The reason why an insight's pain points cannot be changed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Rejection {
    /// The insight is merged into another one.
    Merged,
    /// The insight would exceed its maximum number of pain points.
    Full,
    /// Some of the pain points to split off are not in the insight.
    NotMembers(Violations),
    /// The split would leave no pain points.
    WouldEmpty,
}

impl Insight {
    /// Returns a new insight, not yet stored and without pain points.
    pub fn new(id: InsightId, project_id: ProjectId, title: String, description: String) -> Self {
        Self {
            id,
            project_id,
            version: 0,
            stored_version: 0,
            title,
            description,
            status: InsightStatus::Open,
            viewed: false,
            latest: None,
            members: Membership::default(),
            signatures: Signatures::default(),
            unlisted: Unlisted::default(),
            before_merge: None,
        }
    }

    /// Returns the event for the insight's creation.
    pub fn created(&self, now: Timestamp) -> DomainEvent {
        let visibility = Visibility::Project(self.project_id);
        let domain_event = DomainEvent::new(
            DomainEventKind::InsightCreated,
            visibility,
            self.id,
            &self.title,
            now,
        );
        let sessions = self.at(now).affected_sessions;
        domain_event.detailed(&self.description).with_event_count(u64::from(sessions))
    }

    /// Returns an event if the insight is open and affects many more sessions than in the previous
    /// period (`docs/semantics/replay-insights.md`, "Statistics").
    pub fn trending(&self, now: Timestamp) -> Option<DomainEvent> {
        let statistics = Statistics::of(self.members.iter(), now);
        let is_trending = self.status == InsightStatus::Open
            && statistics.affected_sessions >= TRENDING_SESSIONS
            && statistics.trend() > TRENDING_ABOVE;
        let day = Timestamp::from_millis(0).until(now).as_secs() / DAY.as_secs();
        let (kind, visibility) =
            (DomainEventKind::InsightTrending, Visibility::Project(self.project_id));
        let domain_event = DomainEvent::new(kind, visibility, self.id, &self.title, now);
        let domain_event = domain_event.detailed(&format!("{} in 30 days", statistics.trend()));
        let sessions = u64::from(statistics.affected_sessions);
        is_trending.then(|| domain_event.at_instance(day).with_event_count(sessions))
    }

    /// Returns the insight as in a response at `now`.
    pub fn at(&self, now: Timestamp) -> ReplayInsight<'_> {
        let statistics = Statistics::of(self.members.iter(), now);
        let unlisted = self.unlisted.count_since(now.minus(PERIOD));
        ReplayInsight {
            viewed: self.viewed,
            id: self.id,
            title: &self.title,
            description: &self.description,
            status: self.status.as_str(),
            merged_into: self.status.merged_into(),
            affected_sessions: statistics.affected_sessions,
            identified_users: statistics.identified_users,
            occurrences: statistics.occurrences.saturating_add(unlisted),
            previous_affected_sessions: statistics.previous_affected_sessions,
            trend_percent: statistics.trend(),
            first_seen: statistics.first_seen.into_iter().chain(self.unlisted.first()).min(),
            last_seen: statistics.last_seen,
            excerpt: self.latest.as_ref().map_or("", |latest| &latest.excerpt),
        }
    }

    /// Returns those of `pain_points` that are not members yet.
    pub fn missing<'p>(
        &self,
        pain_points: impl IntoIterator<Item = &'p PainPoint>,
    ) -> Vec<&'p PainPoint> {
        let members: HashSet<_> = self.members.iter().map(|member| member.id).collect();
        pain_points.into_iter().filter(|pain_point| !members.contains(&pain_point.id)).collect()
    }

    /// Adds pain points that are not members yet. `new_id` names new chunks.
    pub fn add(
        &mut self,
        pain_points: &[&PainPoint],
        new_id: impl FnMut() -> Uuid,
    ) -> Result<(), Rejection> {
        self.check_capacity(pain_points.len())?;
        if pain_points.is_empty() {
            return Ok(());
        }
        self.version += 1;
        let newest = pain_points.iter().map(|pain_point| Latest::from(*pain_point));
        self.latest = self.latest.take().into_iter().chain(newest).max_by_key(Latest::order);
        self.members.add(pain_points.iter().map(|pain_point| Member::from(*pain_point)), new_id);
        Ok(())
    }

    /// Returns the oldest members, which no longer fit if `more` are added.
    pub fn oldest_beyond(&self, more: usize) -> Vec<Member> {
        let excess = (self.members.len() + more).saturating_sub(MAX_PAIN_POINTS);
        let mut members: Vec<Member> =
            if excess == 0 { Vec::new() } else { self.members.iter().copied().collect() };
        members.sort_unstable_by_key(Member::order);
        members.truncate(excess);
        members
    }

    /// Adds derived pain points of a signature that the insight owns, and reopens a resolved
    /// insight. `dropped` are the members of [`Self::oldest_beyond`] with their signatures: they
    /// stay counted, and are no longer listed.
    pub fn join(
        &mut self,
        pain_points: &[&PainPoint],
        signature: Signature,
        dropped: &[(Member, Option<Signature>)],
        now: Timestamp,
        new_id: impl FnMut() -> Uuid,
    ) -> Result<(), Rejection> {
        self.members.remove(&dropped.iter().map(|(member, _)| member.id).collect());
        for (member, signature) in dropped {
            self.unlisted.add(member.occurred_at, now.minus(PERIOD));
            if let Some(signature) = signature {
                self.signatures.remove(*signature);
            }
        }
        self.add(pain_points, new_id)?;
        self.signatures.add(signature, pain_points.len());
        if self.status == InsightStatus::Resolved {
            self.status = InsightStatus::Open;
        }
        Ok(())
    }

    /// Removes derived pain points of a signature that later facts contradict. Pain points that are
    /// no longer in the insight stay where they are. Returns the removed ones.
    pub fn withdraw(
        &mut self,
        ids: &[PainPointId],
        signature: Signature,
    ) -> Result<Vec<PainPointId>, Rejection> {
        self.check_not_merged()?;
        let removed = self.members.remove(&ids.iter().copied().collect());
        for _ in &removed {
            self.signatures.remove(signature);
        }
        self.version += u64::from(!removed.is_empty());
        Ok(removed.iter().map(|member| member.id).collect())
    }

    /// `true` if the insight has and had no pain points.
    pub fn is_empty(&self) -> bool {
        self.members.is_empty() && self.unlisted.first().is_none()
    }

    /// Resolves the insight if it is open, has derived pain points, and had no pain point since a
    /// time. Returns `true` if it changed.
    pub fn resolve_unless_seen(&mut self, since: Timestamp) -> bool {
        let is_seen = self.latest.as_ref().is_some_and(|latest| latest.occurred_at >= since);
        let is_derived = !self.signatures.is_empty();
        let is_resolved = self.status == InsightStatus::Open && is_derived && !is_seen;
        if is_resolved {
            self.status = InsightStatus::Resolved;
            self.version += 1;
        }
        is_resolved
    }

    fn check_not_merged(&self) -> Result<(), Rejection> {
        match self.status {
            InsightStatus::Merged { .. } => Err(Rejection::Merged),
            _ => Ok(()),
        }
    }

    /// Checks that the insight can have `more` members.
    pub fn check_capacity(&self, more: usize) -> Result<(), Rejection> {
        self.check_not_merged()?;
        if self.members.len().saturating_add(more) > MAX_PAIN_POINTS {
            return Err(Rejection::Full);
        }
        Ok(())
    }

    /// Splits off an untitled insight with the ID `split_id` and these pain points. All must be
    /// members of this insight, and one other member must remain.
    pub fn split_off(
        &mut self,
        ids: &[PainPointId],
        split_id: InsightId,
        new_id: impl FnMut() -> Uuid,
    ) -> Result<Self, Rejection> {
        self.check_not_merged()?;
        let members: HashSet<_> = self.members.iter().map(|member| member.id).collect();
        let mut unknown = Violations::default();
        for (index, id) in ids.iter().enumerate().filter(|(_, id)| !members.contains(id)) {
            let path = JsonPath::Root.member("painPointIds");
            let message = format_args!("the insight has no pain point {id}");
            unknown.note(&path.item(index), ViolationCode::UnknownPainPoint, message);
        }
        if !unknown.is_empty() {
            return Err(Rejection::NotMembers(unknown));
        }
        let moved: HashSet<_> = ids.iter().copied().collect();
        if moved.len() == members.len() {
            return Err(Rejection::WouldEmpty);
        }
        let mut split = Self::new(split_id, self.project_id, String::new(), String::new());
        split.members.add(self.members.remove(&moved), new_id);
        split.version += 1;
        self.version += 1;
        Ok(split)
    }

    /// Moves the signatures of the pain points that were split off into `split`, with their details.
    pub fn split_signatures(
        &mut self,
        split: &mut Self,
        details: &HashMap<PainPointId, PainPoint>,
    ) {
        let moved = split.members.iter().filter_map(|member| details.get(&member.id));
        let moved = moved.filter_map(|point| Some(point.evidence.as_ref()?.signature()));
        split.signatures = self.signatures.split_off(moved, split.id);
    }

    /// Returns the latest member if it differs from [`Self::latest`], as after a split.
    pub fn unknown_latest(&self) -> Option<PainPointId> {
        let known = self.latest.as_ref().map(|latest| latest.id);
        self.members.latest().map(|latest| latest.id).filter(|latest| known != Some(*latest))
    }

    /// Updates [`Self::latest`] from the details of [`Self::unknown_latest`].
    pub fn refresh_latest(&mut self, details: &HashMap<PainPointId, PainPoint>) {
        let latest = self.unknown_latest().and_then(|id| details.get(&id));
        if let Some(latest) = latest {
            self.latest = Some(latest.into());
        }
    }

    /// Moves all pain points of `other` to this insight and marks `other` as merged.
    pub fn merge(&mut self, other: &mut Self) -> Result<(), Rejection> {
        other.check_not_merged()?;
        self.check_capacity(other.members.len())?;
        let moved: HashSet<_> = other.members.iter().map(|member| member.id).collect();
        let (source, receiver) = (other.derived_state(), self.derived_state());
        self.members.absorb(std::mem::take(&mut other.members));
        self.signatures.absorb(&mut other.signatures);
        self.unlisted.absorb(&mut other.unlisted);
        let latest = self.latest.take().into_iter().chain(other.latest.take());
        self.latest = latest.max_by_key(Latest::order);
        other.status = InsightStatus::Merged { into: self.id };
        let (chunks, others) = self.members.locate(&moved);
        let receiver_digest = self.digest();
        other.before_merge =
            Some(BeforeMerge { receiver_digest, chunks, others, source, receiver });
        self.version += 1;
        other.version += 1;
        Ok(())
    }

    /// Undoes the merge of this insight into `receiver`, unless the receiver's pain points changed
    /// since. `new_id` names new chunks.
    pub fn undo_merge(
        &mut self,
        receiver: &mut Self,
        status: InsightStatus,
        new_id: impl FnMut() -> Uuid,
    ) -> Result<(), Rejection> {
        let is_undoable = self.is_merge_undoable(receiver);
        let before = self.before_merge.take_if(|_| is_undoable).ok_or(Rejection::Merged)?;
        self.members = receiver.members.take(&before.chunks, &before.others, new_id);
        self.restore(before.source);
        receiver.restore(before.receiver);
        // A lookup since the merge can have led to the receiver.
        receiver.signatures.forward_owned(&self.signatures, self.id);
        self.status = status;
        self.version += 1;
        receiver.version += 1;
        Ok(())
    }

    /// `true` if the insight is merged into `receiver`, whose pain points have not changed since.
    pub fn is_merge_undoable(&self, receiver: &Self) -> bool {
        let digest = self.before_merge.as_ref().map(|before| before.receiver_digest);
        self.status.merged_into() == Some(receiver.id) && digest == Some(receiver.digest())
    }

    /// Returns the state that follows from the pain points.
    pub(crate) fn derived_state(&self) -> DerivedState {
        let Self { latest, signatures, unlisted, .. } = self.clone();
        DerivedState { latest, signatures, unlisted }
    }

    fn restore(&mut self, state: DerivedState) {
        let DerivedState { latest, signatures, unlisted } = state;
        (self.latest, self.signatures, self.unlisted) = (latest, signatures, unlisted);
    }

    /// Returns a digest that changes with each change of the pain points or their signatures.
    fn digest(&self) -> [u8; 32] {
        let chunks = ChunkReference::pack_all(self.members.references());
        // Insights whose signatures have no JSON form cannot be stored.
        let signatures = serde_json::to_vec(&(&self.signatures, &self.unlisted));
        let mut digest = Sha256::new();
        digest.update((chunks.len() as u64).to_be_bytes());
        digest.update(chunks);
        digest.update(signatures.unwrap_or_default());
        digest.finalize().into()
    }

    /// Applies a client's changes.
    pub fn apply(&mut self, patch: InsightPatch) -> Result<(), Rejection> {
        self.check_not_merged()?;
        let before = (self.title.clone(), self.description.clone(), self.status, self.viewed);
        let InsightPatch { title, description, status, viewed } = patch;
        let after = (
            title.unwrap_or_else(|| self.title.clone()),
            description.unwrap_or_else(|| self.description.clone()),
            status.unwrap_or(self.status),
            viewed.unwrap_or(self.viewed),
        );
        self.version += u64::from(before != after);
        (self.title, self.description, self.status, self.viewed) = after;
        Ok(())
    }

    /// Returns a page of members, latest first.
    pub fn page_of_members(&self, page_request: &PageRequest) -> Page<PainPointId> {
        let after = page_request.after.as_deref().and_then(read_position);
        let mut members: Vec<_> = self.members.iter().map(Member::order).collect();
        members.sort_unstable_by(|one, other| other.cmp(one));
        let rest = members.iter().filter(|member| after.is_none_or(|after| **member < after));
        let limit = usize::try_from(page_request.limit).unwrap_or(usize::MAX);
        let mut items: Vec<_> = rest.take(limit.saturating_add(1)).collect();
        let more = items.len() > limit;
        items.truncate(limit);
        let end = items.last().filter(|_| more).map(|(at, id)| format!("{}#{id}", at.as_millis()));
        Page { items: items.into_iter().map(|(_, id)| *id).collect(), end }
    }
}

/// Parses the position at which a page of members ended.
fn read_position(position: &str) -> Option<(Timestamp, PainPointId)> {
    let (millis, id) = position.split_once('#')?;
    Some((Timestamp::from_millis(millis.parse().ok()?), PainPointId::parse(id)?))
}
