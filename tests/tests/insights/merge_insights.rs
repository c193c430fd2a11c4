//! Merging insights.

use futures_util::future::join_all;
use serde_json::json;
use tests::app::TestApp;

use super::{
    MERGE, MISSING_ID, add, call_for, create, etag, get, is_replayed, members, merge, numbered,
    stored, stored_of, update,
};

#[tokio::test]
async fn merges_return_the_receiving_insight() {
    let test = TestApp::start().await;
    let (id, into) = (create(&test, [0, 9]).await, create(&test, [3, 5]).await);
    let patch = json!({"title": "t", "description": "d", "status": "ignored", "viewed": true});
    let before = update(&test, &into, patch).await;
    let reply = merge(&test, &id, &into).await;
    let mut expected = before.body.clone();
    expected["occurrences"] = json!(4);
    // Sessions 0, 2, 3 and 5; only pain point 5 has a user.
    expected["affectedSessions"] = json!(4);
    expected["identifiedUsers"] = json!(1);
    expected["firstSeen"] = json!("2026-11-20T04:16:00.000Z");
    expected["lastSeen"] = json!("2026-11-20T04:16:09.000Z");
    expected["excerpt"] = json!("Replay excerpt 9");
    assert_eq!((reply.status, &reply.body), (200, &expected));
    assert_eq!(etag(&reply), "\"3\"");
    let found = get(&test, &into).await;
    assert_eq!((&found.body, etag(&found)), (&expected, "\"3\""));
    assert_eq!(members(&test, &into).await, numbered([0, 3, 5, 9]));
}

#[tokio::test]
async fn setting_the_status_undoes_the_latest_merge() {
    let test = TestApp::start().await;
    let (id, into) = (create(&test, 0..450).await, create(&test, 1000..1300).await);
    let (before, of_receiver) = (get(&test, &id).await, get(&test, &into).await);
    merge(&test, &id, &into).await;
    // Other fields of the receiver can change.
    update(&test, &into, json!({"viewed": true})).await;
    let undone = update(&test, &id, json!({"status": "ignored", "title": "Again"})).await;
    let mut expected = before.body.clone();
    (expected["status"], expected["title"]) = (json!("ignored"), json!("Again"));
    assert_eq!((undone.status, &undone.body), (200, &expected));
    assert_eq!(get(&test, &id).await.body, expected);
    assert_eq!(members(&test, &id).await, numbered(0..450));
    let mut expected = of_receiver.body.clone();
    expected["viewed"] = json!(true);
    assert_eq!(get(&test, &into).await.body, expected);
    assert_eq!(members(&test, &into).await, numbered(1000..1300));
    assert!(stored_of(&test, "chunk#").await <= 4, "no chunk is orphaned");
    // A repeated request changes nothing, and the merge can be repeated.
    let stored_before = stored(&test).await;
    let again = update(&test, &id, json!({"status": "ignored", "title": "Again"})).await;
    assert_eq!((again.status, &again.body), (200, &undone.body));
    assert_eq!(stored(&test).await, stored_before);
    merge(&test, &id, &into).await;
    assert_eq!(members(&test, &into).await.len(), 750);
}

#[tokio::test]
async fn merges_before_other_changes_stay() {
    let test = TestApp::start().await;
    let (id, into, third) =
        (create(&test, 0..3).await, create(&test, [5]).await, create(&test, [7]).await);
    merge(&test, &id, &into).await;
    let title = update(&test, &id, json!({"title": "t"})).await;
    assert_eq!(title.problem(), (409, "insight_merged"));
    add(&test, &into, [9]).await;
    let open = json!({"status": "open"});
    assert_eq!(update(&test, &id, open.clone()).await.problem(), (409, "insight_merged"));
    merge(&test, &into, &third).await;
    assert_eq!(update(&test, &id, open.clone()).await.problem(), (409, "insight_merged"));
    assert_eq!(members(&test, &third).await, numbered([0, 1, 2, 5, 7, 9]));
    // Merges are undone from the last to the first.
    assert_eq!(update(&test, &into, open).await.status, 200);
    assert_eq!(members(&test, &into).await, numbered([0, 1, 2, 5, 9]));
}

