//! Tests of the event-marker operations together, against a real engine.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod access;
mod activity;
mod automatic;
mod collections;
mod delete_event_marker_collection;
mod events;
mod failures;
mod kills;
mod purge_event_markers;

use std::collections::BTreeSet;

use serde_json::{Value, json};

use markers::CollectionId;
use shared::app::Operation;
use tests::app::{Item, TestApp};
use tests::call::{Call, Reply};

const TABLE: &str = "event-markers";

const CREATE: &Operation = &create_event_marker_collection::OPERATION;
const LIST: &Operation = &list_event_marker_collections::OPERATION;
const GET: &Operation = &get_event_marker_collection::OPERATION;
const DELETE: &Operation = &::delete_event_marker_collection::OPERATION;
const ADD: &Operation = &add_event_markers::OPERATION;
const LIST_EVENTS: &Operation = &list_event_markers::OPERATION;

/// Returns a call for one collection.
fn call_for(test: &TestApp, operation: &'static Operation, id: &str) -> Call {
    test.call(operation).parameter("collectionId", id)
}

/// Returns a valid call for a collection that may exist.
fn valid(operation: &'static Operation, project: &str, id: &str) -> Call {
    let call = Call::of(operation).parameter("idOrSlug", project).parameter("collectionId", id);
    match operation.name {
        "add-event-markers" => call.json(&some_events(1)),
        "create-event-marker-collection" => call.json(&json!({"name": "Releases"})),
        _ => call,
    }
}

/// Creates a collection and returns its ID.
async fn create(test: &TestApp) -> String {
    let reply = test.call(CREATE).json(&json!({"name": "Releases"})).send(&test.app).await;
    assert_eq!(reply.status, 201);
    reply.body["id"].as_str().unwrap().to_owned()
}

/// Returns a body with these events.
fn events(items: &[(&str, &str)]) -> Value {
    let items = items.iter().map(|(name, at)| json!({"name": name, "occurredAt": at}));
    json!({"events": items.collect::<Vec<_>>()})
}

/// Returns a body with this number of events, all with the same time.
fn some_events(count: usize) -> Value {
    json!({"events": vec![json!({"name": "v1", "occurredAt": "2026-11-21T04:16:00Z"}); count]})
}

async fn add(test: &TestApp, id: &str, body: &Value) -> Reply {
    call_for(test, ADD, id).json(body).send(&test.app).await
}

/// Returns a field of each item, in the order of the list.
fn column(items: &[Value], field: &str) -> Vec<String> {
    items.iter().map(|item| item[field].as_str().unwrap().to_owned()).collect()
}

/// Returns the names of all events of a collection, oldest first.
async fn event_names(test: &TestApp, id: &str) -> Vec<String> {
    column(&test.pages(&call_for(test, LIST_EVENTS, id), 100).await.concat(), "name")
}

/// Counts the listed events of a collection, and checks that their IDs are unique.
async fn count_listed(test: &TestApp, id: &str) -> usize {
    let listed = test.pages(&call_for(test, LIST_EVENTS, id), 100).await.concat();
    let ids: BTreeSet<String> = column(&listed, "id").into_iter().collect();
    assert_eq!(ids.len(), listed.len(), "no event is listed twice");
    listed.len()
}

/// Returns the event count that the collection reports.
async fn event_count(test: &TestApp, id: &str) -> usize {
    let reply = call_for(test, GET, id).send(&test.app).await;
    assert_eq!(reply.status, 200);
    reply.body["eventCount"].as_u64().unwrap().try_into().unwrap()
}

fn collection_id(id: &str) -> CollectionId {
    CollectionId::parse(id).unwrap()
}

/// Returns the keys of all items of the table, sorted.
async fn stored(test: &TestApp) -> Vec<(String, String)> {
    let items = test.items(TABLE).await;
    let key = |item: &Item, name: &str| item[name].as_s().unwrap().clone();
    let mut keys: Vec<_> = items.iter().map(|item| (key(item, "pk"), key(item, "sk"))).collect();
    keys.sort();
    keys
}
