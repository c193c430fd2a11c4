//! Event markers (`docs/semantics/event-markers.md`): collections of events that charts draw as
//! vertical lines, such as releases, incidents and campaigns.

use std::collections::BTreeMap;

use serde::Serialize;
use sha2::{Digest, Sha256};
use uuid::{Builder, Uuid};

use shared::json::{FieldError, Fields, Json, JsonPath, ViolationCode, Violations, array, text};
use shared::projects::project::ProjectId;
use shared::text::{parse_label, parse_text, parse_time};
use shared::timestamp::Timestamp;
use shared::uuid_type;

const MAX_NAME_CHARACTERS: usize = 200;
const MAX_DESCRIPTION_CHARACTERS: usize = 2_000;
/// Maximum number of events per request.
const MAX_EVENTS: usize = 100;
const MAX_ATTRIBUTES: usize = 50;
const MAX_ATTRIBUTE_KEY_CHARACTERS: usize = 100;
const MAX_ATTRIBUTE_VALUE_CHARACTERS: usize = 1_000;

uuid_type! {
    /// The ID of a collection, displayed in lower case.
    CollectionId, parse_uuid
}

shared::named_enum! {
    /// The origin of a collection's automatic events.
    #[derive(Debug, Clone, Copy, PartialEq, Eq)]
    pub enum MarkerSource {
        /// An event when a release is first seen.
        Releases = "releases",
        /// An event for each flag change.
        Flags = "flags",
    }
}

/// A collection of event markers.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct EventMarkerCollection {
    /// The collection's ID, not reused after its deletion.
    pub id: CollectionId,
    /// The project that owns the collection.
    pub project_id: ProjectId,
    /// A display name.
    pub name: String,
    /// The collection's purpose.
    pub description: String,
    /// The origin of automatic events; `None` if people add the events.
    pub source: Option<MarkerSource>,
    /// Exact number of events.
    pub event_count: u64,
    /// Time of the creation.
    pub created_at: Timestamp,
    /// Time of the last change of the collection or its events.
    pub updated_at: Timestamp,
}

/// An event of a collection.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct EventMarker {
    /// The event's ID.
    pub id: Uuid,
    /// A display name.
    pub name: String,
    /// Time of the event.
    pub occurred_at: Timestamp,
    /// A description of the event.
    pub description: String,
    /// Additional data.
    pub attributes: BTreeMap<String, String>,
}

/// A collection as a client describes it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CollectionDraft {
    name: String,
    description: String,
    source: Option<MarkerSource>,
}

impl CollectionDraft {
    /// Parses the body of create-event-marker-collection.
    pub fn read(body: &Json<'_>) -> Result<Self, Violations> {
        let mut violations = Violations::default();
        let draft = Fields::read(body, &JsonPath::Root, &mut violations, |fields, violations| {
            let name = fields.required("name", violations, text(parse_name));
            let description = fields.optional("description", violations, text(parse_description));
            let parse_source = |name: &str| MarkerSource::parse(name).map(Some);
            let source = fields.optional("source", violations, text(parse_source));
            let description = description.or_default();
            Some(Self { name: name?, description: description?, source: source.or_default()? })
        });
        violations.into_result(draft)
    }

    /// Returns the collection of a source that each new project has.
    pub fn automatic(source: MarkerSource) -> Self {
        let name = match source {
            MarkerSource::Releases => "Releases",
            MarkerSource::Flags => "Flag changes",
        };
        Self { name: name.to_owned(), description: String::new(), source: Some(source) }
    }

    /// Returns the new collection, created at `now`.
    pub fn into_collection(
        self,
        id: CollectionId,
        project_id: ProjectId,
        now: Timestamp,
    ) -> EventMarkerCollection {
        EventMarkerCollection {
            id,
            project_id,
            name: self.name,
            description: self.description,
            source: self.source,
            event_count: 0,
            created_at: now,
            updated_at: now,
        }
    }
}

impl EventMarker {
    /// Returns the automatic event of a release that is first seen.
    pub fn of_release(project: ProjectId, release: &str, now: Timestamp) -> Self {
        let attributes = [("release".to_owned(), release.to_owned())].into();
        Self::automatic(&format!("release {project} {release}"), release, "", attributes, now)
    }

    /// Returns an automatic event. `cause` identifies the cause in the project: its repetitions
    /// have the same ID.
    pub fn automatic(
        cause: &str,
        name: &str,
        description: &str,
        attributes: BTreeMap<String, String>,
        occurred_at: Timestamp,
    ) -> Self {
        let digest = Sha256::digest(cause);
        let hash = digest.first_chunk().copied().unwrap_or_default();
        let cut = |text: &str, most: usize| text.chars().take(most).collect();
        Self {
            id: Builder::from_custom_bytes(hash).into_uuid(),
            name: cut(name, MAX_NAME_CHARACTERS),
            occurred_at,
            description: cut(description, MAX_DESCRIPTION_CHARACTERS),
            attributes,
        }
    }
}

