//! What can be done with replay insights (`docs/semantics/replay-insights.md`), without any I/O.
//!
//! Each pain point of a project is in exactly one insight. Whatever is done here changes insights in
//! memory; the store then writes all that changed in one transaction, or nothing.

#[cfg(test)]
mod tests;

use std::collections::{HashMap, HashSet};
use std::time::Duration;

use uuid::Uuid;

use notifications::domain_event::{DomainEvent, DomainEventKind, Visibility};
use shared::json::{JsonPath, ViolationCode, Violations};
use shared::page::{Page, PageRequest};
use shared::projects::project::ProjectId;
use shared::timestamp::Timestamp;

use super::membership::{Member, Membership};
use super::statistics::Statistics;
use crate::draft::InsightPatch;
use crate::{
    InsightId, InsightStatus, MAX_PAIN_POINTS, PainPoint, PainPointId, Percent, ReplayInsight,
};

/// From how many sessions on an insight can trend.
const TRENDING_SESSIONS: u32 = 10;
/// Above which trend it does.
const TRENDING_ABOVE: Percent = Percent { tenths: 1_000 };
/// What the occasions of trends are counted in.
const DAY: Duration = Duration::from_hours(24);

/// A replay insight with its members.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Insight {
    /// Its identifier.
    pub id: InsightId,
    /// The project that owns it.
    pub project_id: ProjectId,
    /// Grows by one with each change, of its members too; 1 on creation.
    pub version: u64,
    /// The version that is stored; 0 before creation.
    pub stored_version: u64,
    /// What it is about, in a line.
    pub title: String,
    /// What it is about.
    pub description: String,
    /// Where work on it stands.
    pub status: InsightStatus,
    /// Whether somebody has looked at it.
    pub viewed: bool,
    /// The latest of its pain points; none if it is merged.
    pub latest: Option<Latest>,
    /// Its pain points.
    pub members: Membership,
}

/// The latest pain point of an insight, as far as the insight shows it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Latest {
    /// The pain point.
    pub id: PainPointId,
    /// When it occurred.
    pub occurred_at: Timestamp,
    /// What the replay shows.
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

/// Why an insight's pain points cannot be changed as asked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Refusal {
    /// The insight is merged into another one.
    Merged,
    /// The insight would have more pain points than it may have.
    Full,
    /// Some of the pain points to split off are not of the insight.
    NotMembers(Violations),
    /// The split would leave nothing behind.
    WouldEmpty,
}

