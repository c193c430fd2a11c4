//! Creates an item of every type in a project, and lists the tables.

use std::time::Duration;

use serde_json::json;

use shared::app::{Deadline, Operation};
use shared::projects::project::Project;

use crate::app::TestApp;
use crate::call::Call;
use crate::errors::{SentEvent, delivery, envelope};
use crate::{insights, markers, source_maps};

/// Table names without prefix.
pub const TABLES: [&str; 14] = [
    "projects",
    "api-keys",
    "audit",
    "people",
    "feature-flags",
    "flag-changes",
    "email-preferences",
    "replay-insights",
    "event-markers",
    "errors",
    "idempotency",
    "notifications",
    "quotas",
    "source-maps",
];

/// Creates an item of every type in a project. `numbers` is the first event number.
pub async fn fill(test: &TestApp, project: &Project, numbers: u64) {
    let (app, store) = (&test.app, &test.app.store);
    let call = |operation: &'static Operation| {
        Call::of(operation).parameter("idOrSlug", project.id).key(&test.key)
    };
    let create = |name: &str, operation, body: &serde_json::Value| {
        call(operation).header("idempotency-key", &format!("{name}-{}", project.id)).json(body)
    };
    let segment = json!({"key": "staff", "name": "Staff", "conditions": [
        {"attribute": "email", "operator": "ends_with", "values": ["@example.com"]}]});
    let segment = create("segment", &create_segment::OPERATION, &segment);
    let flag = json!({"key": "checkout", "name": "Checkout", "type": "string", "rules": [
        {"conditions": [{"operator": "in_segment", "values": ["staff"]}], "serve": {"variant": "on"}}],
        "variants": [{"key": "on", "value": "on"}, {"key": "off", "value": "off"}],
        "offVariant": "off", "fallthrough": {"variant": "off"}});
    let flag = create("flag", &create_feature_flag::OPERATION, &flag);
    for call in [segment, flag] {
        let reply = call.send(app).await;
        assert_eq!(reply.status, 201, "{}", reply.body);
    }

    let insight = insights::filled(store, project.id, 450, 500).await;
    let points: Vec<String> = (400..440).map(insights::id).collect();
    let split = call(&split_insight::OPERATION).parameter("insightId", insight);
    let reply = split.json(&json!({"painPointIds": points})).send(app).await;
    assert_eq!(reply.status, 201, "{}", reply.body);
    // The pain point belongs to another insight, so the request abandons its batch.
    let rejected = create("again", &create_insight::OPERATION, &{
        let mut body = insights::upload(0..2);
        body["title"] = json!("Again");
        body
    });
    assert_eq!(rejected.send(app).await.status, 409);

    let reply = Call::of(&ingest_error_events::OPERATION)
        .parameter("ingestId", project.ingest_id)
        .query("sentry_key", project.public_key)
        .bytes(replay_segment(test))
        .send(app)
        .await;
    assert_eq!(reply.status, 200, "{}", reply.body);

    markers::filled(store, project.id, 130).await;

    // One bundle is accepted, one is rejected, and one waits for the job.
    let upload = json!({"projects": [project.id], "version": "shop@1"});
    let id = source_maps::DEBUG_ID;
    // Projects of an organization share equal chunks, so theirs differ.
    for map in [source_maps::MAP, "{cart.js"] {
        let bundle = source_maps::bundle_of(&map.replace("cart.js", &project.slug.to_string()), id);
        source_maps::upload(app, &test.key, &bundle, &upload).await;
    }
    source_maps::queue(app, project.id, b"waits").await;

    for number in 0..12_u64 {
        let kind = ["TypeError", "KeyError", "IoError"][usize::try_from(number % 3).unwrap()];
        let event = SentEvent::new(numbers + number, app.clock.now(), kind, "x");
        let reply = delivery(project, &event).send(app).await;
        assert_eq!(reply.status, 200, "{}", reply.body);
        if number == 8 {
            test.pass(Duration::from_hours(25));
            (pack_error_log::JOB.run)(app, Deadline::after(Duration::from_mins(1))).await.unwrap();
        }
    }
    let listed = call(&list_errors::OPERATION).send(app).await;
    let deleted = listed.body["items"][0]["errorId"].as_str().unwrap();
    let delete = call(&delete_error::OPERATION).parameter("errorId", deleted);
    assert_eq!(delete.send(app).await.status, 204);
}

/// Returns a replay segment with a rage click.
fn replay_segment(test: &TestApp) -> String {
    let replay = "5e9d0c4f0f6a4f7c8d1b2a3c4d5e6f70";
    // Older than other pain points, so that its insight is not the first of the list.
    let millis = test.app.clock.now().minus(Duration::from_hours(48)).as_millis();
    let event = json!({"type": "replay_event", "replay_id": replay, "release": "shop@1"});
    let payload = json!({"category": "ui.multiClick", "timestamp": millis / 1_000,
        "message": "body > button#pay", "data": {"clickCount": 6, "nodeId": 4,
        "url": "https://shop.example.com/cart", "node": {"tagName": "button"}}});
    let events = json!([{"type": 5, "timestamp": millis,
        "data": {"tag": "breadcrumb", "payload": payload}}]);
    let recording = format!("{{\"segment_id\":0}}\n{events}");
    let items = [("replay_event", event.to_string()), ("replay_recording", recording)];
    envelope(&json!({ "event_id": replay }), &items)
}