/// An event as a client describes it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EventDraft {
    name: String,
    occurred_at: Timestamp,
    description: String,
    attributes: BTreeMap<String, String>,
}

impl EventDraft {
    /// Parses the body of add-event-markers.
    pub fn read_all(body: &Json<'_>) -> Result<Vec<Self>, Violations> {
        let mut violations = Violations::default();
        let events = Fields::read(body, &JsonPath::Root, &mut violations, |fields, violations| {
            fields.required("events", violations, |json, path, violations| {
                if matches!(json, Json::Array(items) if items.is_empty()) {
                    let message = "at least one event is required";
                    violations.note(path, ViolationCode::TooFewItems, message);
                }
                array(MAX_EVENTS, read_event)(json, path, violations)
            })
        });
        violations.into_result(events)
    }

    /// Returns the event with this ID.
    pub fn into_event(self, id: Uuid) -> EventMarker {
        EventMarker {
            id,
            name: self.name,
            occurred_at: self.occurred_at,
            description: self.description,
            attributes: self.attributes,
        }
    }
}

fn read_event(
    json: &Json<'_>,
    path: &JsonPath<'_>,
    violations: &mut Violations,
) -> Option<EventDraft> {
    Fields::read(json, path, violations, |fields, violations| {
        let name = fields.required("name", violations, text(parse_name));
        let occurred_at = fields.required("occurredAt", violations, text(parse_time));
        let description = fields.optional("description", violations, text(parse_description));
        let attributes = fields.optional("attributes", violations, read_attributes);
        Some(EventDraft {
            name: name?,
            occurred_at: occurred_at?,
            description: description.or_default()?,
            attributes: attributes.or_default()?,
        })
    })
}

fn read_attributes(
    json: &Json<'_>,
    path: &JsonPath<'_>,
    violations: &mut Violations,
) -> Option<BTreeMap<String, String>> {
    let Json::Object(members) = json else {
        let message = format_args!("must be an object, not {}", json.type_name());
        violations.note(path, ViolationCode::InvalidType, message);
        return None;
    };
    if members.len() > MAX_ATTRIBUTES {
        let message = format_args!("has more than {MAX_ATTRIBUTES} attributes; remove some");
        violations.note(path, ViolationCode::TooManyItems, message);
        return None;
    }
    let mut attributes = BTreeMap::new();
    let mut complete = true;
    for (key, value) in members {
        let path = path.member(key);
        if let Err(FieldError { code, message }) = check_attribute_key(key) {
            violations.note(&path, code, message);
        }
        let value = text(|value| parse_text(value, MAX_ATTRIBUTE_VALUE_CHARACTERS))(
            value, &path, violations,
        );
        match value {
            Some(value) => {
                if attributes.insert(key.to_string(), value).is_some() {
                    let message = "the object has this attribute twice; remove one";
                    violations.note(&path, ViolationCode::Duplicate, message);
                }
            }
            None => complete = false,
        }
    }
    complete.then_some(attributes)
}

fn check_attribute_key(key: &str) -> Result<(), FieldError> {
    if key.is_empty() {
        return Err(FieldError::new(
            ViolationCode::TooShort,
            "an attribute name must not be empty",
        ));
    }
    if key.contains('\0') {
        let message = "NUL (\\u0000) is not allowed in text";
        return Err(FieldError::new(ViolationCode::InvalidFormat, message));
    }
    parse_text(key, MAX_ATTRIBUTE_KEY_CHARACTERS).map(drop)
}

fn parse_name(text: &str) -> Result<String, FieldError> {
    parse_label(text, 1, MAX_NAME_CHARACTERS)
}

fn parse_description(text: &str) -> Result<String, FieldError> {
    parse_text(text, MAX_DESCRIPTION_CHARACTERS)
}

/// The events that a request added, in the order of the request.
#[derive(Debug, Serialize)]
pub struct AddedEvents<'e> {
    /// The events.
    pub events: &'e [EventMarker],
}

/// A time range in milliseconds since the Unix epoch: `from` is inclusive, `to` exclusive. Both can
/// lie outside the times that events can have.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TimeRange {
    /// The start, inclusive.
    pub from: i64,
    /// The end, exclusive; `None` for no end.
    pub to: Option<i64>,
}

impl TimeRange {
    /// Parses a bound: whole milliseconds since the Unix epoch.
    pub fn parse_bound(text: &str) -> Result<i64, FieldError> {
        text.parse().map_err(|_| {
            let message = "must be a whole number of milliseconds since the Unix epoch";
            FieldError::new(ViolationCode::InvalidFormat, message)
        })
    }

    /// Returns a range; both bounds are optional. `from` must be before `to`.
    pub fn new(from: Option<i64>, to: Option<i64>) -> Result<Self, FieldError> {
        if from.zip(to).is_some_and(|(from, to)| from >= to) {
            return Err(FieldError::new(ViolationCode::OutOfRange, "`from` must come before `to`"));
        }
        Ok(Self { from: from.unwrap_or(i64::MIN), to })
    }
}