impl Insight {
    /// An insight that is about to be created, without pain points yet.
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
        }
    }

    /// What is told of it to others when it is made.
    pub fn created(&self, now: Timestamp) -> DomainEvent {
        let scene = Visibility::Project(self.project_id);
        let domain_event =
            DomainEvent::new(DomainEventKind::InsightCreated, scene, self.id, &self.title, now);
        let sessions = self.at(now).affected_sessions;
        domain_event.detailed(&self.description).with_event_count(u64::from(sessions))
    }

    /// What is told of it to others while it affects many more sessions than before; nothing while it does
    /// not, or nobody works on it any more (`docs/semantics/replay-insights.md`, "Statistics").
    pub fn trending(&self, now: Timestamp) -> Option<DomainEvent> {
        let statistics = Statistics::of(self.members.iter(), now);
        let is_trending = self.status == InsightStatus::Open
            && statistics.affected_sessions >= TRENDING_SESSIONS
            && statistics.trend() > TRENDING_ABOVE;
        let day = Timestamp::from_millis(0).until(now).as_secs() / DAY.as_secs();
        let (kind, scene) =
            (DomainEventKind::InsightTrending, Visibility::Project(self.project_id));
        let domain_event = DomainEvent::new(kind, scene, self.id, &self.title, now);
        let domain_event = domain_event.detailed(&format!("{} in 30 days", statistics.trend()));
        let sessions = u64::from(statistics.affected_sessions);
        is_trending.then(|| domain_event.at_occasion(day).with_event_count(sessions))
    }

    /// What is answered of it at `now`.
    pub fn at(&self, now: Timestamp) -> ReplayInsight<'_> {
        let statistics = Statistics::of(self.members.iter(), now);
        ReplayInsight {
            viewed: self.viewed,
            id: self.id,
            title: &self.title,
            description: &self.description,
            status: self.status.as_str(),
            merged_into: self.status.merged_into(),
            affected_sessions: statistics.affected_sessions,
            identified_users: statistics.identified_users,
            occurrences: statistics.occurrences,
            previous_affected_sessions: statistics.previous_affected_sessions,
            trend_percent: statistics.trend(),
            first_seen: statistics.first_seen,
            last_seen: statistics.last_seen,
            excerpt: self.latest.as_ref().map_or("", |latest| &latest.excerpt),
        }
    }

    /// Which of `pain_points` are not among its members yet.
    pub fn missing<'p>(
        &self,
        pain_points: impl IntoIterator<Item = &'p PainPoint>,
    ) -> Vec<&'p PainPoint> {
        let members: HashSet<_> = self.members.iter().map(|member| member.id).collect();
        pain_points.into_iter().filter(|pain_point| !members.contains(&pain_point.id)).collect()
    }

    /// Adds pain points that are not among its members yet; `new_id` names new chunks.
    pub fn add(
        &mut self,
        pain_points: &[&PainPoint],
        new_id: impl FnMut() -> Uuid,
    ) -> Result<(), Refusal> {
        self.check_room(pain_points.len())?;
        if pain_points.is_empty() {
            return Ok(());
        }
        self.version += 1;
        let newest = pain_points.iter().map(|pain_point| Latest::from(*pain_point));
        self.latest = self.latest.take().into_iter().chain(newest).max_by_key(Latest::order);
        self.members.add(pain_points.iter().map(|pain_point| Member::from(*pain_point)), new_id);
        Ok(())
    }

    fn refuse_if_merged(&self) -> Result<(), Refusal> {
        match self.status {
            InsightStatus::Merged { .. } => Err(Refusal::Merged),
            _ => Ok(()),
        }
    }

    /// Whether it may have `more` members.
    pub fn check_room(&self, more: usize) -> Result<(), Refusal> {
        self.refuse_if_merged()?;
        if self.members.len().saturating_add(more) > MAX_PAIN_POINTS {
            return Err(Refusal::Full);
        }
        Ok(())
    }

    /// Splits an insight off, with the id `made` and these pain points, untitled yet. All of them must
    /// be members of this insight, and not all of its members may be among them.
    pub fn split_off(
        &mut self,
        ids: &[PainPointId],
        made: InsightId,
        new_id: impl FnMut() -> Uuid,
    ) -> Result<Self, Refusal> {
        self.refuse_if_merged()?;
        let members: HashSet<_> = self.members.iter().map(|member| member.id).collect();
        let mut strangers = Violations::default();
        for (index, id) in ids.iter().enumerate().filter(|(_, id)| !members.contains(id)) {
            let path = JsonPath::Root.member("painPointIds");
            let message = format_args!("the insight has no pain point {id}");
            strangers.note(&path.item(index), ViolationCode::UnknownPainPoint, message);
        }
        if !strangers.is_empty() {
            return Err(Refusal::NotMembers(strangers));
        }
        let moved: HashSet<_> = ids.iter().copied().collect();
        if moved.len() == members.len() {
            return Err(Refusal::WouldEmpty);
        }
        let mut made = Self::new(made, self.project_id, String::new(), String::new());
        made.members.add(self.members.remove(&moved), new_id);
        made.version += 1;
        self.version += 1;
        Ok(made)
    }

    /// The latest of its members, if [`Self::latest`] is another one: after a split.
    pub fn unknown_latest(&self) -> Option<PainPointId> {
        let known = self.latest.as_ref().map(|latest| latest.id);
        self.members.latest().map(|latest| latest.id).filter(|latest| known != Some(*latest))
    }

    /// Brings [`Self::latest`] up to date, from the details of [`Self::unknown_latest`].
    pub fn refresh_latest(&mut self, details: &HashMap<PainPointId, PainPoint>) {
        let latest = self.unknown_latest().and_then(|id| details.get(&id));
        if let Some(latest) = latest {
            self.latest = Some(latest.into());
        }
    }

    /// Moves all pain points of `other` here; `other` stays behind as merged.
    pub fn merge(&mut self, other: &mut Self) -> Result<(), Refusal> {
        other.refuse_if_merged()?;
        self.check_room(other.members.len())?;
        self.members.absorb(std::mem::take(&mut other.members));
        let latest = self.latest.take().into_iter().chain(other.latest.take());
        self.latest = latest.max_by_key(Latest::order);
        other.status = InsightStatus::Merged { into: self.id };
        self.version += 1;
        other.version += 1;
        Ok(())
    }

    /// Applies a client's changes.
    pub fn apply(&mut self, patch: InsightPatch) -> Result<(), Refusal> {
        self.refuse_if_merged()?;
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

    /// A page of its members, the latest first.
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

/// Reads where a page of members ended.
fn read_position(position: &str) -> Option<(Timestamp, PainPointId)> {
    let (millis, id) = position.split_once('#')?;
    Some((Timestamp::from_millis(millis.parse().ok()?), PainPointId::parse(id)?))
}
