//! Errors: what events are grouped into (`docs/semantics/error-tracking.md`, "Statuses").

use std::time::Duration;

use serde::Serialize;
use serde_json::value::RawValue;

use notifications::domain_event::{DomainEvent, DomainEventKind, Visibility};
use shared::json::{FieldError, Fields, Json, JsonPath, ViolationCode, Violations, text};
use shared::projects::project::ProjectId;
use shared::timestamp::Timestamp;
use shared::uuid_type;

use crate::EventId;
use crate::grouping::Fingerprint;
use crate::log::day::COUNT_RETENTION;

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
    pub fn parse(text: &str) -> Result<Self, FieldError> {
        Self::ALL.into_iter().find(|status| status.as_str() == text).ok_or_else(|| {
            let known = Self::ALL.map(Self::as_str).join(", ");
            FieldError::new(ViolationCode::InvalidValue, format_args!("must be one of {known}"))
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

/// The most bytes that the texts of a description have together: lists and searches read them of all
/// errors. The events have them whole.
const DESCRIPTION_BYTES: usize = 1_024;
/// The most bytes of its title, its type and its culprit each. The message has what these leave.
const LABEL_BYTES: usize = 250;

/// What an error is about, told by its first event. Its texts have at most 1,024 bytes together.
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

impl ErrorDescription {
    /// The fingerprint of the error that counts the events of kinds for which there is no room.
    pub const OVERFLOW: Fingerprint = Fingerprint(*b"waymark-overflow");

    /// The description with its texts cut to what is kept.
    #[must_use]
    pub fn cut(mut self) -> Self {
        let labels = [&mut self.title, &mut self.error_type, &mut self.culprit];
        let mut left = DESCRIPTION_BYTES;
        for label in labels {
            label.truncate(label.floor_char_boundary(LABEL_BYTES));
            left = left.saturating_sub(label.len());
        }
        self.message.truncate(self.message.floor_char_boundary(left));
        self
    }

    /// The error that counts the events of further kinds when a project has as many errors as it may.
    pub fn of_overflow(limits: &ErrorLimits) -> Self {
        let ErrorLimits { errors, new_errors_per_hour } = limits;
        Self {
            fingerprint: Self::OVERFLOW,
            title: format!("More kinds of errors than {errors}, or {new_errors_per_hour} an hour"),
            error_type: String::new(),
            message: format!(
                "A project has at most {errors} errors, and {new_errors_per_hour} new ones an \
                 hour. Events of further kinds count here."
            ),
            culprit: String::new(),
        }
    }
}

/// How many errors a project may have: whoever has its DSN can report events of any kinds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ErrorLimits {
    /// At once.
    pub errors: u32,
    /// New ones within an hour of the clock.
    pub new_errors_per_hour: u32,
}

impl Default for ErrorLimits {
    fn default() -> Self {
        Self { errors: 10_000, new_errors_per_hour: 1_000 }
    }
}

/// What leads from an event to its error.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct KnownError {
    /// The error's identifier.
    pub id: ErrorId,
    /// Over how many partitions the keys of its events are spread.
    pub event_shards: u8,
}

/// An error that is about to be made with the first of its events.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewError {
    /// What it is called by and how its events are kept.
    pub known: KnownError,
    /// What it is about.
    pub description: ErrorDescription,
    /// When an earlier error of the same kind was deleted.
    pub events_since: Option<Timestamp>,
}

/// How much longer than its events' counts an error is kept, so that its expiry moves once a week. Longer than
/// a row waits for packing.
const EXPIRY_STEP: Duration = Duration::from_hours(7 * 24);

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
    /// When the last of its packed events occurred. Unpacked events can be later.
    pub last_seen: Timestamp,
    /// Events that were received before belong to an earlier error of the same kind, which was deleted.
    pub events_since: Option<Timestamp>,
    /// Over how many partitions the keys of its events are spread.
    pub event_shards: u8,
    /// From when on it is no longer kept, unless further events come.
    pub expires_at: Timestamp,
}

impl ErrorRecord {
    /// A new error, whose first event occurred at `at` and was received `now`.
    pub fn new(new: &NewError, at: Timestamp, now: Timestamp) -> Self {
        Self {
            id: new.known.id,
            description: new.description.clone(),
            status: ErrorStatus::Open,
            resolved_at: None,
            version: 1,
            first_seen: at,
            last_seen: at,
            events_since: new.events_since,
            event_shards: new.known.event_shards,
            expires_at: Self::expiry(now),
        }
    }

