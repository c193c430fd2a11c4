//! Tests of the feature-flag operations together, against a real engine: writes, reads and
//! evaluations.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod access;
mod archiving;
mod caching;
mod concurrency;
mod conformance;
mod create_feature_flag;
mod dependents;
mod evaluation;
mod failures;
mod flagd_configuration;
mod flagd_export;
mod history;
mod list_feature_flags;
mod outages;
mod project_limit;
mod quotas;
mod segments;
mod state;
mod test_feature_flag;

use std::collections::BTreeMap;

use aws_sdk_dynamodb::types::AttributeValue;
use serde_json::{Value, json};
use shared::app::Operation;
use tests::app::{Item, TestApp};
use tests::call::{Call, Reply};

const TABLE: &str = "feature-flags";

const CREATE: &Operation = &::create_feature_flag::OPERATION;
const LIST: &Operation = &::list_feature_flags::OPERATION;
const GET: &Operation = &get_feature_flag::OPERATION;
const UPDATE: &Operation = &::update_feature_flag::OPERATION;
const DELETE: &Operation = &delete_feature_flag::OPERATION;
const CHANGES: &Operation = &list_flag_changes::OPERATION;
const EVALUATE: &Operation = &evaluate_feature_flag::OPERATION;
const EVALUATE_ALL: &Operation = &evaluate_feature_flags::OPERATION;

/// The operations of OFREP.
const EVALUATIONS: [&Operation; 2] = [EVALUATE, EVALUATE_ALL];

/// Returns a call for one flag.
fn call_for(test: &TestApp, operation: &'static Operation, key: &str) -> Call {
    test.call(operation).parameter("key", key)
}

/// Returns a call without an API key, valid for an archived flag.
fn valid(operation: &'static Operation, project: &str, key: &str) -> Call {
    let mut call = Call::of(operation).parameter("idOrSlug", project);
    if operation.path.contains("{key}") {
        call = call.parameter("key", key);
    }
    match operation.name {
        "update-feature-flag" => call.json(&json!({"archived": true})),
        "evaluate-feature-flag" | "evaluate-feature-flags" => {
            call.json(&json!({"context": {"targetingKey": "u"}}))
        }
        _ => call,
    }
}

/// Returns the body that creates an enabled boolean flag with these additional fields.
fn creation(key: &str, members: &Value) -> Value {
    let mut body = json!({"key": key, "name": key, "type": "boolean", "enabled": true});
    body.as_object_mut().unwrap().extend(members.as_object().unwrap().clone());
    body
}

/// Creates an enabled boolean flag with these additional fields.
async fn create(test: &TestApp, key: &str, members: &Value) -> Reply {
    let reply = test.call(CREATE).json(&creation(key, members)).send(&test.app).await;
    assert_eq!(reply.status, 201, "{}", reply.body);
    reply
}

/// Creates a flag that requires other flags to be on.
async fn create_dependent(test: &TestApp, key: &str, others: &[&str]) -> Reply {
    create(test, key, &on(others)).await
}

/// Returns a patch with prerequisites that require these flags to be on.
fn on(others: &[&str]) -> Value {
    let on = |key: &&str| json!({"flagKey": key, "variant": "on"});
    json!({ "prerequisites": others.iter().map(on).collect::<Vec<_>>() })
}

async fn get(test: &TestApp, key: &str) -> Reply {
    let reply = call_for(test, GET, key).send(&test.app).await;
    assert_eq!(reply.status, 200, "{}", reply.body);
    reply
}

async fn update(test: &TestApp, key: &str, patch: Value) -> Reply {
    call_for(test, UPDATE, key).json(&patch).send(&test.app).await
}

/// Changes a flag, and expects success.
async fn change(test: &TestApp, key: &str, patch: Value) -> Reply {
    let reply = update(test, key, patch).await;
    assert_eq!(reply.status, 200, "{}", reply.body);
    reply
}

async fn archive(test: &TestApp, key: &str) -> Reply {
    update(test, key, json!({"archived": true})).await
}

async fn delete(test: &TestApp, key: &str) -> Reply {
    call_for(test, DELETE, key).send(&test.app).await
}

async fn evaluate(test: &TestApp, key: &str, context: Value) -> Reply {
    call_for(test, EVALUATE, key).json(&json!({ "context": context })).send(&test.app).await
}

async fn evaluate_all(test: &TestApp, context: Value) -> Reply {
    test.call(EVALUATE_ALL).json(&json!({ "context": context })).send(&test.app).await
}

fn etag(reply: &Reply) -> &str {
    reply.headers["etag"].to_str().unwrap()
}

/// Returns the keys of items, in order.
fn keys(items: &Value) -> Vec<&str> {
    items.as_array().unwrap().iter().map(|item| item["key"].as_str().unwrap()).collect()
}

/// Returns all items of the tests' project by key.
async fn stored(test: &TestApp) -> BTreeMap<String, BTreeMap<String, AttributeValue>> {
    let items = test.items(TABLE).await.into_iter();
    let project_number =
        |item: &Item| *item["projectId"].as_s().unwrap() == test.project_id.to_string();
    items
        .filter(project_number)
        .map(|item| (item["key"].as_s().unwrap().clone(), item.into_iter().collect()))
        .collect()
}

/// Returns the number of live flags in the project's own item.
async fn live_flags(test: &TestApp) -> usize {
    project_number(test, "liveFlags").await
}

/// Returns the revision of the project's flags.
async fn flag_set_revision(test: &TestApp) -> usize {
    project_number(test, "flagsState").await
}

/// Returns a number in the project's own item.
async fn project_number(test: &TestApp, attribute: &str) -> usize {
    stored(test).await["#"][attribute].as_n().unwrap().parse().unwrap()
}

/// Sets the number of live flags directly in the table.
async fn set_live_flags(test: &TestApp, count: u32) {
    set_project_number(test, "liveFlags", count).await;
}

/// Sets a number in the project's own item directly in the table.
async fn set_project_number(test: &TestApp, attribute: &str, count: u32) {
    let project = test.project_id.to_string();
    let key = [("projectId", project.as_str()), ("key", "#")];
    test.tamper(TABLE, key, attribute, AttributeValue::N(count.to_string())).await;
}

/// Corrupts an attribute of a stored flag.
async fn damage(test: &TestApp, key: &str, attribute: &str, value: AttributeValue) {
    let project = test.project_id.to_string();
    let key = [("projectId", project.as_str()), ("key", key)];
    test.tamper(TABLE, key, attribute, value).await;
}

/// Stores copies of a flag directly in the table, with numbers in their keys.
async fn copy(test: &TestApp, key: &str, copies: usize) {
    let flag: Item = stored(test).await.remove(key).unwrap().into_iter().collect();
    let copy = |number: usize| {
        let mut copy = flag.clone();
        copy.insert("key".to_owned(), AttributeValue::S(format!("{key}-{number:04}")));
        copy
    };
    test.put(TABLE, (1..=copies).map(copy)).await;
}
