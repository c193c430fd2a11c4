//! What mails call what happened.

use crate::happening::HappeningKind;

/// How a kind is told of.
pub(super) struct Wording {
    /// Before the place and the title of the one thing that happened: `New error`.
    pub(super) one: &'static str,
    /// After the number of several: `new errors`.
    pub(super) many: &'static str,
    /// What the weight counts, if it says anything; of errors that were not weighed, it is 0.
    pub(super) weight: Option<(&'static str, &'static str)>,
}

pub(super) fn wording(kind: HappeningKind) -> Wording {
    let (one, many, weight) = match kind {
        HappeningKind::ErrorCreated => ("New error", "new errors", Some(EVENTS)),
        HappeningKind::ErrorReopened => ("Back again", "errors are back", Some(EVENTS)),
        HappeningKind::ErrorSpiked => ("Spike", "spikes of errors", Some(EVENTS)),
        HappeningKind::InsightCreated => ("New insight", "new insights", Some(SESSIONS)),
        HappeningKind::InsightTrending => ("Trending insight", "insights trend", Some(SESSIONS)),
        HappeningKind::FlagChanged => ("Flag changed", "changes of flags", None),
        HappeningKind::ApiKeyCreated => ("New API key", "new API keys", None),
        HappeningKind::WeekEnded => ("The week", "weeks", None),
    };
    Wording { one, many, weight }
}

const SESSIONS: (&str, &str) = ("session", "sessions");
const EVENTS: (&str, &str) = ("event", "events");
