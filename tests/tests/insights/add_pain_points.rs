//! Adding and listing pain points.

use std::collections::BTreeSet;
use tests::call::Call;

use futures_util::future::join_all;
use serde_json::{Value, json};
use tests::app::TestApp;
use tests::insights::{self, upload};

use super::{
    ADD, LIST_PAIN_POINTS, MISSING_ID, add, call_for, create, etag, get, id_of, ids, is_replayed,
    members, merge, numbered, split, stored,
};

#[tokio::test]
async fn existing_pain_points_stay_unchanged() {
    let test = TestApp::start().await;
    let id = create(&test, 0..3).await;
    let before = (stored(&test).await, get(&test, &id).await);
    let mut body = upload(0..3);
    body["painPoints"][2]["title"] = json!("Other");
    body["painPoints"][2]["excerpt"] = json!("Other");
    body["painPoints"][1]["occurredAt"] = json!("2026-11-21T00:00:00Z");
    let reply = call_for(&test, ADD, &id).json(&body).send(&test.app).await;
    assert_eq!((reply.status, etag(&reply)), (200, "\"1\""));
    assert_eq!(reply.body, before.1.body);
    assert_eq!(stored(&test).await, before.0);
    // Also together with new ones.
    let reply = add(&test, &id, [1, 2, 3]).await;
    assert_eq!((&reply.body["occurrences"], etag(&reply)), (&json!(4), "\"2\""));
}

#[tokio::test]
async fn additions_keep_title_and_status() {
    let test = TestApp::start().await;
    let id = create(&test, [0]).await;
    let patch = json!({"description": "d", "status": "resolved", "viewed": true});
    super::update(&test, &id, patch).await;
    let reply = add(&test, &id, [1]).await;
    for (field, value) in [
        ("title", json!("Checkout")),
        ("description", json!("d")),
        ("status", json!("resolved")),
        ("viewed", json!(true)),
    ] {
        assert_eq!(reply.body[field], value, "{field}");
    }
}

#[tokio::test]
async fn pain_points_of_other_insights_are_rejected() {
    let test = TestApp::start().await;
    let (id, other) = (create(&test, 0..4).await, create(&test, [10]).await);
    assert_eq!(add(&test, &other, [3, 11]).await.problem(), (409, "pain_point_exists"));
    assert_eq!(members(&test, &other).await, numbered([10]));
    let split_off = id_of(&split(&test, &id, [2, 3]).await);
    // The pain point is now in the new insight, where it is counted once.
    assert_eq!(add(&test, &id, [3]).await.problem(), (409, "pain_point_exists"));
    let reply = add(&test, &split_off, [3, 12]).await;
    assert_eq!((reply.status, &reply.body["occurrences"]), (200, &json!(3)));
    merge(&test, &split_off, &other).await;
    assert_eq!(add(&test, &id, [3]).await.problem(), (409, "pain_point_exists"));
    assert_eq!(add(&test, &other, [3]).await.status, 200);
    assert_eq!(members(&test, &other).await, numbered([2, 3, 10, 12]));
    let elsewhere = test.other_project().await.to_string();
    let create = Call::of(super::CREATE).parameter("idOrSlug", &elsewhere).key(&test.key);
    let reply = create.json(&super::creation([20])).send(&test.app).await;
    let add = Call::of(ADD).parameter("idOrSlug", &elsewhere).parameter("insightId", id_of(&reply));
    let reply = add.key(&test.key).json(&upload([3])).send(&test.app).await;
    assert_eq!((reply.status, &reply.body["occurrences"]), (200, &json!(2)));
}

#[tokio::test]
async fn retried_uploads_get_the_stored_response() {
    let test = TestApp::start().await;
    let id = create(&test, [0]).await;
    let request = |numbers: [usize; 2]| {
        call_for(&test, ADD, &id).header("idempotency-key", "k").json(&upload(numbers))
    };
    let duplicates = join_all((0..8).map(|_| request([1, 2]).send(&test.app))).await;
    assert!(duplicates.iter().all(|reply| reply.status == 200), "{duplicates:?}");
    assert!(
        duplicates.iter().all(|reply| reply.body["occurrences"] == 3 && etag(reply) == "\"2\"")
    );
    let first = duplicates[0].clone();
    let other = request([1, 3]).send(&test.app).await;
    assert_eq!(other.problem(), (409, "idempotency_conflict"));
    let nowhere = call_for(&test, ADD, MISSING_ID).header("idempotency-key", "k");
    let other = nowhere.json(&upload([1, 2])).send(&test.app).await;
    assert_eq!(other.problem(), (409, "idempotency_conflict"));
    assert_eq!(members(&test, &id).await, numbered(0..3));
    let assert_replayed = async || {
        let again = request([1, 2]).send(&test.app).await;
        assert!(is_replayed(&again), "{}", again.body);
        assert_eq!((&again.body, etag(&again)), (&first.body, "\"2\""));
    };
    assert_replayed().await;
    // The pain points moved to another insight, where a new upload would be rejected.
    let split_off = id_of(&split(&test, &id, [1]).await);
    assert_replayed().await;
    // The insight was merged, and would reject every new upload.
    merge(&test, &id, &split_off).await;
    assert_replayed().await;
    assert_eq!(members(&test, &split_off).await, numbered(0..3));
}

