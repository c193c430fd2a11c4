//! GET and PUT `/v0/notifications/email-preferences`.

use std::time::Duration;

use reqwest::{Method, RequestBuilder};
use serde_json::{Value, json};
use shared::projects::api_key::{ApiKeyRecord, UserId};
use tests::preferences::TYPES;
use tests::stack::{Stack, send};

const GET: &str = "get-email-preferences";
const UPDATE: &str = "update-email-preferences";

/// Returns a request without a key.
fn request(stack: &Stack, method: Method) -> RequestBuilder {
    let url = format!("{}/v0/notifications/email-preferences", stack.base_url);
    stack.http.request(method, url).timeout(Duration::from_mins(2))
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

pub(crate) async fn belong_to_one_user(stack: &Stack) {
    let other = stack
        .key_with(|key| ApiKeyRecord { user: UserId::parse("mira@example.com").unwrap(), ..key })
        .await;
    let reply = send(GET, get(stack)).await;
    assert_eq!((reply.status, reply.body), (200, all_but(&[])));

    let body = json!({"preferences": [
        {"type": "weekly_digest", "emailEnabled": false},
        {"type": "error_new", "emailEnabled": false},
    ]});
    let reply = send(UPDATE, put(stack).json(&body)).await;
    assert_eq!((reply.status, reply.body), (200, all_but(&["error_new", "weekly_digest"])));
    let bearer = request(stack, Method::PUT).bearer_auth(&stack.key);
    let reply = send(UPDATE, bearer.json(&one("error_new", true))).await;
    assert_eq!((reply.status, reply.body), (200, all_but(&["weekly_digest"])));

    assert_eq!(send(GET, get(stack)).await.body, all_but(&["weekly_digest"]));
    let bearer = request(stack, Method::GET).bearer_auth(&other);
    assert_eq!(send(GET, bearer).await.body, all_but(&[]));
    // curl's default media type and a missing one are read as JSON.
    let untyped = put(stack).body(one("billing", false).to_string());
    assert_eq!(send(UPDATE, untyped).await.body, all_but(&["weekly_digest", "billing"]));
}
