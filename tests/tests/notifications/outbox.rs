//! What happens is written down by what makes it happen, once.

use std::time::Duration;

use aws_sdk_dynamodb::types::AttributeValue;
use serde_json::json;
use tests::app::{PROJECT, TestApp};
use tests::call::Call;
use tests::error_tracking::{SentEvent, project};
use tests::insights::{id, upload};

/// What waits in the outbox: the kinds of what happened, and of how many subjects.
async fn waiting(test: &TestApp) -> Vec<String> {
    let items = test.items("notifications").await;
    let written = |value: &AttributeValue| value.as_s().unwrap().clone();
    let outbox = items.iter().filter(|item| written(&item["sk"]).starts_with("outbox#"));
    let mut kinds: Vec<String> = outbox.map(|item| written(&item["kind"])).collect();
    kinds.sort();
    kinds
}

async fn deliver(test: &TestApp, event: &SentEvent) {
    let project = project(&test.app.store, test.project_id).await;
    let call = Call::of(&ingest_error_events::OPERATION).parameter("ingestId", project.ingest_id);
    let call = call.query("sentry_key", project.public_key).bytes(event.envelope());
    assert_eq!(call.send(&test.app).await.status, 200);
}

fn event(test: &TestApp, number: u64, title: &str) -> SentEvent {
    SentEvent::new(number, test.app.clock.now(), title, "x")
}

#[tokio::test]
async fn an_error_is_announced_when_it_is_made_and_when_it_is_back() {
    let test = TestApp::start().await;
    let before = waiting(&test).await;
    assert_eq!(before, ["api_key_created"]);
    for number in 0..3 {
        deliver(&test, &event(&test, number, "TypeError")).await;
    }
    // Delivered again, it is not another.
    deliver(&test, &event(&test, 0, "TypeError")).await;
    assert_eq!(waiting(&test).await, ["api_key_created", "error_new"]);
    deliver(&test, &event(&test, 7, "ValueError")).await;
    assert_eq!(waiting(&test).await, ["api_key_created", "error_new", "error_new"]);

    let list = Call::of(&list_errors::OPERATION).parameter("idOrSlug", PROJECT).key(&test.key);
    let errors = list.send(&test.app).await.body;
    for status in ["resolved", "ignored", "open", "resolved"] {
        let id = errors["items"][0]["errorId"].as_str().unwrap();
        let update = Call::of(&update_error::OPERATION).parameter("idOrSlug", PROJECT);
        let update = update.parameter("errorId", id).key(&test.key);
        let reply = update.json(&json!({ "status": status })).send(&test.app).await;
        assert_eq!(reply.status, 200, "{}", reply.body);
    }
    assert_eq!(waiting(&test).await.len(), 3, "what a user does is not announced");
    test.pass(Duration::from_mins(2));
    let title = errors["items"][0]["type"].as_str().unwrap().to_owned();
    for number in 10..12 {
        deliver(&test, &event(&test, number, &title)).await;
    }
    let expected = ["api_key_created", "error_new", "error_new", "error_regression"];
    assert_eq!(waiting(&test).await, expected);
}

#[tokio::test]
async fn an_insight_is_announced_when_it_is_made() {
    let test = TestApp::start().await;
    let create = Call::of(&create_insight::OPERATION).parameter("idOrSlug", PROJECT).key(&test.key);
    let mut body = upload([1, 2]);
    body["title"] = json!("Checkout");
    let call = create.header("idempotency-key", "once").json(&body);
    let reply = call.clone().send(&test.app).await;
    assert_eq!(reply.status, 201, "{}", reply.body);
    assert_eq!(call.send(&test.app).await.status, 201);
    assert_eq!(waiting(&test).await, ["api_key_created", "insight_new"]);
    let split = Call::of(&split_insight::OPERATION).parameter("idOrSlug", PROJECT).key(&test.key);
    let split = split.parameter("insightId", reply.body["id"].as_str().unwrap());
    let split = split.json(&json!({"painPointIds": [id(1)]}));
    assert_eq!(split.send(&test.app).await.status, 201);
    assert_eq!(waiting(&test).await, ["api_key_created", "insight_new", "insight_new"]);
}
