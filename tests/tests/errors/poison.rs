//! Corrupted items: each is skipped, reported by its key, and blocks no other item.

use aws_sdk_dynamodb::primitives::Blob;
use aws_sdk_dynamodb::types::AttributeValue;
use serde_json::json;

use shared::app::Deadline;
use tests::app::left_out;
use tests::errors::SentEvent;

use super::{DAY, HOUR, Item, LIST_EVENTS, MINUTE, Tracker, text};

fn nonsense() -> AttributeValue {
    AttributeValue::B(Blob::new([0xff; 9]))
}

/// Corrupts an attribute of the first item whose partition key starts with `prefix`.
async fn corrupt(tracker: &Tracker, prefix: &str, attribute: &str) -> Item {
    let item = tracker.items_of(prefix).await.into_iter().next().expect(prefix);
    corrupt_item(tracker, &item, attribute).await;
    item
}

async fn corrupt_item(tracker: &Tracker, item: &Item, attribute: &str) {
    let key = [("pk", text(item, "pk")), ("sk", text(item, "sk"))];
    tracker.test.tamper(super::TABLE, key, attribute, nonsense()).await;
}

fn assert_reported(item: &Item, attribute: &'static str) {
    let reported = left_out(text(item, "pk"));
    assert!(reported.contains(&("errors", attribute)), "{item:?}: {reported:?}");
}

/// Delivers four events: of two errors, on each of two days.
async fn four_events(tracker: &Tracker) {
    for (number, days) in [(0, 3), (1, 3), (2, 4), (3, 4)] {
        let error_type = ["TypeError", "KeyError"][usize::try_from(number % 2).unwrap()];
        tracker.deliver(&SentEvent::new(number, tracker.ago(DAY * days), error_type, "x")).await;
    }
}

#[tokio::test]
async fn corrupted_rows_do_not_block_packing() {
    let tracker = Tracker::start().await;
    four_events(&tracker).await;
    let row = corrupt(&tracker, "log#", "fingerprint").await;
    assert_eq!(tracker.total(&json!({})).await, 3);
    tracker.test.pass(2 * DAY);
    tracker.run_schedule().await;
    assert_eq!(tracker.total(&json!({})).await, 3);
    assert!(!tracker.items_of("manifest#").await.is_empty());
    assert_reported(&row, "fingerprint");
}

#[tokio::test]
async fn rows_with_corrupted_attributes_count_until_packed() {
    let tracker = Tracker::start().await;
    four_events(&tracker).await;
    let row = corrupt(&tracker, "log#", "attributes").await;
    assert_eq!(tracker.total(&json!({})).await, 4);
    let has_level = json!([{"categoryId": "level", "operator": "is_set", "value": ""}]);
    assert_eq!(tracker.total(&json!({"filters": has_level})).await, 3);
    assert_reported(&row, "attributes");
    tracker.test.pass(2 * DAY);
    tracker.run_schedule().await;
    assert_eq!(tracker.total(&json!({})).await, 3);
    assert!(!tracker.items_of("manifest#").await.is_empty());
}

#[tokio::test]
async fn corrupted_manifests_and_runs_hide_only_their_events() {
    for (prefix, reported) in [("manifest#", "r_"), ("bundle#", "bytes")] {
        let tracker = Tracker::start().await;
        four_events(&tracker).await;
        tracker.pack().await;
        let item = tracker.items_of(prefix).await.into_iter().next().unwrap();
        let is_run = |name: &&String| name.starts_with("r_") || *name == "base";
        corrupt_item(&tracker, &item, item.keys().find(is_run).unwrap()).await;
        // The search forces the query to read columns.
        let search = json!({"searchQuery": "x"});
        assert_eq!(tracker.total(&search).await, 2, "{prefix}");
        let counts = tracker.errors().await;
        assert_eq!(counts.iter().map(|error| error["count"].as_u64().unwrap()).sum::<u64>(), 2);
        assert_reported(&item, reported);

        // Packing and compaction continue with all other items.
        tracker.test.pass(2 * MINUTE);
        for number in 10..14 {
            let at = tracker.ago(DAY * 4);
            tracker.deliver(&SentEvent::new(number, at, "TypeError", "x")).await;
            tracker.test.pass(DAY + 2 * MINUTE);
            tracker.run_schedule().await;
        }
        assert_eq!(tracker.total(&search).await, 6, "{prefix}");
    }
}

