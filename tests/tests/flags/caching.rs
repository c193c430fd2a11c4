//! Caching of flags: contents and duration.

use std::time::Duration;

use futures_util::future::join_all;
use serde_json::{Value, json};
use shared::app::Operation;
use shared::usage::counted;
use tests::app::TestApp;
use tests::call::Call;

use super::{
    EVALUATE, EVALUATE_ALL, EVALUATIONS, archive, call_for, change, create, create_dependent,
    delete, evaluate, evaluate_all,
};

fn evaluation(test: &TestApp, operation: &'static Operation) -> Call {
    call_for(test, operation, "f").json(&json!({"context": {"targetingKey": "u"}}))
}

/// Returns the value of the flag `f`, and the number of requests to DynamoDB.
async fn value(test: &TestApp, call: Call) -> (Value, usize) {
    test.round_trips();
    let reply = call.send(&test.app).await;
    assert_eq!(reply.status, 200, "{}", reply.text);
    let of_all = &reply.body["flags"][0]["value"];
    let value = if of_all.is_null() { &reply.body["value"] } else { of_all };
    (value.clone(), test.round_trips())
}

#[tokio::test]
async fn changes_are_visible_within_five_seconds() {
    for operation in EVALUATIONS {
        let test = TestApp::start().await;
        create(&test, "f", &json!({})).await;
        let evaluated = async || value(&test, evaluation(&test, operation)).await;
        assert_eq!(evaluated().await, (json!(true), 1));
        assert_eq!(evaluated().await, (json!(true), 0), "the flag is cached");
        change(&test, "f", json!({"enabled": false})).await;
        test.pass(Duration::from_millis(4_999));
        assert_eq!(evaluated().await, (json!(true), 0));
        test.pass(Duration::from_millis(1));
        assert_eq!(evaluated().await, (json!(false), 1), "{}", operation.name);
        assert_eq!(evaluated().await, (json!(false), 0));
        // The age counts from the read, not from the last evaluation.
        change(&test, "f", json!({"enabled": true})).await;
        for _ in 0..4 {
            test.pass(Duration::from_secs(1));
            assert_eq!(evaluated().await, (json!(false), 0));
        }
        test.pass(Duration::from_secs(1));
        assert_eq!(evaluated().await, (json!(true), 1));
    }
}

#[tokio::test]
async fn no_cache_requests_get_current_flags() {
    for operation in EVALUATIONS {
        let test = TestApp::start().await;
        create(&test, "f", &json!({})).await;
        let fresh = || evaluation(&test, operation).header("cache-control", "no-cache");
        let cached = || evaluation(&test, operation);
        assert_eq!(value(&test, cached()).await.0, true);
        change(&test, "f", json!({"enabled": false})).await;
        assert_eq!(value(&test, cached()).await, (json!(true), 0));
        assert_eq!(value(&test, fresh()).await, (json!(false), 1));
        assert_eq!(value(&test, fresh()).await, (json!(false), 0), "the flags were just read");
        test.pass(Duration::from_secs(1));
        assert_eq!(value(&test, fresh()).await, (json!(false), 1));
        // A current read is cached for later requests.
        assert_eq!(value(&test, cached()).await, (json!(false), 0));
        let other = cached().header("cache-control", "max-age=0");
        assert_eq!(value(&test, other).await.1, 0);
    }
}

#[tokio::test]
async fn flags_are_read_with_their_prerequisites() {
    let test = TestApp::start().await;
    create(&test, "base1", &json!({})).await;
    create(&test, "base2", &json!({})).await;
    create_dependent(&test, "middle", &["base1", "base2"]).await;
    create_dependent(&test, "f", &["base1", "middle"]).await;
    // The flag, its prerequisites, and their prerequisites.
    assert_eq!(value(&test, evaluation(&test, EVALUATE)).await, (json!(true), 3));
    assert_eq!(value(&test, evaluation(&test, EVALUATE)).await, (json!(true), 0));
    change(&test, "base2", json!({"enabled": false})).await;
    test.pass(Duration::from_secs(5));
    assert_eq!(value(&test, evaluation(&test, EVALUATE)).await, (json!(false), 3));
}

