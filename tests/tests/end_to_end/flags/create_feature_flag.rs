//! POST `/v0/project/{idOrSlug}/feature-flags`.

use std::collections::HashMap;
use std::time::{Duration, Instant};

use reqwest::{Method, RequestBuilder};
use serde_json::{Value, json};
use shared::app::Clock;
use shared::projects::api_key::{ApiKeyRecord, Scope};
use shared::projects::project::Organization;
use tests::app::{PROJECT, key_id};
use tests::call::Reply;
use tests::stack::{self, Stack};

const OPERATION: &str = "create-feature-flag";

fn post(stack: &Stack, project: &str) -> RequestBuilder {
    let url = format!("{}/v0/project/{project}/feature-flags", stack.base_url);
    stack.http.post(url).timeout(Duration::from_secs(30))
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
async fn accepts_both_credential_headers_and_project_names() {
    let stack = Stack::start().await;
    let reply = send(create(&stack).json(&minimal("first"))).await;
    assert_eq!(reply.status, 201);
    let location = format!("/v0/project/{}/feature-flags/first", stack.project_id);
    assert_eq!(reply.headers["location"], location);
    assert_eq!(reply.headers["etag"], "\"1\"");

    let bearer = post(&stack, PROJECT).bearer_auth(&stack.key).json(&minimal("second"));
    assert_eq!(send(bearer).await.status, 201);
    let by_id = post(&stack, &stack.project_id.to_string().to_uppercase());
    let reply = send(by_id.header("x-api-key", &stack.key).json(&minimal("third"))).await;
    assert_eq!((reply.status, &reply.body["projectId"]), (201, &json!(stack.project_id)));
    let escaped = post(&stack, "%73hop").header("x-api-key", &stack.key).json(&minimal("fourth"));
    assert_eq!(send(escaped).await.status, 201);
    // curl's default media type and a missing one are read as JSON.
    let form = create(&stack).header("content-type", "application/x-www-form-urlencoded");
    let reply = send(form.body(minimal("fifth").to_string())).await;
    assert_eq!(reply.problem(), (415, "unsupported_media_type"));
    let untyped = create(&stack).body(minimal("fifth").to_string());
    assert_eq!(send(untyped).await.status, 201);
}

#[tokio::test]
async fn returns_each_documented_error() {
    let stack = Stack::start().await;
    assert_eq!(send(create(&stack).json(&minimal("taken"))).await.status, 201);
    let reader =
        stack.key_with(|key| ApiKeyRecord { scopes: [Scope::FlagsRead].into(), ..key }).await;
    let foreign = stack
        .key_with(|key| ApiKeyRecord {
            organization: Organization::parse("foreign").unwrap(),
            ..key
        })
        .await;
    let revoked = stack.key_with(|key| key).await;
    stack.store.revoke_api_key(&key_id(&revoked), Clock::System.now()).await.unwrap();

    let flag = minimal("taken");
    let as_key = |key: &str| post(&stack, PROJECT).header("x-api-key", key).json(&flag);
    let retry = |body: &Value| create(&stack).header("idempotency-key", "k").json(body);
    assert_eq!(send(retry(&minimal("retried"))).await.status, 201);
    for (request, problem) in [
        (create(&stack).body("{"), (400, "malformed_json")),
        (create(&stack).json(&json!({})), (400, "validation_failed")),
        (post(&stack, PROJECT).json(&flag), (401, "missing_api_key")),
        (as_key("wm_nonsense"), (401, "invalid_api_key")),
        (as_key(&revoked), (401, "invalid_api_key")),
        (as_key(&reader), (403, "insufficient_scope")),
        (as_key(&foreign), (404, "project_not_found")),
        (
            post(&stack, "missing").header("x-api-key", &stack.key).json(&flag),
            (404, "project_not_found"),
        ),
        (as_key(&stack.key), (409, "flag_exists")),
        (retry(&minimal("other")), (409, "idempotency_conflict")),
    ] {
        assert_eq!(send(request).await.problem(), problem);
    }
}

#[tokio::test]
async fn one_of_fifty_concurrent_creations_succeeds() {
    let stack = Stack::start().await;
    let creations = (0..50).map(|_| send(create(&stack).json(&minimal("contested"))));
    let replies = futures_util::future::join_all(creations).await;
    let mut counts: HashMap<(u16, &str), usize> = HashMap::new();
    for reply in &replies {
        *counts.entry(reply.problem()).or_default() += 1;
    }
    assert_eq!(counts, HashMap::from([((201, ""), 1), ((409, "flag_exists"), 49)]));
}

#[tokio::test]
async fn idempotent_retries_get_the_first_response() {
    let stack = Stack::start().await;
    let request = || create(&stack).header("idempotency-key", "order 4711").json(&minimal("flag"));
    let first = send(request()).await;
    let again = send(request()).await;
    assert_eq!((first.status, again.status), (201, 201));
    assert_eq!(first.body, again.body);
    assert_eq!(again.headers["idempotency-replayed"], "true");
    assert_ne!(first.headers["x-request-id"], again.headers["x-request-id"]);
    let without_key = create(&stack).json(&minimal("flag"));
    assert_eq!(send(without_key).await.problem(), (409, "flag_exists"));
}

#[tokio::test]
async fn rejects_hostile_bodies_and_keeps_working() {
    let stack = Stack::start().await;
    let mut largest = minimal("largest").to_string();
    largest.push_str(&" ".repeat(256 * 1024 - largest.len()));
    assert_eq!(send(create(&stack).body(largest.clone())).await.status, 201);
    let reply = send(create(&stack).body(format!("{largest} "))).await;
    assert_eq!(reply.problem(), (413, "body_too_large"));
    let nested = format!("{{\"key\":{}{}}}", "[".repeat(100_000), "]".repeat(100_000));
    for body in
        ["{".repeat(100_000).into_bytes(), nested.into_bytes(), Vec::new(), b"null {".to_vec()]
    {
        assert_eq!(send(create(&stack).body(body)).await.problem(), (400, "malformed_json"));
    }
    for body in [&b"{\"key\": \"\xc3\x28\"}"[..], b"\xff\xfe{\x00}\x00"] {
        for json in [create(&stack), create(&stack).header("content-type", "application/json")] {
            assert_eq!(send(json.body(body)).await.problem(), (400, "malformed_json"));
        }
    }
    let with_scheme = create(&stack).header("x-forwarded-proto", "%%").json(&json!({}));
    assert_eq!(send(with_scheme).await.problem(), (400, "validation_failed"));
    for (body, pointer, code) in [
        (r#"{"key":"a","key":"b","name":"n","type":"boolean"}"#, "/key", "duplicate"),
        (r#"{"key":"a","name":"n\u0000","type":"boolean"}"#, "/name", "invalid_format"),
        (r#"{"key":"../other","name":"n","type":"boolean"}"#, "/key", "invalid_format"),
        ("null", "", "invalid_type"),
    ] {
        let reply = send(create(&stack).body(body)).await;
        assert_eq!(reply.violations(), [(pointer, code)], "{body}");
    }
    assert_eq!(send(create(&stack).json(&minimal("still-works"))).await.status, 201);
}

#[tokio::test]
async fn names_every_field_with_a_wrong_type() {
    let stack = Stack::start().await;
    let full = json!({
        "key": "k", "name": "n", "type": "string", "description": "d", "enabled": true,
        "variants": [{"key": "a", "name": "A", "value": "x"}],
        "offVariant": "a",
        "fallthrough": {"rollout": [{"variant": "a", "weight": 1}]},
        "rules": [{
            "id": "r", "name": "R",
            "conditions": [{"attribute": "x", "operator": "equals", "values": ["y"]}],
            "serve": {"variant": "a"},
        }],
        "targets": [{"kind": "identifier", "value": "u", "variant": "a"}],
        "prerequisites": [],
    });
    let mut pointers = Vec::new();
    collect_pointers(&full, "", &mut pointers);
    assert_eq!(pointers.len(), 34);
    for pointer in pointers {
        for wrong in [json!(true), json!(1.5), json!("wrong"), json!([]), json!({})] {
            let mut body = full.clone();
            let place = body.pointer_mut(&pointer).unwrap();
            if std::mem::discriminant(place) == std::mem::discriminant(&wrong) {
                continue;
            }
            *place = wrong.clone();
            let reply = send(create(&stack).json(&body)).await;
            assert_eq!(reply.problem(), (400, "validation_failed"), "{pointer} {wrong}");
            let at_place =
                |(place, code): &(&str, &str)| *place == pointer && *code == "invalid_type";
            assert!(reply.violations().iter().any(at_place), "{pointer} {wrong}: {}", reply.body);
        }
    }
    assert_eq!(
        send(create(&stack).json(&full)).await.status,
        201,
        "rejected requests write nothing"
    );
}

/// Collects the pointers of all values below the root.
fn collect_pointers(value: &Value, pointer: &str, pointers: &mut Vec<String>) {
    if !pointer.is_empty() {
        pointers.push(pointer.to_owned());
    }
    match value {
        Value::Array(items) => {
            for (index, item) in items.iter().enumerate() {
                collect_pointers(item, &format!("{pointer}/{index}"), pointers);
            }
        }
        Value::Object(fields) => {
            for (name, field) in fields {
                collect_pointers(field, &format!("{pointer}/{name}"), pointers);
            }
        }
        _ => {}
    }
}

#[tokio::test]
async fn pages_of_any_origin_can_call() {
    let stack = Stack::start().await;
    let url = format!("{}/v0/project/{PROJECT}/feature-flags", stack.base_url);
    let preflight = stack
        .http
        .request(Method::OPTIONS, url)
        .header("origin", "https://example.com")
        .header("access-control-request-method", "POST")
        .header("access-control-request-headers", "x-api-key, idempotency-key");
    let response = preflight.send().await.unwrap();
    assert_eq!(response.status(), 204);
    let header = |name: &str| response.headers()[name].to_str().unwrap().to_owned();
    assert_eq!(header("access-control-allow-origin"), "*");
    assert!(header("access-control-allow-headers").contains("x-api-key"));
    assert!(header("access-control-allow-methods").contains("POST"));
    let rejected = post(&stack, PROJECT).header("origin", "https://example.com").json(&json!({}));
    let reply = send(rejected).await;
    assert_eq!(reply.status, 401);
    let origins: Vec<_> = reply.headers.get_all("access-control-allow-origin").iter().collect();
    assert_eq!(origins, ["*"]);
}

#[tokio::test]
async fn returns_503_within_three_seconds_without_dynamodb() {
    let mut stack = Stack::start().await;
    assert_eq!(send(create(&stack).json(&minimal("before"))).await.status, 201);
    stack.engine.kill();
    let started = Instant::now();
    let reply = send(create(&stack).json(&minimal("after"))).await;
    assert_eq!(reply.problem(), (503, "unavailable"));
    assert!(started.elapsed() < Duration::from_secs(3), "{:?}", started.elapsed());
}

#[tokio::test]
async fn logs_each_request_once_without_secrets() {
    let stack = Stack::start().await;
    let secret = &stack.key[20..];
    let bearer = post(&stack, PROJECT).bearer_auth(&stack.key);
    let created =
        send(bearer.json(&json!({"key": "k", "name": "Private name", "type": "boolean"}))).await;
    let rejected =
        send(create(&stack).header("idempotency-key", "private-retry").json(&json!({}))).await;
    let unknown = send(post(&stack, PROJECT).header("x-api-key", "private-nonsense")).await;
    let again =
        send(create(&stack).json(&json!({"key": "again", "name": "x", "type": "boolean"}))).await;
    // Another process writes the log line, which can follow the response.
    tokio::time::sleep(Duration::from_millis(300)).await;
    let log = stack.log();
    let id_of = |reply: &Reply| reply.headers["x-request-id"].to_str().unwrap().to_owned();
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
