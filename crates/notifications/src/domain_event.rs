//! Domain events: the causes of emails and EventBridge events (`docs/notifications.md`).

use std::fmt;

use shared::projects::api_key::{ApiKeyRecord, Scope, UserId};
use shared::projects::project::{Organization, ProjectId};
use shared::timestamp::Timestamp;

use super::notification_type::NotificationType;

/// Maximum characters of a title or a detail. Longer texts are truncated.
const MAX_TEXT: usize = 250;

/// The kind of a domain event.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum DomainEventKind {
    /// An error occurred for the first time.
    ErrorCreated,
    /// A resolved error occurred again.
    ErrorReopened,
    /// An error occurred far more often than in the previous week.
    ErrorSpiked,
    /// A replay insight was created.
    InsightCreated,
    /// A replay insight affects many more sessions than in the previous period.
    InsightTrending,
    /// A feature flag was created, changed or deleted.
    FlagChanged,
    /// An API key was created.
    ApiKeyCreated,
    /// A line of a weekly digest.
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

    /// Returns the notification type. Its name is also the kind's name in tables.
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

    /// Returns the detail type on Amazon EventBridge. Digest lines are not published.
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

    /// Returns `true` for new and regressed errors: their weight is counted when an email is sent.
    pub fn has_deferred_weight(self) -> bool {
        matches!(self, Self::ErrorCreated | Self::ErrorReopened)
    }

    /// Returns the name in tables.
    pub fn as_str(self) -> &'static str {
        self.notification_type().as_str()
    }

    /// Parses a name from a table.
    pub fn parse(text: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.as_str() == text)
    }
}

/// The users who can see a domain event.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Visibility {
    /// Users with access to a project.
    Project(ProjectId),
    /// One user of an organization.
    User(Organization, UserId),
}

/// The text in item keys: a project id, or `@` and an organization. It contains no `#`.
impl fmt::Display for Visibility {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Project(id) => id.fmt(formatter),
            // The subject distinguishes events of different users.
            Self::User(organization, _) => write!(formatter, "@{organization}"),
        }
    }
}

/// The detail of a deleted flag's [`DomainEventKind::FlagChanged`].
pub const DELETED: &str = "deleted";

/// The typed subject of a domain event or a digest line.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum DigestSubject {
    /// The whole project.
    Overview,
    /// An error id.
    Error(String),
    /// An insight id.
    Insight(String),
    /// A flag key.
    Flag(String),
}

impl DigestSubject {
    /// Parses the output of [`fmt::Display`]. Any other text is [`Self::Overview`].
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

/// An event that can cause emails and an EventBridge event.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DomainEvent {
    /// The kind of event.
    pub kind: DomainEventKind,
    /// The users who can see it.
    pub visibility: Visibility,
    /// The id or key of the affected resource.
    pub subject: String,
    /// The version or hour of a repeatable event, else 0. With kind, visibility and subject it
    /// identifies the event.
    pub instance: u64,
    /// The time of the event.
    pub at: Timestamp,
    /// The display name of the subject. Untrusted: clients can choose it.
    pub title: String,
    /// Further text for one line. Untrusted, like the title.
    pub detail: String,
    /// The number of events or sessions. Emails list the greatest first.
    pub weight: u64,
    /// The user who caused the event, and gets no email about it.
    pub actor: Option<UserId>,
}

impl DomainEvent {
    /// Returns a domain event with instance 0 and without detail, weight and actor.
    pub fn new(
        kind: DomainEventKind,
        visibility: Visibility,
        subject: impl fmt::Display,
        title: &str,
        at: Timestamp,
    ) -> Self {
        let (subject, title) = (subject.to_string(), cut(title));
        let (instance, detail, weight, actor) = (0, String::new(), 0, None);
        Self { kind, visibility, subject, instance, at, title, detail, weight, actor }
    }

    /// Returns the event of a new key, visible to the key's user. Its detail is the `user-agent` of
    /// the browser that created the key, if one did.
    pub fn api_key_created(key: &ApiKeyRecord, user_agent: Option<&str>) -> Self {
        let visibility = Visibility::User(key.organization.clone(), key.user.clone());
        let name = key.key_id.as_str();
        Self::new(DomainEventKind::ApiKeyCreated, visibility, name, name, key.created_at)
            .detailed(user_agent.unwrap_or_default())
    }

    /// Returns the event with a detail.
    #[must_use]
    pub fn detailed(self, detail: &str) -> Self {
        Self { detail: cut(detail), ..self }
    }

    /// Returns the event with an instance.
    #[must_use]
    pub fn at_instance(self, instance: u64) -> Self {
        Self { instance, ..self }
    }

    /// Returns the event with a weight.
    #[must_use]
    pub fn with_event_count(self, weight: u64) -> Self {
        Self { weight, ..self }
    }

    /// Returns the event with an actor.
    #[must_use]
    pub fn by(self, actor: &UserId) -> Self {
        Self { actor: Some(actor.clone()), ..self }
    }

    /// Returns the typed subject, or `None` for an API key.
    pub fn typed_subject(&self) -> Option<DigestSubject> {
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

    /// Returns the unique id. Repeated announcements of an event have equal ids.
    pub fn id(&self) -> String {
        let Self { kind, visibility, subject, instance, .. } = self;
        format!("{visibility}#{}#{subject}#{instance}", kind.as_str())
    }
}

fn cut(text: &str) -> String {
    text.chars().take(MAX_TEXT).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kinds_round_trip_as_text() {
        for kind in DomainEventKind::ALL {
            assert_eq!(DomainEventKind::parse(kind.as_str()), Some(kind));
        }
        assert_eq!(DomainEventKind::parse("billing"), None);
    }

    #[test]
    fn digest_subjects_round_trip_as_text() {
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
    fn ids_depend_on_subject_and_instance() {
        let project = Visibility::Project(ProjectId::new(uuid::Uuid::nil()));
        let at = Timestamp::from_millis(0);
        let new =
            DomainEvent::new(DomainEventKind::ErrorCreated, project, "e-1", &"é".repeat(300), at);
        assert_eq!(new.id(), "00000000-0000-0000-0000-000000000000#error_new#e-1#0");
        assert_eq!(new.title.chars().count(), 250);
        assert_ne!(new.clone().at_instance(1).id(), new.id());
        assert_eq!(new.clone().detailed("x").with_event_count(3).id(), new.id());
    }
}
