//! Purges of the events of deleted collections.

use std::collections::BTreeSet;
use std::time::Duration;

use aws_sdk_dynamodb::types::AttributeValue;
use serde_json::json;

use markers::store::MarkerStore;
use markers::{CollectionId, PurgeJob};
use purge_event_markers::{JOB, oldest_job_age};
use shared::app::Deadline;
use shared::dynamodb::StoreError;
use shared::timestamp::Timestamp;
use tests::app::{Item, START, TestApp, app_over, left_out, texts};
use tests::call::Call;
use tests::markers::filled;
use tests::scripted::{ScriptedDynamoDb, ScriptedReply};

use super::{CREATE, DELETE, TABLE, add, call_for, collection_id, create, some_events, stored};

/// Time for which late events are still purged.
const LATE: Duration = Duration::from_mins(1);

async fn purge(test: &TestApp) {
    (JOB.run)(&test.app, Deadline::after(Duration::from_mins(1))).await.unwrap();
}

/// Creates and deletes a collection with this number of events.
async fn deleted(test: &TestApp, events: usize) -> String {
    let id = filled(&test.app.store, test.project_id, events).await.to_string();
    assert_eq!(call_for(test, DELETE, &id).send(&test.app).await.status, 204);
    id
}

/// Counts the stored events of a collection.
async fn left(test: &TestApp, id: &str) -> usize {
    let partition = format!("events#{id}");
    stored(test).await.iter().filter(|(pk, _)| *pk == partition).count()
}

/// Returns the job of a collection.
async fn job(test: &TestApp, id: &str) -> Option<Item> {
    let is_it = |item: &Item| {
        item["pk"].as_s().unwrap() == "purge-jobs" && item["sk"].as_s().unwrap() == id
    };
    test.items(TABLE).await.into_iter().find(is_it)
}

fn now(test: &TestApp) -> Timestamp {
    test.app.clock.now()
}

#[tokio::test]
async fn purges_remove_only_events_of_deleted_collections() {
    let test = TestApp::start().await;
    let other = test.other_project().await;
    let neighbor = create(&test).await;
    add(&test, &neighbor, &some_events(30)).await;
    filled(&test.app.store, other, 30).await;
    let elsewhere = Call::of(CREATE).parameter("idOrSlug", "other").key(&test.key);
    assert_eq!(elsewhere.json(&json!({"name": "n"})).send(&test.app).await.status, 201);
    let neighbors = stored(&test).await;

    // Several reads and many batches; one event; no events.
    let ids = [deleted(&test, 1_203).await, deleted(&test, 1).await, deleted(&test, 0).await];
    purge(&test).await;
    for id in &ids {
        assert_eq!(left(&test, id).await, 0);
        let job = job(&test, id).await.expect("the job waits for late events");
        assert!(!job.contains_key("leaseOwner"));
    }
    test.pass(Duration::from_millis(59_999));
    purge(&test).await;
    assert_eq!(stored(&test).await.len(), neighbors.len() + 3);
    test.pass(Duration::from_millis(1));
    purge(&test).await;
    assert_eq!(stored(&test).await, neighbors);
    purge(&test).await;
    assert_eq!(stored(&test).await, neighbors);
}

#[tokio::test]
async fn late_events_are_purged() {
    let test = TestApp::start().await;
    let id = deleted(&test, 10).await;
    purge(&test).await;
    assert_eq!(left(&test, &id).await, 0);
    // Simulates a request that started before the deletion. No operation writes this event.
    let late = [("pk", &*format!("events#{id}")), ("sk", "000063962453760#late")];
    test.put(TABLE, [texts(late)]).await;
    test.pass(LATE);
    purge(&test).await;
    assert_eq!(stored(&test).await, []);
}

#[tokio::test]
async fn concurrent_purgers_do_no_harm() {
    let test = TestApp::start().await;
    let id = deleted(&test, 2_500).await;
    let neighbor = create(&test).await;
    add(&test, &neighbor, &some_events(10)).await;
    tokio::join!(purge(&test), purge(&test));
    assert_eq!(left(&test, &id).await, 0);

    // Even if the first purger lost its lease unnoticed.
    let id = deleted(&test, 2_500).await;
    let takeover = async {
        tokio::time::sleep(Duration::from_millis(20)).await;
        let long_ago = AttributeValue::S("1970-01-01T00:00:00.000Z".to_owned());
        let key = [("pk", "purge-jobs"), ("sk", id.as_str())];
        test.tamper(TABLE, key, "leaseUntil", long_ago).await;
        purge(&test).await;
    };
    tokio::join!(purge(&test), takeover);
    assert_eq!(left(&test, &id).await, 0);
    test.pass(LATE);
    tokio::join!(purge(&test), purge(&test));
    let partition = format!("events#{neighbor}");
    let stored = stored(&test).await;
    assert_eq!(stored.iter().filter(|(pk, _)| *pk == partition).count(), 10);
    assert_eq!(stored.len(), 11, "the neighbor and its events");
}

