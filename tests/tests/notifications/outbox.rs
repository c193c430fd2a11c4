//! What happens is written down by what makes it happen, once.

use std::time::Duration;

use aws_sdk_dynamodb::types::AttributeValue;
use serde_json::json;

use shared::usage::counted;
use tests::app::{PROJECT, TestApp};
use tests::call::Call;
use tests::errors::{SentEvent, project};
use tests::insights::{id, upload};
use tests::notifications::{give_address, user};
use tests::proxy::{RecordedRequest, Recorder};

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
async fn every_change_of_a_flag_is_announced_with_who_made_it() {
    let test = TestApp::start().await;
    let body = json!({"key": "new-checkout", "name": "New checkout", "type": "boolean"});
    let create = Call::of(&create_feature_flag::OPERATION).parameter("idOrSlug", PROJECT);
    let create = create.key(&test.key).header("idempotency-key", "once").json(&body);
    for _ in 0..2 {
        assert_eq!(create.clone().send(&test.app).await.status, 201);
    }
    let of_flag = |operation| {
        let call = Call::of(operation).parameter("idOrSlug", PROJECT).key(&test.key);
        call.parameter("key", "new-checkout")
    };
    // A change that changes nothing is none.
    for change in [json!({"enabled": true}), json!({"enabled": true}), json!({"archived": true})] {
        let update = of_flag(&update_feature_flag::OPERATION).json(&change);
        assert_eq!(update.send(&test.app).await.status, 200, "{change}");
    }
    // Nor is one that is refused.
    let refused = of_flag(&update_feature_flag::OPERATION).json(&json!({"name": "x"}));
    assert_eq!(refused.send(&test.app).await.status, 409);
    assert_eq!(of_flag(&delete_feature_flag::OPERATION).send(&test.app).await.status, 204);
    // Another flag of the same key hides nothing of the first one.
    test.pass(Duration::from_millis(1));
    assert_eq!(create.header("idempotency-key", "again").send(&test.app).await.status, 201);

    let items = test.items("notifications").await;
    let of_flags = items.iter().filter(|it| it.get("kind").is_some_and(is("flag_changed")));
    let mut told: Vec<_> = of_flags.collect();
    told.sort_by_key(|item| item["occasion"].as_n().unwrap().clone());
    let details: Vec<&str> = told.iter().map(|it| it["detail"].as_s().unwrap().as_str()).collect();
    assert_eq!(details, ["created", "switched on", "archived", "deleted", "created"]);
    assert!(told.iter().all(|it| is("owner")(&it["actor"]) && is("new-checkout")(&it["subject"])));
}

fn is(text: &str) -> impl Fn(&AttributeValue) -> bool {
    move |value| value.as_s().is_ok_and(|it| it == text)
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

/// What a warm function asks for with an event of an error that is known: its payload; its claim, its row and its
/// place among the events of its error in one transaction; and what its error knows. So it was before there was
/// an outbox.
const OF_KNOWN_ERROR: [&str; 3] =
    ["PutItem errors", "TransactWriteItems errors errors errors", "GetItem errors"];
/// What that consumes.
const WRITE_UNITS_OF_KNOWN_ERROR: f64 = 7.0;

/// Whoever wants to be told of errors, an event of one that is known asks for nothing more and writes nothing
/// more; one of an error that is new writes one item more, in the same transaction.
#[tokio::test]
async fn an_event_of_a_known_error_costs_nothing_for_the_outbox() {
    for is_told in [false, true] {
        let mut test = TestApp::start().await;
        if is_told {
            give_address(&test.app, &user("owner"), "owner@example.com").await;
        }
        let recorder = Recorder::before(&test.engine.endpoint());
        test.put_behind(recorder.clone()).await;

        deliver(&test, &event(&test, 0, "TypeError")).await;
        let of_new: Vec<RecordedRequest> = recorder.take();
        let transactions = of_new.iter().filter(|it| it.action == "TransactWriteItems");
        let to_outbox = transactions.flat_map(|it| &it.tables).filter(|it| *it == "notifications");
        assert_eq!(to_outbox.count(), 1, "{of_new:?}");
        for number in 1..=20 {
            let event = event(&test, number, "TypeError");
            let ((), usage) = counted(deliver(&test, &event)).await;
            // The tests' own look for the DSN comes first.
            let asked: Vec<String> =
                recorder.take().iter().skip(1).map(ToString::to_string).collect();
            assert_eq!(asked, OF_KNOWN_ERROR, "{number}");
            let units = usage.write_units;
            assert!((units - WRITE_UNITS_OF_KNOWN_ERROR).abs() < f64::EPSILON, "{units}");
        }
        // What is known a minute later has to be looked up and brought up to date; nothing is announced.
        test.pass(Duration::from_mins(2));
        deliver(&test, &event(&test, 30, "TypeError")).await;
        let later = recorder.take();
        assert!(
            later.iter().all(|it| !it.tables.iter().any(|it| it == "notifications")),
            "{later:?}"
        );
        assert_eq!(waiting(&test).await, ["api_key_created", "error_new"]);
    }
}
