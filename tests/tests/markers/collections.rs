//! Creation, retrieval and listing of collections.

use std::time::Duration;

use futures_util::future::join_all;
use serde_json::{Value, json};
use tests::app::TestApp;
use tests::call::{Call, Gateway, Reply};

use super::{
    CREATE, LIST, LIST_EVENTS, add, call, call_for, column, create, other_project, some_events,
    stored,
};

#[tokio::test]
async fn retried_creations_return_the_same_collection() {
    let test = TestApp::start().await;
    let request = |name: &str| {
        call(&test, CREATE).header("idempotency-key", "k").json(&json!({"name": name}))
    };
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
async fn pages_list_each_collection_once_newest_first() {
    let test = TestApp::start().await;
    assert_eq!(test.pages(&call(&test, LIST), 1).await, [Vec::<Value>::new()]);
    let ids = create_many(&test, 5).await;
    let list = call(&test, LIST);
    for (limit, lengths) in
        [(1, vec![1, 1, 1, 1, 1]), (2, vec![2, 2, 1]), (5, vec![5]), (100, vec![5])]
    {
        let pages = test.pages(&list, limit).await;
        assert_eq!(pages.iter().map(Vec::len).collect::<Vec<_>>(), lengths);
        assert_eq!(column(&pages.concat(), "id"), ids);
    }
    let rest = list.gateway(Gateway::RestApi);
    assert_eq!(column(&test.pages(&rest, 2).await.concat(), "id"), ids);
}

#[tokio::test]
async fn new_collections_do_not_shift_pages() {
    let test = TestApp::start().await;
    let ids = create_many(&test, 4).await;
    let first = call(&test, LIST).query("limit", 2).send(&test.app).await;
    create_many(&test, 3).await;
    let cursor = first.body["nextCursor"].as_str().unwrap();
    let rest = call(&test, LIST).query("cursor", cursor).send(&test.app).await;
    assert_eq!(column(rest.body["items"].as_array().unwrap(), "id"), ids[2..]);
}

#[tokio::test]
async fn projects_list_only_their_own_collections() {
    let test = TestApp::start().await;
    other_project(&test).await;
    let id = create(&test).await;
    let other = Call::of(CREATE).parameter("idOrSlug", "other").key(&test.key);
    assert_eq!(other.json(&json!({"name": "n"})).send(&test.app).await.status, 201);
    assert_eq!(column(&test.pages(&call(&test, LIST), 10).await.concat(), "id"), [id]);
}

fn violations_of(reply: &Reply) -> Vec<(&str, &str)> {
    assert_eq!(reply.problem(), (400, "validation_failed"));
    reply.violations()
}

/// Returns a cursor of a list with more than one item.
async fn cursor_of(test: &TestApp, list: Call) -> String {
    let reply = list.query("limit", 1).send(&test.app).await;
    reply.body["nextCursor"].as_str().expect("there is a second page").to_owned()
}

#[tokio::test]
async fn cursors_work_only_unchanged_and_for_their_list() {
    let test = TestApp::start().await;
    let (one, two) = (create(&test).await, create(&test).await);
    for id in [&one, &two] {
        add(&test, id, &some_events(2)).await;
    }
    let lists =
        [call(&test, LIST), call_for(&test, LIST_EVENTS, &one), call_for(&test, LIST_EVENTS, &two)];
    for (at, list) in lists.iter().enumerate() {
        let cursor = cursor_of(&test, list.clone()).await;
        for (other_at, other) in lists.iter().enumerate() {
            let reply = other.clone().query("cursor", &cursor).send(&test.app).await;
            if at == other_at {
                assert_eq!(reply.status, 200);
            } else {
                assert_eq!(violations_of(&reply), [("query:cursor", "invalid_value")]);
            }
        }
        let swapped = if cursor.ends_with('A') { 'E' } else { 'A' };
        let tampered = format!("{}{swapped}", &cursor[..cursor.len() - 1]);
        for cursor in [&tampered, &cursor[1..], "", "AAAA", &format!("{cursor}A")] {
            let reply = list.clone().query("cursor", cursor).send(&test.app).await;
            assert_eq!(violations_of(&reply), [("query:cursor", "invalid_value")], "{cursor}");
        }
    }
}
