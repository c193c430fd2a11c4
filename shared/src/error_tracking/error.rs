//! Errors: what events are grouped into (`docs/semantics/error-tracking.md`, "Statuses").

use std::time::Duration;

use serde::Serialize;
use serde_json::value::RawValue;

use crate::error_tracking::EventId;
use crate::error_tracking::log::row::Fingerprint;
use crate::json::{Fault, Fields, Json, JsonPath, ViolationCode, Violations, text};

use crate::id::uuid_type;
use crate::timestamp::Timestamp;

/// How far the time at which an error was last seen may lag behind its events: an error that happens
/// a thousand times a second need not be written as often.
const LAST_SEEN_LAG: Duration = Duration::from_mins(1);

uuid_type! {
    /// The identifier of an error, displayed in lower case.
    ErrorId, parse_uuid
}

/// Whether somebody has dealt with an error.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ErrorStatus {
    /// Nobody has.
    Open,
    /// It is not expected to happen again.
    Resolved,
    /// It may happen.
    Ignored,
}

impl ErrorStatus {
    /// Every status.
    pub const ALL: [Self; 3] = [Self::Open, Self::Resolved, Self::Ignored];

    /// Reads a status's name on the wire.
    pub fn parse(text: &str) -> Result<Self, Fault> {
        Self::ALL.into_iter().find(|status| status.as_str() == text).ok_or_else(|| {
            let known = Self::ALL.map(Self::as_str).join(", ");
            Fault::new(ViolationCode::InvalidValue, format_args!("must be one of {known}"))
        })
    }

    /// The status's name on the wire.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Open => "open",
            Self::Resolved => "resolved",
            Self::Ignored => "ignored",
        }
    }
}

/// What an error is about, told by its first event.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ErrorDescription {
    /// What its events have in common.
    pub fingerprint: Fingerprint,
    /// What it is called in lists.
    pub title: String,
    /// The class of the exception, or `""`.
    pub error_type: String,
    /// The message.
    pub message: String,
    /// Where it comes from.
    pub culprit: String,
}

/// An error.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ErrorRecord {
    /// Its identifier.
    pub id: ErrorId,
    /// What it is about.
    pub description: ErrorDescription,
    /// Whether somebody has dealt with it.
    pub status: ErrorStatus,
    /// When it was resolved, while it is: a later event opens it again.
    pub resolved_at: Option<Timestamp>,
    /// Grows by one with each change of the status.
    pub version: u64,
    /// When the first of its events occurred.
    pub first_seen: Timestamp,
    /// When the last of its events occurred, to the minute.
    pub last_seen: Timestamp,
}

impl ErrorRecord {
    /// Whether an event at `at` changes nothing about the error.
    pub fn has_seen(&self, at: Timestamp) -> bool {
        !self.is_regression(at) && at >= self.first_seen && at < self.last_seen.plus(LAST_SEEN_LAG)
    }

    /// The error after an event at `at`.
    #[must_use]
    pub fn seen_at(mut self, at: Timestamp) -> Self {
        self.first_seen = self.first_seen.min(at);
        self.last_seen = self.last_seen.max(at);
        if self.is_regression(at) {
            self.set_status(ErrorStatus::Open, at);
        }
        self
    }

    fn is_regression(&self, at: Timestamp) -> bool {
        self.resolved_at.is_some_and(|resolved_at| at > resolved_at)
    }

    /// Sets the status, as of `at`.
    pub fn set_status(&mut self, status: ErrorStatus, at: Timestamp) {
        if status != self.status {
            self.status = status;
            self.version += 1;
            self.resolved_at = (status == ErrorStatus::Resolved).then_some(at);
        }
    }

    /// What is answered of it, if it has `count` events, of which the last occurred at `last_seen`.
    pub fn shown(&self, count: u64, last_seen: Option<Timestamp>) -> ShownError<'_> {
        ShownError {
            error_id: self.id,
            title: &self.description.title,
            error_type: &self.description.error_type,
            message: &self.description.message,
            culprit: &self.description.culprit,
            status: self.status.as_str(),
            first_seen: self.first_seen,
            last_seen: last_seen.map_or(self.last_seen, |last_seen| last_seen.max(self.last_seen)),
            count,
        }
    }
}

/// An error as it is answered.
#[derive(Debug, Clone, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ShownError<'e> {
    /// Its identifier.
    pub error_id: ErrorId,
    /// What it is called in lists.
    pub title: &'e str,
    /// The class of the exception, or `""`.
    #[serde(rename = "type")]
    pub error_type: &'e str,
    /// The message.
    pub message: &'e str,
    /// Where it comes from.
    pub culprit: &'e str,
    /// Whether somebody has dealt with it.
    pub status: &'static str,
    /// When the first of its events occurred.
    pub first_seen: Timestamp,
    /// When the last of its events occurred.
    pub last_seen: Timestamp,
    /// How many events of the last 90 days it has.
    pub count: u64,
}

/// Reads the body of update-error: the new status, or none if it stays as it is. `null` resets it
/// to what it is on creation.
pub fn read_status_patch(body: &Json<'_>) -> Result<Option<ErrorStatus>, Violations> {
    let mut violations = Violations::default();
    let status = Fields::read(body, &JsonPath::Root, &mut violations, |fields, violations| {
        fields
            .optional("status", violations, text(ErrorStatus::parse))
            .or_reset_to(ErrorStatus::Open)
    });
    violations.into_result(status)
}

/// An event as it was stored, and as it is answered.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct StoredEvent {
    /// The identifier that the SDK gave it.
    pub event_id: EventId,
    /// When it occurred.
    pub occurred_at: Timestamp,
    /// What was sent, trimmed: a JSON object.
    pub event: Box<RawValue>,
}
