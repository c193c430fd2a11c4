//! Error delivery to `/api/{ingestId}/…`, and the operations that list and count errors.

mod interpret_error_filters;
mod sentry_sdks;

use std::time::Duration;

use reqwest::{Method, RequestBuilder};
use serde_json::{Value, json};

use errors::store::ErrorStore;
use shared::app::Clock;
use shared::projects::project::Project;
use tests::app::PROJECT;
use tests::call::Reply;
use tests::errors::{SentEvent, project};
use tests::stack::{Stack, send};

const INGEST: &str = "ingest-error-events";
const LIST: &str = "list-errors";
const GET: &str = "get-error";
const UPDATE: &str = "update-error";
const LIST_EVENTS: &str = "list-error-events";
const QUERY: &str = "query-error-timeseries";
const HOUR: Duration = Duration::from_hours(1);

/// Returns a request without key and body.
fn bare(stack: &Stack, method: Method, path: &str) -> RequestBuilder {
    let url = format!("{}{path}", stack.base_url);
    stack.http.request(method, url).timeout(Duration::from_mins(2))
}

/// Returns a request for an operation, with a key.
fn request(stack: &Stack, operation: &str, error: &str) -> RequestBuilder {
    let errors = format!("/v0/projects/{PROJECT}/errors");
    let (method, path) = match operation {
        LIST => (Method::GET, errors),
        GET | LIST_EVENTS => (Method::GET, format!("{errors}/{error}")),
        UPDATE => (Method::PATCH, format!("{errors}/{error}")),
        QUERY => (Method::POST, "/v0/errors/timeseries/query".to_owned()),
        _ => unreachable!("there is no such operation"),
    };
    bare(stack, method, &path).header("x-api-key", &stack.key)
}

/// Delivers an event like an SDK.
async fn deliver(stack: &Stack, project: &Project, route: &str, event: &SentEvent) -> Reply {
    let (id, key) = (project.ingest_id, project.public_key);
    let body = if route.contains("store") { event.payload().to_string() } else { event.envelope() };
    let request = bare(stack, Method::POST, &format!("/api/{id}/{route}?sentry_key={key}"));
    send(INGEST, request.body(body)).await
}

/// Returns the numbers of events and errors in recent days.
async fn totals(stack: &Stack, more: &Value) -> (u64, u64) {
    let from = Clock::System.now().minus(10 * 24 * HOUR).as_millis();
    let mut body = json!({"projectIds": [PROJECT], "from": from});
    body.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    let reply = send(QUERY, request(stack, QUERY, "").json(&body)).await;
    assert_eq!(reply.status, 200, "{}", reply.body);
    assert_eq!(reply.headers["x-bucket-seconds"], "3600");
    let buckets = reply.body.as_array().unwrap();
    let sum = |name: &str| buckets.iter().map(|bucket| bucket[name].as_u64().unwrap()).sum();
    (sum("errors"), sum("uniqueErrors"))
}

#[tokio::test]
async fn errors_are_delivered_counted_resolved_and_regress() {
    let stack = Stack::start().await;
    let project = project(&stack.store, stack.project_id).await;
    let now = Clock::System.now();
    let event = |number, hours| {
        SentEvent::new(number, now.minus(HOUR * hours), "TypeError", "x is not a function")
    };
    for (number, route) in (0..).zip(["envelope/", "envelope", "store/", "store"]) {
        let event = event(number.into(), 40 + number);
        for _ in 0..2 {
            let reply = deliver(&stack, &project, route, &event).await;
            assert_eq!((reply.status, &reply.body), (200, &json!({ "id": event.id })), "{route}");
        }
    }
    let wrong = format!("/api/{}/envelope/?sentry_key={}", project.ingest_id, "f".repeat(32));
    let reply = send(INGEST, bare(&stack, Method::POST, &wrong).body(event(9, 1).envelope())).await;
    assert_eq!(
        (reply.status, reply.body),
        (403, json!({"detail": "the DSN key is missing or invalid; check the DSN"}))
    );
    let preflight = bare(&stack, Method::OPTIONS, &wrong);
    let preflight = preflight.header("access-control-request-method", "POST").send().await.unwrap();
    assert_eq!(preflight.status(), 204);
    let allowed = preflight.headers()["access-control-allow-headers"].to_str().unwrap();
    assert!(allowed.contains("x-sentry-auth"), "{allowed}");

    let listed = send(LIST, request(&stack, LIST, "")).await.body["items"].clone();
    let error = &listed[0];
    assert_eq!(
        (&error["title"], &error["count"]),
        (&json!("TypeError: x is not a function"), &json!(4))
    );
    let id = error["errorId"].as_str().unwrap();
    assert_eq!(&send(GET, request(&stack, GET, id)).await.body, error);
    let events =
        send(LIST_EVENTS, request(&stack, LIST_EVENTS, &format!("{id}/events?limit=3"))).await;
    assert_eq!(events.body["items"].as_array().unwrap().len(), 3);
    assert_eq!(totals(&stack, &json!({})).await, (4, 4));

    // The job skips recent events, so packing changes nothing.
    let packed = stack.run_job("pack-error-log").await;
    assert_eq!(packed.status(), 200, "{}", packed.text().await.unwrap());
    assert_eq!(ErrorStore::new(&stack.store).list_packing_queue().await.unwrap().len(), 1);
    assert_eq!(totals(&stack, &json!({})).await, (4, 4));
    assert_eq!(&send(GET, request(&stack, GET, id)).await.body, error);

    let resolved = request(&stack, UPDATE, id).json(&json!({"status": "resolved"}));
    let resolved = send(UPDATE, resolved).await;
    assert_eq!((resolved.status, &resolved.headers["etag"]), (200, &"\"2\"".parse().unwrap()));
    let search = json!({"searchQuery": "typeerror", "status": "resolved"});
    assert_eq!(totals(&stack, &search).await, (4, 4));
    let late = deliver(&stack, &project, "envelope/", &event(5, 44)).await;
    assert_eq!(late.status, 200);
    assert_eq!(totals(&stack, &search).await, (5, 5));
    let recurred = SentEvent { at: Clock::System.now(), ..event(6, 0) };
    assert_eq!(deliver(&stack, &project, "store/", &recurred).await.status, 200);
    assert_eq!(totals(&stack, &search).await, (0, 0));
    let error = send(GET, request(&stack, GET, id)).await.body;
    assert_eq!((&error["status"], &error["count"]), (&json!("open"), &json!(6)));
    interpret_error_filters::queries_become_filters_that_narrow_errors(&stack).await;
    assert!(!stack.log().contains("\"level\":\"ERROR\""), "{}", stack.log());
}
