//! `/v0/project/{idOrSlug}/feature-flags`, and flag evaluation.

mod create_feature_flag;
mod openfeature_sdks;

use reqwest::{Method, RequestBuilder};
use serde_json::{Value, json};
use std::time::Duration;

use tests::app::PROJECT;
use tests::call::Reply;
use tests::stack::{Stack, send};

const CREATE: &str = "create-feature-flag";
const LIST: &str = "list-feature-flags";
const GET: &str = "get-feature-flag";
const UPDATE: &str = "update-feature-flag";
const DELETE: &str = "delete-feature-flag";
const EVALUATE: &str = "evaluate-feature-flag";
const EVALUATE_ALL: &str = "evaluate-feature-flags";

/// Returns a request for an operation, without key and body.
fn bare(stack: &Stack, operation: &str, project: &str, key: &str) -> RequestBuilder {
    let flags = format!("/v0/project/{project}/feature-flags");
    let evaluated = format!("/v0/project/{project}/ofrep/v1/evaluate/flags");
    let (method, path) = match operation {
        CREATE => (Method::POST, flags),
        LIST => (Method::GET, flags),
        GET => (Method::GET, format!("{flags}/{key}")),
        UPDATE => (Method::PATCH, format!("{flags}/{key}")),
        DELETE => (Method::DELETE, format!("{flags}/{key}")),
        EVALUATE => (Method::POST, format!("{evaluated}/{key}")),
        EVALUATE_ALL => (Method::POST, evaluated),
        _ => unreachable!("there is no such operation"),
    };
    let url = format!("{}{path}", stack.base_url);
    stack.http.request(method, url).timeout(Duration::from_mins(2))
}

fn request(stack: &Stack, operation: &str, key: &str) -> RequestBuilder {
    bare(stack, operation, PROJECT, key).header("x-api-key", &stack.key)
}

/// Adds a valid body, if the operation needs one.
fn with_body(operation: &str, request: RequestBuilder) -> RequestBuilder {
    match operation {
        UPDATE => request.json(&json!({"archived": true})),
        EVALUATE | EVALUATE_ALL => request.json(&json!({"context": {"targetingKey": "user-1"}})),
        _ => request,
    }
}

async fn create(stack: &Stack, key: &str) -> Reply {
    let body = json!({"key": key, "name": key, "type": "boolean"});
    let reply = send(CREATE, request(stack, CREATE, "").json(&body)).await;
    assert_eq!(reply.status, 201, "{}", reply.text);
    reply
}

async fn update(stack: &Stack, key: &str, patch: Value) -> Reply {
    send(UPDATE, request(stack, UPDATE, key).json(&patch)).await
}

/// Evaluates a flag. The result can be based on flags read within the last second.
async fn evaluate(stack: &Stack, key: &str) -> Reply {
    tokio::time::sleep(Duration::from_secs(1)).await;
    let request = request(stack, EVALUATE, key).header("cache-control", "no-cache");
    send(EVALUATE, with_body(EVALUATE, request)).await
}

#[tokio::test]
async fn flag_lifecycle_from_creation_to_deletion() {
    let stack = Stack::start().await;
    let created = create(&stack, "new-checkout").await;
    let by_location = created.headers["location"].to_str().unwrap();
    let by_location = stack.http.get(format!("{}{by_location}", stack.base_url));
    let got = send(GET, by_location.bearer_auth(&stack.key)).await;
    assert_eq!((got.status, &got.text), (200, &created.text));
    let expected = format!(
        r#"{{"key":"new-checkout","value":false,"reason":"DISABLED","variant":"off","metadata":{{"version":"1","flagSetId":"{}"}}}}"#,
        stack.project_id
    );
    assert_eq!(evaluate(&stack, "new-checkout").await.text, expected);

    let conditional = |tag: &str, patch: &'static str| {
        let request = request(&stack, UPDATE, "new-checkout").header("if-match", tag);
        request.header("content-type", "application/merge-patch+json").body(patch)
    };
    let enabled = send(UPDATE, conditional("\"1\"", r#"{"enabled": true}"#)).await;
    assert_eq!((enabled.status, &enabled.headers["etag"]), (200, &"\"2\"".parse().unwrap()));
    let rejected = send(UPDATE, conditional("\"1\"", r#"{"enabled": false}"#)).await;
    assert_eq!(rejected.problem(), (412, "version_mismatch"));
    let evaluated = evaluate(&stack, "new-checkout").await;
    assert_eq!(
        (&evaluated.body["value"], &evaluated.body["reason"]),
        (&json!(true), &json!("STATIC"))
    );

    let rollout = json!({"rollout": [
        {"variant": "on", "weight": 45.498}, {"variant": "off", "weight": 54.502}
    ]});
    assert_eq!(update(&stack, "new-checkout", json!({"fallthrough": rollout})).await.status, 200);
    let evaluated = evaluate(&stack, "new-checkout").await;
    assert_eq!(
        (&evaluated.body["variant"], &evaluated.body["reason"]),
        (&json!("off"), &json!("SPLIT"))
    );

    create(&stack, "other").await;
    let listed = async |query: &str| -> Vec<String> {
        let listing = request(&stack, LIST, "").build().unwrap();
        let url = format!("{}?{query}", listing.url());
        let reply = send(LIST, stack.http.get(url).headers(listing.headers().clone())).await;
        let items = reply.body["items"].as_array().unwrap().clone();
        items.iter().map(|item| item["key"].as_str().unwrap().to_owned()).collect()
    };
    assert_eq!(listed("limit=1").await, ["new-checkout"]);
    let archived = update(&stack, "new-checkout", json!({"archived": true})).await;
    assert!(archived.body["archivedAt"].is_string());
    assert_eq!(listed("").await, ["other"]);
    assert_eq!(listed("archived=true").await, ["new-checkout", "other"]);
    assert_eq!(evaluate(&stack, "new-checkout").await.status, 404);
    assert_eq!(send(DELETE, request(&stack, DELETE, "other")).await.code(), "flag_not_archived");
    assert_eq!(send(DELETE, request(&stack, DELETE, "new-checkout")).await.status, 204);
    let gone = send(GET, request(&stack, GET, "new-checkout")).await;
    assert_eq!(gone.problem(), (404, "flag_not_found"));
}
