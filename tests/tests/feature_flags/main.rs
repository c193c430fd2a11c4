//! The operations on feature flags, together against a real engine: what one writes, the others show
//! and evaluate.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod access;
mod archiving;
mod concurrency;
mod dependents;
mod evaluation;
mod failures;
mod listing;
mod remembering;
mod updating;

use std::collections::BTreeMap;

use aws_sdk_dynamodb::types::AttributeValue;
use local::demo;
use serde_json::{Value, json};
use shared::models::project::ProjectId;
use tests::app::{PROJECT, TestApp};
use tests::call::{Call, Operation, Reply};

const TABLE: &str = "feature-flags";
const FLAGS: &str = "/v0/project/{idOrSlug}/feature-flags";
const FLAG: &str = "/v0/project/{idOrSlug}/feature-flags/{key}";

const CREATE: Operation = Operation {
    id: create_feature_flag::OPERATION,
    method: "POST",
    path: FLAGS,
    handler: |app, incoming| Box::pin(create_feature_flag::handle(app, incoming)),
};
const LIST: Operation = Operation {
    id: list_feature_flags::OPERATION,
    method: "GET",
    path: FLAGS,
    handler: |app, incoming| Box::pin(list_feature_flags::handle(app, incoming)),
};
const GET: Operation = Operation {
    id: get_feature_flag::OPERATION,
    method: "GET",
    path: FLAG,
    handler: |app, incoming| Box::pin(get_feature_flag::handle(app, incoming)),
};
const UPDATE: Operation = Operation {
    id: update_feature_flag::OPERATION,
    method: "PATCH",
    path: FLAG,
    handler: |app, incoming| Box::pin(update_feature_flag::handle(app, incoming)),
};
const DELETE: Operation = Operation {
    id: delete_feature_flag::OPERATION,
    method: "DELETE",
    path: FLAG,
    handler: |app, incoming| Box::pin(delete_feature_flag::handle(app, incoming)),
};
const EVALUATE: Operation = Operation {
    id: evaluate_feature_flag::OPERATION,
    method: "POST",
    path: "/v0/project/{idOrSlug}/ofrep/v1/evaluate/flags/{key}",
    handler: |app, incoming| Box::pin(evaluate_feature_flag::handle(app, incoming)),
};
const EVALUATE_ALL: Operation = Operation {
    id: evaluate_feature_flags::OPERATION,
    method: "POST",
    path: "/v0/project/{idOrSlug}/ofrep/v1/evaluate/flags",
    handler: |app, incoming| Box::pin(evaluate_feature_flags::handle(app, incoming)),
};

/// The operations whose errors are problems. What create-feature-flag does has tests of its own.
const OPERATIONS: [Operation; 4] = [LIST, GET, UPDATE, DELETE];
/// The operations of OFREP.
const EVALUATIONS: [Operation; 2] = [EVALUATE, EVALUATE_ALL];
/// The operations whose path names a flag that they look for.
const OF_A_FLAG: [Operation; 3] = [GET, UPDATE, DELETE];

/// A call in the tests' project.
fn call(test: &TestApp, operation: Operation) -> Call {
    operation.call().parameter("idOrSlug", PROJECT).key(&test.key)
}

/// A call for one flag.
fn call_for(test: &TestApp, operation: Operation, key: &str) -> Call {
    call(test, operation).parameter("key", key)
}

/// A call that would be carried out, without a key, for an archived flag.
fn valid(operation: Operation, project: &str, key: &str) -> Call {
    let mut call = operation.call().parameter("idOrSlug", project);
    if operation.path.contains("{key}") {
        call = call.parameter("key", key);
    }
    match operation.id {
        update_feature_flag::OPERATION => call.json(&json!({"archived": true})),
        evaluate_feature_flag::OPERATION | evaluate_feature_flags::OPERATION => {
            call.json(&json!({"context": {"targetingKey": "u"}}))
        }
        _ => call,
    }
}

/// The body that creates an enabled boolean flag with these members besides.
fn creation(key: &str, members: &Value) -> Value {
    let mut body = json!({"key": key, "name": key, "type": "boolean", "enabled": true});
    body.as_object_mut().unwrap().extend(members.as_object().unwrap().clone());
    body
}

/// Creates an enabled boolean flag with these members besides.
async fn create(test: &TestApp, key: &str, members: &Value) -> Reply {
    let reply = call(test, CREATE).json(&creation(key, members)).send(&test.app).await;
    assert_eq!(reply.status, 201, "{}", reply.body);
    reply
}

/// Creates a flag that depends on others being on.
async fn create_dependent(test: &TestApp, key: &str, others: &[&str]) -> Reply {
    create(test, key, &on(others)).await
}

/// Prerequisites: that these flags are on.
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

/// Changes a flag and expects it to be possible.
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
    call(test, EVALUATE_ALL).json(&json!({ "context": context })).send(&test.app).await
}

fn etag(reply: &Reply) -> &str {
    reply.headers["etag"].to_str().unwrap()
}

/// The keys of items, in their order.
fn keys(items: &Value) -> Vec<&str> {
    items.as_array().unwrap().iter().map(|item| item["key"].as_str().unwrap()).collect()
}

/// A second project of the same organization.
async fn other_project(test: &TestApp) -> ProjectId {
    demo::ensure_project(&test.app.store, "other", "Other").await.unwrap()
}

/// All items of the tests' project, by their keys.
async fn stored(test: &TestApp) -> BTreeMap<String, BTreeMap<String, AttributeValue>> {
    let items = test.items(TABLE).await.into_iter();
    let of_project = |item: &std::collections::HashMap<String, AttributeValue>| {
        *item["projectId"].as_s().unwrap() == test.project_id.to_string()
    };
    items
        .filter(of_project)
        .map(|item| (item["key"].as_s().unwrap().clone(), item.into_iter().collect()))
        .collect()
}

/// How many flags the project's own item counts.
async fn live_flags(test: &TestApp) -> usize {
    stored(test).await["#"]["liveFlags"].as_n().unwrap().parse().unwrap()
}

/// Sets the number of live flags behind the operations' back.
async fn pretend_live_flags(test: &TestApp, count: u32) {
    let project = test.project_id.to_string();
    let key = [("projectId", project.as_str()), ("key", "#")];
    test.tamper(TABLE, key, "liveFlags", AttributeValue::N(count.to_string())).await;
}

/// Damages a stored flag.
async fn damage(test: &TestApp, key: &str, attribute: &str, value: AttributeValue) {
    let project = test.project_id.to_string();
    let key = [("projectId", project.as_str()), ("key", key)];
    test.tamper(TABLE, key, attribute, value).await;
}
