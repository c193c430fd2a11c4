//! POST `/v0/project/{idOrSlug}/feature-flags`.

use reqwest::{Method, RequestBuilder};
use serde_json::{Value, json};
use tests::app::{PROJECT, key_id};
use tests::call::Reply;
use tests::stack::{self, Stack};

const OPERATION: &str = "create-feature-flag";

fn post(stack: &Stack, project: &str) -> RequestBuilder {
    stack.request(Method::POST, &format!("/v0/project/{project}/feature-flags"))
}

/// Returns a request without a body.
fn create(stack: &Stack) -> RequestBuilder {
    post(stack, PROJECT).header("x-api-key", &stack.key)
}

fn minimal(key: &str) -> Value {
    json!({"key": key, "name": "A flag", "type": "boolean"})
}

/// Sends a request, and checks the response against `openapi.yaml`.
async fn send(request: RequestBuilder) -> Reply {
    stack::send(OPERATION, request).await
}

#[tokio::test]
async fn function_handles_hostile_requests_pages_and_outages() {
    let mut stack = Stack::start().await;
    // First, because it expects that caches were filled recently.
    logs_each_request_once_without_secrets(&stack).await;
    rejects_hostile_bodies_and_keeps_working(&stack).await;
    pages_of_any_origin_can_call(&stack).await;
    returns_503_without_dynamodb(&mut stack).await;
}

