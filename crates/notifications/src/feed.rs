//! The feed of an organization: what happened in it, in steps, until every user has been told
//! (`docs/notifications.md`, "The way of a happening").

use std::cmp::Reverse;

use shared::projects::api_key::UserId;
use shared::timestamp::Timestamp;

use crate::domain_event::{DomainEvent, DomainEventKind, Visibility};

/// How many happenings are told one by one; of the others there is only their number.
pub const LINES: usize = 10;

/// Several happenings of one kind in one scene, by one user if any.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FeedEntry {
    /// Its place in the feed: each is greater than those before.
    pub number: u64,
    /// How many there are.
    pub count: u64,
    /// When the first of them happened.
    pub since: Timestamp,
    /// The most important of them, which come first; all of errors, of which only later events tell how important they
    /// are. There is at least one.
    pub lines: Vec<DomainEvent>,
}

impl FeedEntry {
    /// A step of happenings that [belong together](belong_together); none of none.
    pub fn of(number: u64, domain_events: &[DomainEvent]) -> Option<Self> {
        let since = domain_events.iter().map(|it| it.at).min()?;
        let count = u64::try_from(domain_events.len()).unwrap_or(u64::MAX);
        let is_weighed = domain_events.iter().any(|it| !it.kind.is_weighed_later());
        let lines =
            if is_weighed { most_important(domain_events.iter()) } else { domain_events.to_vec() };
        Some(Self { number, count, since, lines })
    }

    /// What happened.
    pub fn kind(&self) -> Option<DomainEventKind> {
        self.lines.first().map(|it| it.kind)
    }

    /// Where.
    pub fn scene(&self) -> Option<&Visibility> {
        self.lines.first().map(|it| &it.scene)
    }

    /// Whether a user is to be told, as far as the step itself says.
    pub fn concerns(&self, user: &UserId) -> bool {
        self.lines.first().is_some_and(|it| {
            let is_theirs = match &it.scene {
                Visibility::Project(_) => true,
                Visibility::User(_, concerned) => concerned == user,
            };
            is_theirs && it.actor.as_ref() != Some(user)
        })
    }
}

/// Whether happenings can be of one step: all who are told of one are told of the other.
pub fn can_batch(one: &DomainEvent, other: &DomainEvent) -> bool {
    (one.kind, &one.scene, &one.actor) == (other.kind, &other.scene, &other.actor)
}

/// The happenings of which there is most, the latest first among those.
pub fn most_important<'h>(
    domain_events: impl Iterator<Item = &'h DomainEvent>,
) -> Vec<DomainEvent> {
    let mut lines: Vec<&DomainEvent> = domain_events.collect();
    lines.sort_by_key(|line| Reverse((line.weight, line.at)));
    lines.into_iter().take(LINES).cloned().collect()
}

/// How far a feed goes, and how far it was told.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct FeedHead {
    /// The number of the last step; 0 if there was none.
    pub last: u64,
    /// The number of the last step of which everybody was told who had no window open then.
    pub told: u64,
}

#[cfg(test)]
mod tests {
    use super::*;
    use shared::projects::project::{Organization, ProjectId};

    fn domain_event(weight: u64, at: i64) -> DomainEvent {
        let project = Visibility::Project(ProjectId::new(uuid::Uuid::nil()));
        let at = Timestamp::from_millis(at);
        DomainEvent::new(DomainEventKind::InsightCreated, project, weight, "x", at)
            .with_event_count(weight)
    }

    #[test]
    fn a_step_counts_all_and_shows_the_ten_most_important() {
        let all: Vec<DomainEvent> = (0..80).map(|weight| domain_event(weight / 2, 5)).collect();
        let step = FeedEntry::of(3, &all).unwrap();
        assert_eq!((step.number, step.count, step.lines.len()), (3, 80, 10));
        let weights: Vec<u64> = step.lines.iter().map(|line| line.weight).collect();
        assert_eq!(weights, [39, 39, 38, 38, 37, 37, 36, 36, 35, 35]);
        assert_eq!(FeedEntry::of(1, &[]), None);
        let of_error = |it: DomainEvent| DomainEvent { kind: DomainEventKind::ErrorCreated, ..it };
        let errors: Vec<DomainEvent> = all.into_iter().map(of_error).collect();
        assert_eq!(
            FeedEntry::of(3, &errors).unwrap().lines.len(),
            80,
            "what has most is not known yet"
        );
        let latest = FeedEntry::of(1, &[domain_event(1, 1), domain_event(1, 2)]).unwrap();
        assert_eq!(latest.lines[0].at, Timestamp::from_millis(2));
        assert_eq!(latest.since, Timestamp::from_millis(1));
    }

    #[test]
    fn nobody_is_told_of_what_they_did_or_what_concerns_another() {
        let [mira, ada] = ["mira", "ada"].map(|user| UserId::parse(user).unwrap());
        let by_mira = FeedEntry::of(1, &[domain_event(0, 0).by(&mira)]).unwrap();
        assert!(by_mira.concerns(&ada) && !by_mira.concerns(&mira));
        let organization = Organization::parse("default").unwrap();
        let scene = Visibility::User(organization, ada.clone());
        let of_ada = FeedEntry::of(1, &[DomainEvent { scene, ..domain_event(0, 0) }]).unwrap();
        assert!(of_ada.concerns(&ada) && !of_ada.concerns(&mira));
        assert!(!can_batch(&domain_event(0, 0), &domain_event(0, 0).by(&mira)));
    }
}
