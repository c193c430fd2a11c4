//! The operations on replay insights, together against a real engine: what one writes, the others show.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod access;
mod adding;
mod claims;
mod concurrency;
mod creation;
mod failures;
mod listing;
mod merging;
mod size;
mod splitting;
mod statistics;
mod updating;

use std::collections::BTreeSet;

use local::demo;
use serde_json::{Value, json};
use shared::models::project::ProjectId;
use tests::app::{PROJECT, TestApp};
use tests::call::{Call, Operation, Reply};
use tests::insights::{self, upload};

const TABLE: &str = "replay-insights";
const INSIGHTS: &str = "/v0/projects/{idOrSlug}/replay-insights";
const INSIGHT: &str = "/v0/projects/{idOrSlug}/replay-insights/{insightId}";
const PAIN_POINTS: &str = "/v0/projects/{idOrSlug}/replay-insights/{insightId}/pain-points";

const CREATE: Operation = Operation {
    id: create_insight::OPERATION,
    method: "POST",
    path: INSIGHTS,
    handler: |app, incoming| Box::pin(create_insight::handle(app, incoming)),
};
const LIST: Operation = Operation {
    id: list_insights::OPERATION,
    method: "GET",
    path: INSIGHTS,
    handler: |app, incoming| Box::pin(list_insights::handle(app, incoming)),
};
const GET: Operation = Operation {
    id: get_insight::OPERATION,
    method: "GET",
    path: INSIGHT,
    handler: |app, incoming| Box::pin(get_insight::handle(app, incoming)),
};
const UPDATE: Operation = Operation {
    id: update_insight::OPERATION,
    method: "PATCH",
    path: INSIGHT,
    handler: |app, incoming| Box::pin(update_insight::handle(app, incoming)),
};
const ADD: Operation = Operation {
    id: add_pain_points::OPERATION,
    method: "POST",
    path: PAIN_POINTS,
    handler: |app, incoming| Box::pin(add_pain_points::handle(app, incoming)),
};
const LIST_PAIN_POINTS: Operation = Operation {
    id: list_pain_points::OPERATION,
    method: "GET",
    path: PAIN_POINTS,
    handler: |app, incoming| Box::pin(list_pain_points::handle(app, incoming)),
};
const SPLIT: Operation = Operation {
    id: split_insight::OPERATION,
    method: "POST",
    path: "/v0/projects/{idOrSlug}/replay-insights/{insightId}/split",
    handler: |app, incoming| Box::pin(split_insight::handle(app, incoming)),
};
const MERGE: Operation = Operation {
    id: merge_insights::OPERATION,
    method: "POST",
    path: "/v0/projects/{idOrSlug}/replay-insights/{insightId}/merge",
    handler: |app, incoming| Box::pin(merge_insights::handle(app, incoming)),
};

/// Every operation, with whether it changes anything.
const OPERATIONS: [(Operation, bool); 8] = [
    (CREATE, true),
    (LIST, false),
    (GET, false),
    (UPDATE, true),
    (ADD, true),
    (LIST_PAIN_POINTS, false),
    (SPLIT, true),
    (MERGE, true),
];

/// The operations whose path names an insight.
const OF_AN_INSIGHT: [Operation; 6] = [GET, UPDATE, ADD, LIST_PAIN_POINTS, SPLIT, MERGE];

/// An insight that no project has.
const NOWHERE: &str = "01902f3c-0000-7000-8000-ffffffffffff";

/// A call in the tests' project.
fn call(test: &TestApp, operation: Operation) -> Call {
    operation.call().parameter("idOrSlug", PROJECT).key(&test.key)
}

/// A call for one insight.
fn call_for(test: &TestApp, operation: Operation, id: &str) -> Call {
    call(test, operation).parameter("insightId", id)
}

/// A call that would be carried out, without a key, for an insight that has the pain points 0 and 1,
/// in a project that has the insight `into` too.
fn valid(operation: Operation, project: &str, id: &str, into: &str) -> Call {
    let call = operation.call().parameter("idOrSlug", project).parameter("insightId", id);
    match operation.id {
        create_insight::OPERATION => call.json(&creation(100..102)),
        add_pain_points::OPERATION => call.json(&upload(200..202)),
        update_insight::OPERATION => call.json(&json!({"viewed": true})),
        split_insight::OPERATION => call.json(&split_of([1])),
        merge_insights::OPERATION => call.json(&json!({"into": into})),
        _ => call,
    }
}

