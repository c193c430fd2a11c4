//! Error events as SDKs send them.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use shared::dynamodb::Store;
use shared::projects::project::{Project, ProjectId};
use shared::timestamp::Timestamp;

/// An event of an exception. Events of the same type and message are of the same error.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SentEvent {
    /// Its identifier, 32 hexadecimal digits.
    pub id: String,
    /// When it says that it happened.
    pub at: Timestamp,
    /// The exception's type.
    pub error_type: String,
    /// The exception's message.
    pub message: String,
    /// What it can be filtered by, by the names of filters.
    pub attributes: BTreeMap<&'static str, String>,
}

impl SentEvent {
    /// An event that tells nothing but what is given; of a number follows its identifier.
    pub fn new(number: u64, at: Timestamp, error_type: &str, message: &str) -> Self {
        Self {
            id: format!("{:032x}", u128::from(number) + (1 << 100)),
            at,
            error_type: error_type.to_owned(),
            message: message.to_owned(),
            attributes: BTreeMap::new(),
        }
    }

    /// The event with an attribute.
    #[must_use]
    pub fn with(mut self, attribute: &'static str, value: &str) -> Self {
        self.attributes.insert(attribute, value.to_owned());
        self
    }

    /// The event in the members that SDKs use.
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
                _ => payload[name] = json!(value),
            }
        }
        payload
    }

    /// The event in an envelope.
    pub fn envelope(&self) -> String {
        envelope(&json!({ "event_id": self.id }), &[("event", self.payload().to_string())])
    }
}

/// An envelope of items, each a type and a payload.
pub fn envelope(header: &Value, items: &[(&str, String)]) -> String {
    let mut lines = vec![header.to_string()];
    for (kind, payload) in items {
        lines.push(json!({"type": kind, "length": payload.len()}).to_string());
        lines.push(payload.clone());
    }
    lines.join("\n") + "\n"
}

/// A project with what its DSN is made of.
pub async fn project(store: &Store, id: ProjectId) -> Project {
    store.read_project(id).await.expect("it can be read").expect("it is there")
}
