//! Repeated requests.

use std::time::Duration;

use serde_json::json;
use tests::app::{PROJECT, TestApp};
use tests::call::Call;

use super::{CREATE, minimal, stored_keys};

fn retryable(test: &TestApp, key: &str) -> Call {
    test.call(CREATE).header("idempotency-key", "order-4711").json(&minimal(key))
}

#[tokio::test]
async fn reused_idempotency_keys_are_rejected() {
    let test = TestApp::start().await;
    retryable(&test, "flag").send(&test.app).await;
    let other_body = retryable(&test, "other").send(&test.app).await;
    assert_eq!(other_body.problem(), (409, "idempotency_conflict"));
    let id = test.project_id;
    let other_path = Call::of(CREATE).parameter("idOrSlug", id).key(&test.key);
    let other_path = other_path.header("idempotency-key", "order-4711").json(&minimal("flag"));
    assert_eq!(other_path.send(&test.app).await.problem(), (409, "idempotency_conflict"));
    assert_eq!(stored_keys(&test).await, ["flag"]);
}

#[tokio::test]
async fn idempotency_keys_are_separate_per_caller() {
    let test = TestApp::start().await;
    let other = test.key_with(|record| record).await;
    retryable(&test, "flag").send(&test.app).await;
    let call = Call::of(CREATE).parameter("idOrSlug", PROJECT).key(&other);
    let call = call.header("idempotency-key", "order-4711").json(&minimal("other"));
    assert_eq!(call.send(&test.app).await.status, 201);
}

#[tokio::test]
async fn stored_responses_expire_after_24_hours() {
    let test = TestApp::start().await;
    retryable(&test, "flag").send(&test.app).await;
    test.pass(Duration::from_hours(24) - Duration::from_secs(1));
    assert_eq!(retryable(&test, "flag").send(&test.app).await.status, 201);
    test.pass(Duration::from_secs(1));
    let reply = retryable(&test, "flag").send(&test.app).await;
    assert_eq!(reply.problem(), (409, "flag_exists"));
    assert_eq!(retryable(&test, "another").send(&test.app).await.status, 201);
}

#[tokio::test]
async fn rejections_are_not_stored() {
    let test = TestApp::start().await;
    let rejected = test.call(CREATE).header("idempotency-key", "order-4711").json(&json!({}));
    assert_eq!(rejected.send(&test.app).await.status, 400);
    test.call(CREATE).json(&minimal("taken")).send(&test.app).await;
    let taken = retryable(&test, "taken").send(&test.app).await;
    assert_eq!(taken.problem(), (409, "flag_exists"));
    assert!(test.items("idempotency").await.is_empty());
    assert_eq!(retryable(&test, "free").send(&test.app).await.status, 201);
}

#[tokio::test]
async fn concurrent_duplicates_are_executed_once() {
    let test = TestApp::start().await;
    let duplicates = (0..20).map(|_| {
        let call = retryable(&test, "flag");
        let app = &test.app;
        async move { call.send(app).await }
    });
    let replies = futures_util::future::join_all(duplicates).await;
    let firsts = replies.iter().filter(|r| !r.headers.contains_key("idempotency-replayed")).count();
    assert_eq!(firsts, 1);
    assert!(replies.iter().all(|reply| reply.status == 201 && reply.body == replies[0].body));
    assert_eq!(stored_keys(&test).await, ["flag"]);
    assert_eq!(test.items("idempotency").await.len(), 1);
}

#[tokio::test]
async fn stored_responses_have_a_ttl_and_no_secrets() {
    let test = TestApp::start().await;
    retryable(&test, "flag").send(&test.app).await;
    let items = test.items("idempotency").await;
    let expires_at: i64 = items[0]["expiresAt"].as_n().unwrap().parse().unwrap();
    assert_eq!(expires_at, 1_795_234_560 + 24 * 3_600);
    assert!(!format!("{items:?}").contains(&test.key[20..]));
}