#[tokio::test]
async fn responses_to_unchanged_uploads_are_also_stored() {
    let test = TestApp::start().await;
    let id = create(&test, [0]).await;
    let request = || call_for(&test, ADD, &id).header("idempotency-key", "k").json(&upload([0]));
    let first = request().send(&test.app).await;
    assert_eq!((first.status, etag(&first), is_replayed(&first)), (200, "\"1\"", false));
    add(&test, &id, [1]).await;
    let before = stored(&test).await;
    let again = request().send(&test.app).await;
    assert_eq!((is_replayed(&again), &again.body), (true, &first.body));
    assert_eq!(stored(&test).await, before);
}

#[tokio::test]
async fn pain_points_are_listed_by_time_and_id() {
    let test = TestApp::start().await;
    let mut body = super::creation([4, 2, 9, 7, 5]);
    for at in [0, 2, 4] {
        body["painPoints"][at]["occurredAt"] = json!("2026-11-20T12:00:00Z");
    }
    let reply = test.call(super::CREATE).json(&body).send(&test.app).await;
    assert_eq!(
        reply.body["excerpt"], "Replay excerpt 9",
        "the greatest ID of three simultaneous pain points"
    );
    let list = call_for(&test, LIST_PAIN_POINTS, &id_of(&reply));
    let expected = [9, 5, 4, 7, 2].map(insights::id);
    for (limit, lengths) in [(1, vec![1; 5]), (2, vec![2, 2, 1]), (5, vec![5]), (100, vec![5])] {
        let pages = test.pages(&list, limit).await;
        assert_eq!(pages.iter().map(Vec::len).collect::<Vec<_>>(), lengths);
        assert_eq!(ids(&pages.concat()), expected);
    }
}

#[tokio::test]
async fn moved_pain_points_do_not_shift_pages() {
    let test = TestApp::start().await;
    let id = create(&test, 0..20).await;
    let list = call_for(&test, LIST_PAIN_POINTS, &id).query("limit", 5);
    let first = list.clone().send(&test.app).await;
    let cursor = first.body["nextCursor"].as_str().unwrap();
    // Moves the last item of the first page and an item that was shown, and adds new ones.
    let split_off = id_of(&split(&test, &id, [15, 13, 12, 19]).await);
    add(&test, &id, [30]).await;
    let second = list.clone().query("cursor", cursor).send(&test.app).await;
    let expected = [14, 11, 10, 9, 8].map(insights::id);
    assert_eq!(ids(second.body["items"].as_array().unwrap()), expected);
    merge(&test, &split_off, &id).await;
    let cursor = second.body["nextCursor"].as_str().unwrap();
    let third = list.clone().query("cursor", cursor).send(&test.app).await;
    assert_eq!(ids(third.body["items"].as_array().unwrap()), [7, 6, 5, 4, 3].map(insights::id));
    // Everything behind the cursor is moved.
    split(&test, &id, 0..8).await;
    let cursor = third.body["nextCursor"].as_str().unwrap();
    let rest = list.query("cursor", cursor).send(&test.app).await;
    assert_eq!(rest.body, json!({"items": [], "nextCursor": null}));
}

#[tokio::test]
async fn largest_pain_points_fit_into_a_page() {
    let test = TestApp::start().await;
    let mut body = super::creation(0..100);
    for at in 0..100 {
        // The maximum number of bytes per text, within the size limit of a request.
        body["painPoints"][at]["excerpt"] = json!("\u{1F4A5}".repeat(2_000));
        body["painPoints"][at]["title"] = json!("\u{1F4A5}".repeat(200));
    }
    let reply = test.call(super::CREATE).json(&body).send(&test.app).await;
    assert_eq!(reply.status, 201, "{}", reply.body);
    let list = call_for(&test, LIST_PAIN_POINTS, &id_of(&reply));
    let page = test.pages(&list, 100).await.concat();
    let distinct: BTreeSet<String> = ids(&page).into_iter().collect();
    assert_eq!(distinct, numbered(0..100));
    assert!(page.iter().all(|item: &Value| item["excerpt"].as_str().unwrap().len() == 8_000));
}