#[tokio::test]
async fn leased_jobs_are_untouched_for_thirty_seconds() {
    let test = TestApp::start().await;
    let id = deleted(&test, 10).await;
    let lease = async |owner: &str| {
        MarkerStore::new(&test.app.store)
            .lease_purge_job(collection_id(&id), owner, now(&test))
            .await
            .unwrap()
    };
    assert!(lease("a purger that died").await);
    assert!(lease("a purger that died").await, "the owner can renew its lease");
    assert!(!lease("another").await);
    purge(&test).await;
    assert_eq!(left(&test, &id).await, 10);
    test.pass(Duration::from_secs(30));
    purge(&test).await;
    assert_eq!(left(&test, &id).await, 10);
    test.pass(Duration::from_millis(1));
    purge(&test).await;
    assert_eq!(left(&test, &id).await, 0);
}

#[tokio::test]
async fn expired_owners_cannot_release_or_finish_jobs() {
    let test = TestApp::start().await;
    let id = collection_id(&deleted(&test, 0).await);
    let store = &test.app.store;
    assert!(MarkerStore::new(store).lease_purge_job(id, "first", now(&test)).await.unwrap());
    test.pass(Duration::from_secs(31));
    assert!(MarkerStore::new(store).lease_purge_job(id, "second", now(&test)).await.unwrap());
    MarkerStore::new(store).finish_purge_job(id, "first").await.unwrap();
    MarkerStore::new(store).release_purge_job(id, "first").await.unwrap();
    assert!(!MarkerStore::new(store).lease_purge_job(id, "first", now(&test)).await.unwrap());
    MarkerStore::new(store).finish_purge_job(id, "second").await.unwrap();
    assert_eq!(stored(&test).await, []);
    assert!(
        !MarkerStore::new(store).lease_purge_job(id, "second", now(&test)).await.unwrap(),
        "a lease creates no job"
    );
}

#[tokio::test]
async fn purges_stop_in_time_and_resume_later() {
    let test = TestApp::start().await;
    let id = deleted(&test, 2_500).await;
    (JOB.run)(&test.app, Deadline::after(Duration::ZERO)).await.unwrap();
    assert_eq!(left(&test, &id).await, 2_500);
    (JOB.run)(&test.app, Deadline::after(Duration::from_millis(20))).await.unwrap();
    assert!(left(&test, &id).await > 0);
    let stopped = job(&test, &id).await.unwrap();
    assert!(!stopped.contains_key("leaseOwner"), "the lease is released");
    test.pass(LATE);
    purge(&test).await;
    assert_eq!(stored(&test).await, []);
}

#[tokio::test]
async fn unreadable_jobs_do_not_block_others() {
    let test = TestApp::start().await;
    let [bad, good] = [deleted(&test, 3).await, deleted(&test, 3).await];
    let key = [("pk", "purge-jobs"), ("sk", bad.as_str())];
    test.tamper(TABLE, key, "deletedAt", AttributeValue::S("yesterday".to_owned())).await;
    test.pass(LATE);
    purge(&test).await;
    assert_eq!((left(&test, &good).await, job(&test, &good).await), (0, None));
    // The unreadable job stays until an operator fixes it.
    assert_eq!(left(&test, &bad).await, 3);
    assert!(job(&test, &bad).await.is_some());
    assert_eq!(left_out(&bad), BTreeSet::from([(TABLE, "deletedAt")]));
}

#[tokio::test]
async fn metric_reports_the_age_of_the_oldest_job() {
    let job = |millis: i64| PurgeJob {
        collection: CollectionId::parse("01902f3c-0000-7000-8000-000000000000").unwrap(),
        deleted_at: Timestamp::from_millis(millis),
    };
    let now = Timestamp::from_millis(1_000_000);
    assert_eq!(oldest_job_age(&[], now), 0);
    assert_eq!(oldest_job_age(&[job(400_000)], now), 600);
    assert_eq!(oldest_job_age(&[job(400_000), job(700_000)], now), 600);
    assert_eq!(oldest_job_age(&[job(700_000), job(400_000)], now), 600);
    assert_eq!(oldest_job_age(&[job(2_000_000)], now), 0, "clocks differ");

    let test = TestApp::start().await;
    deleted(&test, 0).await;
    test.pass(Duration::from_secs(5));
    deleted(&test, 0).await;
    let jobs = MarkerStore::new(&test.app.store).list_purge_jobs().await.unwrap();
    assert_eq!(jobs.len(), 2);
    assert_eq!(jobs[0].deleted_at.as_millis(), i64::try_from(START).unwrap());
}

