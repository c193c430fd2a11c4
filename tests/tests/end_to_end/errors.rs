//! Error delivery to `/api/{ingestId}/…`.

mod sentry_sdks;

use std::time::Duration;

use reqwest::Method;
use serde_json::json;

use errors::store::ErrorStore;
use shared::app::Clock;
use shared::projects::project::Project;
use tests::app::PROJECT;
use tests::call::Reply;
use tests::errors::{SentEvent, project};
use tests::stack::{Stack, send};

const INGEST: &str = "ingest-error-events";
const HOUR: Duration = Duration::from_hours(1);

/// Delivers an event like an SDK.
async fn deliver(stack: &Stack, project: &Project, route: &str, event: &SentEvent) -> Reply {
    let (id, key) = (project.ingest_id, project.public_key);
    let body = if route.contains("store") { event.payload().to_string() } else { event.envelope() };
    let request = stack.request(Method::POST, &format!("/api/{id}/{route}?sentry_key={key}"));
    send(INGEST, request.body(body)).await
}

#[tokio::test]
async fn errors_are_delivered_to_each_route() {
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
    let reply =
        send(INGEST, stack.request(Method::POST, &wrong).body(event(9, 1).envelope())).await;
    assert_eq!(
        (reply.status, reply.body),
        (403, json!({"detail": "the DSN key is missing or invalid; check the DSN"}))
    );
    let preflight = stack.request(Method::OPTIONS, &wrong);
    let preflight = preflight.header("access-control-request-method", "POST").send().await.unwrap();
    assert_eq!(preflight.status(), 204);
    let allowed = preflight.headers()["access-control-allow-headers"].to_str().unwrap();
    assert!(allowed.contains("x-sentry-auth"), "{allowed}");

    let list = async || {
        let list = stack.with_key(Method::GET, &format!("/v0/projects/{PROJECT}/errors"));
        send("list-errors", list).await.body["items"].clone()
    };
    let listed = list().await;
    assert_eq!(
        (&listed[0]["title"], &listed[0]["count"]),
        (&json!("TypeError: x is not a function"), &json!(4))
    );
    // The job skips recent events, so packing changes nothing.
    let packed = stack.run_job("pack-error-log").await;
    assert_eq!(packed.status(), 200, "{}", packed.text().await.unwrap());
    assert_eq!(ErrorStore::new(&stack.store).list_packing_queue().await.unwrap().len(), 1);
    assert_eq!(list().await, listed);
    assert!(!stack.log().contains("\"level\":\"ERROR\""), "{}", stack.log());
}
