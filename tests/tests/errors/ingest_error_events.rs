//! Accepted and rejected deliveries: keys and limits.

use serde_json::json;

use shared::projects::project::Project;
use tests::call::Call;
use tests::errors::{SentEvent, envelope};

use super::{ENVELOPE, STORE, Tracker, delivery};

const OTHER_KEY: &str = "ffffffffffffffffffffffffffffffff";

/// Returns a delivery of one event, without a key.
fn keyless(tracker: &Tracker, path: &str) -> Call {
    let event = SentEvent::new(1, tracker.now(), "TypeError", "x is not a function");
    let is_store = path.contains("store");
    let body = if is_store { event.payload().to_string() } else { event.envelope() };
    Call::of(&ingest_error_events::OPERATION)
        .path(path)
        .parameter("ingestId", tracker.project.ingest_id)
        .bytes(body)
}

fn dsn(project: &Project, key: &str) -> String {
    format!("https://{key}@errors.example.com/prefix/{}", project.ingest_id)
}

#[tokio::test]
async fn unknown_projects_and_wrong_keys_return_equal_403() {
    let tracker = Tracker::start().await;
    let other = tracker.other_project("other").await;
    let key = tracker.project.public_key.to_string();
    let wrong = format!("Sentry sentry_key={OTHER_KEY}");
    let event = SentEvent::new(1, tracker.now(), "TypeError", "x is not a function");
    let with_dsn = |dsn: &str| {
        let header = json!({"event_id": event.id, "dsn": dsn});
        let body = envelope(&header, &[("event", event.payload().to_string())]);
        Call::of(&ingest_error_events::OPERATION)
            .parameter("ingestId", tracker.project.ingest_id)
            .bytes(body)
    };
    let at = |ingest_id: &str| {
        let call = Call::of(&ingest_error_events::OPERATION)
            .parameter("ingestId", ingest_id)
            .query("sentry_key", &key);
        call.bytes(event.envelope())
    };
    for call in [
        keyless(&tracker, ENVELOPE),
        keyless(&tracker, STORE),
        keyless(&tracker, ENVELOPE).header("x-api-key", &tracker.test.key),
        keyless(&tracker, ENVELOPE).header("authorization", &format!("Bearer {key}")),
        keyless(&tracker, ENVELOPE).query("sentry_key", OTHER_KEY),
        keyless(&tracker, ENVELOPE).query("sentry_key", other.public_key),
        keyless(&tracker, ENVELOPE).query("sentry_key", "nonsense"),
        keyless(&tracker, STORE).query("sentry_key", OTHER_KEY),
        keyless(&tracker, ENVELOPE).query("sentry_key", &key).header("x-sentry-auth", &wrong),
        keyless(&tracker, ENVELOPE).query("sentry_key", &key).query("sentry_key", OTHER_KEY),
        with_dsn(&dsn(&tracker.project, OTHER_KEY)),
        with_dsn(&dsn(&other, &key)).query("sentry_key", &key),
        with_dsn("nonsense").query("sentry_key", &key),
        at("1"),
        at("0"),
        at("999999999999999"),
        at("9999999999999999999999"),
        at(&tracker.project.id.to_string()),
        at("shop"),
        at(&other.ingest_id.to_string()),
    ] {
        let reply = call.send(&tracker.test.app).await;
        let rejection = json!({"detail": "the DSN key is missing or invalid; check the DSN"});
        assert_eq!((reply.status, &reply.body), (403, &rejection));
        assert!(!reply.headers.contains_key("retry-after"));
    }
    assert!(tracker.test.items(super::TABLE).await.is_empty());
}

/// Sends a delivery with the right key, and returns the status.
async fn status_of(tracker: &Tracker, path: &str, body: impl Into<Vec<u8>>) -> u16 {
    let call = delivery(&tracker.project, path).bytes(body);
    let reply = call.send(&tracker.test.app).await;
    if reply.status >= 400 {
        let fields: Vec<&String> = reply.body.as_object().unwrap().keys().collect();
        assert_eq!(fields, ["detail"]);
        assert!(!reply.headers.contains_key("retry-after"));
    }
    reply.status
}

#[tokio::test]
async fn deliveries_over_a_size_limit_return_413() {
    let tracker = Tracker::start().await;
    let id = format!("{:032x}", 7);
    let event = |filling: usize| {
        let mut event = json!({"event_id": id, "message": "large", "extra": {"x": ""}});
        let empty = event.to_string().len();
        event["extra"]["x"] = json!("y".repeat(filling - empty));
        event.to_string()
    };
    let items = |count: usize| {
        let mut items = vec![("session", "{}".to_owned()); count - 1];
        items.push(("event", json!({"event_id": id}).to_string()));
        envelope(&json!({}), &items)
    };
    let header = |length: usize| {
        let empty = json!({"x": ""}).to_string().len();
        json!({ "x": "y".repeat(length - empty) }).to_string() + "\n"
    };
    let mib = 1 << 20;
    let attachment = |length: usize| envelope(&json!({}), &[("attachment", "z".repeat(length))]);
    for (path, body, status) in [
        (ENVELOPE, envelope(&json!({}), &[("event", event(mib))]), 200),
        (ENVELOPE, envelope(&json!({}), &[("event", event(mib + 1))]), 413),
        (STORE, event(mib), 200),
        (STORE, event(mib + 1), 413),
        (ENVELOPE, items(100), 200),
        (ENVELOPE, items(101), 413),
        (ENVELOPE, header(8 * 1024), 200),
        (ENVELOPE, header(8 * 1024 + 1), 413),
        (ENVELOPE, attachment(4 * mib - 100), 200),
        (ENVELOPE, attachment(4 * mib), 413),
    ] {
        let length = body.len();
        assert_eq!(status_of(&tracker, path, body).await, status, "{path} {length}");
    }
    assert_eq!(tracker.total(&json!({})).await, 1);
}
