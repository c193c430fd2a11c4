//! Errors, which group events (`docs/semantics/error-tracking.md`, "Statuses").

use std::time::Duration;

use serde::Serialize;
use serde_json::value::RawValue;

use notifications::domain_event::{DomainEvent, DomainEventKind, Visibility};
use shared::json::{FieldError, Fields, Json, JsonPath, ViolationCode, Violations, text};
use shared::projects::api_key::UserId;
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

shared::named_enum! {
    /// The handling status of an error.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
    pub enum ErrorStatus {
        /// Not handled yet.
        Open = "open",
        /// Not expected to occur again.
        Resolved = "resolved",
        /// Accepted, even if it occurs again.
        Ignored = "ignored",
    }
}

/// Maximum bytes of a description's texts together. Lists and searches read the descriptions of all
/// errors. Events contain the whole texts.
const DESCRIPTION_BYTES: usize = 1_024;
/// Maximum bytes of the title, the type and the culprit each. The message gets the rest.
const LABEL_BYTES: usize = 250;

/// The description of an error, from its first event. The texts have at most 1,024 bytes together.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ErrorDescription {
    /// The fingerprint that its events share.
    pub fingerprint: Fingerprint,
    /// The name in lists.
    pub title: String,
    /// The class of the exception, or `""`.
    pub error_type: String,
    /// The message.
    pub message: String,
    /// The source of the error.
    pub culprit: String,
}

impl ErrorDescription {
    /// The fingerprint of the overflow error, which counts the events beyond the error limits.
    pub const OVERFLOW: Fingerprint = Fingerprint(*b"waymark-overflow");

    /// Returns the description with its texts cut to the stored length.
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

    /// Returns the overflow error, which counts events of new errors if a project is at its limit.
    pub fn of_overflow(limits: &ErrorLimits) -> Self {
        let ErrorLimits { errors, new_errors_per_hour } = limits;
        Self {
            fingerprint: Self::OVERFLOW,
            title: format!(
                "Overflow: more than {errors} errors, or {new_errors_per_hour} new errors an hour"
            ),
            error_type: String::new(),
            message: format!(
                "A project has at most {errors} errors, and at most {new_errors_per_hour} new \
                 errors an hour. Events of further errors are counted here."
            ),
            culprit: String::new(),
        }
    }
}

/// The error limits of a project. A DSN holder can report events of any error.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ErrorLimits {
    /// Maximum errors at the same time.
    pub errors: u32,
    /// Maximum new errors per clock hour.
    pub new_errors_per_hour: u32,
}

impl Default for ErrorLimits {
    fn default() -> Self {
        Self { errors: 10_000, new_errors_per_hour: 1_000 }
    }
}

/// An error that is about to be created with its first event.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewError {
    /// The identifier.
    pub id: ErrorId,
    /// The description.
    pub description: ErrorDescription,
    /// Time at which an earlier error with this fingerprint was deleted.
    pub events_since: Option<Timestamp>,
}

/// Time that an error outlives the counts of its events, so that its expiry moves once a week. Longer than
/// a row waits for packing.
const EXPIRY_STEP: Duration = Duration::from_hours(7 * 24);

/// The resolution of an error.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Resolution {
    /// Time of the resolution.
    pub at: Timestamp,
    /// The user who resolved the error.
    pub by: Option<UserId>,
    /// `true` if only events of releases that were first seen later open the error again.
    pub in_next_release: bool,
}

/// An error.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ErrorRecord {
    /// The identifier.
    pub id: ErrorId,
    /// The description.
    pub description: ErrorDescription,
    /// The handling status.
    pub status: ErrorStatus,
    /// The resolution, while it is resolved. A later event opens it again.
    pub resolution: Option<Resolution>,
    /// The user who handles the error.
    pub assignee: Option<UserId>,
    /// Incremented by each change of the status.
    pub version: u64,
    /// Time of its earliest event.
    pub first_seen: Timestamp,
    /// Time of its latest packed event. Unpacked events can be later.
    pub last_seen: Timestamp,
    /// Events received before this time belong to a deleted error with this fingerprint.
    pub events_since: Option<Timestamp>,
    /// Expiry time, unless further events come.
    pub expires_at: Timestamp,
}

impl ErrorRecord {
    /// Creates an error whose first event occurred at `at` and was received at `now`.
    pub fn new(new: &NewError, at: Timestamp, now: Timestamp) -> Self {
        Self {
            id: new.id,
            description: new.description.clone(),
            status: ErrorStatus::Open,
            resolution: None,
            assignee: None,
            version: 1,
            first_seen: at,
            last_seen: at,
            events_since: new.events_since,
            expires_at: Self::expiry(now),
        }
    }

