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
const GET: &str = "get-feature-flag";
const UPDATE: &str = "update-feature-flag";
const DELETE: &str = "delete-feature-flag";
const EVALUATE: &str = "evaluate-feature-flag";

/// Returns a request for a flag, or for all flags if the key is empty.
fn request(stack: &Stack, method: Method, key: &str) -> RequestBuilder {
    let separator = if key.is_empty() || key.starts_with('?') { "" } else { "/" };
    stack.with_key(method, &format!("/v0/project/{PROJECT}/feature-flags{separator}{key}"))
}

async fn create(stack: &Stack, key: &str) -> Reply {
    let body = json!({"key": key, "name": key, "type": "boolean"});
    let reply = send(CREATE, request(stack, Method::POST, "").json(&body)).await;
    assert_eq!(reply.status, 201, "{}", reply.text);
    reply
}

async fn update(stack: &Stack, key: &str, patch: Value) -> Reply {
    send(UPDATE, request(stack, Method::PATCH, key).json(&patch)).await
}

/// Evaluates a flag. The result can be based on flags read within the last second.
async fn evaluate(stack: &Stack, key: &str) -> Reply {
    tokio::time::sleep(Duration::from_secs(1)).await;
    let path = format!("/v0/project/{PROJECT}/ofrep/v1/evaluate/flags/{key}");
    let request = stack.with_key(Method::POST, &path).header("cache-control", "no-cache");
    send(EVALUATE, request.json(&json!({"context": {"targetingKey": "user-1"}}))).await
}

#[tokio::test]
async fn flag_lifecycle_from_creation_to_deletion() {
    let stack = Stack::start().await;
    let created = create(&stack, "new-checkout").await;
    let by_location = created.headers["location"].to_str().unwrap();
    let by_location = stack.request(Method::GET, by_location);
    let got = send(GET, by_location.bearer_auth(&stack.key)).await;
    assert_eq!((got.status, &got.text), (200, &created.text));
    let expected = format!(
        r#"{{"key":"new-checkout","value":false,"reason":"DISABLED","variant":"off","metadata":{{"version":"1","flagSetId":"{}"}}}}"#,
        stack.project_id
    );
    assert_eq!(evaluate(&stack, "new-checkout").await.text, expected);

    let conditional = |tag: &str, patch: &'static str| {
        let request = request(&stack, Method::PATCH, "new-checkout").header("if-match", tag);
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

    create(&stack, "other").await;
    let listed = async |query: &str| -> Vec<String> {
        let reply = send("list-feature-flags", request(&stack, Method::GET, query)).await;
        let items = reply.body["items"].as_array().unwrap().clone();
        items.iter().map(|item| item["key"].as_str().unwrap().to_owned()).collect()
    };
    assert_eq!(listed("?limit=1").await, ["new-checkout"]);
    let archived = update(&stack, "new-checkout", json!({"archived": true})).await;
    assert!(archived.body["archivedAt"].is_string());
    assert_eq!(listed("").await, ["other"]);
    assert_eq!(listed("?archived=true").await, ["new-checkout", "other"]);
    assert_eq!(evaluate(&stack, "new-checkout").await.status, 404);
    assert_eq!(
        send(DELETE, request(&stack, Method::DELETE, "other")).await.code(),
        "flag_not_archived"
    );
    assert_eq!(send(DELETE, request(&stack, Method::DELETE, "new-checkout")).await.status, 204);
    let gone = send(GET, request(&stack, Method::GET, "new-checkout")).await;
    assert_eq!(gone.problem(), (404, "flag_not_found"));
}
