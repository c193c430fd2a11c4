//! What happens that people and other systems are told of (`docs/notifications.md`).
//!
//! It is here, and not with the notifications, because every field has something to tell, and none may use
//! another.

use std::fmt;

use shared::projects::api_key::{ApiKeyRecord, Scope, UserId};
use shared::projects::project::{Organization, ProjectId};
use shared::timestamp::Timestamp;

use super::notification_type::NotificationType;

/// The most characters of a title and of a detail: more is cut.
const MAX_TEXT: usize = 250;

/// What can happen.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum DomainEventKind {
    /// An error occurred for the first time.
    ErrorCreated,
    /// A resolved error occurred again.
    ErrorReopened,
    /// An error occurred far more often than in the week before.
    ErrorSpiked,
    /// A replay insight was made.
    InsightCreated,
    /// A replay insight affects many more sessions than before.
    InsightTrending,
    /// A feature flag was made, changed or deleted.
    FlagChanged,
    /// An API key was made.
    ApiKeyCreated,
    /// A week is over: a line of what is told of it.
    WeekEnded,
}

impl DomainEventKind {
    /// Every kind, the most urgent first.
    pub const ALL: [Self; 8] = [
        Self::ErrorSpiked,
        Self::ErrorReopened,
        Self::ErrorCreated,
        Self::ApiKeyCreated,
        Self::FlagChanged,
        Self::InsightTrending,
        Self::InsightCreated,
        Self::WeekEnded,
    ];

    /// The type of notification that it is to users, which is its name in tables, too.
    pub fn notification_type(self) -> NotificationType {
        match self {
            Self::ErrorCreated => NotificationType::ErrorNew,
            Self::ErrorReopened => NotificationType::ErrorRegression,
            Self::ErrorSpiked => NotificationType::ErrorSpike,
            Self::InsightCreated => NotificationType::InsightNew,
            Self::InsightTrending => NotificationType::InsightTrending,
            Self::FlagChanged => NotificationType::FlagChanged,
            Self::ApiKeyCreated => NotificationType::ApiKeyCreated,
            Self::WeekEnded => NotificationType::WeeklyDigest,
        }
    }

    /// Its detail type on Amazon EventBridge; none of what only sums up what was told there before.
    pub fn detail_type(self) -> Option<&'static str> {
        Some(match self {
            Self::ErrorCreated => "error.created",
            Self::ErrorReopened => "error.reopened",
            Self::ErrorSpiked => "error.spike",
            Self::InsightCreated => "insight.created",
            Self::InsightTrending => "insight.trending",
            Self::FlagChanged => "flag.changed",
            Self::ApiKeyCreated => "api-key.created",
            Self::WeekEnded => return None,
        })
    }

    /// Returns the scopes that a recipient's keys need in the project.
    pub fn read_scopes(self) -> &'static [Scope] {
        match self {
            Self::ErrorCreated | Self::ErrorReopened | Self::ErrorSpiked => &[Scope::ErrorsRead],
            Self::InsightCreated | Self::InsightTrending => &[Scope::InsightsRead],
            Self::FlagChanged => &[Scope::FlagsRead],
            // A digest counts events, insights and flags.
            Self::WeekEnded => &[Scope::ErrorsRead, Scope::InsightsRead, Scope::FlagsRead],
            Self::ApiKeyCreated => &[],
        }
    }

    /// Whether only what comes later tells how important it is: an error, by its events.
    pub fn is_weighed_later(self) -> bool {
        matches!(self, Self::ErrorCreated | Self::ErrorReopened)
    }

    /// Its name in tables.
    pub fn as_str(self) -> &'static str {
        self.notification_type().as_str()
    }

    /// Reads its name in tables.
    pub fn parse(text: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.as_str() == text)
    }
}

/// Where something happens: who may see that may be told.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Visibility {
    /// In a project.
    Project(ProjectId),
    /// In an organization, and it concerns one of its users alone.
    User(Organization, UserId),
}

/// The scene in keys of items, without `#`: an id, or what no id can be.
impl fmt::Display for Visibility {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Project(id) => id.fmt(formatter),
            // What happens to a user is told from what happens to others by its subject.
            Self::User(organization, _) => write!(formatter, "@{organization}"),
        }
    }
}

/// The detail of a deleted flag's [`DomainEventKind::FlagChanged`].
pub const DELETED: &str = "deleted";

/// What a line about a week that is over is about: a happening's subject.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum DigestSubject {
    /// The project as a whole.
    Overview,
    /// An error, by its id.
    Error(String),
    /// An insight, by its id.
    Insight(String),
    /// A flag, by its key.
    Flag(String),
}

impl DigestSubject {
    /// Reads what [`fmt::Display`] writes; anything else is about the project.
    pub fn parse(text: &str) -> Self {
        match text.split_once('/') {
            Some(("error", id)) => Self::Error(id.to_owned()),
            Some(("insight", id)) => Self::Insight(id.to_owned()),
            Some(("flag", key)) => Self::Flag(key.to_owned()),
            _ => Self::Overview,
        }
    }
}

