//! Replay insights and their pain points (`docs/semantics/replay-insights.md`): the resources.
//! [`crate::insight`] has their operations; [`draft`](crate::draft) parses requests.

use std::fmt;

use serde::{Serialize, Serializer};

use shared::json::{FieldError, ViolationCode};
use shared::timestamp::Timestamp;
use shared::uuid_type;

use crate::evidence::Evidence;

/// Maximum number of pain points per insight: as many as one transaction can always move.
pub const MAX_PAIN_POINTS: usize = 18_000;

uuid_type! {
    /// The ID of an insight, displayed in lower case.
    InsightId, parse_rfc9562_uuid
}
uuid_type! {
    /// The ID of a pain point, chosen by the client, displayed in lower case.
    PainPointId, parse_rfc9562_uuid
}

/// Returns a parser for an ID in a request, with `parse` as its format.
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

/// A moment of trouble in a session replay.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct PainPoint {
    /// The ID, unique in the project.
    pub id: PainPointId,
    /// The session of the replay.
    pub session_id: String,
    /// The user, if the session has one.
    pub user_id: Option<String>,
    /// Time of the occurrence.
    pub occurred_at: Timestamp,
    /// The title, one line.
    pub title: String,
    /// An excerpt of the replay.
    pub excerpt: String,
    /// The origin, if the pain point was derived from a recording.
    pub evidence: Option<Evidence>,
}

/// The work status of an insight.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum InsightStatus {
    /// The problem needs work.
    Open,
    /// The problem is fixed.
    Resolved,
    /// The problem needs no work.
    Ignored,
    /// The pain points moved to another insight, and this one no longer changes.
    Merged {
        /// The other insight.
        into: InsightId,
    },
}

impl InsightStatus {
    /// The names of all statuses.
    pub const NAMES: [&str; 4] = ["open", "resolved", "ignored", "merged"];

    /// Returns the status's name.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Open => "open",
            Self::Resolved => "resolved",
            Self::Ignored => "ignored",
            Self::Merged { .. } => "merged",
        }
    }

    /// Returns the insight that has the pain points now.
    pub fn merged_into(self) -> Option<InsightId> {
        match self {
            Self::Merged { into } => Some(into),
            _ => None,
        }
    }
}

/// The status of the insights in a list, by name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StatusFilter(&'static str);

impl StatusFilter {
    /// Open insights.
    pub const OPEN: Self = Self(InsightStatus::NAMES[0]);

    /// Parses the name of a status.
    pub fn parse(text: &str) -> Result<Self, FieldError> {
        let name = InsightStatus::NAMES.into_iter().find(|name| *name == text);
        name.map(Self).ok_or_else(|| {
            let message = format_args!("must be one of {}", InsightStatus::NAMES.join(", "));
            FieldError::new(ViolationCode::InvalidValue, message)
        })
    }

    /// Returns the status's name.
    pub fn as_str(self) -> &'static str {
        self.0
    }
}

/// A replay insight in a response, with its statistics at one time.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ReplayInsight<'i> {
    /// `true` if a user has viewed the insight.
    pub viewed: bool,
    /// The insight's ID.
    pub id: InsightId,
    /// The title, one line.
    pub title: &'i str,
    /// The description.
    pub description: &'i str,
    /// The work status.
    pub status: &'static str,
    /// The insight into which this one was merged.
    pub merged_into: Option<InsightId>,
    /// Number of sessions with a pain point in the current period.
    pub affected_sessions: u32,
    /// Number of known users with a pain point in the current period.
    pub identified_users: u32,
    /// Number of pain points in the current period.
    pub occurrences: u32,
    /// Number of sessions with a pain point in the previous period.
    pub previous_affected_sessions: u32,
    /// Change in affected sessions from the previous period.
    pub trend_percent: Percent,
    /// Time of the first pain point.
    pub first_seen: Option<Timestamp>,
    /// Time of the last pain point.
    pub last_seen: Option<Timestamp>,
    /// An excerpt of the latest pain point's replay.
    pub excerpt: &'i str,
}

/// A percentage with one decimal.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Percent {
    /// Tenths of a percent.
    pub tenths: i64,
}

/// Displays a change with its sign: `+150%`, `-33.3%`.
impl fmt::Display for Percent {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let sign = if self.tenths < 0 { '-' } else { '+' };
        let tenths = self.tenths.unsigned_abs();
        match tenths % 10 {
            0 => write!(formatter, "{sign}{}%", tenths / 10),
            rest => write!(formatter, "{sign}{}.{rest}%", tenths / 10),
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
    fn changes_are_displayed_with_their_sign() {
        let shown = [1_500, -333, 0, -5].map(|tenths| Percent { tenths }.to_string());
        assert_eq!(shown, ["+150%", "-33.3%", "+0%", "-0.5%"]);
    }

    #[test]
    fn percentages_have_no_trailing_zeros() {
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
