//! Splitting insights.

use std::time::Duration;

use futures_util::future::join_all;
use serde_json::{Value, json};
use tests::app::TestApp;
use tests::call::{Call, Reply};
use tests::insights;

use super::{
    MISSING_ID, SPLIT, add, call_for, create, etag, get, id_of, is_replayed, members, merge,
    numbered, split, split_of, stored_of, update,
};

fn splitting(test: &TestApp, id: &str, body: &Value) -> Call {
    call_for(test, SPLIT, id).json(body)
}

#[tokio::test]
async fn sources_keep_their_texts_and_are_recounted() {
    let test = TestApp::start().await;
    let id = create(&test, 0..10).await;
    let patch = json!({"description": "d", "status": "ignored", "viewed": true});
    let before = update(&test, &id, patch).await;
    split(&test, &id, [9, 0, 1]).await;
    let after = get(&test, &id).await;
    let mut expected = before.body.clone();
    expected["occurrences"] = json!(7);
    // Sessions: 2 to 6, and 0 and 1 for pain points 7 and 8. Users: 2, 4, 0, 2 and 3 for pain
    // points 2, 4, 5, 7 and 8.
    expected["affectedSessions"] = json!(7);
    expected["identifiedUsers"] = json!(4);
    expected["firstSeen"] = json!("2026-11-20T04:16:02.000Z");
    expected["lastSeen"] = json!("2026-11-20T04:16:08.000Z");
    expected["excerpt"] = json!("Replay excerpt 8");
    assert_eq!(after.body, expected);
    assert_eq!((etag(&before), etag(&after)), ("\"2\"", "\"3\""));
}

#[tokio::test]
async fn default_title_is_from_the_latest_pain_point() {
    let test = TestApp::start().await;
    let mut body = super::creation(0..8);
    for at in [1, 2, 5] {
        body["painPoints"][at]["occurredAt"] = json!("2026-11-20T12:00:00Z");
    }
    let reply = test.call(super::CREATE).json(&body).send(&test.app).await;
    let id = id_of(&reply);
    for (numbers, title) in [
        (vec![0, 3], "Pain point 3"),
        // Two simultaneous pain points: the one with the greater ID is later.
        (vec![2, 6, 1], "Pain point 2"),
        (vec![5], "Pain point 5"),
    ] {
        let mut body = split_of(numbers);
        body["title"] = Value::Null;
        let reply = splitting(&test, &id, &body).send(&test.app).await;
        assert_eq!(reply.body["title"], title);
        assert_eq!(reply.body["excerpt"], title.replace("Pain point", "Replay excerpt"));
        assert_eq!(reply.body["description"], "");
    }
    assert_eq!(get(&test, &id).await.body["excerpt"], "Replay excerpt 7");
}

#[tokio::test]
async fn repeated_splits_return_the_same_insight() {
    let test = TestApp::start().await;
    let id = create(&test, 0..10).await;
    let first = split(&test, &id, [1, 2, 3]).await;
    let split_off = id_of(&first);
    let mut upper = split_of([2, 1, 3]);
    upper["painPointIds"][0] = json!(insights::id(2).to_uppercase());
    let mut spelled_out = split_of([1, 2, 3]);
    (spelled_out["title"], spelled_out["description"]) = (Value::Null, json!(""));
    for body in [split_of([1, 2, 3]), split_of([3, 1, 2]), upper, spelled_out] {
        let again = splitting(&test, &id, &body).send(&test.app).await;
        assert_eq!((again.status, &again.body), (201, &first.body), "{body}");
        assert_eq!(again.headers["location"], first.headers["location"]);
        assert!(!is_replayed(&again));
    }
    let again = splitting(&test, &id.to_uppercase(), &split_of([1, 2, 3])).send(&test.app).await;
    assert_eq!((again.status, &again.body), (201, &first.body));
    for body in [
        json!({"painPointIds": [insights::id(1), insights::id(2)]}),
        json!({"painPointIds": [insights::id(1), insights::id(2), insights::id(4)]}),
        {
            let mut body = split_of([1, 2, 3]);
            body["title"] = first.body["title"].clone();
            body
        },
        {
            let mut body = split_of([1, 2, 3]);
            body["description"] = json!("d");
            body
        },
    ] {
        let reply = splitting(&test, &id, &body).send(&test.app).await;
        assert_eq!(reply.violations()[0], ("/painPointIds/0", "unknown_pain_point"), "{body}");
    }
    let elsewhere = split(&test, &split_off, [1, 2, 3]).await;
    assert_eq!(elsewhere.problem(), (400, "split_would_empty_insight"));
    assert_eq!(stored_of(&test, "project#").await, 2);
}