    /// Returns until when an error is kept whose last event was received at `received_at`.
    fn expiry(received_at: Timestamp) -> Timestamp {
        received_at.plus(COUNT_RETENTION).plus(EXPIRY_STEP)
    }

    /// `true` if an event that occurred at `at` reopens the error or precedes its first event. Ingestion
    /// stores such changes; all others follow when the event is packed. `release_seen` is when the
    /// event's release was first seen, if it is known.
    pub fn is_changed_by(&self, at: Timestamp, release_seen: Option<Timestamp>) -> bool {
        self.is_regression(at, release_seen) || at < self.first_seen
    }

    /// `true` if an event that occurred at `at` and was received at `received_at` changes nothing of the
    /// stored error.
    pub fn has_seen(&self, at: Timestamp, received_at: Timestamp) -> bool {
        !self.is_changed_by(at, None) && at <= self.last_seen && !self.is_renewed_by(received_at)
    }

    /// `true` if the error must be kept longer for an event that was received at `received_at`.
    fn is_renewed_by(&self, received_at: Timestamp) -> bool {
        received_at.plus(COUNT_RETENTION) > self.expires_at
    }

    /// Returns the error after an event that occurred at `at` and was received at `received_at`.
    #[must_use]
    pub fn seen_at(
        mut self,
        at: Timestamp,
        received_at: Timestamp,
        release_seen: Option<Timestamp>,
    ) -> Self {
        self.first_seen = self.first_seen.min(at);
        self.last_seen = self.last_seen.max(at);
        if self.is_renewed_by(received_at) {
            self.expires_at = Self::expiry(received_at);
        }
        if self.is_regression(at, release_seen) {
            self.set_status(ErrorStatus::Open);
        }
        self
    }

    /// Returns the error with its last unpacked event, which occurred at `last_unpacked`.
    #[must_use]
    pub(crate) fn with_unpacked(self, last_unpacked: Option<Timestamp>) -> Self {
        let last_seen = self.last_seen.max(last_unpacked.unwrap_or(self.last_seen));
        Self { last_seen, ..self }
    }

    fn is_regression(&self, at: Timestamp, release_seen: Option<Timestamp>) -> bool {
        self.resolution.as_ref().is_some_and(|resolution| {
            let is_later_release = release_seen.is_some_and(|seen| seen > resolution.at);
            at > resolution.at && (is_later_release || !resolution.in_next_release)
        })
    }

    /// Sets a status without a resolution.
    fn set_status(&mut self, status: ErrorStatus) {
        if status != self.status {
            self.status = status;
            self.resolution = None;
            self.version += 1;
        }
    }

    /// Applies a patch by a user at `now`.
    pub fn apply(&mut self, patch: &ErrorPatch, user: &UserId, now: Timestamp) {
        match patch.status {
            Some(ErrorStatus::Resolved) => {
                let in_next_release = patch.in_next_release;
                let before = self.resolution.as_ref().map(|it| it.in_next_release);
                if before != Some(in_next_release) {
                    let by = Some(user.clone());
                    self.status = ErrorStatus::Resolved;
                    self.resolution = Some(Resolution { at: now, by, in_next_release });
                    self.version += 1;
                }
            }
            Some(status) => self.set_status(status),
            None => {}
        }
        if let AssigneeChange::To(assignee) = &patch.assignee
            && *assignee != self.assignee
        {
            self.assignee.clone_from(assignee);
            self.version += 1;
        }
    }

    /// Returns a domain event about the error at `now`.
    pub fn domain_event(
        &self,
        kind: DomainEventKind,
        project: ProjectId,
        now: Timestamp,
    ) -> DomainEvent {
        let ErrorDescription { title, culprit, .. } = &self.description;
        let domain_event =
            DomainEvent::new(kind, Visibility::Project(project), self.id, title, now);
        domain_event.detailed(culprit).at_instance(self.version)
    }

    /// Returns the error as responses show it, with `count` events.
    pub fn shown(&self, count: u64) -> ShownError<'_> {
        ShownError {
            error_id: self.id,
            title: &self.description.title,
            error_type: &self.description.error_type,
            message: &self.description.message,
            culprit: &self.description.culprit,
            status: self.status.as_str(),
            resolved_at: self.resolution.as_ref().map(|it| it.at),
            resolved_by: self.resolution.as_ref().and_then(|it| it.by.as_ref()),
            resolved_in: self
                .resolution
                .as_ref()
                .filter(|it| it.in_next_release)
                .map(|_| NEXT_RELEASE),
            assignee: self.assignee.as_ref(),
            first_seen: self.first_seen,
            last_seen: self.last_seen,
            count,
        }
    }
}

