//! Replay insights and their pain points (`docs/semantics/replay-insights.md`): the resources.
//! [`crate::insight`] has their operations, [`draft`](crate::draft) reads requests.

use std::fmt;

use serde::{Serialize, Serializer};

use shared::json::{FieldError, ViolationCode};
use shared::timestamp::Timestamp;
use shared::uuid_type;

/// The most pain points of an insight: as many as can always be moved in one transaction.
pub const MAX_PAIN_POINTS: usize = 18_000;

uuid_type! {
    /// The identifier of an insight, displayed in lower case.
    InsightId, parse_rfc9562_uuid
}
uuid_type! {
    /// The identifier of a pain point, given by the client, displayed in lower case.
    PainPointId, parse_rfc9562_uuid
}

/// Reads an identifier that a request names, in the form that `parse` reads.
pub(super) fn read_id<I>(
    parse: impl FnOnce(&str) -> Option<I>,
) -> impl FnOnce(&str) -> Result<I, FieldError> {
    move |text| {
        parse(text).ok_or_else(|| {
            let message = "must be a UUID (versions 1 to 8), such as \
                           01936f5e-7b1a-7c3e-8b44-1f0f6f1c2d3e";
            FieldError::new(ViolationCode::InvalidFormat, message)
        })
    }
}

/// One moment of trouble in one session replay.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct PainPoint {
    /// Its identifier, unique in the project.
    pub id: PainPointId,
    /// The session in whose replay it is.
    pub session_id: String,
    /// The user, where the session knew one.
    pub user_id: Option<String>,
    /// When it happened.
    pub occurred_at: Timestamp,
    /// What happened, in a line.
    pub title: String,
    /// What the replay shows.
    pub excerpt: String,
}

/// Where work on an insight stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum InsightStatus {
    /// It waits for somebody.
    Open,
    /// It is mended.
    Resolved,
    /// Nobody wants to hear of it.
    Ignored,
    /// Its pain points are in another insight now; nothing about it changes any more.
    Merged {
        /// The other insight.
        into: InsightId,
    },
}

impl InsightStatus {
    /// The names of all statuses.
    pub const NAMES: [&str; 4] = ["open", "resolved", "ignored", "merged"];

    /// Its name.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Open => "open",
            Self::Resolved => "resolved",
            Self::Ignored => "ignored",
            Self::Merged { .. } => "merged",
        }
    }

    /// The insight that holds the pain points now.
    pub fn merged_into(self) -> Option<InsightId> {
        match self {
            Self::Merged { into } => Some(into),
            _ => None,
        }
    }
}

/// Which insights a list shows, by the name of their status.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StatusFilter(&'static str);

impl StatusFilter {
    /// What waits for somebody.
    pub const OPEN: Self = Self(InsightStatus::NAMES[0]);

    /// Reads the name of a status.
    pub fn parse(text: &str) -> Result<Self, FieldError> {
        let name = InsightStatus::NAMES.into_iter().find(|name| *name == text);
        name.map(Self).ok_or_else(|| {
            let message = format_args!("must be one of {}", InsightStatus::NAMES.join(", "));
            FieldError::new(ViolationCode::InvalidValue, message)
        })
    }

    /// The status's name.
    pub fn as_str(self) -> &'static str {
        self.0
    }
}

/// A replay insight as it is answered, with its numbers as of one moment.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ReplayInsight<'i> {
    /// Whether somebody has looked at it.
    pub viewed: bool,
    /// Its identifier.
    pub id: InsightId,
    /// What it is about, in a line.
    pub title: &'i str,
    /// What it is about.
    pub description: &'i str,
    /// Where work on it stands.
    pub status: &'static str,
    /// The insight that it was merged into.
    pub merged_into: Option<InsightId>,
    /// How many sessions had one of its pain points in the current period.
    pub affected_sessions: u32,
    /// How many known users had one of its pain points in the current period.
    pub identified_users: u32,
    /// How many of its pain points lie in the current period.
    pub occurrences: u32,
    /// How many sessions had one of its pain points in the period before.
    pub previous_affected_sessions: u32,
    /// How many more, or fewer, sessions are affected than before.
    pub trend_percent: Percent,
    /// When the first of its pain points occurred.
    pub first_seen: Option<Timestamp>,
    /// When the last of its pain points occurred.
    pub last_seen: Option<Timestamp>,
    /// What the replay of the last of its pain points shows.
    pub excerpt: &'i str,
}

/// A percentage with one decimal.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Percent {
    /// Tenths of a percent.
    pub tenths: i64,
}

/// A change as people read it: `+150 %`, `-33.3 %`.
impl fmt::Display for Percent {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let sign = if self.tenths < 0 { '-' } else { '+' };
        let tenths = self.tenths.unsigned_abs();
        match tenths % 10 {
            0 => write!(formatter, "{sign}{} %", tenths / 10),
            rest => write!(formatter, "{sign}{}.{rest} %", tenths / 10),
        }
    }
}

impl Serialize for Percent {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        if self.tenths % 10 == 0 {
            return serializer.serialize_i64(self.tenths / 10);
        }
        #[allow(clippy::cast_precision_loss)] // 18,000 sessions are 1,800,000 percent at most.
        serializer.serialize_f64(self.tenths as f64 / 10.0)
    }
}

#[cfg(test)]
mod tests {
    use uuid::Uuid;

    use super::*;

    #[test]
    fn a_change_is_read_with_its_sign() {
        let shown = [1_500, -333, 0, -5].map(|tenths| Percent { tenths }.to_string());
        assert_eq!(shown, ["+150 %", "-33.3 %", "+0 %", "-0.5 %"]);
    }

    #[test]
    fn a_percentage_is_written_with_as_many_decimals_as_it_has() {
        let written = |tenths| serde_json::to_string(&Percent { tenths }).unwrap();
        assert_eq!(
            [0, 1_000, -1_000, 333, -667, 18_000_000].map(written),
            ["0", "100", "-100", "33.3", "-66.7", "1800000"]
        );
    }

    #[test]
    fn statuses_have_names_both_ways() {
        let into = InsightId::new(Uuid::nil());
        let statuses = [
            InsightStatus::Open,
            InsightStatus::Resolved,
            InsightStatus::Ignored,
            InsightStatus::Merged { into },
        ];
        assert_eq!(statuses.map(InsightStatus::as_str), InsightStatus::NAMES);
        for name in InsightStatus::NAMES {
            assert_eq!(StatusFilter::parse(name).map(StatusFilter::as_str), Ok(name));
        }
        assert!(StatusFilter::parse("Open").is_err());
    }
}