#[tokio::test]
async fn repeated_splits_return_the_current_insight() {
    let test = TestApp::start().await;
    let (id, other) = (create(&test, 0..10).await, create(&test, [20]).await);
    let split_off = id_of(&split(&test, &id, [1, 2]).await);
    let repeated = async || -> Reply { split(&test, &id, [2, 1]).await };
    let changed = update(&test, &split_off, json!({"title": "t", "status": "resolved"})).await;
    let again = repeated().await;
    assert_eq!((again.status, &again.body, etag(&again)), (201, &changed.body, "\"2\""));
    let changed = add(&test, &split_off, [30]).await;
    assert_eq!(repeated().await.body, changed.body);
    split(&test, &split_off, [30]).await;
    assert_eq!(repeated().await.body["occurrences"], 2);
    // Also if the new insight or the source is merged.
    merge(&test, &id, &other).await;
    assert_eq!(repeated().await.body["id"], json!(split_off));
    merge(&test, &split_off, &other).await;
    let again = repeated().await;
    assert_eq!((again.status, &again.body), (201, &get(&test, &split_off).await.body));
    assert_eq!(again.body["mergedInto"], json!(other));
}

#[tokio::test]
async fn splits_after_merging_back_are_new() {
    let test = TestApp::start().await;
    let id = create(&test, 0..5).await;
    let first = id_of(&split(&test, &id, [1, 2]).await);
    merge(&test, &first, &id).await;
    let second = split(&test, &id, [1, 2]).await;
    assert_eq!(second.status, 201);
    assert_ne!(id_of(&second), first);
    assert_eq!(split(&test, &id, [1, 2]).await.body, second.body, "the latest one is repeated");
    assert_eq!(members(&test, &id_of(&second)).await, numbered([1, 2]));
    assert_eq!(get(&test, &first).await.body["status"], "merged");
}

#[tokio::test]
async fn idempotent_splits_return_the_stored_response() {
    let test = TestApp::start().await;
    let id = create(&test, 0..10).await;
    let request = |body: &Value| splitting(&test, &id, body).header("idempotency-key", "k");
    let usual = split_of([1, 2]);
    let duplicates = join_all((0..8).map(|_| request(&usual).send(&test.app))).await;
    assert!(duplicates.iter().all(|reply| reply.status == 201 && reply.body == duplicates[0].body));
    assert_eq!(duplicates.iter().filter(|reply| is_replayed(reply)).count(), 7);
    let split_off = id_of(&duplicates[0]);
    for body in [split_of([2, 1]), split_of([3])] {
        let other = request(&body).send(&test.app).await;
        assert_eq!(other.problem(), (409, "idempotency_conflict"), "{body}");
    }
    let nowhere = splitting(&test, MISSING_ID, &usual);
    let other = nowhere.header("idempotency-key", "k").send(&test.app).await;
    assert_eq!(other.problem(), (409, "idempotency_conflict"));
    let assert_replayed = async || {
        let again = request(&usual).send(&test.app).await;
        assert!(is_replayed(&again), "{}", again.body);
        assert_eq!((&again.body, etag(&again)), (&duplicates[0].body, "\"1\""));
        assert_eq!(again.headers["location"], duplicates[0].headers["location"]);
    };
    update(&test, &split_off, json!({"title": "t"})).await;
    assert_replayed().await;
    // After a merge back, an equal split would be possible, but is not repeated.
    merge(&test, &split_off, &id).await;
    assert_replayed().await;
    assert_eq!(members(&test, &id).await, numbered(0..10));
    let other = create(&test, [20]).await;
    merge(&test, &id, &other).await;
    assert_replayed().await;
    test.pass(Duration::from_hours(24));
    assert_eq!(
        request(&usual).send(&test.app).await.body["status"],
        "merged",
        "the stored response expired"
    );
}

#[tokio::test]
async fn one_of_concurrent_splits_succeeds() {
    let test = TestApp::start().await;
    let id = create(&test, 0..10).await;
    let replies = join_all((1..9).map(|other| split(&test, &id, [0, other]))).await;
    let (won, lost): (Vec<&Reply>, Vec<&Reply>) =
        replies.iter().partition(|reply| reply.status == 201);
    assert_eq!(won.len(), 1);
    for reply in lost {
        assert_eq!(reply.violations(), [("/painPointIds/0", "unknown_pain_point")]);
    }
    let split_off = members(&test, &id_of(won[0])).await;
    assert_eq!((split_off.len(), members(&test, &id).await.len()), (2, 8));
}

#[tokio::test]
async fn concurrent_splits_of_different_pain_points_succeed() {
    let test = TestApp::start().await;
    let id = create(&test, 0..20).await;
    let replies = join_all((1..5).map(|number| split(&test, &id, [number, number + 10]))).await;
    for (number, reply) in (1..5).zip(&replies) {
        assert_eq!(reply.status, 201, "{}", reply.body);
        assert_eq!(members(&test, &id_of(reply)).await, numbered([number, number + 10]));
    }
    assert_eq!(get(&test, &id).await.body["occurrences"], 12);
}
