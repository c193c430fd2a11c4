//! `/v0/projects/{idOrSlug}/replay-insights` and its subresources.

use reqwest::{Method, RequestBuilder};
use serde_json::{Value, json};
use std::time::Duration;

use tests::app::PROJECT;
use tests::call::Reply;
use tests::insights::{self, upload};
use tests::stack::{Stack, send};

const CREATE: &str = "create-insight";
const LIST: &str = "list-insights";
const GET: &str = "get-insight";
const UPDATE: &str = "update-insight";
const ADD: &str = "add-pain-points";
const LIST_PAIN_POINTS: &str = "list-pain-points";
const SPLIT: &str = "split-insight";
const MERGE: &str = "merge-insights";

/// Returns a request for an operation, without key and body.
fn bare(stack: &Stack, operation: &str, project: &str, id: &str) -> RequestBuilder {
    let insights = format!("/v0/projects/{project}/replay-insights");
    let (method, path) = match operation {
        CREATE => (Method::POST, insights),
        LIST => (Method::GET, insights),
        GET => (Method::GET, format!("{insights}/{id}")),
        UPDATE => (Method::PATCH, format!("{insights}/{id}")),
        ADD => (Method::POST, format!("{insights}/{id}/pain-points")),
        LIST_PAIN_POINTS => (Method::GET, format!("{insights}/{id}/pain-points")),
        SPLIT => (Method::POST, format!("{insights}/{id}/split")),
        MERGE => (Method::POST, format!("{insights}/{id}/merge")),
        _ => unreachable!("there is no such operation"),
    };
    let url = format!("{}{path}", stack.base_url);
    stack.http.request(method, url).timeout(Duration::from_mins(2))
}

/// Returns a request without a body.
fn request(stack: &Stack, operation: &str, id: &str) -> RequestBuilder {
    bare(stack, operation, PROJECT, id).header("x-api-key", &stack.key)
}

fn creation(numbers: std::ops::Range<usize>) -> Value {
    let mut body = upload(numbers);
    body["title"] = json!("Checkout");
    body
}

fn split_of(numbers: impl IntoIterator<Item = usize>) -> Value {
    json!({ "painPointIds": numbers.into_iter().map(insights::id).collect::<Vec<_>>() })
}

fn id_of(reply: &Reply) -> String {
    reply.body["id"].as_str().unwrap().to_owned()
}

/// Returns the ids of a complete list, page by page.
async fn ids(stack: &Stack, operation: &str, id: &str, query: &str) -> Vec<String> {
    let mut ids = Vec::new();
    let original = request(stack, operation, id).build().unwrap();
    let mut url = format!("{}?{query}", original.url());
    loop {
        let page = stack.http.get(&url).headers(original.headers().clone());
        let reply = send(operation, page.timeout(Duration::from_mins(2))).await;
        assert_eq!(reply.status, 200, "{}", reply.body);
        let items = reply.body["items"].as_array().unwrap();
        ids.extend(items.iter().map(|item| item["id"].as_str().unwrap().to_owned()));
        let Some(next) = reply.body["nextCursor"].as_str() else { return ids };
        url = format!("{}?{query}&cursor={next}", original.url());
    }
}

fn newest_first(numbers: impl DoubleEndedIterator<Item = usize>) -> Vec<String> {
    numbers.rev().map(insights::id).collect()
}

#[tokio::test]
async fn insights_grow_split_and_merge() {
    let stack = Stack::start().await;
    let body = creation(0..400);
    let creating = || request(&stack, CREATE, "").header("idempotency-key", "k").json(&body);
    let created = send(CREATE, creating()).await;
    let again = send(CREATE, creating()).await;
    assert_eq!((created.status, &created.body), (201, &again.body));
    assert_eq!(again.headers["idempotency-replayed"], "true");
    let id = id_of(&again);
    let location = again.headers["location"].to_str().unwrap();
    let by_location = stack.http.get(format!("{}{location}", stack.base_url));
    let got = send(GET, by_location.bearer_auth(&stack.key)).await;
    assert_eq!(
        (got.status, &got.body, &got.headers["etag"]),
        (200, &again.body, &"\"1\"".parse().unwrap())
    );

    let added = send(ADD, request(&stack, ADD, &id).json(&upload(300..450))).await;
    assert_eq!((added.status, &added.headers["etag"]), (200, &"\"2\"".parse().unwrap()));
    for query in ["limit=100", "limit=70"] {
        assert_eq!(ids(&stack, LIST_PAIN_POINTS, &id, query).await, newest_first(0..450));
    }

    // Two requests with the idempotency key, and one without.
    let body = split_of((0..450).step_by(3));
    let splitting = || request(&stack, SPLIT, &id.to_uppercase()).json(&body);
    let created = send(SPLIT, splitting().header("idempotency-key", "k")).await;
    assert_eq!((created.status, &created.body["occurrences"]), (201, &json!(150)));
    assert_eq!(created.body["title"], "Pain point 447");
    let replayed = send(SPLIT, splitting().header("idempotency-key", "k")).await;
    let repeated = send(SPLIT, splitting()).await;
    assert_eq!((&replayed.body, &repeated.body), (&created.body, &created.body));
    assert_eq!(created.headers["location"], repeated.headers["location"]);
    let created = id_of(&created);
    let moved = newest_first((0..450).step_by(3));
    assert_eq!(ids(&stack, LIST_PAIN_POINTS, &created, "limit=100").await, moved);
    let rest = newest_first((0..450).filter(|number| number % 3 > 0));
    assert_eq!(ids(&stack, LIST_PAIN_POINTS, &id, "limit=100").await, rest);
    assert_eq!(ids(&stack, LIST, "", "limit=1").await, [id.clone(), created.clone()]);

    let patch = "{\"title\": \" Payment \", \"status\": \"resolved\", \"viewed\": true}";
    let patching = |tag| {
        let request = request(&stack, UPDATE, &created).header("if-match", tag).body(patch);
        request.header("content-type", "application/merge-patch+json")
    };
    let patched = send(UPDATE, patching("\"1\"")).await;
    assert_eq!((patched.status, &patched.body["title"]), (200, &json!("Payment")));
    let rejected = send(UPDATE, patching("\"1\"")).await;
    assert_eq!(rejected.problem(), (412, "version_mismatch"));
    assert_eq!(ids(&stack, LIST, "", "status=resolved").await, std::slice::from_ref(&created));

    let merged = send(MERGE, request(&stack, MERGE, &created).json(&json!({"into": id}))).await;
    assert_eq!((merged.status, &merged.body), (200, &added.body));
    assert_eq!(ids(&stack, LIST_PAIN_POINTS, &id, "limit=100").await, newest_first(0..450));
    let left = send(GET, request(&stack, GET, &created)).await;
    assert_eq!(
        (&left.body["status"], &left.body["mergedInto"], &left.body["title"]),
        (&json!("merged"), &json!(id), &json!("Payment"))
    );
    assert_eq!(ids(&stack, LIST, "", "limit=1").await, [id.clone(), created.clone()]);
    assert_eq!(ids(&stack, LIST, "", "status=merged&limit=1").await, [created]);
}
