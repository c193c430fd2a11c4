//! Parses, cleans and identifies Sentry events.

use std::borrow::Cow;

use serde_json::value::RawValue;
use shared::json::Json;
use shared::timestamp::Timestamp;

use super::canonical::canonicalize;
use super::client::add_contexts;
use super::envelope::{Envelope, check_event_size};
use super::event_attributes::{read_attributes, read_tags};
use super::exception::{is_built, read_exceptions};
use super::member::{Members, get, items, set, take};
use super::occurrence_time::{occurrence_time, parse_timestamp};
use super::scrubbing::scrub;
use super::trimmed_paths::TrimmedPaths;
use super::{IngestionFault, budget, json_text, lenient_json};
use crate::category::Attributes;
use crate::grouping::Fingerprint;
use crate::grouping::fingerprint::fingerprint;
use crate::grouping::occurrence::{LogMessage, Occurrence};
use crate::grouping::url_path::path_template;
use crate::tag::TagKey;
use crate::{ErrorDescription, EventId, NotAnEventId, StoredEvent};

/// Deepest nesting of a stored event. Ingestion allows less.
const MAX_EVENT_DEPTH: usize = 64;

/// An event that is ready to be stored and counted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NormalizedEvent {
    /// The id, if the SDK gave one.
    pub event_id: Option<EventId>,
    /// Time of occurrence, by our clock.
    pub occurred_at: Timestamp,
    /// The description of its error.
    pub description: ErrorDescription,
    /// The filterable attributes.
    pub attributes: Attributes,
    /// The tags that can become categories.
    pub tags: Vec<(TagKey, String)>,
    /// The replay of the session, if one was recorded.
    pub replay: Option<EventReplay>,
    /// The event as JSON without secrets, at most [`budget::MAX_PAYLOAD_BYTES`]. Its field
    /// `trimmed` lists the omitted parts.
    pub payload: Vec<u8>,
}

/// The replay in which an event occurred.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EventReplay {
    /// The ID as the SDK sent it.
    pub id: String,
    /// Time of the event by the clock of the SDK, which the replay's clicks share.
    pub at: Timestamp,
}

/// The circumstances in which an event was received.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Received<'r> {
    /// Time of receipt.
    pub at: Timestamp,
    /// The header `User-Agent` of the request that brought it.
    pub user_agent: Option<&'r str>,
}

/// The JSON text of an event, with the repairs that SDKs' texts need.
#[derive(Debug)]
pub struct EventText<'b> {
    text: Cow<'b, str>,
    envelope_id: Option<EventId>,
    sent_at: Option<Timestamp>,
}

/// A canonical event without secrets, whose frames can still be replaced.
#[derive(Debug)]
pub struct CanonicalEvent<'a> {
    event_id: Option<EventId>,
    /// The time that the SDK gave, by the client's clock.
    claimed_at: Option<Timestamp>,
    occurred_at: Timestamp,
    is_robot: bool,
    trimmed_paths: TrimmedPaths,
    members: Members<'a>,
}

impl<'b> Envelope<'b> {
    /// Returns the text of the envelope's event, if it has one. An id in the envelope's header wins
    /// over the event's.
    pub fn event_text(&self) -> Option<EventText<'b>> {
        let text = lenient_json::repair(self.event?);
        Some(EventText { text, envelope_id: self.event_id, sent_at: self.sent_at })
    }
}

impl<'b> EventText<'b> {
    /// Returns the text of an inflated `/store/` body.
    pub fn of_store_body(body: &'b [u8]) -> Result<Self, IngestionFault> {
        check_event_size(body)?;
        Ok(Self { text: lenient_json::repair(body), envelope_id: None, sent_at: None })
    }
}

impl EventText<'_> {
    /// Parses and cleans the event. Returns `None` for a transaction, which is accepted and dropped.
    pub fn canonicalize(
        &self,
        received: Received<'_>,
    ) -> Result<Option<CanonicalEvent<'_>>, IngestionFault> {
        let mut event = match lenient_json::parse(&self.text) {
            Ok(Json::Object(event)) => event,
            Ok(_) => return Err(IngestionFault::malformed("the event is not a JSON object")),
            Err(fault) => {
                let reason = format!("the event is not valid JSON: {fault}");
                return Err(IngestionFault::malformed(reason));
            }
        };
        if get(&event, "type") == Some(&Json::String("transaction".into())) {
            return Ok(None);
        }
        let event_id = event_id(&mut event, self.envelope_id)?;
        let claimed_at = take(&mut event, "timestamp").as_ref().and_then(parse_timestamp);
        let occurred_at = occurrence_time(claimed_at, self.sent_at, received.at);
        set(&mut event, "timestamp", Json::String(occurred_at.to_string().into()));

        let mut trimmed_paths = TrimmedPaths::take_from(&mut event);
        canonicalize(&mut event, &mut trimmed_paths);
        scrub(&mut event);
        let is_robot = add_contexts(&mut event, received.user_agent);
        Ok(Some(CanonicalEvent {
            event_id,
            claimed_at,
            occurred_at,
            is_robot,
            trimmed_paths,
            members: event,
        }))
    }
}

