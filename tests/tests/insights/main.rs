//! Tests of the insight operations together, against a real engine.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod access;
mod add_pain_points;
mod claims;
mod concurrency;
mod create_insight;
mod failures;
mod list_insights;
mod merge_insights;
mod replays;
mod replays_in_chromium;
mod size;
mod split_insight;
mod update_insight;

use std::collections::BTreeSet;

use serde_json::{Value, json};
use shared::app::Operation;
use tests::app::TestApp;
use tests::call::{Call, Reply};
use tests::insights::{self, upload};

const TABLE: &str = "replay-insights";

const CREATE: &Operation = &::create_insight::OPERATION;
const LIST: &Operation = &::list_insights::OPERATION;
const GET: &Operation = &get_insight::OPERATION;
const UPDATE: &Operation = &::update_insight::OPERATION;
const ADD: &Operation = &::add_pain_points::OPERATION;
const LIST_PAIN_POINTS: &Operation = &list_pain_points::OPERATION;
const SPLIT: &Operation = &::split_insight::OPERATION;
const MERGE: &Operation = &::merge_insights::OPERATION;

/// The operations with an insight's ID in the path.
const OPERATIONS_ON_AN_INSIGHT: [&Operation; 6] =
    [GET, UPDATE, ADD, LIST_PAIN_POINTS, SPLIT, MERGE];

/// The ID of an insight that no project has.
const MISSING_ID: &str = "01902f3c-0000-7000-8000-ffffffffffff";

/// Returns a call for one insight.
fn call_for(test: &TestApp, operation: &'static Operation, id: &str) -> Call {
    test.call(operation).parameter("insightId", id)
}

/// Returns a call without an API key. It is valid for an insight with the pain points 0 and 1, in a
/// project that also has the insight `into`.
fn valid(operation: &'static Operation, project: &str, id: &str, into: &str) -> Call {
    let call = Call::of(operation).parameter("idOrSlug", project).parameter("insightId", id);
    match operation.name {
        "create-insight" => call.json(&creation(100..102)),
        "add-pain-points" => call.json(&upload(200..202)),
        "update-insight" => call.json(&json!({"viewed": true})),
        "split-insight" => call.json(&split_of([1])),
        "merge-insights" => call.json(&json!({"into": into})),
        _ => call,
    }
}

/// Returns the body of an insight with the pain points of these numbers.
fn creation(numbers: impl IntoIterator<Item = usize>) -> Value {
    let mut body = upload(numbers);
    body["title"] = json!("Checkout");
    body
}

/// Returns the body of a split that moves the pain points of these numbers.
fn split_of(numbers: impl IntoIterator<Item = usize>) -> Value {
    json!({ "painPointIds": numbers.into_iter().map(insights::id).collect::<Vec<_>>() })
}

/// Creates an insight and returns its ID.
async fn create(test: &TestApp, numbers: impl IntoIterator<Item = usize>) -> String {
    let reply = test.call(CREATE).json(&creation(numbers)).send(&test.app).await;
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

/// Returns the IDs of items, in the order of the list.
fn ids(items: &[Value]) -> Vec<String> {
    items.iter().map(|item| item["id"].as_str().unwrap().to_owned()).collect()
}

/// Returns the IDs of an insight's pain points, and checks that each is listed once.
async fn members(test: &TestApp, id: &str) -> BTreeSet<String> {
    let listed = ids(&test.pages(&call_for(test, LIST_PAIN_POINTS, id), 100).await.concat());
    let count = listed.len();
    let members: BTreeSet<String> = listed.into_iter().collect();
    assert_eq!(members.len(), count, "no pain point is listed twice");
    members
}

/// Returns the IDs of the pain points of these numbers.
fn numbered(numbers: impl IntoIterator<Item = usize>) -> BTreeSet<String> {
    numbers.into_iter().map(insights::id).collect()
}

/// Returns all stored items as sorted text.
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

/// Returns the number of chunks that all insights reference, 70 bytes each.
async fn referenced_chunks(test: &TestApp) -> usize {
    let items = test.items(TABLE).await;
    let packed = items.iter().filter_map(|item| item.get("chunks")?.as_b().ok());
    packed.map(|packed| packed.as_ref().len() / 70).sum()
}

/// Returns the number of items whose partition key has this prefix.
async fn stored_of(test: &TestApp, prefix: &str) -> usize {
    let items = test.items(TABLE).await;
    items.iter().filter(|item| item["pk"].as_s().unwrap().starts_with(prefix)).count()
}
