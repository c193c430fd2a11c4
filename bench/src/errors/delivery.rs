//! Deliveries of one event of about 4 kB, as sentry-python sends it for an exception in a Django
//! application.

use std::io::Write;

use axum::body::Bytes;
use base64::Engine;
use base64::engine::general_purpose::STANDARD as BASE64;
use flate2::Compression;
use flate2::write::GzEncoder;
use serde_json::{Value as Json, json};
use shared::app::Ids;
use shared::projects::project::Project;
use shared::timestamp::Timestamp;

use crate::Result;
use crate::request::{Request, SEND_ENVELOPE, read};

/// The number of errors to which the events belong.
const ERRORS: usize = 5;
/// The number of users to which the events occur.
const USERS: usize = 977;

/// Returns a request that delivers an event with a new id. `number` selects the error and the user.
pub(crate) fn delivery(project: &Project, number: usize, at: Timestamp) -> Result<Bytes> {
    let id = Ids::Random.new_uuid(at).simple().to_string();
    envelope(project, &id, &event(&id, number, at).to_string(), at)
}

/// Returns a request that delivers an event.
pub(crate) fn envelope(project: &Project, id: &str, event: &str, at: Timestamp) -> Result<Bytes> {
    const SDK: &str = "sentry.python.django/2.75.0";
    let header = json!({"event_id": id, "sent_at": at});
    let item = json!({"type": "event", "content_type": "application/json", "length": event.len()});
    let mut encoder = GzEncoder::new(Vec::new(), Compression::best());
    write!(encoder, "{header}\n{item}\n{event}\n")?;
    let body = encoder.finish()?;
    let key = project.public_key;
    let request = Request::new(SEND_ENVELOPE, &[&project.ingest_id])
        .header("content-encoding", "gzip")
        .header("content-type", "application/x-sentry-envelope")
        .header("user-agent", SDK)
        .header("x-sentry-auth", format!("Sentry sentry_key={key}, sentry_version=7"))
        .body(body.len(), &BASE64.encode(&body), true);
    Ok(request.event())
}

fn event(id: &str, number: usize, at: Timestamp) -> Json {
    let mut event = read(include_str!("../../data/event.json"));
    event["event_id"] = json!(id);
    event["timestamp"] = json!(at);
    event["exception"]["values"][0]["type"] = json!(format!("Error{}", number % ERRORS));
    event["extra"]["order"] = json!(100_000 + number);
    event["user"]["id"] = json!((number % USERS).to_string());
    event
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_have_about_4_kilobytes() {
        let at = Timestamp::from_millis(1_795_000_000_000);
        let bytes = event("5a1c0f3e9b7d4c2ea1b2c3d4e5f60718", 7, at).to_string().len();
        assert!((3_900..=4_200).contains(&bytes), "{bytes}");
    }
}