#[tokio::test]
async fn corrupted_runs_do_not_block_deletions() {
    let tracker = Tracker::start().await;
    four_events(&tracker).await;
    tracker.pack().await;
    for bundle in tracker.items_of("bundle#").await {
        corrupt_item(&tracker, &bundle, "release").await;
    }
    let deleted = tracker.errors().await.swap_remove(0);
    let call = tracker.call_for(&delete_error::OPERATION, &deleted);
    assert_eq!(call.send(&tracker.test.app).await.status, 204);
    for _ in 0..4 {
        tracker.test.pass(2 * HOUR);
        tracker.run_schedule().await;
    }
    let head = tracker.items_of("log-head#").await.swap_remove(0);
    assert!(head.keys().all(|name| !name.starts_with("t_")), "{head:?}");
    assert_eq!(tracker.items_of("error-events#").await.len(), 2);
}

#[tokio::test]
async fn corrupted_queue_entries_are_rewritten() {
    for attribute in ["wanted", "due", "waitingSince", "waitingRows"] {
        let tracker = Tracker::start().await;
        let other = tracker.other_project("other").await;
        tracker.deliver(&SentEvent::new(1, tracker.now(), "TypeError", "x")).await;
        let entry = corrupt(&tracker, "packing-queue#", attribute).await;
        let event = SentEvent::new(2, tracker.now(), "TypeError", "x");
        assert_eq!(tracker.deliver_to(&other, &event).await.status, 200);
        tracker.test.pass(2 * DAY);
        tracker.run_schedule().await;
        let packed = tracker.items_of("manifest#").await;
        assert_eq!(packed.len(), 1);
        assert!(text(&packed[0], "pk").ends_with(&other.id.to_string()));
        assert_reported(&entry, attribute);

        // The next delivery, or the deletion of an error, rewrites the entry.
        if attribute == "due" {
            let error = tracker.the_error().await;
            let call = tracker.call_for(&delete_error::OPERATION, &error);
            assert_eq!(call.send(&tracker.test.app).await.status, 204);
        } else {
            tracker.deliver(&SentEvent::new(3, tracker.now(), "TypeError", "x")).await;
        }
        assert!(tracker.queued().await.is_some(), "{attribute}");
        tracker.test.pass(2 * DAY);
        tracker.run_schedule().await;
        let head = tracker.items_of(&format!("log-head#{}", tracker.project.id)).await.remove(0);
        assert_eq!(head["steps"], AttributeValue::N("1".to_owned()), "{attribute}");
    }
}

#[tokio::test]
async fn corrupted_errors_do_not_block_packing() {
    for (prefix, attribute) in [("errors#", "status"), ("fingerprints#", "errorId")] {
        let tracker = Tracker::start().await;
        four_events(&tracker).await;
        let item = corrupt(&tracker, prefix, attribute).await;
        tracker.test.pass(2 * DAY);
        tracker.run_schedule().await;
        assert_eq!(tracker.total(&json!({})).await, 4);
        assert_eq!(tracker.items_of("manifest#").await.len(), 2);
        let (attribute, found) = if prefix == "errors#" { ("status", 2) } else { ("errorId", 4) };
        assert_eq!(tracker.total(&json!({"searchQuery": "x"})).await, found);
        assert_reported(&item, attribute);
    }
}

#[tokio::test]
async fn lists_skip_corrupted_events() {
    for (prefix, attribute) in [("event#", "payload"), ("error-events#", "sk")] {
        let tracker = Tracker::start().await;
        for number in 0..3 {
            tracker.deliver(&SentEvent::new(number, tracker.now(), "TypeError", "x")).await;
        }
        if prefix == "event#" {
            let mut payloads = tracker.items_of(prefix).await.into_iter();
            let payload = payloads.find(|item| text(item, "sk") == "payload").unwrap();
            corrupt_item(&tracker, &payload, attribute).await;
            let events = tracker.call_for(LIST_EVENTS, &tracker.the_error().await);
            assert_eq!(tracker.pages(&events, 10).await.concat().len(), 2);
            assert_reported(&payload, "payload");
            continue;
        }
        // Keys cannot be changed, so the test adds an item with a corrupted key.
        let mut key = tracker.items_of(prefix).await.into_iter().next().unwrap();
        key.insert("sk".to_owned(), AttributeValue::S("nonsense".to_owned()));
        tracker.put(&key).await;
        let events = tracker.call_for(LIST_EVENTS, &tracker.the_error().await);
        assert_eq!(tracker.pages(&events, 10).await.concat().len(), 3);
        assert_reported(&key, "sk");
    }
}