impl<'a> CanonicalEvent<'a> {
    /// Returns the event's fields.
    pub fn members(&self) -> &Members<'a> {
        &self.members
    }

    /// Replaces the event's fields. The new ones can borrow from data that lives less long.
    #[must_use]
    pub fn with_members<'r>(
        self,
        change: impl FnOnce(Members<'r>) -> Members<'r>,
    ) -> CanonicalEvent<'r>
    where
        'a: 'r,
    {
        CanonicalEvent { members: change(self.members), ..self }
    }

    /// Groups and names the event, and writes the form that is stored.
    pub fn normalize(mut self) -> NormalizedEvent {
        let event = self.members;
        let replay_of = |at| Some(EventReplay { id: replay_id(&event)?.to_owned(), at });
        let replay = self.claimed_at.and_then(replay_of);
        let occurrence = read_occurrence(&event);
        let transaction = event_text(&event, "transaction");
        let description = ErrorDescription::of(&occurrence, transaction, fingerprint(&occurrence));
        let tags = read_tags(&event);
        let attributes = read_attributes(&event, &description, tags.len(), self.is_robot);
        NormalizedEvent {
            event_id: self.event_id,
            occurred_at: self.occurred_at,
            description,
            attributes,
            tags,
            replay,
            payload: budget::write_within_budget(event, &mut self.trimmed_paths),
        }
    }
}

/// Returns the description of a stored event's error. `payload` is that of a [`NormalizedEvent`].
///
/// Normalization is not repeated. So functions that pack do not link code that only ingestion
/// needs.
pub fn describe_stored_event(payload: &[u8], fingerprint: Fingerprint) -> Option<ErrorDescription> {
    let text = lenient_json::repair(payload);
    let Ok(Json::Object(event)) = lenient_json::parse(&text) else { return None };
    let transaction = event_text(&event, "transaction");
    Some(ErrorDescription::of(&read_occurrence(&event), transaction, fingerprint))
}

/// Returns the ID of the replay: a tag, or the context of older SDKs.
fn replay_id<'e>(event: &'e Members<'_>) -> Option<&'e str> {
    let tag = get(event, "tags").and_then(|tags| tags.member_text("replayId"));
    let context = || get(event, "contexts")?.member("replay")?.member_text("replay_id");
    tag.or_else(context)
}

impl StoredEvent {
    /// Returns the fields of an event whose frames can have source maps. Most events of other
    /// platforms have no columns, and need not be parsed.
    pub fn members_to_resolve(&self) -> Option<Members<'_>> {
        if !self.event.get().contains("\"colno\"") {
            return None;
        }
        match Json::parse(self.event.get(), MAX_EVENT_DEPTH) {
            Ok(Json::Object(members)) => Some(members),
            _ => None,
        }
    }

    /// Returns an event's fields as JSON.
    pub fn write(members: Members<'_>) -> Option<Box<RawValue>> {
        RawValue::from_string(json_text::to_string(&Json::Object(members))).ok()
    }
}

/// Returns the envelope's id, else the event's, and sets it in the event. An id of another form
/// counts as absent.
fn event_id(
    event: &mut Members<'_>,
    envelope_id: Option<EventId>,
) -> Result<Option<EventId>, IngestionFault> {
    let own = match take(event, "event_id") {
        Some(Json::String(text)) => match EventId::parse(&text) {
            Ok(id) => Some(id),
            Err(NotAnEventId::Form) => None,
            Err(fault @ NotAnEventId::Nil) => {
                return Err(IngestionFault::malformed(fault.to_string()));
            }
        },
        _ => None,
    };
    let id = envelope_id.or(own);
    if let Some(id) = id {
        set(event, "event_id", Json::String(id.to_string().into()));
    }
    Ok(id)
}

/// Returns the content of a canonical event.
fn read_occurrence<'e>(event: &'e Members<'_>) -> Occurrence<'e> {
    let text = |name: &str| {
        get(event, "logentry").and_then(|log| log.member_text(name)).unwrap_or_default()
    };
    let has_params = get(event, "logentry").and_then(|log| log.member("params")).is_some();
    // Without parameters the "template" is the message itself, numbers and all.
    let log = match (text("message"), text("formatted")) {
        (template, text) if has_params => LogMessage { template, text },
        (template, "") => LogMessage { template: "", text: template },
        (_, text) => LogMessage { template: "", text },
    };
    let client_fingerprint =
        items(get(event, "fingerprint")).iter().filter_map(|part| match part {
            Json::String(text) => Some(text.as_ref()),
            _ => None,
        });
    let is_built = is_built(event);
    Occurrence {
        client_fingerprint: client_fingerprint.collect(),
        exceptions: read_exceptions(event),
        log,
        is_built,
        route: if is_built { route(event) } else { Cow::default() },
    }
}

/// Returns the transaction, else the path of the page. SDKs without routes send the path as the
/// transaction.
fn route<'e>(event: &'e Members<'_>) -> Cow<'e, str> {
    let transaction = event_text(event, "transaction");
    if !transaction.is_empty() {
        return path_template(transaction).map_or(Cow::Borrowed(transaction), Cow::Owned);
    }
    let url = get(event, "request").and_then(|request| request.member_text("url"));
    url.and_then(path_template).map_or(Cow::default(), Cow::Owned)
}

fn event_text<'e>(event: &'e Members<'_>, name: &str) -> &'e str {
    match get(event, name) {
        Some(Json::String(text)) => text.trim(),
        _ => "",
    }
}

#[cfg(test)]
pub(crate) mod testing {
    use super::*;

    /// Returns the event of a text that was received at `at`, or `None` for a transaction.
    fn normalize(
        text: &EventText<'_>,
        at: Timestamp,
    ) -> Result<Option<NormalizedEvent>, IngestionFault> {
        let received = Received { at, user_agent: None };
        Ok(text.canonicalize(received)?.map(CanonicalEvent::normalize))
    }

    pub(crate) fn normalize_store_body(
        body: &[u8],
        at: Timestamp,
    ) -> Result<Option<NormalizedEvent>, IngestionFault> {
        normalize(&EventText::of_store_body(body)?, at)
    }

    pub(crate) fn normalize_envelope(
        envelope: &Envelope<'_>,
        at: Timestamp,
    ) -> Result<Option<NormalizedEvent>, IngestionFault> {
        envelope.event_text().map_or(Ok(None), |text| normalize(&text, at))
    }
}
