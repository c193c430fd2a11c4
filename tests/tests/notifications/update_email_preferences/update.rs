//! Effects of valid updates.

use std::collections::HashMap;

use aws_sdk_dynamodb::types::AttributeValue;
use serde_json::json;
use tests::app::TestApp;

use super::{TYPES, all_but, call, preferences, update};

#[tokio::test]
async fn empty_updates_return_preferences() {
    let test = TestApp::start().await;
    let reply = update(&test, &[]).await;
    assert_eq!((reply.status, &reply.body), (200, &all_but(&[])));
    assert!(test.items("email-preferences").await.is_empty());
    update(&test, &[("flag_changed", false)]).await;
    let before = test.items("email-preferences").await;
    assert_eq!(update(&test, &[]).await.body, all_but(&["flag_changed"]));
    assert_eq!(test.items("email-preferences").await, before);
}

#[tokio::test]
async fn only_choices_are_stored() {
    let test = TestApp::start().await;
    update(&test, &[("insight_new", true), ("billing", false)]).await;
    let expected = HashMap::from([
        ("userId".to_owned(), AttributeValue::S("default/owner".to_owned())),
        ("insight_new".to_owned(), AttributeValue::Bool(true)),
        ("billing".to_owned(), AttributeValue::Bool(false)),
    ]);
    assert_eq!(test.items("email-preferences").await, [expected]);
}

#[tokio::test]
async fn warm_updates_cost_two_round_trips() {
    let test = TestApp::start().await;
    update(&test, &[("billing", false)]).await;
    assert_eq!(test.round_trips(), 3);
    update(&test, &[("billing", true)]).await;
    assert_eq!(test.round_trips(), 2);
    update(&test, &[]).await;
    assert_eq!(test.round_trips(), 1, "an empty update costs one");
    update(&test, &[("newsletter", true)]).await;
    assert_eq!(test.round_trips(), 0, "an invalid body costs none");
}

#[tokio::test]
async fn concurrent_updates_of_different_types_apply() {
    let test = TestApp::start().await;
    for enabled in [false, true, false] {
        let updates = TYPES.map(|name| {
            let call = call(&test).json(&preferences(&[(name, enabled)]));
            let app = &test.app;
            async move { call.send(app).await.status }
        });
        assert_eq!(futures_util::future::join_all(updates).await, [200; 11]);
        let expected = if enabled { all_but(&[]) } else { all_but(&TYPES) };
        assert_eq!(update(&test, &[]).await.body, expected);
    }
    assert_eq!(test.items("email-preferences").await.len(), 1);
}

#[tokio::test]
async fn idempotency_keys_are_ignored() {
    let test = TestApp::start().await;
    for enabled in [false, true] {
        let call = call(&test).header("idempotency-key", "order-4711");
        let reply = call.json(&preferences(&[("billing", enabled)])).send(&test.app).await;
        assert_eq!(reply.status, 200);
        assert_eq!(reply.body[10], json!({"type": "billing", "emailEnabled": enabled}));
    }
    assert!(test.items("idempotency").await.is_empty());
}
