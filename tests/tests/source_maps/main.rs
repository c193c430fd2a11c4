//! Tests of source maps: uploads, resolution, grouping, expiry and erasure, against a real engine.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod cli;
mod lifetime;
mod positions;
mod resolution;
mod tools;
mod uploads;

use std::time::Duration;

use serde_json::{Value, json};

use shared::app::Deadline;
use tests::app::{PROJECT, TestApp};
use tests::call::{Call, Reply};

const TABLE: &str = "source-maps";
const MINUTE: Duration = Duration::from_mins(1);

/// Uploads a bundle for the tests' project.
async fn upload(test: &TestApp, bundle: &[u8]) -> Reply {
    tests::source_maps::upload(&test.app, &test.key, bundle, &json!({"projects": [PROJECT]})).await
}

/// Returns the list of maps.
async fn listed(test: &TestApp) -> Value {
    let reply = test.call(&list_source_maps::OPERATION).send(&test.app).await;
    assert_eq!(reply.status, 200, "{}", reply.body);
    reply.body
}

/// Sends an event to the tests' project.
async fn deliver(test: &TestApp, event: String) {
    let project = tests::errors::project(&test.app.store, test.project_id).await;
    let call = Call::of(&ingest_error_events::OPERATION)
        .path("/api/{ingestId}/store/")
        .parameter("ingestId", project.ingest_id)
        .query("sentry_key", project.public_key);
    let reply = call.bytes(event).send(&test.app).await;
    assert_eq!(reply.status, 200, "{}", reply.body);
}

/// Returns the errors of the tests' project.
async fn errors(test: &TestApp) -> Vec<Value> {
    let reply = test.call(&list_errors::OPERATION).send(&test.app).await;
    reply.body["items"].as_array().unwrap().clone()
}

/// Returns the events of an error, the newest first.
async fn events_of(test: &TestApp, error: &Value) -> Vec<Value> {
    let id = error["errorId"].as_str().unwrap();
    let call = test.call(&list_error_events::OPERATION).parameter("errorId", id);
    let reply = call.send(&test.app).await;
    assert_eq!(reply.status, 200, "{}", reply.body);
    reply.body["items"].as_array().unwrap().clone()
}

/// Returns the frames of an event.
fn frames(event: &Value) -> Vec<Value> {
    let stack = &event["event"]["exception"]["values"][0]["stacktrace"]["frames"];
    stack.as_array().unwrap().clone()
}

async fn maintain(test: &TestApp) {
    (maintain_source_maps::JOB.run)(&test.app, Deadline::after(MINUTE)).await.unwrap();
}

/// Counts the stored items whose partition key begins with a text.
async fn stored(test: &TestApp, start: &str) -> usize {
    let items = test.items(TABLE).await;
    items.iter().filter(|item| item["pk"].as_s().unwrap().starts_with(start)).count()
}