#[tokio::test]
async fn new_flags_appear_immediately_and_archived_ones_expire() {
    let test = TestApp::start().await;
    assert_eq!(evaluate(&test, "f", json!({})).await.status, 404);
    create(&test, "f", &json!({})).await;
    assert_eq!(evaluate(&test, "f", json!({})).await.body["value"], true);
    archive(&test, "f").await;
    delete(&test, "f").await;
    assert_eq!(evaluate(&test, "f", json!({})).await.status, 200);
    test.pass(Duration::from_secs(5));
    assert_eq!(evaluate(&test, "f", json!({})).await.status, 404);
    // A new flag with the same key is a different flag, even with the same version.
    create(&test, "f", &json!({})).await;
    assert_eq!(evaluate(&test, "f", json!({})).await.body["value"], true);
    archive(&test, "f").await;
    delete(&test, "f").await;
    create(&test, "f", &json!({"fallthrough": {"variant": "off"}})).await;
    test.pass(Duration::from_secs(5));
    assert_eq!(evaluate(&test, "f", json!({})).await.body["value"], false);
}

#[tokio::test]
async fn missing_flags_cost_one_revision_read() {
    let test = TestApp::start().await;
    create(&test, "g", &json!({})).await;
    assert_eq!(evaluate(&test, "g", json!({})).await.status, 200);
    // The first request reads the flag; the second reads it again, since its revision was new;
    // later ones read the revision.
    for seconds in [0, 5] {
        test.pass(Duration::from_secs(seconds));
        assert_eq!(evaluate(&test, "f", json!({})).await.status, 404);
    }
    for directive in ["max-age=9", "no-cache", "max-age=9"] {
        let call = evaluation(&test, EVALUATE).header("cache-control", directive);
        let (reply, usage) = counted(call.send(&test.app)).await;
        assert_eq!((reply.status, usage.calls, usage.read_units), (404, 1, 1.0), "{directive}");
    }
    create(&test, "f", &json!({})).await;
    assert_eq!(evaluation(&test, EVALUATE).send(&test.app).await.body["value"], true);
}

#[tokio::test]
async fn concurrent_evaluations_share_one_read() {
    for (operation, trips) in [(EVALUATE, 1), (EVALUATE_ALL, 1)] {
        let test = TestApp::start().await;
        create(&test, "f", &json!({})).await;
        test.round_trips();
        let replies = join_all((0..20).map(|_| evaluation(&test, operation).send(&test.app))).await;
        assert!(replies.iter().all(|reply| reply.status == 200));
        assert_eq!(test.round_trips(), trips, "{}", operation.name);
    }
}

#[tokio::test]
async fn projects_have_separate_flags() {
    let test = TestApp::start().await;
    test.other_project().await;
    create(&test, "f", &json!({})).await;
    for _ in 0..2 {
        assert_eq!(evaluate(&test, "f", json!({})).await.status, 200);
        assert_eq!(evaluate_all(&test, json!({})).await.body["flags"].as_array().unwrap().len(), 1);
        for operation in EVALUATIONS {
            let call = Call::of(operation).parameter("idOrSlug", "other").key(&test.key);
            let call =
                if operation.name == EVALUATE.name { call.parameter("key", "f") } else { call };
            let reply = call.send(&test.app).await;
            let none = if operation.name == EVALUATE.name {
                reply.status == 404
            } else {
                reply.body["flags"].as_array().unwrap().is_empty()
            };
            assert!(none, "{}", reply.text);
        }
    }
}

#[tokio::test]
async fn flags_from_several_pages_are_evaluated_together() {
    let test = TestApp::start().await;
    for number in 0..40 {
        let rule = json!({"serve": {"variant": "on"}, "conditions": [
            {"attribute": "a", "operator": "equals", "values": ["x".repeat(900)]},
        ]});
        let rules = vec![rule; 40];
        create(&test, &format!("f{number:02}"), &json!({ "rules": rules })).await;
    }
    // More than one megabyte, so DynamoDB returns several pages.
    test.round_trips();
    let reply = evaluate_all(&test, json!({"a": "y"})).await;
    assert_eq!(reply.body["flags"].as_array().unwrap().len(), 40);
    assert!(test.round_trips() > 1);
    evaluate_all(&test, json!({"a": "x"})).await;
    assert_eq!(test.round_trips(), 0);
}
