//! The local gateway in front of the functions: routing, limits and its own responses.

use std::collections::HashMap;
use std::time::{Duration, Instant};

use futures_util::future::join_all;
use local::gateway::{MAX_BODY_BYTES, MAX_HEAD_BYTES};
use reqwest::header::{HeaderMap, HeaderValue};
use reqwest::{Method, RequestBuilder};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};
use tests::app::PROJECT;
use tests::errors::{SentEvent, project};
use tests::stack::{Stack, send};

/// Concurrent requests. API Gateway and Lambda would accept as many.
const CONCURRENT_REQUESTS: usize = 300;

/// Returns status, body and headers of a response.
async fn fetch(request: RequestBuilder) -> (u16, Value, HeaderMap) {
    let response = request.send().await.unwrap();
    let (status, headers) = (response.status().as_u16(), response.headers().clone());
    let body = response.bytes().await.unwrap();
    (status, serde_json::from_slice(&body).unwrap_or_default(), headers)
}

#[tokio::test]
async fn gateway_routes_requests_and_survives_load_and_kills() {
    let stack = Stack::start().await;
    function_responds_to_300_requests_at_once(&stack).await;
    gateway_errors_match_api_gateway(&stack).await;
    non_utf8_requests_reach_the_function(&stack).await;
    other_envelope_items_are_accepted_and_dropped(&stack).await;
    killed_functions_respond_again(&stack).await;
}

async fn function_responds_to_300_requests_at_once(stack: &Stack) {
    let started = Instant::now();
    let all =
        (0..CONCURRENT_REQUESTS).map(|_| send("get-caller", stack.with_key(Method::GET, "/v0/me")));
    let replies = join_all(all).await;
    let mut statuses: HashMap<u16, usize> = HashMap::new();
    for reply in replies {
        *statuses.entry(reply.status).or_default() += 1;
    }
    assert_eq!(statuses, HashMap::from([(200, CONCURRENT_REQUESTS)]), "{:?}", started.elapsed());
    // Later requests succeed, too.
    assert_eq!(send("get-caller", stack.with_key(Method::GET, "/v0/me")).await.status, 200);
    assert_eq!(stack.served().len(), CONCURRENT_REQUESTS + 1);
}

