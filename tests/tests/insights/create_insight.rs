//! Creating and reading insights.

use std::time::Duration;
use tests::call::Call;

use futures_util::future::join_all;
use serde_json::{Value, json};
use tests::app::{PROJECT, TestApp};
use tests::call::Reply;
use tests::insights::upload;

use super::{CREATE, call_for, create, creation, etag, id_of, is_replayed};

async fn created(test: &TestApp, body: &Value) -> Reply {
    test.call(CREATE).json(body).send(&test.app).await
}

#[tokio::test]
async fn requests_succeed_without_the_taken_pain_points() {
    let test = TestApp::start().await;
    create(&test, [0]).await;
    // Claims need several transactions, so some new pain points are claimed without effect.
    let reply = created(&test, &creation(0..250)).await;
    assert_eq!(reply.problem(), (409, "pain_point_exists"));
    let reply = created(&test, &creation(1..250)).await;
    assert_eq!((reply.status, &reply.body["occurrences"]), (201, &json!(249)));
}

#[tokio::test]
async fn retried_creations_return_the_same_insight() {
    let test = TestApp::start().await;
    let request =
        |number| test.call(CREATE).header("idempotency-key", "k").json(&creation([number]));
    let duplicates = join_all((0..8).map(|_| request(0).send(&test.app))).await;
    assert!(duplicates.iter().all(|reply| reply.status == 201 && reply.body == duplicates[0].body));
    assert_eq!(duplicates.iter().filter(|reply| is_replayed(reply)).count(), 7);
    let id = id_of(&duplicates[0]);
    super::add(&test, &id, [5]).await;
    let again = request(0).send(&test.app).await;
    assert!(is_replayed(&again));
    assert_eq!((again.status, &again.body, etag(&again)), (201, &duplicates[0].body, "\"1\""));
    assert_eq!(again.headers["location"], duplicates[0].headers["location"]);
    let other = request(1).send(&test.app).await;
    assert_eq!(other.problem(), (409, "idempotency_conflict"));
    assert_eq!(
        created(&test, &creation([1])).await.status,
        201,
        "the conflicting request claimed nothing"
    );
    test.pass(Duration::from_hours(24));
    assert_eq!(request(0).send(&test.app).await.problem(), (409, "pain_point_exists"));
}

#[tokio::test]
async fn rejected_creations_do_not_use_their_key() {
    let test = TestApp::start().await;
    create(&test, [0]).await;
    let request = |numbers: std::ops::Range<usize>| {
        test.call(CREATE).header("idempotency-key", "k").json(&creation(numbers))
    };
    let rejected = request(0..3).send(&test.app).await;
    assert_eq!(rejected.problem(), (409, "pain_point_exists"));
    let reply = request(1..3).send(&test.app).await;
    assert_eq!((reply.status, is_replayed(&reply)), (201, false));
}

#[tokio::test]
async fn idempotency_keys_are_separate_per_api_key() {
    let test = TestApp::start().await;
    let other = test.key_with(|key| key).await;
    let request = |key: &str, number| {
        let call = Call::of(CREATE).parameter("idOrSlug", PROJECT).key(key);
        call.header("idempotency-key", "k").json(&creation([number]))
    };
    let first = request(&test.key, 0).send(&test.app).await;
    let second = request(&other, 1).send(&test.app).await;
    assert_eq!((first.status, second.status), (201, 201));
    assert_ne!(first.body["id"], second.body["id"]);
    // Keys of different operations are also separate.
    let reply = call_for(&test, super::ADD, &id_of(&first)).header("idempotency-key", "k");
    assert_eq!(reply.json(&upload([2])).send(&test.app).await.status, 200);
}
