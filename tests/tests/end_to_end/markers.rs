//! `/v0/projects/{idOrSlug}/event-marker-collections`, its subresources, and the purge of deleted
//! collections.

use reqwest::{Method, RequestBuilder};
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::time::Duration;

use tests::app::{PROJECT, items};
use tests::stack::{Stack, send};

const CREATE: &str = "create-event-marker-collection";
const LIST: &str = "list-event-marker-collections";
const GET: &str = "get-event-marker-collection";
const DELETE: &str = "delete-event-marker-collection";
const ADD: &str = "add-event-markers";
const LIST_EVENTS: &str = "list-event-markers";

/// Returns a request for an operation, without key and body.
fn bare(stack: &Stack, operation: &str, project: &str, id: &str) -> RequestBuilder {
    let collections = format!("/v0/projects/{project}/event-marker-collections");
    let (method, path) = match operation {
        CREATE => (Method::POST, collections),
        LIST => (Method::GET, collections),
        GET => (Method::GET, format!("{collections}/{id}")),
        DELETE => (Method::DELETE, format!("{collections}/{id}")),
        ADD => (Method::POST, format!("{collections}/{id}/events")),
        LIST_EVENTS => (Method::GET, format!("{collections}/{id}/events")),
        _ => unreachable!("there is no such operation"),
    };
    let url = format!("{}{path}", stack.base_url);
    stack.http.request(method, url).timeout(Duration::from_mins(2))
}

/// Returns a request without a body.
fn request(stack: &Stack, operation: &str, id: &str) -> RequestBuilder {
    bare(stack, operation, PROJECT, id).header("x-api-key", &stack.key)
}

/// Returns a list request with a query.
fn listing(stack: &Stack, operation: &str, id: &str, query: &str) -> RequestBuilder {
    let request = request(stack, operation, id).build().expect("the request is valid");
    let url = format!("{}?{query}", request.url());
    stack.http.get(url).headers(request.headers().clone()).timeout(Duration::from_mins(2))
}

/// Adds a valid body, if the operation needs one.
fn with_body(operation: &str, request: RequestBuilder) -> RequestBuilder {
    match operation {
        CREATE => request.json(&json!({"name": "Releases"})),
        ADD => request.json(&events(1)),
        _ => request,
    }
}

/// Returns a body with `count` events, a second apart.
fn events(count: usize) -> Value {
    let event = |number: usize| {
        let at = format!("2026-11-21T04:{:02}:{:02}Z", number / 60, number % 60);
        json!({"name": format!("v{number}"), "occurredAt": at})
    };
    json!({"events": (0..count).map(event).collect::<Vec<_>>()})
}

async fn create(stack: &Stack) -> String {
    let reply = send(CREATE, with_body(CREATE, request(stack, CREATE, ""))).await;
    assert_eq!(reply.status, 201, "{}", reply.body);
    reply.body["id"].as_str().unwrap().to_owned()
}

/// Returns the ids of a complete list, page by page.
async fn ids(stack: &Stack, operation: &str, id: &str, limit: &str) -> Vec<String> {
    let mut ids = Vec::new();
    let mut query = format!("limit={limit}");
    loop {
        let reply = send(operation, listing(stack, operation, id, &query)).await;
        assert_eq!(reply.status, 200, "{}", reply.body);
        let items = reply.body["items"].as_array().unwrap();
        ids.extend(items.iter().map(|item| item["id"].as_str().unwrap().to_owned()));
        let Some(next) = reply.body["nextCursor"].as_str() else { return ids };
        query = format!("limit={limit}&cursor={next}");
    }
}

/// Runs the purge job.
async fn purge(stack: &Stack) {
    let response = stack.run_job("purge-event-markers").await;
    assert_eq!(response.status(), 200, "{}", response.text().await.unwrap());
}

/// Returns the partitions of all stored items.
async fn partitions(stack: &Stack) -> BTreeSet<String> {
    let items = items(&stack.client, "event-markers").await;
    items.iter().map(|item| item["pk"].as_s().unwrap().clone()).collect()
}

#[tokio::test]
async fn collection_lifecycle_from_creation_to_purge() {
    let stack = Stack::start().await;
    let body = json!({"name": "Releases", "description": "Of the shop"});
    let creation = || request(&stack, CREATE, "").header("idempotency-key", "k").json(&body);
    let created = send(CREATE, creation()).await;
    let again = send(CREATE, creation()).await;
    assert_eq!((created.status, again.status), (201, 201));
    assert_eq!(
        (&created.body, &again.headers["idempotency-replayed"]),
        (&again.body, &"true".parse().unwrap())
    );
    let id = created.body["id"].as_str().unwrap();
    let location = created.headers["location"].to_str().unwrap();
    let by_location = stack.http.get(format!("{}{location}", stack.base_url));
    let got = send(GET, by_location.bearer_auth(&stack.key)).await;
    assert_eq!((got.status, &got.body), (200, &created.body));

    let adding = || request(&stack, ADD, id).header("idempotency-key", "k").json(&events(100));
    let added = send(ADD, adding()).await;
    assert_eq!((added.status, &send(ADD, adding()).await.body), (201, &added.body));
    assert_eq!(send(GET, request(&stack, GET, id)).await.body["eventCount"], 100);
    let expected: Vec<String> = added.body["events"]
        .as_array()
        .unwrap()
        .iter()
        .map(|event| event["id"].as_str().unwrap().to_owned())
        .collect();
    for limit in ["7", "50", "100"] {
        assert_eq!(ids(&stack, LIST_EVENTS, id, limit).await, expected);
    }
    let start = 1_795_233_600_000_i64;
    let range = format!("from={}&to={}", start + 1_000, start + 3_000);
    let some = send(LIST_EVENTS, listing(&stack, LIST_EVENTS, id, &range)).await;
    assert_eq!(some.body["items"], json!([added.body["events"][1], added.body["events"][2]]));

    let mut collections = vec![id.to_owned()];
    for _ in 0..4 {
        collections.insert(0, create(&stack).await);
    }
    for limit in ["1", "2", "100"] {
        assert_eq!(ids(&stack, LIST, "", limit).await, collections);
    }

    let deleted = send(DELETE, request(&stack, DELETE, id)).await;
    assert_eq!((deleted.status, &deleted.body), (204, &Value::Null));
    for operation in [GET, LIST_EVENTS, ADD, DELETE] {
        let reply = send(operation, with_body(operation, request(&stack, operation, id))).await;
        assert_eq!(reply.problem(), (404, "collection_not_found"), "{operation}");
    }
    assert_eq!(ids(&stack, LIST, "", "2").await, collections[..4]);
    purge(&stack).await;
    let project = format!("project#{}", stack.project_id);
    let left = partitions(&stack).await;
    assert_eq!(left, [project, "purge-jobs".to_owned()].into());
    let log = stack.log_until(|log| log.contains("OldestPurgeJobAge")).await;
    let metric = log.lines().find(|line| line.contains("OldestPurgeJobAge"));
    assert!(metric.is_some_and(|line| line.starts_with('{')), "{log}");
}