async fn killed_functions_respond_again(stack: &Stack) {
    let me = || send("get-caller", stack.with_key(Method::GET, "/v0/me"));
    assert_eq!(me().await.status, 200);
    for _ in 0..3 {
        let processes = stack.processes_of("get-caller").await;
        assert!(!processes.is_empty());
        for process in processes {
            kill_process(Pid::from_raw(process.cast_signed()).unwrap(), Signal::KILL).unwrap();
        }
        // A process that is still ending could fetch the next request.
        while !stack.processes_of("get-caller").await.is_empty() {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        assert_eq!(me().await.status, 200, "{}", stack.log());
    }
}

async fn gateway_errors_match_api_gateway(stack: &Stack) {
    let key = HeaderValue::from_str(&"x".repeat(MAX_HEAD_BYTES)).unwrap();
    let large = || stack.with_key(Method::POST, &format!("/v0/project/{PROJECT}/feature-flags"));
    for (request, status, message) in [
        (stack.with_key(Method::GET, "/v0/nothing"), 404, "Not Found"),
        (stack.with_key(Method::DELETE, "/v0/me"), 404, "Not Found"),
        (stack.with_key(Method::GET, "/v0/me/"), 404, "Not Found"),
        (large().body(vec![b' '; MAX_BODY_BYTES + 1]), 413, "Request Entity Too Large"),
        (
            stack.request(Method::GET, "/v0/me").header("x-api-key", key),
            431,
            "Request Header Fields Too Large",
        ),
    ] {
        let (actual, body, headers) = fetch(request).await;
        assert_eq!((actual, body), (status, json!({ "message": message })));
        // Pages can read these, too.
        assert_eq!(headers["access-control-allow-origin"], "*");
        assert!(headers["access-control-expose-headers"].to_str().unwrap().contains("retry-after"));
        assert!(headers.contains_key("apigw-requestid"));
    }
    // A body with the gateway's maximum size reaches the function, which rejects it.
    let (status, body, _) = fetch(large().body(vec![b' '; MAX_BODY_BYTES])).await;
    assert_eq!((status, &body["code"]), (413, &json!("body_too_large")));

    for path in ["/v0/me", "/v0/nothing"] {
        let preflight = stack.request(Method::OPTIONS, path);
        let (status, _, headers) =
            fetch(preflight.header("access-control-request-method", "GET")).await;
        assert_eq!((status, &headers["access-control-allow-origin"]), (204, &"*".parse().unwrap()));
        assert!(headers.contains_key("access-control-allow-headers"));
    }
    // Requests that are not from pages get no CORS headers.
    let elsewhere = reqwest::Client::new().get(format!("{}/v0/me", stack.base_url));
    let (_, _, headers) = fetch(elsewhere).await;
    let of_pages = headers.keys().find(|name| name.as_str().starts_with("access-control-"));
    assert_eq!(of_pages, None);
    assert!(!stack.log().contains("\"level\":\"ERROR\""), "{}", stack.log());
}

async fn non_utf8_requests_reach_the_function(stack: &Stack) {
    let flags = format!("/v0/project/{PROJECT}/feature-flags");
    let named = |name: &'static [u8]| HeaderValue::from_bytes(name).unwrap();
    for value in [named(b"caf\xe9"), named("café".as_bytes()), named(b"\xff\xfe"), named(b"a\tb")]
    {
        for header in ["x-anything", "user-agent", "cookie", "content-type", "idempotency-key"] {
            let request = stack.with_key(Method::POST, &flags).header(header, &value);
            let reply = send("create-feature-flag", request.body("{}")).await;
            assert!(matches!(reply.status, 400 | 415), "{header}: {value:?}: {}", reply.body);
        }
        let request = stack.request(Method::GET, "/v0/me").header("x-api-key", &value);
        let reply = send("get-caller", request).await;
        assert_eq!(reply.problem(), (401, "invalid_api_key"), "{value:?}");
    }
    for (path, status, code) in [
        ("a%20b", 404, "flag_not_found"),
        ("%C3%A9%3F%23%22%3C%7B", 404, "flag_not_found"),
        ("%FF%FE", 404, "flag_not_found"),
        ("%zz%", 404, "flag_not_found"),
        ("a?limit=%FF&x=\"<>`{}|\\^", 404, "flag_not_found"),
    ] {
        let reply =
            send("get-feature-flag", stack.with_key(Method::GET, &format!("{flags}/{path}")));
        assert_eq!(reply.await.problem(), (status, code), "{path}");
    }
    let created = stack
        .with_key(Method::POST, &flags.replace("shop", "%73hop"))
        .json(&json!({"key": "flag", "name": "é", "type": "boolean"}));
    assert_eq!(send("create-feature-flag", created).await.status, 201);
}

async fn other_envelope_items_are_accepted_and_dropped(stack: &Stack) {
    let project = project(&stack.store, stack.project_id).await;
    let (id, key) = (project.ingest_id, project.public_key);
    let path = format!("/api/{id}/envelope/?sentry_key={key}&sentry_version=7");
    let envelope = |kind: &str, payload: &[u8]| {
        let header = format!("{{}}\n{{\"type\":\"{kind}\",\"length\":{}}}\n", payload.len());
        [header.as_bytes(), payload, b"\n"].concat()
    };
    for kind in ["session", "transaction", "client_report", "log", "profile_chunk"] {
        let request = stack.request(Method::POST, &path).body(envelope(kind, b"{}"));
        let reply = send("ingest-error-events", request).await;
        assert_eq!((reply.status, reply.body), (200, json!({})), "{kind}");
    }
    for kind in ["replay_recording", "attachment", "profile"] {
        // Not UTF-8, like data that SDKs compress.
        let payload = b"{\"segment_id\":0}\n\x78\x9c\xff\xfe\x00";
        let request = stack.request(Method::POST, &path).body(envelope(kind, payload));
        let (status, body, headers) = fetch(request).await;
        assert_eq!((status, body), (200, json!({})), "{kind}");
        assert_eq!(headers["access-control-allow-origin"], "*");
    }
    let event = SentEvent::new(1, shared::app::Clock::System.now(), "TypeError", "x");
    let request = stack.request(Method::POST, &path).body(event.envelope());
    assert_eq!(send("ingest-error-events", request).await.status, 200);
    let list = stack.with_key(Method::GET, &format!("/v0/projects/{PROJECT}/errors"));
    let reply = send("list-errors", list).await;
    assert_eq!(reply.body["items"].as_array().unwrap().len(), 1);
}
