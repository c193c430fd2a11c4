//! `/v0/project/{idOrSlug}/feature-flags`, and flag evaluation.

mod create_feature_flag;
mod openfeature_sdks;

use std::time::{Duration, Instant};

use futures_util::future::join_all;
use reqwest::{Method, RequestBuilder};
use serde_json::{Value, json};
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
const EVALUATIONS: [&str; 2] = [EVALUATE, EVALUATE_ALL];

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
    assert_concurrent_functions_create_no_cycle(&stack).await;
    flag_changes_take_effect_within_five_seconds(&stack).await;
}

async fn flag_changes_take_effect_within_five_seconds(stack: &Stack) {
    create(stack, "kill-switch").await;
    assert_eq!(update(stack, "kill-switch", json!({"enabled": true})).await.status, 200);
    let values = async || {
        let send_to = |operation| {
            send(operation, with_body(operation, request(stack, operation, "kill-switch")))
        };
        // Reaches both processes of each function.
        let replies = join_all((0..8).map(|index| send_to(EVALUATIONS[index % 2]))).await;
        let value = |reply: &Reply| {
            let of_all = &reply.body["flags"][0]["value"];
            if of_all.is_null() { reply.body["value"].clone() } else { of_all.clone() }
        };
        replies.iter().map(value).collect::<Vec<_>>()
    };
    // Functions can still know the flags from before its creation.
    let created = Instant::now();
    while !values().await.iter().all(|value| value == true) {
        assert!(created.elapsed() < Duration::from_mins(1), "the flag stays unknown");
    }
    assert_eq!(update(stack, "kill-switch", json!({"enabled": false})).await.status, 200);
    let switched = Instant::now();
    while switched.elapsed() < Duration::from_secs(5) {
        values().await;
    }
    assert!(values().await.iter().all(|value| value == false));
}

async fn trailing_slashes_do_not_affect_bulk_evaluation(stack: &Stack) {
    for key in ["b", "a"] {
        create(stack, key).await;
    }
    let first = send(EVALUATE_ALL, with_body(EVALUATE_ALL, request(stack, EVALUATE_ALL, ""))).await;
    assert_eq!(first.status, 200);
    let keys: Vec<_> =
        first.body["flags"].as_array().unwrap().iter().map(|it| &it["key"]).collect();
    // The other two are from the preceding step.
    assert_eq!(keys, ["a", "again", "b", "k"]);
    let url = format!("{}/v0/project/{PROJECT}/ofrep/v1/evaluate/flags/", stack.base_url);
    let with_slash = || {
        let request = stack.http.post(&url).bearer_auth(&stack.key);
        with_body(EVALUATE_ALL, request)
    };
    assert_eq!(send(EVALUATE_ALL, with_slash()).await.text, first.text);
    let tag = first.headers["etag"].to_str().unwrap();
    for tags in [tag, &format!("\"x\", W/{tag}")] {
        let same = send(EVALUATE_ALL, with_slash().header("if-none-match", tags)).await;
        assert_eq!((same.status, same.text.as_str()), (304, ""));
        assert_eq!(same.headers["etag"], tag);
    }
    let preflight = stack
        .http
        .request(Method::OPTIONS, &url)
        .header("origin", "https://example.com")
        .header("access-control-request-method", "POST")
        .header("access-control-request-headers", "authorization,content-type,if-none-match");
    let response = preflight.send().await.unwrap();
    assert_eq!(
        (response.status().as_u16(), &response.headers()["access-control-allow-origin"]),
        (204, &"*".parse().unwrap())
    );
}

async fn assert_concurrent_functions_create_no_cycle(stack: &Stack) {
    for key in ["one", "two"] {
        create(stack, key).await;
    }
    for _ in 0..6 {
        let depend = |key: &'static str, on: &'static str| async move {
            let patch = json!({"prerequisites": [{"flagKey": on, "variant": "on"}]});
            loop {
                let reply = update(stack, key, patch.clone()).await;
                if reply.problem() != (409, "conflict") {
                    return reply;
                }
            }
        };
        let (one, two) = tokio::join!(depend("one", "two"), depend("two", "one"));
        let rejected = if one.status == 200 { &two } else { &one };
        assert_eq!(one.status.min(two.status), 200);
        assert_eq!(rejected.violations(), [("/prerequisites/0", "cycle")]);
        let base = if one.status == 200 { "two" } else { "one" };
        let reply = update(stack, base, json!({"archived": true})).await;
        assert_eq!(reply.problem(), (409, "flag_in_use"));
        for key in ["one", "two"] {
            assert_eq!(update(stack, key, json!({"prerequisites": null})).await.status, 200);
        }
    }
}
