//! GET and PUT `/v0/notifications/email-preferences`.

use std::time::Duration;

use reqwest::{Method, RequestBuilder};
use serde_json::{Value, json};
use shared::app::Clock;
use shared::projects::api_key::{ApiKeyRecord, Scope, UserId};
use tests::app::key_id;
use tests::preferences::TYPES;
use tests::stack::{Stack, send};

const GET: &str = "get-email-preferences";
const UPDATE: &str = "update-email-preferences";

/// Returns a request without a key.
fn request(stack: &Stack, method: Method) -> RequestBuilder {
    let url = format!("{}/v0/notifications/email-preferences", stack.base_url);
    stack.http.request(method, url).timeout(Duration::from_secs(30))
}

fn get(stack: &Stack) -> RequestBuilder {
    request(stack, Method::GET).header("x-api-key", &stack.key)
}

fn put(stack: &Stack) -> RequestBuilder {
    request(stack, Method::PUT).header("x-api-key", &stack.key)
}

fn one(name: &str, enabled: bool) -> Value {
    json!({"preferences": [{"type": name, "emailEnabled": enabled}]})
}

/// Returns the response in which email is on for all types except these.
fn all_but(disabled: &[&str]) -> Value {
    json!(TYPES.map(|name| json!({"type": name, "emailEnabled": !disabled.contains(&name)})))
}

#[tokio::test]
async fn preferences_belong_to_one_user() {
    let stack = Stack::start().await;
    let other = stack
        .key_with(|key| ApiKeyRecord { user: UserId::parse("mira@example.com").unwrap(), ..key })
        .await;
    let reply = send(GET, get(&stack)).await;
    assert_eq!((reply.status, reply.body), (200, all_but(&[])));

    let body = json!({"preferences": [
        {"type": "weekly_digest", "emailEnabled": false},
        {"type": "error_new", "emailEnabled": false},
    ]});
    let reply = send(UPDATE, put(&stack).json(&body)).await;
    assert_eq!((reply.status, reply.body), (200, all_but(&["error_new", "weekly_digest"])));
    let bearer = request(&stack, Method::PUT).bearer_auth(&stack.key);
    let reply = send(UPDATE, bearer.json(&one("error_new", true))).await;
    assert_eq!((reply.status, reply.body), (200, all_but(&["weekly_digest"])));

    assert_eq!(send(GET, get(&stack)).await.body, all_but(&["weekly_digest"]));
    let bearer = request(&stack, Method::GET).bearer_auth(&other);
    assert_eq!(send(GET, bearer).await.body, all_but(&[]));
    // curl's default media type and a missing one are read as JSON.
    let untyped = put(&stack).body(one("billing", false).to_string());
    assert_eq!(send(UPDATE, untyped).await.body, all_but(&["weekly_digest", "billing"]));
}

#[tokio::test]
async fn returns_each_documented_error() {
    let mut stack = Stack::start().await;
    let scopes = [Scope::FlagsRead].into();
    let unscoped = stack.key_with(|key| ApiKeyRecord { scopes, ..key }).await;
    let revoked = stack.key_with(|key| key).await;
    stack.store.revoke_api_key(&key_id(&revoked), Clock::System.now()).await.unwrap();

    let body = one("billing", false);
    for (key, problem) in [
        (None, (401, "missing_api_key")),
        (Some("wm_nonsense"), (401, "invalid_api_key")),
        (Some(revoked.as_str()), (401, "invalid_api_key")),
        (Some(unscoped.as_str()), (403, "insufficient_scope")),
    ] {
        let with_key = |request: RequestBuilder| match key {
            Some(key) => request.header("x-api-key", key),
            None => request,
        };
        let reply = send(GET, with_key(request(&stack, Method::GET))).await;
        assert_eq!(reply.problem(), problem);
        let reply = send(UPDATE, with_key(request(&stack, Method::PUT)).json(&body)).await;
        assert_eq!(reply.problem(), problem);
    }
    let form = "application/x-www-form-urlencoded";
    for (rejected, problem) in [
        (put(&stack).body("{"), (400, "malformed_json")),
        (put(&stack), (400, "malformed_json")),
        (put(&stack).json(&json!({})), (400, "validation_failed")),
        (put(&stack).json(&one("newsletter", true)), (400, "validation_failed")),
        (put(&stack).body(" ".repeat(262_145)), (413, "body_too_large")),
        (
            put(&stack).header("content-type", form).body(body.to_string()),
            (415, "unsupported_media_type"),
        ),
    ] {
        assert_eq!(send(UPDATE, rejected).await.problem(), problem);
    }
    assert_eq!(send(GET, get(&stack)).await.body, all_but(&[]), "rejected requests write nothing");

    stack.engine.kill();
    assert_eq!(send(GET, get(&stack)).await.problem(), (503, "unavailable"));
    assert_eq!(send(UPDATE, put(&stack).json(&body)).await.problem(), (503, "unavailable"));
}

#[tokio::test]
async fn concurrent_updates_of_different_types_all_apply() {
    let stack = Stack::start().await;
    let updates = TYPES.map(|name| send(UPDATE, put(&stack).json(&one(name, false))));
    let replies = futures_util::future::join_all(updates).await;
    assert!(replies.iter().all(|reply| reply.status == 200));
    assert_eq!(send(GET, get(&stack)).await.body, all_but(&TYPES));
}

#[tokio::test]
async fn pages_of_any_origin_can_call() {
    let stack = Stack::start().await;
    for method in ["GET", "PUT"] {
        let preflight = request(&stack, Method::OPTIONS)
            .header("origin", "https://example.com")
            .header("access-control-request-method", method);
        let response = preflight.send().await.unwrap();
        assert_eq!(response.status(), 204);
        assert_eq!(response.headers()["access-control-allow-origin"], "*");
        let allowed = response.headers()["access-control-allow-methods"].to_str().unwrap();
        assert!(allowed.contains(method), "{allowed}");
    }
}