/// Returns replies for one job with two events.
fn two_events(target: &str, before: usize) -> ScriptedReply {
    let id = "01902f3c-0000-7000-8000-000000000000";
    match (target, before) {
        ("Query", 0) => ScriptedReply::Response(json!({"Items": [{
            "pk": {"S": "purge-jobs"},
            "sk": {"S": id},
            "deletedAt": {"S": "2026-11-21T04:16:00.000Z"},
        }], "Count": 1, "ScannedCount": 1})),
        ("Query", 1) => ScriptedReply::Response(json!({"Items": [
            {"sk": {"S": "1"}},
            {"sk": {"S": "2"}},
        ], "Count": 2, "ScannedCount": 2})),
        ("Query", _) => {
            ScriptedReply::Response(json!({"Items": [], "Count": 0, "ScannedCount": 0}))
        }
        _ => ScriptedReply::Response(json!({})),
    }
}

/// Returns a reply that does not process the second event.
fn unprocessed() -> ScriptedReply {
    let key = json!({
        "pk": {"S": "events#01902f3c-0000-7000-8000-000000000000"},
        "sk": {"S": "2"},
    });
    ScriptedReply::Response(json!({"UnprocessedItems": {
        "waymark-event-markers": [{"DeleteRequest": {"Key": key}}],
    }}))
}

async fn run_under(
    script: fn(&str, usize) -> ScriptedReply,
) -> (Result<(), StoreError>, ScriptedDynamoDb, Vec<usize>) {
    let dynamodb = ScriptedDynamoDb::start(script).await;
    let (app, _) = app_over(&dynamodb.endpoint);
    let outcome = (JOB.run)(&app, Deadline::after(Duration::from_mins(1))).await;
    let batches = dynamodb.requests("BatchWriteItem");
    let sizes = batches
        .iter()
        .map(|batch| batch["RequestItems"]["waymark-event-markers"].as_array().unwrap().len());
    let sizes = sizes.collect();
    (outcome, dynamodb, sizes)
}

#[tokio::test]
async fn unprocessed_deletions_are_retried() {
    let (outcome, dynamodb, sizes) = run_under(|target, before| match (target, before) {
        ("BatchWriteItem", 0 | 1) => unprocessed(),
        ("BatchWriteItem", 2) => ScriptedReply::Error(
            "ProvisionedThroughputExceededException",
            json!({"message": "slow down"}),
        ),
        _ => two_events(target, before),
    })
    .await;
    outcome.unwrap();
    assert_eq!(sizes, [2, 1, 1, 1]);
    assert_eq!(dynamodb.requests("Query").len(), 3, "the last query finds no events");
    let updates = dynamodb.single_writes("Update");
    assert_eq!(updates.len(), 3, "a lease, its renewal and its release");
}

#[tokio::test]
async fn throttled_purges_fail_and_keep_the_job() {
    let (outcome, dynamodb, sizes) = run_under(|target, before| match target {
        "BatchWriteItem" => unprocessed(),
        _ => two_events(target, before),
    })
    .await;
    assert!(matches!(outcome, Err(StoreError::Unavailable(_))), "{outcome:?}");
    assert_eq!(sizes, [&[2][..], &[1; 9]].concat());
    assert!(dynamodb.single_writes("Delete").is_empty(), "the job is kept");
}

#[tokio::test]
async fn failing_jobs_do_not_block_the_next() {
    let (outcome, dynamodb, _) = run_under(|target, before| match (target, before) {
        ("Query", 0) => {
            let job = |id: &str| {
                json!({
                    "pk": {"S": "purge-jobs"},
                    "sk": {"S": id},
                    "deletedAt": {"S": "2026-11-21T04:00:00.000Z"},
                })
            };
            let jobs = [
                job("01902f3c-0000-7000-8000-000000000000"),
                job("01902f3c-0000-7000-8000-000000000001"),
            ];
            ScriptedReply::Response(json!({"Items": jobs, "Count": 2, "ScannedCount": 2}))
        }
        ("Query", 1) => ScriptedReply::Error("ValidationException", json!({"message": "no"})),
        ("Query", _) => {
            ScriptedReply::Response(json!({"Items": [], "Count": 0, "ScannedCount": 0}))
        }
        _ => ScriptedReply::Response(json!({})),
    })
    .await;
    assert!(matches!(outcome, Err(StoreError::Rejected(_))), "{outcome:?}");
    let finished = dynamodb.single_writes("Delete");
    assert_eq!(finished.len(), 1);
    assert_eq!(finished[0]["Key"]["sk"]["S"], "01902f3c-0000-7000-8000-000000000001");
}