#[tokio::test]
async fn corrupted_columns_hide_only_their_run() {
    let tracker = Tracker::start().await;
    for (days, from) in [(3, 0), (4, 100)] {
        for number in from..from + 100 {
            // Too large for one item together with the other columns.
            let digits = (0..12_u64).map(|part| {
                format!("{:016x}", (number * 12 + part + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15))
            });
            let event = SentEvent::new(number, tracker.ago(DAY * days), "TypeError", "x");
            let release = digits.collect::<String>();
            let event = event.with("transaction", &release.chars().rev().collect::<String>());
            tracker.deliver(&event.with("release", &release)).await;
        }
    }
    tracker.pack().await;
    let columns = tracker.items_of("columns#").await.into_iter();
    let column = columns.into_iter().find(|it| text(it, "pk").contains("#release#")).unwrap();
    corrupt_item(&tracker, &column, "bytes").await;
    let is_set = json!({"filters": [{"categoryId": "release", "operator": "is_set", "value": ""}]});
    assert_eq!(tracker.total(&is_set).await, 100);
    assert_eq!(tracker.total(&json!({})).await, 200);
    // The report has the key of the run's first column.
    assert!(left_out(text(&column, "sk")).contains(&("errors", "bytes")));
    tracker.test.pass(5 * DAY);
    tracker.run_schedule().await;
    assert_eq!(tracker.total(&is_set).await, 100);
}

#[tokio::test]
async fn corrupted_log_heads_block_only_their_project() {
    for attribute in ["shards", "watermark", "step", "t_1"] {
        let tracker = Tracker::start().await;
        let other = tracker.other_project("other").await;
        four_events(&tracker).await;
        tracker.pack().await;
        let head = corrupt(&tracker, "log-head#", attribute).await;
        tracker.test.pass(2 * MINUTE);
        let event = SentEvent::new(10, tracker.ago(DAY), "TypeError", "x");
        tracker.deliver(&event).await;
        assert_eq!(tracker.deliver_to(&other, &event).await.status, 200);
        tracker.test.pass(2 * DAY);
        let deadline = Deadline::after(MINUTE);
        let limits = pack_error_log::RunLimits::default();
        let run = pack_error_log::pack_due(&tracker.test.app, &limits, deadline).await.unwrap();
        let packed = tracker.items_of("manifest#").await;
        assert!(packed.iter().any(|it| text(it, "pk").ends_with(&other.id.to_string())));
        // Packing and queries fail for this project only.
        assert!(!run.failures.is_empty(), "{attribute}: {run:?}");
        let reply = tracker.query(&tracker.since(30 * DAY)).await;
        assert_eq!(reply.status, 500, "{attribute}");
        if attribute == "shards" {
            assert_reported(&head, "shards");
        }
    }
}

#[tokio::test]
async fn events_with_corrupted_claims_count_once() {
    let tracker = Tracker::start().await;
    let event = SentEvent::new(1, tracker.now(), "TypeError", "x");
    tracker.deliver(&event).await;
    let mut claims = tracker.items_of("event#").await.into_iter();
    let claim = claims.find(|item| text(item, "sk") == "claim").unwrap();
    corrupt_item(&tracker, &claim, "fingerprint").await;
    tracker.deliver(&event).await;
    assert_reported(&claim, "fingerprint");
    assert_eq!(tracker.total(&json!({})).await, 1);
    assert_eq!(tracker.the_error().await["count"], 1);
}

#[tokio::test]
async fn corrupted_error_counts_are_recounted() {
    // New fingerprints still get errors, and the recount finds all of them.
    for (attribute, is_delivered) in
        [("errors", true), ("errors", false), ("countedAt", false), ("created498676", false)]
    {
        let tracker = Tracker::start().await;
        four_events(&tracker).await;
        let count = corrupt(&tracker, "error-count#", attribute).await;
        let mut expected = 2;
        if is_delivered {
            tracker.test.pass(2 * MINUTE);
            tracker.deliver(&SentEvent::new(9, tracker.now(), "ValueError", "y")).await;
            expected = 3;
            assert!(tracker.errors().await.iter().any(|error| error["type"] == "ValueError"));
        }
        tracker.test.pass(2 * DAY);
        tracker.run_schedule().await;
        let counted = tracker.items_of("error-count#").await.swap_remove(0);
        assert_eq!(counted["errors"].as_n().unwrap(), &expected.to_string(), "{attribute}");
        assert!(counted["countedAt"].is_n());
        assert_reported(
            &count,
            if attribute.starts_with("created") { "created" } else { attribute },
        );
    }
}
