//! One damaged item of each kind: it is left out, reported by its key, and in nobody's way.

use aws_sdk_dynamodb::primitives::Blob;
use aws_sdk_dynamodb::types::AttributeValue;
use serde_json::json;
use tests::app::left_out;
use tests::error_tracking::SentEvent;

use super::{DAY, HOUR, Item, LIST_EVENTS, MINUTE, Tracker, text};

fn nonsense() -> AttributeValue {
    AttributeValue::B(Blob::new([0xff; 9]))
}

/// Damages an attribute of the first item whose partition key begins so.
async fn damage(tracker: &Tracker, prefix: &str, attribute: &str) -> Item {
    let item = tracker.items_of(prefix).await.into_iter().next().expect(prefix);
    damage_item(tracker, &item, attribute).await;
    item
}

async fn damage_item(tracker: &Tracker, item: &Item, attribute: &str) {
    let key = [("pk", text(item, "pk")), ("sk", text(item, "sk"))];
    tracker.test.tamper(super::TABLE, key, attribute, nonsense()).await;
}

fn assert_reported(item: &Item, attribute: &'static str) {
    let reported = left_out(text(item, "pk"));
    assert!(reported.contains(&("errors", attribute)), "{item:?}: {reported:?}");
}

/// Two events of each of two days, of two errors.
async fn four_events(tracker: &Tracker) {
    for (number, days) in [(0, 3), (1, 3), (2, 4), (3, 4)] {
        let error_type = ["TypeError", "KeyError"][usize::try_from(number % 2).unwrap()];
        tracker.deliver(&SentEvent::new(number, tracker.ago(DAY * days), error_type, "x")).await;
    }
}

#[tokio::test]
async fn a_damaged_row_is_not_counted_and_others_are_packed() {
    let tracker = Tracker::start().await;
    four_events(&tracker).await;
    let row = damage(&tracker, "log#", "fingerprint").await;
    assert_eq!(tracker.total(&json!({})).await, 3);
    tracker.test.pass(2 * DAY);
    tracker.run_schedule().await;
    assert_eq!(tracker.total(&json!({})).await, 3);
    assert!(!tracker.items_of("manifest#").await.is_empty());
    assert_reported(&row, "fingerprint");
}

#[tokio::test]
async fn a_damaged_manifest_or_run_hides_its_own_events_alone() {
    for (prefix, reported) in [("manifest#", "r_"), ("bundle#", "bytes")] {
        let tracker = Tracker::start().await;
        four_events(&tracker).await;
        tracker.pack().await;
        let item = tracker.items_of(prefix).await.into_iter().next().unwrap();
        let is_run = |name: &&String| name.starts_with("r_") || *name == "base";
        damage_item(&tracker, &item, item.keys().find(is_run).unwrap()).await;
        // An error's events decide what has to be read: columns are.
        let search = json!({"searchQuery": "x"});
        assert_eq!(tracker.total(&search).await, 2, "{prefix}");
        let counts = tracker.errors().await;
        assert_eq!(counts.iter().map(|error| error["count"].as_u64().unwrap()).sum::<u64>(), 2);
        assert_reported(&item, reported);

        // Packing and merging go on with all else.
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
async fn a_damaged_run_keeps_no_deletion_from_its_end() {
    let tracker = Tracker::start().await;
    four_events(&tracker).await;
    tracker.pack().await;
    for bundle in tracker.items_of("bundle#").await {
        damage_item(&tracker, &bundle, "release").await;
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
async fn a_damaged_entry_of_the_queue_keeps_no_other_project_from_being_packed() {
    let tracker = Tracker::start().await;
    let other = tracker.other_project("other").await;
    tracker.deliver(&SentEvent::new(1, tracker.now(), "TypeError", "x")).await;
    let entry = damage(&tracker, "packing-queue#", "wanted").await;
    let event = SentEvent::new(2, tracker.now(), "TypeError", "x");
    assert_eq!(tracker.deliver_to(&other, &event).await.status, 200);
    tracker.test.pass(2 * DAY);
    tracker.run_schedule().await;
    let packed = tracker.items_of("manifest#").await;
    assert_eq!(packed.len(), 1);
    assert!(text(&packed[0], "pk").ends_with(&other.id.to_string()));
    assert_reported(&entry, "wanted");
}

#[tokio::test]
async fn a_damaged_error_or_fingerprint_keeps_no_other_from_being_packed() {
    for (prefix, attribute) in [("errors#", "status"), ("fingerprints#", "errorId")] {
        let tracker = Tracker::start().await;
        four_events(&tracker).await;
        let item = damage(&tracker, prefix, attribute).await;
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
async fn a_damaged_event_is_left_out_of_its_errors_list() {
    for (prefix, attribute) in [("event#", "payload"), ("error-events#", "sk")] {
        let tracker = Tracker::start().await;
        for number in 0..3 {
            tracker.deliver(&SentEvent::new(number, tracker.now(), "TypeError", "x")).await;
        }
        if prefix == "event#" {
            let mut payloads = tracker.items_of(prefix).await.into_iter();
            let payload = payloads.find(|item| text(item, "sk") == "payload").unwrap();
            damage_item(&tracker, &payload, attribute).await;
            let events = tracker.call_for(LIST_EVENTS, &tracker.the_error().await);
            assert_eq!(tracker.pages(&events, 10).await.concat().len(), 2);
            assert_reported(&payload, "payload");
            continue;
        }
        // A key cannot be changed, so one is put beside the others.
        let mut key = tracker.items_of(prefix).await.into_iter().next().unwrap();
        key.insert("sk".to_owned(), AttributeValue::S("nonsense".to_owned()));
        tracker.put(&key).await;
        let events = tracker.call_for(LIST_EVENTS, &tracker.the_error().await);
        assert_eq!(tracker.pages(&events, 10).await.concat().len(), 3);
        assert_reported(&key, "sk");
    }
}