/// An error in a response.
#[derive(Debug, Clone, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ShownError<'e> {
    /// The identifier.
    pub error_id: ErrorId,
    /// The name in lists.
    pub title: &'e str,
    /// The class of the exception, or `""`.
    #[serde(rename = "type")]
    pub error_type: &'e str,
    /// The message.
    pub message: &'e str,
    /// The source of the error.
    pub culprit: &'e str,
    /// The handling status.
    pub status: &'static str,
    /// Time of the resolution, while it is resolved.
    pub resolved_at: Option<Timestamp>,
    /// The user who resolved it.
    pub resolved_by: Option<&'e UserId>,
    /// [`NEXT_RELEASE`] if only later releases open it again.
    pub resolved_in: Option<&'static str>,
    /// The user who handles it.
    pub assignee: Option<&'e UserId>,
    /// Time of its earliest event.
    pub first_seen: Timestamp,
    /// Time of its latest event.
    pub last_seen: Timestamp,
    /// Number of events in the last 90 days.
    pub count: u64,
}

/// The name of a resolution that only later releases undo.
pub const NEXT_RELEASE: &str = "next_release";

/// The changes of an error that a client sent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ErrorPatch {
    /// The new status; `None` if it stays.
    status: Option<ErrorStatus>,
    /// `true` if only later releases open a resolved error again.
    in_next_release: bool,
    assignee: AssigneeChange,
}

/// The change of an error's assignee.
#[derive(Debug, Clone, PartialEq, Eq)]
enum AssigneeChange {
    Unchanged,
    To(Option<UserId>),
}

impl ErrorPatch {
    /// Parses the body of update-error. `null` resets a field to its initial value.
    pub fn read(body: &Json<'_>) -> Result<Self, Violations> {
        Fields::of_body(body, |fields, violations| {
            let status = fields.optional("status", violations, text(ErrorStatus::parse));
            let status = status.or_reset_to(ErrorStatus::Open);
            let resolved_in = fields.optional("resolvedIn", violations, text(parse_resolved_in));
            let in_next_release = resolved_in.or_default();
            let parse = |user: &str| parse_assignee(user).map(Some);
            let assignee = fields.optional("assignee", violations, text(parse)).or_reset_to(None);
            if in_next_release == Some(true) && status != Some(Some(ErrorStatus::Resolved)) {
                let message = "requires `status` to be `resolved`; send both";
                let path = JsonPath::Root.member("resolvedIn");
                violations.note(&path, ViolationCode::InvalidValue, message);
            }
            Some(Self {
                status: status?,
                in_next_release: in_next_release?,
                assignee: assignee?.map_or(AssigneeChange::Unchanged, AssigneeChange::To),
            })
        })
    }
}

fn parse_resolved_in(text: &str) -> Result<bool, FieldError> {
    if text == NEXT_RELEASE {
        return Ok(true);
    }
    let message = format_args!("must be {NEXT_RELEASE} or null");
    Err(FieldError::new(ViolationCode::InvalidValue, message))
}

fn parse_assignee(text: &str) -> Result<UserId, FieldError> {
    UserId::parse(text).map_err(|_| {
        let message = "must be a user: 1 to 128 visible ASCII characters";
        FieldError::new(ViolationCode::InvalidFormat, message)
    })
}

/// A stored event.
#[derive(Debug)]
pub struct StoredEvent {
    /// The identifier from the SDK.
    pub event_id: EventId,
    /// Time of occurrence.
    pub occurred_at: Timestamp,
    /// The sent event, trimmed: a JSON object.
    pub event: Box<RawValue>,
}

impl StoredEvent {
    /// Returns the event with the reason why some frames have no source map, and with its resolved
    /// frames, if any.
    pub fn resolved<S>(
        self,
        map_status: Option<S>,
        event: Option<Box<RawValue>>,
    ) -> ResolvedEvent<S> {
        let Self { event_id, occurred_at, event: stored } = self;
        ResolvedEvent { event_id, occurred_at, map_status, event: event.unwrap_or(stored) }
    }
}

/// An event with its resolved frames, as responses contain it.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ResolvedEvent<S> {
    event_id: EventId,
    occurred_at: Timestamp,
    map_status: Option<S>,
    event: Box<RawValue>,
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
    fn descriptions_are_cut_to_whole_characters() {
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
        let id = ErrorId::new(uuid::Uuid::nil());
        let new = NewError { id, description: description("x"), events_since: None };
        let error = ErrorRecord::new(&new, at(0), at(0));
        let week = 7 * 24;
        assert_eq!(error.expires_at, at(400 * 24 + week));
        assert!(error.has_seen(at(0), at(week)) && !error.has_seen(at(0), at(week + 1)));
        assert_eq!(error.clone().seen_at(at(0), at(week), None).expires_at, error.expires_at);
        let renewed = error.seen_at(at(0), at(week + 1), None);
        assert_eq!(renewed.expires_at, at(400 * 24 + 2 * week + 1));
        assert!(renewed.has_seen(at(0), at(2 * week + 1)));
    }
}