/// The pending removal of a deleted collection's events.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PurgeJob {
    /// The deleted collection.
    pub collection: CollectionId,
    /// Time of the deletion.
    pub deleted_at: Timestamp,
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    fn faults(body: &Value) -> Vec<(String, ViolationCode)> {
        let body = body.to_string();
        let violations = EventDraft::read_all(&Json::parse(&body, 8).unwrap()).err();
        let violations = violations.unwrap_or_default();
        violations.listed().iter().map(|v| (v.pointer.clone(), v.code)).collect()
    }

    fn event(members: &Value) -> Value {
        let mut event = json!({"name": "v1.2.3", "occurredAt": "2026-11-21T04:16:00Z"});
        for (name, value) in members.as_object().unwrap() {
            event[name] = value.clone();
        }
        event
    }

    fn fault_of(members: &Value) -> Vec<(String, ViolationCode)> {
        faults(&json!({"events": [event(members)]}))
    }

    #[test]
    fn parses_events_with_defaults() {
        let body = json!({"events": [event(&json!({"attributes": {"b": "2", "a": "é"}})), event(&json!({}))]});
        let body = body.to_string();
        let drafts = EventDraft::read_all(&Json::parse(&body, 8).unwrap()).unwrap();
        let shown: Vec<Value> = drafts
            .into_iter()
            .map(|draft| serde_json::to_value(draft.into_event(Uuid::nil())).unwrap())
            .collect();
        let expected = |attributes: Value| {
            json!({
                "id": "00000000-0000-0000-0000-000000000000",
                "name": "v1.2.3",
                "occurredAt": "2026-11-21T04:16:00.000Z",
                "description": "",
                "attributes": attributes,
            })
        };
        assert_eq!(shown, [expected(json!({"a": "é", "b": "2"})), expected(json!({}))]);
    }

    #[test]
    fn accepts_1_to_100_events() {
        let of = |count: usize| faults(&json!({"events": vec![event(&json!({})); count]}));
        assert_eq!(of(0), [("/events".to_owned(), ViolationCode::TooFewItems)]);
        assert_eq!((of(1), of(100)), (vec![], vec![]));
        assert_eq!(of(101), [("/events".to_owned(), ViolationCode::TooManyItems)]);
        assert_eq!(faults(&json!({})), [("/events".to_owned(), ViolationCode::Required)]);
        assert_eq!(faults(&json!([])), [(String::new(), ViolationCode::InvalidType)]);
    }

    #[test]
    fn all_violations_of_events_are_listed() {
        let body = json!({"events": [
            {"name": " ", "occurredAt": 5, "when": 1},
            {"name": "x".repeat(201), "description": "x".repeat(2_001), "attributes": []},
        ], "extra": true});
        let mut found = faults(&body);
        found.sort();
        let mut expected = [
            ("/events/0/name", ViolationCode::TooShort),
            ("/events/0/occurredAt", ViolationCode::InvalidType),
            ("/events/0/when", ViolationCode::UnknownField),
            ("/events/1/attributes", ViolationCode::InvalidType),
            ("/events/1/description", ViolationCode::TooLong),
            ("/events/1/name", ViolationCode::TooLong),
            ("/events/1/occurredAt", ViolationCode::Required),
            ("/extra", ViolationCode::UnknownField),
        ]
        .map(|(pointer, code)| (pointer.to_owned(), code));
        expected.sort();
        assert_eq!(found, expected);
    }

    #[test]
    fn attributes_have_limits() {
        let many = |count: usize| {
            let members = (0..count).map(|n| (format!("k{n}"), json!("v")));
            fault_of(&json!({"attributes": Value::Object(members.collect())}))
        };
        let at = |pointer: &str, code| vec![(format!("/events/0/attributes{pointer}"), code)];
        assert_eq!(many(50), []);
        assert_eq!(many(51), at("", ViolationCode::TooManyItems));
        let (key, value) = ("k".repeat(100), "é".repeat(1_000));
        assert_eq!(fault_of(&json!({"attributes": {&key: &value}})), []);
        let long_key = format!("{key}k");
        let found = fault_of(&json!({"attributes": {&long_key: "v"}}));
        assert_eq!(found, at(&format!("/{long_key}"), ViolationCode::TooLong));
        let found = fault_of(&json!({"attributes": {"a": format!("{value}x")}}));
        assert_eq!(found, at("/a", ViolationCode::TooLong));
        assert_eq!(
            fault_of(&json!({"attributes": {"a": 1}})),
            at("/a", ViolationCode::InvalidType)
        );
        assert_eq!(fault_of(&json!({"attributes": {"": "v"}})), at("/", ViolationCode::TooShort));
        let text = r#"{"events":[{"name":"n","occurredAt":"2026-11-21T04:16:00Z","attributes":{"a":"1","a":"2"}}]}"#;
        let violations = EventDraft::read_all(&Json::parse(text, 8).unwrap()).unwrap_err();
        assert_eq!(violations.listed()[0].code, ViolationCode::Duplicate);
    }
}
