//! Error events in the form that SDKs send.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use shared::dynamodb::Store;
use shared::projects::project::{Project, ProjectId};
use shared::timestamp::Timestamp;

use crate::app::TestApp;
use crate::call::Call;

/// Returns the delivery of an event to a project, in the form of official SDKs.
pub fn delivery(project: &Project, event: &SentEvent) -> Call {
    Call::of(&ingest_error_events::OPERATION)
        .parameter("ingestId", project.ingest_id)
        .query("sentry_key", project.public_key)
        .bytes(event.envelope())
}

/// Delivers an event to a project, and expects success.
pub async fn deliver(test: &TestApp, project_id: ProjectId, event: &SentEvent) {
    let project = project(&test.patient_store(), project_id).await;
    let reply = delivery(&project, event).send(&test.app).await;
    assert_eq!(reply.status, 200, "{}", reply.body);
}

/// An exception event. Events with the same type and message belong to the same error.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SentEvent {
    /// The event's id: 32 hexadecimal digits.
    pub id: String,
    /// Time in the event.
    pub at: Timestamp,
    /// The exception's type.
    pub error_type: String,
    /// The exception's message.
    pub message: String,
    /// Attributes by filter name.
    pub attributes: BTreeMap<&'static str, String>,
}

impl SentEvent {
    /// Returns an event with only the given fields. The id is derived from `number`.
    pub fn new(number: u64, at: Timestamp, error_type: &str, message: &str) -> Self {
        Self {
            id: format!("{:032x}", u128::from(number) + (1 << 100)),
            at,
            error_type: error_type.to_owned(),
            message: message.to_owned(),
            attributes: BTreeMap::new(),
        }
    }

    /// Adds an attribute.
    #[must_use]
    pub fn with(mut self, attribute: &'static str, value: &str) -> Self {
        self.attributes.insert(attribute, value.to_owned());
        self
    }

    /// Returns the event in the format of SDKs.
    pub fn payload(&self) -> Value {
        let mut payload = json!({
            "event_id": self.id,
            "timestamp": self.at.to_string(),
            "exception": {"values": [{"type": self.error_type, "value": self.message}]},
        });
        for (name, value) in &self.attributes {
            match *name {
                "browser" | "os" => payload["contexts"][name] = json!({ "name": value }),
                "device" => payload["contexts"][name] = json!({ "family": value }),
                "country" => payload["user"]["geo"] = json!({ "country_code": value }),
                "user" => payload["user"]["id"] = json!(value),
                "handled" => {
                    let mechanism = json!({"type": "generic", "handled": value == "true"});
                    payload["exception"]["values"][0]["mechanism"] = mechanism;
                }
                tag if tag.starts_with("tags.") => payload["tags"][&tag[5..]] = json!(value),
                _ => payload[name] = json!(value),
            }
        }
        payload
    }

    /// Returns the event in an envelope.
    pub fn envelope(&self) -> String {
        envelope(&json!({ "event_id": self.id }), &[("event", self.payload().to_string())])
    }
}

/// Returns an envelope of items, each with a type and a payload.
pub fn envelope(header: &Value, items: &[(&str, String)]) -> String {
    let mut lines = vec![header.to_string()];
    for (kind, payload) in items {
        lines.push(json!({"type": kind, "length": payload.len()}).to_string());
        lines.push(payload.clone());
    }
    lines.join("\n") + "\n"
}

/// Reads a project, including the parts of its DSN.
pub async fn project(store: &Store, id: ProjectId) -> Project {
    store.read_project(id).await.expect("the project is readable").expect("the project exists")
}
