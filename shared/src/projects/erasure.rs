//! The erasure of a project or user: its stages and their order (`docs/erasure.md`).

use std::fmt;
use std::time::Duration;

use super::api_key::UserId;
use super::project::{Organization, ProjectId};
use crate::timestamp::Timestamp;

/// Time after the request in which late writes can occur. A warm function caches a key or project
/// for 60 seconds, and a request ends within 30.
pub const LATE_WRITERS: Duration = Duration::from_mins(3);
/// Longest time that a packer works on a log that it has started to read.
pub const LATE_PACKERS: Duration = Duration::from_mins(6);
/// Time after the request at which all responses that were stored before it have expired.
pub const LAST_RESPONSE: Duration = Duration::from_hours(25);

/// The project or user to erase.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Subject {
    /// A project, with all its data.
    Project(ProjectId),
    /// A user of an organization.
    User(Organization, UserId),
}

impl Subject {
    /// Parses the form that [`fmt::Display`] writes.
    pub fn parse(text: &str) -> Option<Self> {
        let (kind, name) = text.split_once('#')?;
        match kind {
            "project" => ProjectId::parse(name).map(Self::Project),
            "user" => {
                let (organization, user) = name.split_once('/')?;
                let organization = Organization::parse(organization).ok()?;
                Some(Self::User(organization, UserId::parse(user).ok()?))
            }
            _ => None,
        }
    }
}

impl fmt::Display for Subject {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Project(id) => write!(formatter, "project#{id}"),
            // Organizations contain no `/`.
            Self::User(organization, user) => write!(formatter, "user#{organization}/{user}"),
        }
    }
}

crate::named_enum! {
    /// The stage of an erasure.
    #[derive(Debug, Clone, Copy, PartialEq, Eq)]
    #[allow(missing_docs)] // docs/erasure.md describes each stage.
    pub enum Stage {
        Settling = "settling",
        Packing = "packing",
        Flags = "flags",
        FlagChanges = "flag_changes",
        Collections = "collections",
        Events = "events",
        PainPoints = "pain_points",
        Insights = "insights",
        Errors = "errors",
        SourceMaps = "source_maps",
        Keys = "keys",
        User = "user",
        People = "people",
        Notifications = "notifications",
        Responses = "responses",
        Quotas = "quotas",
    }
}

impl Stage {
    /// Returns the next stage for a subject, or `None` after the last.
    pub fn next(self, subject: &Subject) -> Option<Self> {
        let stages: &[Self] = match subject {
            Subject::Project(_) => &[
                Self::Settling,
                Self::Packing,
                Self::Flags,
                Self::FlagChanges,
                Self::Collections,
                Self::Events,
                Self::PainPoints,
                Self::Insights,
                Self::Errors,
                Self::SourceMaps,
                Self::Keys,
                Self::People,
                Self::Notifications,
                Self::Responses,
                Self::Quotas,
            ],
            Subject::User(..) => &[
                Self::Settling,
                Self::User,
                Self::People,
                Self::Notifications,
                Self::Responses,
                Self::Quotas,
            ],
        };
        let place = stages.iter().position(|stage| *stage == self)?;
        stages.get(place + 1).copied()
    }
}

/// An erasure in progress.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Erasure {
    /// The project or user to erase.
    pub subject: Subject,
    /// The organization of the project or user.
    pub organization: Organization,
    /// The name for people: the project's slug, or the user.
    pub name: String,
    /// Time of the request.
    pub requested_at: Timestamp,
    /// The current stage.
    pub stage: Stage,
    /// The position in a table at which the stage continues, if it is within one.
    pub after: Option<String>,
    /// Time at which the erasure continues.
    pub not_before: Timestamp,
    /// Earliest time at which the stage could have ended. Waiting for another job does not postpone
    /// it.
    pub due_since: Timestamp,
    /// Number of removed items.
    pub removed: u64,
    /// Number of times that the progress was written.
    pub revision: u64,
}

impl Erasure {
    /// Creates an erasure that starts at `now`.
    pub fn new(subject: Subject, organization: Organization, name: String, now: Timestamp) -> Self {
        Self {
            subject,
            organization,
            name,
            requested_at: now,
            stage: Stage::Settling,
            after: None,
            not_before: now.plus(LATE_WRITERS),
            due_since: now.plus(LATE_WRITERS),
            removed: 0,
            revision: 0,
        }
    }

    /// Returns the erasure in its next stage, at `now`, or `None` if everything is done.
    pub fn advanced(&self, now: Timestamp) -> Option<Self> {
        let stage = self.stage.next(&self.subject)?;
        let not_before = match (self.stage, stage) {
            (Stage::Packing, _) => now.plus(LATE_PACKERS),
            (_, Stage::Responses) => self.requested_at.plus(LAST_RESPONSE).max(now),
            _ => now,
        };
        Some(Self { stage, not_before, due_since: not_before, after: None, ..self.clone() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn subjects() -> [Subject; 2] {
        let user = UserId::parse("mira/a#1").unwrap();
        [
            Subject::Project(ProjectId::new(uuid::Uuid::nil())),
            Subject::User(Organization::parse("default").unwrap(), user),
        ]
    }

    #[test]
    fn subjects_and_stages_survive_a_round_trip() {
        for subject in subjects() {
            assert_eq!(Subject::parse(&subject.to_string()), Some(subject));
        }
        for stage in Stage::ALL {
            assert_eq!(Stage::named(stage.as_str()), Some(stage));
        }
        assert_eq!((Subject::parse("user#x"), Stage::named("x")), (None, None));
    }

    #[test]
    fn erasures_wait_for_late_writers_and_end() {
        let now = Timestamp::from_millis(1_795_234_560_000);
        for subject in subjects() {
            let organization = Organization::parse("default").unwrap();
            let mut at = Erasure::new(subject, organization, "x".to_owned(), now);
            assert_eq!(at.not_before, now.plus(LATE_WRITERS));
            let mut stages = vec![at.stage];
            while let Some(next) = at.advanced(at.not_before) {
                assert!(next.not_before >= at.not_before);
                if at.stage == Stage::Packing {
                    assert_eq!(next.not_before, at.not_before.plus(LATE_PACKERS));
                }
                if next.stage == Stage::Responses {
                    assert_eq!(next.not_before, now.plus(LAST_RESPONSE));
                }
                stages.push(next.stage);
                at = next;
            }
            assert_eq!(at.stage, Stage::Quotas);
            assert!(stages.len() >= 5, "{stages:?}");
        }
    }
}
