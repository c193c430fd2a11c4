//! create-feature-flag against a real engine: responses and stored items.

mod access;
mod creation;
mod failures;
mod idempotency;
mod prerequisites;

use serde_json::{Value, json};
use tests::app::TestApp;
use tests::call::{Call, Reply};

use super::CREATE;

/// Creates a flag.
async fn create(test: &TestApp, body: &Value) -> Reply {
    test.call(CREATE).json(body).send(&test.app).await
}

/// Returns the smallest valid body.
fn minimal(key: &str) -> Value {
    json!({"key": key, "name": "A flag", "type": "boolean"})
}

/// Returns the keys of all stored flags, sorted.
async fn stored_keys(test: &TestApp) -> Vec<String> {
    let items = test.items("feature-flags").await;
    let keys = items.iter().map(|item| item["key"].as_s().unwrap().clone());
    let mut keys: Vec<String> = keys.filter(|key| key != "#").collect();
    keys.sort();
    keys
}
