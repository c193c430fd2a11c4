//! Repeated kills of purge-event-markers as a process.

#![allow(clippy::print_stdout)]

use std::fs;
use std::path::Path;
use std::time::Duration;

use aws_sdk_dynamodb::types::{AttributeValue, Select};
use rand::rngs::ChaCha8Rng;
use rand::{RngExt, SeedableRng};
use serde_json::Value;

use local::environment;
use markers::CollectionId;
use markers::store::{CollectionDeletion, MarkerStore};
use shared::app::Clock;
use shared::timestamp::Timestamp;
use tests::app::TestApp;
use tests::markers::filled;
use tests::process::Process;
use tests::seed;

const FUNCTION: &str = "purge-event-markers";
const TABLE: &str = "event-markers";
const EVENTS: usize = 20_000;
const KILLS: usize = 24;
/// Maximum life of the first process, its start included.
const FIRST_LIFE: Duration = Duration::from_millis(300);
/// Age of the deletion at the start of the test, so that purges need not wait for late events.
const DELETED_AGO_MILLIS: i64 = 120_000;

/// Starts a process of the function, which purges as long as Lambda would allow.
async fn start(endpoint: &str, log: &Path) -> Process {
    Process::start(FUNCTION, endpoint, &[("WAYMARK_STACK", "the stack".to_owned())], log).await
}

async fn purge(purger: &Process) {
    purger.invoke("{}".to_owned()).await;
}

async fn is_leased(test: &TestApp, id: CollectionId) -> bool {
    let key = |value: String| AttributeValue::S(value);
    let get = test.client.get_item().table_name(format!("{}{TABLE}", environment::table_prefix()));
    let get = get.key("pk", key("purge-jobs".to_owned())).key("sk", key(id.to_string()));
    let job = get.consistent_read(true).send().await.unwrap().item.expect("the job exists");
    job.contains_key("leaseOwner")
}

/// Counts the stored events of the collection.
async fn count_left(test: &TestApp, id: CollectionId) -> usize {
    let query = test.client.query().table_name(format!("{}{TABLE}", environment::table_prefix()));
    let query = query.key_condition_expression("pk = :pk").select(Select::Count);
    let partition = AttributeValue::S(format!("events#{id}"));
    let query = query.expression_attribute_values(":pk", partition).consistent_read(true);
    let mut pages = query.into_paginator().send();
    let mut count = 0;
    while let Some(page) = pages.next().await {
        count += usize::try_from(page.unwrap().count).unwrap();
    }
    count
}

/// Expires the job's lease. Its owner is dead, so this only skips a wait of 30 seconds.
async fn end_lease(test: &TestApp, id: CollectionId) {
    let long_ago = AttributeValue::S("1970-01-01T00:00:00.000Z".to_owned());
    let id = id.to_string();
    let key = [("pk", "purge-jobs"), ("sk", id.as_str())];
    test.tamper(TABLE, key, "leaseUntil", long_ago).await;
}

#[tokio::test]
async fn purgers_killed_at_random_points_leave_no_events() {
    let seed = seed();
    println!("SEED={seed}");
    let mut random = ChaCha8Rng::seed_from_u64(seed);
    let folder = tempfile::tempdir().unwrap();
    let log = folder.path().join("log");
    let test = TestApp::start().await;
    let other = test.other_project().await;
    for project_id in [test.project_id, other] {
        filled(&test.app.store, project_id, 150).await;
    }
    let mut neighbors = test.items(TABLE).await;
    let id = filled(&test.app.store, test.project_id, EVENTS).await;
    let now = Clock::System.now().as_millis();
    let deleted_at = Timestamp::from_millis(now - DELETED_AGO_MILLIS);
    let deletion = MarkerStore::new(&test.app.store)
        .delete_collection(test.project_id, id, Vec::new(), deleted_at)
        .await;
    assert_eq!(deletion.unwrap(), CollectionDeletion::Deleted);

    // A killed purger's lease keeps others from its events for a while.
    let endpoint = test.engine.endpoint();
    let purger = start(&endpoint, &log).await;
    let leased = async {
        while !is_leased(&test, id).await {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    };
    tokio::select! {
        () = purge(&purger) => panic!("the process ended before it could be killed"),
        () = leased => purger.kill().await,
    }
    let before = count_left(&test, id).await;
    let purger = start(&endpoint, &log).await;
    purge(&purger).await;
    purger.kill().await;
    assert_eq!(count_left(&test, id).await, before);

    let mut longest_life = FIRST_LIFE;
    let mut left = before;
    let mut fastest_per_event = Duration::MAX;
    for kill in 1..=KILLS {
        end_lease(&test, id).await;
        let purger = start(&endpoint, &log).await;
        // At the fastest rate so far, half of the remaining events would still exist.
        let half = u32::try_from(left / 2).unwrap();
        let life = random.random_range(
            Duration::ZERO..=longest_life.min(fastest_per_event.saturating_mul(half)),
        );
        tokio::select! {
            () = purge(&purger) => panic!("the process ended before it could be killed"),
            () = tokio::time::sleep(life) => purger.kill().await,
        }
        let removed = left - count_left(&test, id).await;
        left -= removed;
        println!("killed after {life:?}; {left} events are left");
        assert!(left > 0, "kill {kill} came too late");
        if let Some(per_event) = u32::try_from(removed).ok().and_then(|it| life.checked_div(it)) {
            fastest_per_event = fastest_per_event.min(per_event);
        }
        // Adapts to the machine, so that every kill happens during the work.
        let on_schedule = EVENTS - EVENTS * kill / (KILLS + 1);
        longest_life = if left < on_schedule { longest_life / 2 } else { longest_life * 5 / 4 };
    }

    end_lease(&test, id).await;
    let purger = start(&endpoint, &log).await;
    purge(&purger).await;
    purger.kill().await;
    let mut items = test.items(TABLE).await;
    for items in [&mut items, &mut neighbors] {
        items.sort_by_key(|item| {
            (item["pk"].as_s().unwrap().clone(), item["sk"].as_s().unwrap().clone())
        });
    }
    assert!(items == neighbors, "{} items instead of {}", items.len(), neighbors.len());
    assert_metric(&fs::read_to_string(&log).unwrap());
}

/// Checks that every run logged the age of the oldest job in the format of a CloudWatch metric.
fn assert_metric(log: &str) {
    let lines = log.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
    let metrics: Vec<Value> = lines.filter(|line| line["OldestPurgeJobAge"].is_number()).collect();
    assert!(!metrics.is_empty(), "{log}");
    for metric in metrics {
        assert_eq!(metric["stack"], "the stack");
        assert_eq!(metric["operation"], FUNCTION);
        let age = metric["OldestPurgeJobAge"].as_f64().unwrap();
        assert!((120.0..300.0).contains(&age), "{metric}");
        let described = &metric["_aws"]["CloudWatchMetrics"][0];
        assert_eq!(described["Metrics"][0]["Name"], "OldestPurgeJobAge");
        assert_eq!(described["Metrics"][0]["Unit"], "Seconds");
    }
}
