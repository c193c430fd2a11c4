//! Creation, retrieval and listing of collections.

use std::time::Duration;

use futures_util::future::join_all;
use serde_json::json;
use tests::app::TestApp;

use super::{CREATE, LIST, column, create, stored};

#[tokio::test]
async fn retried_creations_return_the_same_collection() {
    let test = TestApp::start().await;
    let request =
        |name: &str| test.call(CREATE).header("idempotency-key", "k").json(&json!({"name": name}));
    let duplicates = join_all((0..10).map(|_| request("Releases").send(&test.app))).await;
    assert!(duplicates.iter().all(|reply| reply.status == 201 && reply.body == duplicates[0].body));
    let replayed = duplicates.iter().filter(|r| r.headers.contains_key("idempotency-replayed"));
    assert_eq!(replayed.count(), 9);
    assert_eq!(stored(&test).await.len(), 1);
    let other = request("Incidents").send(&test.app).await;
    assert_eq!(other.problem(), (409, "idempotency_conflict"));
    test.pass(Duration::from_hours(24));
    assert_ne!(request("Releases").send(&test.app).await.body, duplicates[0].body);
    assert_eq!(stored(&test).await.len(), 2);
}

/// Creates collections a millisecond apart, and returns their IDs, newest first.
async fn create_many(test: &TestApp, count: usize) -> Vec<String> {
    let mut ids = Vec::new();
    for _ in 0..count {
        ids.push(create(test).await);
        test.pass(Duration::from_millis(1));
    }
    ids.reverse();
    ids
}

#[tokio::test]
async fn new_collections_do_not_shift_pages() {
    let test = TestApp::start().await;
    let ids = create_many(&test, 4).await;
    let first = test.call(LIST).query("limit", 2).send(&test.app).await;
    create_many(&test, 3).await;
    let cursor = first.body["nextCursor"].as_str().unwrap();
    let rest = test.call(LIST).query("cursor", cursor).send(&test.app).await;
    assert_eq!(column(rest.body["items"].as_array().unwrap(), "id"), ids[2..]);
}
