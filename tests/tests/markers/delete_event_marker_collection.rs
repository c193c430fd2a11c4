//! Deletions of collections: visibility and duration.

use std::time::{Duration, Instant};

use futures_util::future::join_all;
use serde_json::json;

use markers::store::MarkerStore;
use shared::app::{Deadline, respond};
use tests::app::TestApp;
use tests::markers::{collection, filled};

use super::{ADD, DELETE, LIST, LIST_EVENTS, add, call_for, create, some_events, stored};

#[tokio::test]
async fn rejected_events_are_not_stored() {
    let test = TestApp::start().await;
    let id = create(&test).await;
    call_for(&test, DELETE, &id).send(&test.app).await;
    for count in [1, 98, 99, 100] {
        assert_eq!(add(&test, &id, &some_events(count)).await.status, 404);
    }
    assert_eq!(stored(&test).await, [("purge-jobs".to_owned(), id)]);
    assert!(test.items("idempotency").await.is_empty());
}

#[tokio::test]
async fn one_of_twenty_concurrent_deletions_succeeds() {
    let test = TestApp::start().await;
    let id = create(&test).await;
    let deletions = (0..20).map(|_| call_for(&test, DELETE, &id).send(&test.app));
    let replies = join_all(deletions).await;
    let deleted = replies.iter().filter(|reply| reply.status == 204).count();
    let gone = replies.iter().filter(|r| r.problem() == (404, "collection_not_found")).count();
    assert_eq!((deleted, gone), (1, 19));
}

#[tokio::test]
async fn events_added_during_deletion_are_rejected_or_purged() {
    let test = TestApp::start().await;
    let neighbor = create(&test).await;
    add(&test, &neighbor, &some_events(5)).await;
    let neighbors = stored(&test).await;
    let mut outcomes = [0, 0];
    for round in 0..5 {
        let id = create(&test).await;
        // Writers with one or two transactions; the first few precede the deletion.
        let writers = (0..12).map(|writer| {
            let count = if writer % 3 == 0 { 100 } else { 5 };
            let call = call_for(&test, ADD, &id).json(&some_events(count));
            let app = &test.app;
            async move {
                tokio::time::sleep(Duration::from_millis(writer * 10)).await;
                call.send(app).await
            }
        });
        let deletion = async {
            tokio::time::sleep(Duration::from_millis(20 * round)).await;
            call_for(&test, DELETE, &id).send(&test.app).await
        };
        let (replies, deleted) = tokio::join!(join_all(writers), deletion);
        assert_eq!(deleted.status, 204);
        for reply in replies {
            match reply.status {
                201 => outcomes[0] += 1,
                404 => outcomes[1] += 1,
                _ => panic!("{}", reply.body),
            }
        }
        assert_eq!(call_for(&test, LIST_EVENTS, &id).send(&test.app).await.status, 404);
    }
    assert!(outcomes.iter().all(|count| *count > 0), "{outcomes:?}");
    test.pass(Duration::from_mins(1));
    let deadline = Deadline::after(Duration::from_mins(1));
    (purge_event_markers::JOB.run)(&test.app, deadline).await.unwrap();
    assert_eq!(stored(&test).await, neighbors);
}

#[tokio::test]
async fn deletions_of_20000_events_take_constant_time() {
    const ROUNDS: usize = 31;
    let test = TestApp::start().await;
    let full = filled(&test.app.store, test.project_id, 20_000).await;
    let mut times = [Vec::new(), Vec::new()];
    for round in 0..2 * ROUNDS {
        let which = round % 2;
        let mut collection = collection(test.project_id);
        if which == 1 {
            // Reuses the ID and its events, which no purge removes here.
            (collection.id, collection.event_count) = (full, 20_000);
            if round > 1 {
                MarkerStore::new(&test.app.store)
                    .create_collection(&collection, None)
                    .await
                    .unwrap();
            }
        } else {
            MarkerStore::new(&test.app.store).create_collection(&collection, None).await.unwrap();
        }
        let event = call_for(&test, DELETE, &collection.id.to_string()).event().to_string();
        let request = lambda_http::request::from_str(&event).unwrap();
        let started = Instant::now();
        let response = respond(&test.app, DELETE, request).await;
        times[which].push(started.elapsed());
        assert_eq!(response.status(), 204);
    }
    let [empty, full] = times.map(|mut times| {
        times.sort();
        times[ROUNDS / 2]
    });
    println!("empty: {empty:?}, 20,000 events: {full:?}");
    assert!(full < empty.mul_f64(1.5), "{full:?} instead of {empty:?}");
    assert_eq!(test.call(LIST).send(&test.app).await.body["items"], json!([]));
}
