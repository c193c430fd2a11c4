//! create-feature-flag against a real engine: what it answers and what it stores.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod access;
mod body;
mod creation;
mod failures;
mod idempotency;
mod prerequisites;

use create_feature_flag::{OPERATION, handle};
use serde_json::{Value, json};
use tests::app::{PROJECT, TestApp};
use tests::call::{Call, Operation, Reply};

const CREATE: Operation = Operation {
    id: OPERATION,
    method: "POST",
    path: "/v0/project/{idOrSlug}/feature-flags",
    handler: |app, incoming| Box::pin(handle(app, incoming)),
};

/// A call that lacks only its body.
fn call(test: &TestApp) -> Call {
    CREATE.call().parameter("idOrSlug", PROJECT).key(&test.key)
}

/// Creates a flag.
async fn create(test: &TestApp, body: &Value) -> Reply {
    call(test).json(body).send(&test.app).await
}

/// The smallest body.
fn minimal(key: &str) -> Value {
    json!({"key": key, "name": "A flag", "type": "boolean"})
}

/// The keys of all flags that are stored, in order.
async fn stored_keys(test: &TestApp) -> Vec<String> {
    let items = test.items("feature-flags").await;
    let keys = items.iter().map(|item| item["key"].as_s().unwrap().clone());
    let mut keys: Vec<String> = keys.filter(|key| key != "#").collect();
    keys.sort();
    keys
}