/// The body that creates an insight with the pain points of these numbers.
fn creation(numbers: impl IntoIterator<Item = usize>) -> Value {
    let mut body = upload(numbers);
    body["title"] = json!("Checkout");
    body
}

/// The body of a split that moves the pain points of these numbers.
fn split_of(numbers: impl IntoIterator<Item = usize>) -> Value {
    json!({ "painPointIds": numbers.into_iter().map(insights::id).collect::<Vec<_>>() })
}

/// Creates an insight and answers its id.
async fn create(test: &TestApp, numbers: impl IntoIterator<Item = usize>) -> String {
    let reply = call(test, CREATE).json(&creation(numbers)).send(&test.app).await;
    assert_eq!(reply.status, 201, "{}", reply.body);
    id_of(&reply)
}

async fn get(test: &TestApp, id: &str) -> Reply {
    let reply = call_for(test, GET, id).send(&test.app).await;
    assert_eq!(reply.status, 200, "{}", reply.body);
    reply
}

async fn add(test: &TestApp, id: &str, numbers: impl IntoIterator<Item = usize>) -> Reply {
    call_for(test, ADD, id).json(&upload(numbers)).send(&test.app).await
}

async fn split(test: &TestApp, id: &str, numbers: impl IntoIterator<Item = usize>) -> Reply {
    call_for(test, SPLIT, id).json(&split_of(numbers)).send(&test.app).await
}

async fn merge(test: &TestApp, id: &str, into: &str) -> Reply {
    call_for(test, MERGE, id).json(&json!({ "into": into })).send(&test.app).await
}

async fn update(test: &TestApp, id: &str, patch: Value) -> Reply {
    call_for(test, UPDATE, id).json(&patch).send(&test.app).await
}

fn id_of(reply: &Reply) -> String {
    reply.body["id"].as_str().unwrap().to_owned()
}

fn etag(reply: &Reply) -> &str {
    reply.headers["etag"].to_str().unwrap()
}

fn is_replayed(reply: &Reply) -> bool {
    reply.headers.get("idempotency-replayed").is_some_and(|value| value == "true")
}

/// The ids of items, in the order of the list.
fn ids(items: &[Value]) -> Vec<String> {
    items.iter().map(|item| item["id"].as_str().unwrap().to_owned()).collect()
}

/// The ids of the pain points of an insight, each of which is listed once.
async fn members(test: &TestApp, id: &str) -> BTreeSet<String> {
    let listed = ids(&test.pages(&call_for(test, LIST_PAIN_POINTS, id), 100).await.concat());
    let count = listed.len();
    let members: BTreeSet<String> = listed.into_iter().collect();
    assert_eq!(members.len(), count, "no pain point is listed twice");
    members
}

/// The ids of the pain points of these numbers.
fn numbered(numbers: impl IntoIterator<Item = usize>) -> BTreeSet<String> {
    numbers.into_iter().map(insights::id).collect()
}

/// A second project of the same organization.
async fn other_project(test: &TestApp) -> ProjectId {
    demo::ensure_project(&test.app.store, "other", "Other").await.unwrap()
}

/// All that is stored, as text, in order.
async fn stored(test: &TestApp) -> Vec<String> {
    let items = test.items(TABLE).await;
    let attributes = |item: &std::collections::HashMap<_, _>| {
        let sorted: std::collections::BTreeMap<String, _> = item.clone().into_iter().collect();
        format!("{sorted:?}")
    };
    let mut stored: Vec<String> = items.iter().map(attributes).collect();
    stored.sort();
    stored
}

/// How many chunks all insights refer to, 70 bytes each.
async fn referred_chunks(test: &TestApp) -> usize {
    let items = test.items(TABLE).await;
    let packed = items.iter().filter_map(|item| item.get("chunks")?.as_b().ok());
    packed.map(|packed| packed.as_ref().len() / 70).sum()
}

/// How many items there are whose partition key begins so.
async fn stored_of(test: &TestApp, prefix: &str) -> usize {
    let items = test.items(TABLE).await;
    items.iter().filter(|item| item["pk"].as_s().unwrap().starts_with(prefix)).count()
}
