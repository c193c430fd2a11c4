//! The feed of an organization: entries that wait until all recipients have their emails
//! (`docs/notifications.md`).

use std::cmp::Reverse;

use shared::projects::api_key::UserId;
use shared::timestamp::Timestamp;

use crate::domain_event::{DomainEvent, DomainEventKind, Visibility};

/// Maximum lines of a feed entry and an email. Other events are only counted.
pub const MAX_LINES: usize = 10;

/// Domain events with one kind, visibility and actor.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FeedEntry {
    /// The position in the feed, greater than those of earlier entries.
    pub number: u64,
    /// The number of events.
    pub count: u64,
    /// The time of the earliest event.
    pub since: Timestamp,
    /// At least one event. The most important ones, most important first; or all events if their
    /// weight is not known yet.
    pub lines: Vec<DomainEvent>,
}

impl FeedEntry {
    /// Returns an entry with events that [`can_batch`], or `None` without events.
    pub fn of(number: u64, domain_events: &[DomainEvent]) -> Option<Self> {
        let since = domain_events.iter().map(|it| it.at).min()?;
        let count = u64::try_from(domain_events.len()).unwrap_or(u64::MAX);
        let has_weights = domain_events.iter().any(|it| !it.kind.has_deferred_weight());
        let lines =
            if has_weights { most_important(domain_events.iter()) } else { domain_events.to_vec() };
        Some(Self { number, count, since, lines })
    }

    /// Returns the kind of the events.
    pub fn kind(&self) -> Option<DomainEventKind> {
        self.lines.first().map(|it| it.kind)
    }

    /// Returns the visibility of the events.
    pub fn visibility(&self) -> Option<&Visibility> {
        self.lines.first().map(|it| &it.visibility)
    }

    /// Returns `true` if a user is a possible recipient. The actor is none.
    pub fn concerns(&self, user: &UserId) -> bool {
        self.lines.first().is_some_and(|it| {
            let is_visible = match &it.visibility {
                Visibility::Project(_) => true,
                Visibility::User(_, concerned) => concerned == user,
            };
            is_visible && it.actor.as_ref() != Some(user)
        })
    }
}

/// Returns `true` if two events can share a feed entry: they have the same possible recipients.
pub fn can_batch(one: &DomainEvent, other: &DomainEvent) -> bool {
    (one.kind, &one.visibility, &one.actor) == (other.kind, &other.visibility, &other.actor)
}

/// Returns at most [`MAX_LINES`] events: greatest weight first, then latest first.
pub fn most_important<'h>(
    domain_events: impl Iterator<Item = &'h DomainEvent>,
) -> Vec<DomainEvent> {
    let mut lines: Vec<&DomainEvent> = domain_events.collect();
    lines.sort_by_key(|line| Reverse((line.weight, line.at)));
    lines.into_iter().take(MAX_LINES).cloned().collect()
}

/// The progress of a feed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct FeedHead {
    /// The number of the last entry; 0 if there was none.
    pub last: u64,
    /// The number of the last entry delivered to all recipients without an open window.
    pub delivered: u64,
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
    fn entries_count_all_events_and_list_ten() {
        let all: Vec<DomainEvent> = (0..80).map(|weight| domain_event(weight / 2, 5)).collect();
        let entry = FeedEntry::of(3, &all).unwrap();
        assert_eq!((entry.number, entry.count, entry.lines.len()), (3, 80, 10));
        let weights: Vec<u64> = entry.lines.iter().map(|line| line.weight).collect();
        assert_eq!(weights, [39, 39, 38, 38, 37, 37, 36, 36, 35, 35]);
        assert_eq!(FeedEntry::of(1, &[]), None);
        let of_error = |it: DomainEvent| DomainEvent { kind: DomainEventKind::ErrorCreated, ..it };
        let errors: Vec<DomainEvent> = all.into_iter().map(of_error).collect();
        assert_eq!(
            FeedEntry::of(3, &errors).unwrap().lines.len(),
            80,
            "their weights are not known yet"
        );
        let latest = FeedEntry::of(1, &[domain_event(1, 1), domain_event(1, 2)]).unwrap();
        assert_eq!(latest.lines[0].at, Timestamp::from_millis(2));
        assert_eq!(latest.since, Timestamp::from_millis(1));
    }

    #[test]
    fn actors_and_other_users_are_no_recipients() {
        let [mira, ada] = ["mira", "ada"].map(|user| UserId::parse(user).unwrap());
        let by_mira = FeedEntry::of(1, &[domain_event(0, 0).by(&mira)]).unwrap();
        assert!(by_mira.concerns(&ada) && !by_mira.concerns(&mira));
        let organization = Organization::parse("default").unwrap();
        let visibility = Visibility::User(organization, ada.clone());
        let of_ada = FeedEntry::of(1, &[DomainEvent { visibility, ..domain_event(0, 0) }]).unwrap();
        assert!(of_ada.concerns(&ada) && !of_ada.concerns(&mira));
        assert!(!can_batch(&domain_event(0, 0), &domain_event(0, 0).by(&mira)));
    }
}
