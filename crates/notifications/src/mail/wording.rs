//! What mails call what happened.

use crate::domain_event::DomainEventKind;

/// How a kind is told of.
pub(super) struct Wording {
    /// Before the place and the title of the one thing that happened: `New error`.
    pub(super) one: &'static str,
    /// After the number of several: `new errors`.
    pub(super) many: &'static str,
    /// What the weight counts, if it says anything; of errors that were not weighed, it is 0.
    pub(super) weight: Option<(&'static str, &'static str)>,
}

pub(super) fn wording(kind: DomainEventKind) -> Wording {
    let (one, many, weight) = match kind {
        DomainEventKind::ErrorCreated => ("New error", "new errors", Some(EVENTS)),
        DomainEventKind::ErrorReopened => ("Back again", "errors are back", Some(EVENTS)),
        DomainEventKind::ErrorSpiked => ("Spike", "spikes of errors", Some(EVENTS)),
        DomainEventKind::InsightCreated => ("New insight", "new insights", Some(SESSIONS)),
        DomainEventKind::InsightTrending => ("Trending insight", "insights trend", Some(SESSIONS)),
        DomainEventKind::FlagChanged => ("Flag changed", "changes of flags", None),
        DomainEventKind::ApiKeyCreated => ("New API key", "new API keys", None),
        DomainEventKind::WeekEnded => ("The week", "weeks", None),
    };
    Wording { one, many, weight }
}

const SESSIONS: (&str, &str) = ("session", "sessions");
const EVENTS: (&str, &str) = ("event", "events");
