//! The erasure of a project, or of a user: what is done, and in which order (`docs/erasure.md`).

use std::fmt;
use std::time::Duration;

use serde::Serialize;

use super::api_key::UserId;
use super::project::{Organization, ProjectId};
use crate::timestamp::Timestamp;

/// For how long after the request something may still be written: a warm function remembers a key or a
/// project for 60 seconds, and a request ends within 30.
pub const LATE_WRITERS: Duration = Duration::from_mins(3);
/// For how long a packer may work on a log that it has begun to read.
pub const LATE_PACKERS: Duration = Duration::from_mins(6);
/// After how much time the last answer that was stored before the request has expired.
pub const LAST_ANSWER: Duration = Duration::from_hours(25);

/// Who or what is erased.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Subject {
    /// A project, with all that it holds.
    Project(ProjectId),
    /// A user of an organization.
    User(Organization, UserId),
}

impl Subject {
    /// Reads what [`fmt::Display`] writes.
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
            // An organization has no `/`.
            Self::User(organization, user) => write!(formatter, "user#{organization}/{user}"),
        }
    }
}

/// Declares the stages, each with its name in the table and for people.
macro_rules! stages {
    ($($stage:ident, $name:literal;)+) => {
        /// What an erasure is at.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
        #[serde(rename_all = "snake_case")]
        #[allow(missing_docs)] // docs/erasure.md tells what each does.
        pub enum Stage {
            $($stage,)+
        }

        impl Stage {
            /// All of them.
            pub const ALL: &[Self] = &[$(Self::$stage,)+];

            /// Its name.
            pub fn as_str(self) -> &'static str {
                match self {
                    $(Self::$stage => $name,)+
                }
            }
        }
    };
}

stages! {
    Settling, "settling";
    Packing, "packing";
    Flags, "flags";
    FlagChanges, "flag_changes";
    Collections, "collections";
    Events, "events";
    PainPoints, "pain_points";
    Insights, "insights";
    Errors, "errors";
    Keys, "keys";
    User, "user";
    Notifications, "notifications";
    Answers, "answers";
    Quotas, "quotas";
}

impl Stage {
    /// Reads a name.
    pub fn parse(text: &str) -> Option<Self> {
        Self::ALL.iter().copied().find(|stage| stage.as_str() == text)
    }

    /// What comes after it for a subject; nothing after the last.
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
                Self::Keys,
                Self::Notifications,
                Self::Answers,
                Self::Quotas,
            ],
            Subject::User(..) => {
                &[Self::Settling, Self::User, Self::Notifications, Self::Answers, Self::Quotas]
            }
        };
        let place = stages.iter().position(|stage| *stage == self)?;
        stages.get(place + 1).copied()
    }
}

/// An erasure that is under way.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Erasure {
    /// Who or what is erased.
    pub subject: Subject,
    /// The organization that it belongs to.
    pub organization: Organization,
    /// What people call it: the project's slug, or the user.
    pub name: String,
    /// When it was asked for.
    pub requested_at: Timestamp,
    /// What it is at.
    pub stage: Stage,
    /// Behind which item of a table it goes on, if it is within one.
    pub after: Option<String>,
    /// When it goes on.
    pub not_before: Timestamp,
    /// Since when its stage could have ended, which one that waits for another job puts off no further.
    pub due_since: Timestamp,
    /// How many items were removed.
    pub removed: u64,
    /// How often its progress was written.
    pub revision: u64,
}

impl Erasure {
    /// One that begins at `now`.
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

    /// The next stage, at `now`; none when everything is done.
    pub fn advanced(&self, now: Timestamp) -> Option<Self> {
        let stage = self.stage.next(&self.subject)?;
        let not_before = match (self.stage, stage) {
            (Stage::Packing, _) => now.plus(LATE_PACKERS),
            (_, Stage::Answers) => self.requested_at.plus(LAST_ANSWER).max(now),
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
    fn a_subject_and_a_stage_are_read_as_they_were_written() {
        for subject in subjects() {
            assert_eq!(Subject::parse(&subject.to_string()), Some(subject));
        }
        for stage in Stage::ALL {
            assert_eq!(Stage::parse(stage.as_str()), Some(*stage));
        }
        assert_eq!((Subject::parse("user#x"), Stage::parse("x")), (None, None));
    }

    #[test]
    fn it_waits_for_who_may_still_write_and_ends() {
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
                if next.stage == Stage::Answers {
                    assert_eq!(next.not_before, now.plus(LAST_ANSWER));
                }
                stages.push(next.stage);
                at = next;
            }
            assert_eq!(at.stage, Stage::Quotas);
            assert!(stages.len() >= 5, "{stages:?}");
        }
    }
}