async fn rejects_hostile_bodies_and_keeps_working(stack: &Stack) {
    let mut largest = minimal("largest").to_string();
    largest.push_str(&" ".repeat(256 * 1024 - largest.len()));
    assert_eq!(send(create(stack).body(largest.clone())).await.status, 201);
    let reply = send(create(stack).body(format!("{largest} "))).await;
    assert_eq!(reply.problem(), (413, "body_too_large"));
    let nested = format!("{{\"key\":{}{}}}", "[".repeat(100_000), "]".repeat(100_000));
    for body in
        ["{".repeat(100_000).into_bytes(), nested.into_bytes(), Vec::new(), b"null {".to_vec()]
    {
        assert_eq!(send(create(stack).body(body)).await.problem(), (400, "malformed_json"));
    }
    for body in [&b"{\"key\": \"\xc3\x28\"}"[..], b"\xff\xfe{\x00}\x00"] {
        for json in [create(stack), create(stack).header("content-type", "application/json")] {
            assert_eq!(send(json.body(body)).await.problem(), (400, "malformed_json"));
        }
    }
    let with_scheme = create(stack).header("x-forwarded-proto", "%%").json(&json!({}));
    assert_eq!(send(with_scheme).await.problem(), (400, "validation_failed"));
    for (body, pointer, code) in [
        (r#"{"key":"a","key":"b","name":"n","type":"boolean"}"#, "/key", "duplicate"),
        (r#"{"key":"a","name":"n\u0000","type":"boolean"}"#, "/name", "invalid_format"),
        (r#"{"key":"../other","name":"n","type":"boolean"}"#, "/key", "invalid_format"),
        ("null", "", "invalid_type"),
    ] {
        let reply = send(create(stack).body(body)).await;
        assert_eq!(reply.violations(), [(pointer, code)], "{body}");
    }
    assert_eq!(send(create(stack).json(&minimal("still-works"))).await.status, 201);
}

async fn pages_of_any_origin_can_call(stack: &Stack) {
    let preflight = stack
        .request(Method::OPTIONS, &format!("/v0/project/{PROJECT}/feature-flags"))
        .header("origin", "https://example.com")
        .header("access-control-request-method", "POST")
        .header("access-control-request-headers", "x-api-key, idempotency-key");
    let response = preflight.send().await.unwrap();
    assert_eq!(response.status(), 204);
    let header = |name: &str| response.headers()[name].to_str().unwrap().to_owned();
    assert_eq!(header("access-control-allow-origin"), "*");
    assert!(header("access-control-allow-headers").contains("x-api-key"));
    assert!(header("access-control-allow-methods").contains("POST"));
    let rejected = post(stack, PROJECT).header("origin", "https://example.com").json(&json!({}));
    let reply = send(rejected).await;
    assert_eq!(reply.status, 401);
    let origins: Vec<_> = reply.headers.get_all("access-control-allow-origin").iter().collect();
    assert_eq!(origins, ["*"]);
}

/// The function itself responds, before the gateway would at the end of its timeout.
async fn returns_503_without_dynamodb(stack: &mut Stack) {
    assert_eq!(send(create(stack).json(&minimal("before"))).await.status, 201);
    stack.engine.kill();
    let reply = send(create(stack).json(&minimal("after"))).await;
    assert_eq!(reply.problem(), (503, "unavailable"));
}

async fn logs_each_request_once_without_secrets(stack: &Stack) {
    let secret = &stack.key[20..];
    let bearer = post(stack, PROJECT).bearer_auth(&stack.key);
    let created =
        send(bearer.json(&json!({"key": "k", "name": "Private name", "type": "boolean"}))).await;
    let rejected =
        send(create(stack).header("idempotency-key", "private-retry").json(&json!({}))).await;
    let unknown = send(post(stack, PROJECT).header("x-api-key", "private-nonsense")).await;
    let again =
        send(create(stack).json(&json!({"key": "again", "name": "x", "type": "boolean"}))).await;
    let id_of = |reply: &Reply| reply.headers["x-request-id"].to_str().unwrap().to_owned();
    let log = stack.log_until(|log| log.contains(&id_of(&again))).await;
    for (reply, status, code, known) in [
        (&created, 201, Value::Null, true),
        (&rejected, 400, json!("validation_failed"), true),
        (&unknown, 401, json!("invalid_api_key"), false),
    ] {
        let id = id_of(reply);
        let lines: Vec<Value> = log
            .lines()
            .filter(|line| line.contains(&id) && line.starts_with('{'))
            .map(|line| serde_json::from_str(line).expect("the line is JSON"))
            .collect();
        let [line] = lines.as_slice() else { panic!("{} lines of {id}:\n{log}", lines.len()) };
        assert_eq!(line["requestId"], id);
        assert_eq!(line["operation"], OPERATION);
        assert_eq!(line["level"], "INFO");
        assert_eq!(line["status"], status);
        assert_eq!(line["code"], code);
        assert!(line["Latency"].as_f64().unwrap() > 0.0);
        assert!(line["timestamp"].is_string());
        let key_id = known.then(|| key_id(&stack.key).to_string());
        assert_eq!(line["keyId"], json!(key_id));
        let project_id = known.then(|| stack.project_id.to_string());
        assert_eq!(line["projectId"], json!(project_id));
    }
    let again = log.lines().find(|line| line.contains(&id_of(&again))).unwrap();
    let again: Value = serde_json::from_str(again).unwrap();
    // Like Lambda, cargo-lambda adds a trace to each request.
    let trace: Vec<usize> = again["traceId"].as_str().unwrap().split('-').map(str::len).collect();
    assert_eq!(trace, [1, 8, 24]);
    // The key and the project are cached. One transaction writes the flag, the flag count, the
    // history and the announcement, and checks whether the key was used before.
    for (figure, expected) in [
        ("DynamoDbCalls", json!(1)),
        ("DynamoDbRetries", json!(0)),
        ("CacheHits", json!(2)),
        ("CacheMisses", json!(0)),
        ("ColdStart", json!(0)),
        ("ReadUnits", json!(0.0)),
        ("WriteUnits", json!(13.0)),
    ] {
        assert_eq!(again[figure], expected, "{figure}");
    }
    for private in [secret, "Private name", "private-retry", "private-nonsense", "Bearer"] {
        assert!(!log.contains(private), "{private} is logged");
    }
}
