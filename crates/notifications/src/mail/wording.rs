//! Names of event kinds in emails.

use crate::domain_event::DomainEventKind;

/// The words for a kind of event.
pub(super) struct Wording {
    /// The name of one event, in sentence case: `New error`.
    pub(super) one: &'static str,
    /// The name of several events, after their number: `new errors`.
    pub(super) many: &'static str,
    /// Singular and plural of the weight's unit, if the weight has a meaning.
    pub(super) weight: Option<(&'static str, &'static str)>,
}

pub(super) fn wording(kind: DomainEventKind) -> Wording {
    let (one, many, weight) = match kind {
        DomainEventKind::ErrorCreated => ("New error", "new errors", Some(EVENTS)),
        DomainEventKind::ErrorReopened => ("Regression", "regressions", Some(EVENTS)),
        DomainEventKind::ErrorSpiked => ("Error spike", "error spikes", Some(EVENTS)),
        DomainEventKind::InsightCreated => ("New insight", "new insights", Some(SESSIONS)),
        DomainEventKind::InsightTrending => {
            ("Trending insight", "trending insights", Some(SESSIONS))
        }
        DomainEventKind::FlagChanged => ("Flag change", "flag changes", None),
        DomainEventKind::ApiKeyCreated => ("New API key", "new API keys", None),
        DomainEventKind::WeekEnded => ("Weekly digest", "weekly digests", None),
    };
    Wording { one, many, weight }
}

const SESSIONS: (&str, &str) = ("session", "sessions");
const EVENTS: (&str, &str) = ("event", "events");