    /// What leads to it.
    pub fn known(&self) -> KnownError {
        KnownError { id: self.id, event_shards: self.event_shards }
    }

    /// Returns until when an error is kept whose last event was received at `received_at`.
    fn expiry(received_at: Timestamp) -> Timestamp {
        received_at.plus(COUNT_RETENTION).plus(EXPIRY_STEP)
    }

    /// `true` if an event that occurred at `at` reopens the error or precedes its first event. Ingestion
    /// stores such changes; all others follow when the event is packed.
    pub fn is_changed_by(&self, at: Timestamp) -> bool {
        self.is_regression(at) || at < self.first_seen
    }

    /// `true` if an event that occurred at `at` and was received at `received_at` changes nothing of the
    /// stored error.
    pub fn has_seen(&self, at: Timestamp, received_at: Timestamp) -> bool {
        !self.is_changed_by(at) && at <= self.last_seen && !self.is_renewed_by(received_at)
    }

    /// `true` if the error must be kept longer for an event that was received at `received_at`.
    fn is_renewed_by(&self, received_at: Timestamp) -> bool {
        received_at.plus(COUNT_RETENTION) > self.expires_at
    }

    /// The error after an event that occurred at `at` and was received at `received_at`.
    #[must_use]
    pub fn seen_at(mut self, at: Timestamp, received_at: Timestamp) -> Self {
        self.first_seen = self.first_seen.min(at);
        self.last_seen = self.last_seen.max(at);
        if self.is_renewed_by(received_at) {
            self.expires_at = Self::expiry(received_at);
        }
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

    /// What is told of it to others: that at `now`, something happened to it.
    pub fn domain_event(
        &self,
        kind: DomainEventKind,
        project: ProjectId,
        now: Timestamp,
    ) -> DomainEvent {
        let ErrorDescription { title, culprit, .. } = &self.description;
        let domain_event =
            DomainEvent::new(kind, Visibility::Project(project), self.id, title, now);
        domain_event.detailed(culprit).at_occasion(self.version)
    }

    /// Returns the error as responses show it, with `count` events. `last_unpacked` is when the last of its
    /// unpacked events occurred.
    pub fn shown(&self, count: u64, last_unpacked: Option<Timestamp>) -> ShownError<'_> {
        ShownError {
            error_id: self.id,
            title: &self.description.title,
            error_type: &self.description.error_type,
            message: &self.description.message,
            culprit: &self.description.culprit,
            status: self.status.as_str(),
            first_seen: self.first_seen,
            last_seen: self.last_seen.max(last_unpacked.unwrap_or(self.last_seen)),
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

#[cfg(test)]
mod tests {
    use super::*;

    fn at(hours: u64) -> Timestamp {
        Timestamp::from_millis(0).plus(Duration::from_hours(hours))
    }

    fn description(text: &str) -> ErrorDescription {
        ErrorDescription {
            fingerprint: Fingerprint([1; 16]),
            title: text.to_owned(),
            error_type: text.to_owned(),
            message: text.to_owned(),
            culprit: text.to_owned(),
        }
    }

    #[test]
    fn a_description_has_at_most_a_kilobyte_and_whole_characters() {
        let cut = description(&"é".repeat(2_000)).cut();
        let lengths = [&cut.title, &cut.error_type, &cut.culprit, &cut.message].map(String::len);
        assert_eq!(lengths, [250, 250, 250, 274]);
        let short = description("short");
        assert_eq!(short.clone().cut(), short);
        let long_message = ErrorDescription { message: "m".repeat(2_000), ..description("x") };
        assert_eq!(long_message.cut().message.len(), 1_021);
    }

    #[test]
    fn errors_expire_at_least_400_days_after_their_last_event() {
        let known = KnownError { id: ErrorId::new(uuid::Uuid::nil()), event_shards: 1 };
        let new = NewError { known, description: description("x"), events_since: None };
        let error = ErrorRecord::new(&new, at(0), at(0));
        let week = 7 * 24;
        assert_eq!(error.expires_at, at(400 * 24 + week));
        assert!(error.has_seen(at(0), at(week)) && !error.has_seen(at(0), at(week + 1)));
        assert_eq!(error.clone().seen_at(at(0), at(week)).expires_at, error.expires_at);
        let renewed = error.seen_at(at(0), at(week + 1));
        assert_eq!(renewed.expires_at, at(400 * 24 + 2 * week + 1));
        assert!(renewed.has_seen(at(0), at(2 * week + 1)));
    }
}