impl fmt::Display for DigestSubject {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Overview => formatter.write_str("overview"),
            Self::Error(id) => write!(formatter, "error/{id}"),
            Self::Insight(id) => write!(formatter, "insight/{id}"),
            Self::Flag(key) => write!(formatter, "flag/{key}"),
        }
    }
}

/// Something that happened.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DomainEvent {
    /// What happened.
    pub kind: DomainEventKind,
    /// Where.
    pub scene: Visibility,
    /// What it happened to: an id or a key within the scene.
    pub subject: String,
    /// Which time it happened to that, if it can more than once: a version, an hour. With kind, scene and
    /// subject it tells the happening from all others.
    pub instance: u64,
    /// When.
    pub at: Timestamp,
    /// What people call the subject. It may be anybody's text.
    pub title: String,
    /// What else there is to say in a line. It may be anybody's text, too.
    pub detail: String,
    /// How much of it there is, of events or sessions: what there is most of is told first.
    pub weight: u64,
    /// Who did it, if it was a user, who then need not be told.
    pub actor: Option<UserId>,
}

impl DomainEvent {
    /// Something that happened to a subject once and cannot happen again; the other members say more.
    pub fn new(
        kind: DomainEventKind,
        scene: Visibility,
        subject: impl fmt::Display,
        title: &str,
        at: Timestamp,
    ) -> Self {
        let (subject, title) = (subject.to_string(), cut(title));
        let (instance, detail, weight, actor) = (0, String::new(), 0, None);
        Self { kind, scene, subject, instance, at, title, detail, weight, actor }
    }

    /// That a key was made, as its user is told.
    pub fn of_new_key(key: &ApiKeyRecord) -> Self {
        let scene = Visibility::User(key.organization.clone(), key.user.clone());
        let name = key.key_id.as_str();
        Self::new(DomainEventKind::ApiKeyCreated, scene, name, name, key.created_at)
    }

    /// The happening with what else there is to say.
    #[must_use]
    pub fn detailed(self, detail: &str) -> Self {
        Self { detail: cut(detail), ..self }
    }

    /// The happening as one of several.
    #[must_use]
    pub fn at_occasion(self, instance: u64) -> Self {
        Self { instance, ..self }
    }

    /// The happening with how much of it there is.
    #[must_use]
    pub fn with_event_count(self, weight: u64) -> Self {
        Self { weight, ..self }
    }

    /// The happening with who did it.
    #[must_use]
    pub fn by(self, actor: &UserId) -> Self {
        Self { actor: Some(actor.clone()), ..self }
    }

    /// The subject, by its kind. `None` of an API key.
    pub fn about(&self) -> Option<DigestSubject> {
        let subject = self.subject.clone();
        Some(match self.kind {
            DomainEventKind::ErrorCreated
            | DomainEventKind::ErrorReopened
            | DomainEventKind::ErrorSpiked => DigestSubject::Error(subject),
            DomainEventKind::InsightCreated | DomainEventKind::InsightTrending => {
                DigestSubject::Insight(subject)
            }
            DomainEventKind::FlagChanged => DigestSubject::Flag(subject),
            DomainEventKind::WeekEnded => DigestSubject::parse(&subject),
            DomainEventKind::ApiKeyCreated => return None,
        })
    }

    /// What tells it from all others: the same however often it is announced.
    pub fn id(&self) -> String {
        let Self { kind, scene, subject, instance, .. } = self;
        format!("{scene}#{}#{subject}#{instance}", kind.as_str())
    }
}

fn cut(text: &str) -> String {
    text.chars().take(MAX_TEXT).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kinds_have_names_both_ways() {
        for kind in DomainEventKind::ALL {
            assert_eq!(DomainEventKind::parse(kind.as_str()), Some(kind));
        }
        assert_eq!(DomainEventKind::parse("billing"), None);
    }

    #[test]
    fn lines_of_a_digest_have_subjects_both_ways() {
        let [error, insight, flag] = ["e-1", "i-1", "new.checkout"].map(str::to_owned);
        for subject in [
            DigestSubject::Overview,
            DigestSubject::Error(error),
            DigestSubject::Insight(insight),
            DigestSubject::Flag(flag),
        ] {
            assert_eq!(DigestSubject::parse(&subject.to_string()), subject);
        }
    }

    #[test]
    fn a_domain_event_is_told_from_others_by_what_happened_to_what() {
        let project = Visibility::Project(ProjectId::new(uuid::Uuid::nil()));
        let at = Timestamp::from_millis(0);
        let new =
            DomainEvent::new(DomainEventKind::ErrorCreated, project, "e-1", &"é".repeat(300), at);
        assert_eq!(new.id(), "00000000-0000-0000-0000-000000000000#error_new#e-1#0");
        assert_eq!(new.title.chars().count(), 250);
        assert_ne!(new.clone().at_occasion(1).id(), new.id());
        assert_eq!(new.clone().detailed("x").with_event_count(3).id(), new.id());
    }
}
