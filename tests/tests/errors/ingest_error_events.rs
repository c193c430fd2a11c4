//! Accepted and rejected deliveries: keys, limits, framing, identifiers.

use lambda_http::http::Method;
use serde_json::{Value, json};

use shared::projects::project::Project;
use tests::call::{Call, Gateway};
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
async fn keys_are_accepted_in_every_sdk_location() {
    let tracker = Tracker::start().await;
    let key = tracker.project.public_key.to_string();
    let header = format!("Sentry sentry_version=7, sentry_client=x/1, sentry_key={key}");
    for path in [ENVELOPE, STORE, "/api/{ingestId}/envelope", "/api/{ingestId}/store"] {
        for gateway in [Gateway::HttpApi, Gateway::RestApi] {
            for call in [
                keyless(&tracker, path).query("sentry_key", &key),
                keyless(&tracker, path).query("sentry_key", key.to_uppercase()),
                keyless(&tracker, path).header("x-sentry-auth", &header),
                keyless(&tracker, path).header("authorization", &header),
                keyless(&tracker, path)
                    .header("x-sentry-auth", &header.replace(", ", ","))
                    .query("sentry_key", &key)
                    .query("sentry_version", 7),
            ] {
                let reply = call.gateway(gateway).send(&tracker.test.app).await;
                assert_eq!(reply.status, 200, "{path} {}", reply.body);
            }
        }
    }
    let event = SentEvent::new(1, tracker.now(), "TypeError", "x is not a function");
    let header = json!({"event_id": event.id, "dsn": dsn(&tracker.project, &key)});
    let body = envelope(&header, &[("event", event.payload().to_string())]);
    let call = Call::of(&ingest_error_events::OPERATION)
        .parameter("ingestId", tracker.project.ingest_id)
        .bytes(body);
    assert_eq!(call.send(&tracker.test.app).await.status, 200);
    assert_eq!(tracker.total(&json!({})).await, 1);
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

#[tokio::test]
async fn malformed_deliveries_return_400_and_store_nothing() {
    let tracker = Tracker::start().await;
    let nil = "0".repeat(32);
    for body in [
        String::new(),
        "nonsense".to_owned(),
        "[]\n".to_owned(),
        "{}\n{}\n".to_owned(),
        "{}\n{\"type\":\"event\",\"length\":100}\n{}\n".to_owned(),
        "{}\n{\"type\":\"event\",\"length\":1}\n{}\n".to_owned(),
        "{}\n{\"type\":\"event\",\"length\":\"2\"}\n{}\n".to_owned(),
        "{}\n{\"type\":\"event\"}\n[]\n".to_owned(),
        "{}\n{\"type\":\"event\"}\n{\"a\":\n".to_owned(),
        format!("{{\"event_id\":\"{nil}\"}}\n{{\"type\":\"event\"}}\n{{}}\n"),
        format!("{{}}\n{{\"type\":\"event\"}}\n{{\"event_id\":\"{nil}\"}}\n"),
        "{\"event_id\":\"nonsense\"}\n{\"type\":\"event\"}\n{}\n".to_owned(),
        json!({"event_id": "a".repeat(32), "message": "no envelope"}).to_string(),
    ] {
        assert_eq!(status_of(&tracker, ENVELOPE, body.clone()).await, 400, "{body:?}");
    }
    for body in ["", "[]", "{", "\"x\"", &json!({ "event_id": nil }).to_string()] {
        assert_eq!(status_of(&tracker, STORE, body).await, 400, "{body:?}");
    }
    assert!(tracker.test.items(super::TABLE).await.is_empty());
}

#[tokio::test]
async fn envelopes_without_events_are_accepted_and_dropped() {
    let tracker = Tracker::start().await;
    let kinds = ["session", "sessions", "transaction", "span", "log", "statsd", "client_report"];
    let more = ["replay_event", "profile", "attachment", "check_in", "feedback", "what_comes_next"];
    let items: Vec<(&str, String)> =
        kinds.into_iter().chain(more).map(|kind| (kind, json!({"a": 1}).to_string())).collect();
    let id = json!({"event_id": "a".repeat(32)});
    let transaction = json!({"type": "transaction", "event_id": "a".repeat(32)}).to_string();
    for (path, body) in [
        (ENVELOPE, envelope(&id, &items)),
        (ENVELOPE, envelope(&json!({}), &[])),
        (ENVELOPE, "{}".to_owned()),
        (STORE, transaction),
    ] {
        let call = delivery(&tracker.project, path).bytes(body);
        let reply = call.send(&tracker.test.app).await;
        assert_eq!((reply.status, &reply.body), (200, &json!({})));
    }
    assert!(tracker.test.items(super::TABLE).await.is_empty());
}

/// Returns the event id for an envelope with this header and this payload.
async fn id_of(tracker: &Tracker, header: &Value, payload: &Value) -> String {
    let body = envelope(header, &[("event", payload.to_string())]);
    let reply = delivery(&tracker.project, ENVELOPE).bytes(body).send(&tracker.test.app).await;
    assert_eq!(reply.status, 200, "{}", reply.body);
    reply.body["id"].as_str().unwrap().to_owned()
}

#[tokio::test]
async fn event_ids_come_from_header_or_payload() {
    let tracker = Tracker::start().await;
    let (a, b) = ("a".repeat(32), "B".repeat(32));
    let dashed = "AC012CAD-f588-491b-b76d-a90129e33c41";
    let none = json!({});
    let given = |id: &str| json!({ "event_id": id });
    assert_eq!(id_of(&tracker, &given(&a), &given(&b)).await, a);
    assert_eq!(id_of(&tracker, &none, &given(&b)).await, b.to_lowercase());
    let shown = "ac012cadf588491bb76da90129e33c41";
    assert_eq!(id_of(&tracker, &given(dashed), &none).await, shown);
    assert_eq!(id_of(&tracker, &none, &given(shown)).await, shown);
    let one = id_of(&tracker, &none, &none).await;
    let other = id_of(&tracker, &none, &given("nonsense")).await;
    assert!(one != other && one.len() == 32, "{one} {other}");
    assert_eq!(tracker.total(&json!({})).await, 5);
    let mut ids = vec![a, b.to_lowercase(), shown.to_owned(), one, other];
    let mut listed = Vec::new();
    for error in tracker.errors().await {
        listed.extend(tracker.event_ids(&error).await);
    }
    ids.sort();
    listed.sort();
    assert_eq!(listed, ids);
}

#[tokio::test]
async fn browsers_can_deliver_from_any_origin() {
    let tracker = Tracker::start().await;
    for path in [ENVELOPE, STORE] {
        let call = Call::of(&ingest_error_events::OPERATION).path(path);
        let call = call.parameter("ingestId", tracker.project.ingest_id);
        let reply = call.method(Method::OPTIONS).send(&tracker.test.app).await;
        assert_eq!((reply.status, &reply.body), (204, &Value::Null));
        assert_eq!(reply.headers["access-control-allow-origin"], "*");
        let allowed = reply.headers["access-control-allow-headers"].to_str().unwrap();
        for header in
            ["content-type", "content-encoding", "x-sentry-auth", "sentry-trace", "baggage"]
        {
            assert!(allowed.split(", ").any(|allowed| allowed == header), "{header}");
        }
        assert!(reply.headers["access-control-allow-methods"].to_str().unwrap().contains("POST"));
    }
    let rejected = keyless(&tracker, ENVELOPE).send(&tracker.test.app).await;
    assert_eq!(rejected.headers["access-control-allow-origin"], "*");
}
