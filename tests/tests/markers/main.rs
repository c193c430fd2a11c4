//! The operations on event markers, together against a real engine: what one writes, the others show.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod access;
mod collections;
mod delete_event_marker_collection;
mod events;
mod failures;
mod kills;
mod purge_event_markers;

use std::collections::{BTreeSet, HashMap};

use aws_sdk_dynamodb::types::AttributeValue;
use serde_json::{Value, json};

use local::demo;
use markers::CollectionId;
use shared::app::Operation;
use shared::projects::project::ProjectId;
use tests::app::{PROJECT, TestApp};
use tests::call::{Call, Reply};

type Item = HashMap<String, AttributeValue>;

const TABLE: &str = "event-markers";

const CREATE: &Operation = &create_event_marker_collection::OPERATION;
const LIST: &Operation = &list_event_marker_collections::OPERATION;
const GET: &Operation = &get_event_marker_collection::OPERATION;
const DELETE: &Operation = &::delete_event_marker_collection::OPERATION;
const ADD: &Operation = &add_event_markers::OPERATION;
const LIST_EVENTS: &Operation = &list_event_markers::OPERATION;

/// Every operation.
const OPERATIONS: [&Operation; 6] = [CREATE, LIST, GET, DELETE, ADD, LIST_EVENTS];

/// A call in the tests' project.
fn call(test: &TestApp, operation: &'static Operation) -> Call {
    Call::of(operation).parameter("idOrSlug", PROJECT).key(&test.key)
}

/// A call for one collection.
fn call_for(test: &TestApp, operation: &'static Operation, id: &str) -> Call {
    call(test, operation).parameter("collectionId", id)
}

/// A call that would be carried out, for a collection that may be there.
fn valid(operation: &'static Operation, project: &str, id: &str) -> Call {
    let call = Call::of(operation).parameter("idOrSlug", project).parameter("collectionId", id);
    match operation.name {
        "add-event-markers" => call.json(&some_events(1)),
        "create-event-marker-collection" => call.json(&json!({"name": "Releases"})),
        _ => call,
    }
}

/// Creates a collection and answers its id.
async fn create(test: &TestApp) -> String {
    let reply = call(test, CREATE).json(&json!({"name": "Releases"})).send(&test.app).await;
    assert_eq!(reply.status, 201);
    reply.body["id"].as_str().unwrap().to_owned()
}

/// A body of events.
fn events(items: &[(&str, &str)]) -> Value {
    let items = items.iter().map(|(name, at)| json!({"name": name, "occurredAt": at}));
    json!({"events": items.collect::<Vec<_>>()})
}

/// A body of so many events of one moment.
fn some_events(count: usize) -> Value {
    json!({"events": vec![json!({"name": "v1", "occurredAt": "2026-11-21T04:16:00Z"}); count]})
}

async fn add(test: &TestApp, id: &str, body: &Value) -> Reply {
    call_for(test, ADD, id).json(body).send(&test.app).await
}

/// A member of each item, in the order of the list.
fn column(items: &[Value], member: &str) -> Vec<String> {
    items.iter().map(|item| item[member].as_str().unwrap().to_owned()).collect()
}

/// The names of all events of a collection, the oldest first.
async fn event_names(test: &TestApp, id: &str) -> Vec<String> {
    column(&test.pages(&call_for(test, LIST_EVENTS, id), 100).await.concat(), "name")
}

/// Counts the events of a collection, each under its id.
async fn count_listed(test: &TestApp, id: &str) -> usize {
    let listed = test.pages(&call_for(test, LIST_EVENTS, id), 100).await.concat();
    let ids: BTreeSet<String> = column(&listed, "id").into_iter().collect();
    assert_eq!(ids.len(), listed.len(), "no event is listed twice");
    listed.len()
}

/// What the collection says of how many events it holds.
async fn event_count(test: &TestApp, id: &str) -> usize {
    let reply = call_for(test, GET, id).send(&test.app).await;
    assert_eq!(reply.status, 200);
    reply.body["eventCount"].as_u64().unwrap().try_into().unwrap()
}

/// A second project of the same organization.
async fn other_project(test: &TestApp) -> ProjectId {
    demo::ensure_project(&test.app.store, "other", "Other").await.unwrap()
}

fn collection_id(id: &str) -> CollectionId {
    CollectionId::parse(id).unwrap()
}

/// The keys of all items of the table, in order.
async fn stored(test: &TestApp) -> Vec<(String, String)> {
    let items = test.items(TABLE).await;
    let key = |item: &Item, name: &str| item[name].as_s().unwrap().clone();
    let mut keys: Vec<_> = items.iter().map(|item| (key(item, "pk"), key(item, "sk"))).collect();
    keys.sort();
    keys
}
