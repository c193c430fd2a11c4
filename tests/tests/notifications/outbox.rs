//! Outbox items of requests.

use std::time::Duration;

use aws_sdk_dynamodb::types::AttributeValue;
use serde_json::json;

use shared::usage::counted;
use tests::app::TestApp;
use tests::insights::{id, upload};
use tests::notifications::{give_address, user};
use tests::proxy::{RecordedRequest, Recorder};

use super::actions::{deliver, event};

/// Returns the kinds of all outbox items.
async fn outbox_kinds(test: &TestApp) -> Vec<String> {
    let items = test.items("notifications").await;
    let text = |value: &AttributeValue| value.as_s().unwrap().clone();
    let outbox = items.iter().filter(|item| text(&item["sk"]).starts_with("outbox#"));
    let mut kinds: Vec<String> = outbox.map(|item| text(&item["kind"])).collect();
    kinds.sort();
    kinds
}

#[tokio::test]
async fn new_and_regressed_errors_are_announced() {
    let test = TestApp::start().await;
    let initial = outbox_kinds(&test).await;
    assert_eq!(initial, ["api_key_created"]);
    for number in 0..3 {
        deliver(&test, test.project_id, &event(&test, number, "TypeError")).await;
    }
    // A duplicate delivery announces nothing.
    deliver(&test, test.project_id, &event(&test, 0, "TypeError")).await;
    assert_eq!(outbox_kinds(&test).await, ["api_key_created", "error_new"]);
    deliver(&test, test.project_id, &event(&test, 7, "ValueError")).await;
    assert_eq!(outbox_kinds(&test).await, ["api_key_created", "error_new", "error_new"]);

    let list = test.call(&list_errors::OPERATION);
    let errors = list.send(&test.app).await.body;
    for status in ["resolved", "ignored", "open", "resolved"] {
        let id = errors["items"][0]["errorId"].as_str().unwrap();
        let update = test.call(&update_error::OPERATION).parameter("errorId", id);
        let reply = update.json(&json!({ "status": status })).send(&test.app).await;
        assert_eq!(reply.status, 200, "{}", reply.body);
    }
    assert_eq!(outbox_kinds(&test).await.len(), 3, "status changes by users are not announced");
    test.pass(Duration::from_mins(2));
    let title = errors["items"][0]["type"].as_str().unwrap().to_owned();
    for number in 10..12 {
        deliver(&test, test.project_id, &event(&test, number, &title)).await;
    }
    let expected = ["api_key_created", "error_new", "error_new", "error_regression"];
    assert_eq!(outbox_kinds(&test).await, expected);
}

#[tokio::test]
async fn flag_changes_are_announced_with_their_actor() {
    let test = TestApp::start().await;
    let body = json!({"key": "new-checkout", "name": "New checkout", "type": "boolean"});
    let create =
        test.call(&create_feature_flag::OPERATION).header("idempotency-key", "once").json(&body);
    for _ in 0..2 {
        assert_eq!(create.clone().send(&test.app).await.status, 201);
    }
    let flag_call = |operation| {
        let call = test.call(operation);
        call.parameter("key", "new-checkout")
    };
    // An update without effect announces nothing.
    for change in [json!({"enabled": true}), json!({"enabled": true}), json!({"archived": true})] {
        let update = flag_call(&update_feature_flag::OPERATION).json(&change);
        assert_eq!(update.send(&test.app).await.status, 200, "{change}");
    }
    // A rejected update announces nothing.
    let rejected = flag_call(&update_feature_flag::OPERATION).json(&json!({"name": "x"}));
    assert_eq!(rejected.send(&test.app).await.status, 409);
    assert_eq!(flag_call(&delete_feature_flag::OPERATION).send(&test.app).await.status, 204);
    // A new flag with the key does not replace earlier announcements.
    test.pass(Duration::from_millis(1));
    assert_eq!(create.header("idempotency-key", "again").send(&test.app).await.status, 201);

    let items = test.items("notifications").await;
    let flag_changes = items.iter().filter(|it| it.get("kind").is_some_and(is("flag_changed")));
    let mut changes: Vec<_> = flag_changes.collect();
    changes.sort_by_key(|item| item["instance"].as_n().unwrap().clone());
    let details: Vec<&str> =
        changes.iter().map(|it| it["detail"].as_s().unwrap().as_str()).collect();
    assert_eq!(details, ["created", "turned on", "archived", "deleted", "created"]);
    assert!(
        changes.iter().all(|it| is("owner")(&it["actor"]) && is("new-checkout")(&it["subject"]))
    );
}