#[tokio::test]
async fn concurrent_undos_and_uploads_keep_all_pain_points() {
    let test = TestApp::start().await;
    for round in 0..6_usize {
        let first = round * 100;
        let (id, into) =
            (create(&test, first..first + 20).await, create(&test, [first + 30]).await);
        merge(&test, &id, &into).await;
        let undo = || update(&test, &id, json!({"status": "open"}));
        let (one, other, _) = tokio::join!(undo(), undo(), add(&test, &into, [first + 40]));
        let of_insight = members(&test, &id).await.len();
        let of_receiver = members(&test, &into).await.len();
        let is_undone = of_insight == 20;
        assert_eq!((of_insight, of_receiver), if is_undone { (20, 2) } else { (0, 22) });
        let expected = if is_undone { 200 } else { 409 };
        assert_eq!((one.status, other.status), (expected, expected), "{} {}", one.text, other.text);
    }
}

#[tokio::test]
async fn repeated_merges_return_the_current_insight() {
    let test = TestApp::start().await;
    let (id, into, third) =
        (create(&test, 0..3).await, create(&test, [5]).await, create(&test, [7]).await);
    let first = merge(&test, &id, &into).await;
    let before = stored(&test).await;
    let again = merge(&test, &id, &into).await;
    assert_eq!((again.status, &again.body, etag(&again)), (200, &first.body, "\"2\""));
    assert_eq!(stored(&test).await, before);
    let changed = add(&test, &into, [9]).await;
    assert_eq!(merge(&test, &id, &into).await.body, changed.body);
    merge(&test, &into, &third).await;
    let again = merge(&test, &id, &into).await;
    assert_eq!((again.status, &again.body), (200, &get(&test, &into).await.body));
}

#[tokio::test]
async fn idempotent_merges_return_the_stored_response() {
    let test = TestApp::start().await;
    let (id, into, third) =
        (create(&test, 0..3).await, create(&test, [5]).await, create(&test, [7]).await);
    let request = |into: &str| {
        call_for(&test, MERGE, &id).header("idempotency-key", "k").json(&json!({"into": into}))
    };
    let duplicates = join_all((0..8).map(|_| request(&into).send(&test.app))).await;
    assert!(duplicates.iter().all(|reply| reply.status == 200 && reply.body == duplicates[0].body));
    assert_eq!(duplicates.iter().filter(|reply| is_replayed(reply)).count(), 7);
    for other in [third.as_str(), &id, MISSING_ID] {
        let other = request(other).send(&test.app).await;
        assert_eq!(other.problem(), (409, "idempotency_conflict"));
    }
    let nowhere = call_for(&test, MERGE, MISSING_ID).header("idempotency-key", "k");
    let other = nowhere.json(&json!({"into": into})).send(&test.app).await;
    assert_eq!(other.problem(), (409, "idempotency_conflict"));
    let assert_replayed = async || {
        let again = request(&into).send(&test.app).await;
        assert!(is_replayed(&again), "{}", again.body);
        assert_eq!((&again.body, etag(&again)), (&duplicates[0].body, "\"2\""));
    };
    add(&test, &into, [9]).await;
    assert_replayed().await;
    merge(&test, &into, &third).await;
    assert_replayed().await;
}

#[tokio::test]
async fn one_of_two_mutually_merged_insights_remains() {
    let test = TestApp::start().await;
    for round in 0..5 {
        let base = round * 10;
        let one = create(&test, base..base + 2).await;
        let two = create(&test, base + 5..base + 7).await;
        let (there, back) = tokio::join!(merge(&test, &one, &two), merge(&test, &two, &one));
        let mut problems = [there.problem(), back.problem()];
        problems.sort_unstable();
        assert_eq!(problems, [(200, ""), (409, "insight_merged")]);
        let remaining = if there.status == 200 { &two } else { &one };
        let all = numbered((base..base + 2).chain(base + 5..base + 7));
        assert_eq!(members(&test, remaining).await, all);
    }
}

#[tokio::test]
async fn concurrent_merges_into_one_insight_all_succeed() {
    let test = TestApp::start().await;
    let into = create(&test, [0]).await;
    let mut others = Vec::new();
    for number in 1..5 {
        others.push(create(&test, [number]).await);
    }
    let replies = join_all(others.iter().map(|other| merge(&test, other, &into))).await;
    assert!(replies.iter().all(|reply| reply.status == 200), "{replies:?}");
    assert_eq!(members(&test, &into).await, numbered(0..5));
}