fn is(text: &str) -> impl Fn(&AttributeValue) -> bool {
    move |value| value.as_s().is_ok_and(|it| it == text)
}

#[tokio::test]
async fn new_insights_are_announced() {
    let test = TestApp::start().await;
    let create = test.call(&create_insight::OPERATION);
    let mut body = upload([1, 2]);
    body["title"] = json!("Checkout");
    let call = create.header("idempotency-key", "once").json(&body);
    let reply = call.clone().send(&test.app).await;
    assert_eq!(reply.status, 201, "{}", reply.body);
    assert_eq!(call.send(&test.app).await.status, 201);
    assert_eq!(outbox_kinds(&test).await, ["api_key_created", "insight_new"]);
    let split = test.call(&split_insight::OPERATION);
    let split = split.parameter("insightId", reply.body["id"].as_str().unwrap());
    let split = split.json(&json!({"painPointIds": [id(1)]}));
    assert_eq!(split.send(&test.app).await.status, 201);
    assert_eq!(outbox_kinds(&test).await, ["api_key_created", "insight_new", "insight_new"]);
}

/// Requests of a warm function for an event of a known error. It puts the payload, writes claim,
/// row and error event in one transaction, and reads the error.
const KNOWN_ERROR_REQUESTS: [&str; 3] =
    ["PutItem errors", "TransactWriteItems errors errors errors", "GetItem errors"];
/// Write units of these requests.
const KNOWN_ERROR_WRITE_UNITS: f64 = 7.0;

/// Only a new error writes an outbox item, in its transaction. Recipients make no difference.
#[tokio::test]
async fn known_errors_cost_nothing_for_the_outbox() {
    for has_address in [false, true] {
        let mut test = TestApp::start().await;
        if has_address {
            give_address(&test.app, &user("owner"), "owner@example.com").await;
        }
        let recorder = Recorder::before(&test.engine.endpoint());
        test.put_behind(recorder.clone()).await;

        deliver(&test, test.project_id, &event(&test, 0, "TypeError")).await;
        let new_error_requests: Vec<RecordedRequest> = recorder.take();
        let transactions = new_error_requests.iter().filter(|it| it.action == "TransactWriteItems");
        let to_outbox = transactions.flat_map(|it| &it.tables).filter(|it| *it == "notifications");
        assert_eq!(to_outbox.count(), 1, "{new_error_requests:?}");
        for number in 1..=20 {
            let event = event(&test, number, "TypeError");
            let ((), usage) = counted(deliver(&test, test.project_id, &event)).await;
            let requests: Vec<String> = recorder.take().iter().map(ToString::to_string).collect();
            assert_eq!(requests, KNOWN_ERROR_REQUESTS, "{number}");
            let units = usage.write_units;
            assert!((units - KNOWN_ERROR_WRITE_UNITS).abs() < f64::EPSILON, "{units}");
        }
        // After a minute, the function reads and updates the error, and announces nothing.
        test.pass(Duration::from_mins(2));
        deliver(&test, test.project_id, &event(&test, 30, "TypeError")).await;
        let later = recorder.take();
        assert!(
            later.iter().all(|it| !it.tables.iter().any(|it| it == "notifications")),
            "{later:?}"
        );
        assert_eq!(outbox_kinds(&test).await, ["api_key_created", "error_new"]);
    }
}
