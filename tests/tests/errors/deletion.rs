//! Error deletion: immediately from every read, later from storage.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use errors::store::MAX_TOMBSTONES;
use shared::app::Operation;
use tests::errors::SentEvent;

use super::{DAY, GET, HOUR, LIST_EVENTS, MINUTE, Tracker, UPDATE, text};

const DELETE: &Operation = &delete_error::OPERATION;

/// Deletes an error, and waits for the next millisecond.
async fn delete(tracker: &Tracker, error: &Value) -> u16 {
    let reply = tracker.call_for(DELETE, error).send(&tracker.test.app).await;
    tracker.test.pass(MINUTE / 60_000 * 2);
    reply.status
}

/// Returns two errors, each with ten events over three days. 12 of the 20 events are packed.
async fn two_errors(tracker: &Tracker) -> (Value, Value) {
    let mut events = Vec::new();
    for number in 0..20_u64 {
        let at = tracker.ago(DAY * 2).plus(HOUR * u32::try_from(number).unwrap());
        let error_type = if number % 2 == 0 { "TypeError" } else { "KeyError" };
        events.push(SentEvent::new(number, at, error_type, "x"));
    }
    let (packed, rows) = events.split_at(12);
    tracker.deliver_all(packed).await;
    tracker.pack().await;
    // `pack` used a clock two minutes ahead.
    tracker.test.pass(2 * MINUTE);
    tracker.deliver_all(rows).await;
    let errors = tracker.errors().await;
    let error = |name| errors.iter().find(|error| error["type"] == name).unwrap().clone();
    (error("TypeError"), error("KeyError"))
}

async fn assert_deleted(tracker: &Tracker, error: &Value) {
    for operation in [GET, LIST_EVENTS, DELETE] {
        let reply = tracker.call_for(operation, error).send(&tracker.test.app).await;
        assert_eq!(reply.problem(), (404, "error_not_found"), "{}", operation.name);
    }
    let call = tracker.call_for(UPDATE, error).json(&json!({"status": "ignored"}));
    assert_eq!(call.send(&tracker.test.app).await.problem(), (404, "error_not_found"));
    assert!(tracker.errors().await.iter().all(|other| other["errorId"] != error["errorId"]));
}

#[tokio::test]
async fn deleted_errors_disappear_from_every_read() {
    let tracker = Tracker::start().await;
    let (deleted, other) = two_errors(&tracker).await;
    assert_eq!(tracker.total(&json!({})).await, 20);
    assert_eq!(delete(&tracker, &deleted).await, 204);
    assert_deleted(&tracker, &deleted).await;
    assert_eq!(tracker.errors().await, std::slice::from_ref(&other));
    let searches = [json!({}), json!({"status": "open"}), json!({"searchQuery": "-nothing"})];
    for search in &searches {
        assert_eq!(tracker.total(search).await, 10, "{search}");
    }
    assert_eq!(tracker.total(&json!({"searchQuery": "TypeError"})).await, 0);

    // A deleted event is not counted again; a later event creates a new error.
    tracker.deliver(&SentEvent::new(0, tracker.now(), "TypeError", "x")).await;
    assert_eq!(tracker.total(&json!({})).await, 10);
    tracker.deliver(&SentEvent::new(100, tracker.ago(DAY), "TypeError", "x")).await;
    assert_eq!(tracker.total(&json!({})).await, 11);
    let errors = tracker.errors().await;
    let new = errors.iter().find(|error| error["type"] == "TypeError").unwrap();
    assert_ne!(new["errorId"], deleted["errorId"]);
    assert_eq!((&new["count"], &new["status"]), (&json!(1), &json!("open")));
    let events = tracker.call_for(LIST_EVENTS, new);
    assert_eq!(tracker.pages(&events, 10).await.concat().len(), 1);
    assert_deleted(&tracker, &deleted).await;
}

#[tokio::test]
async fn packer_removes_deleted_errors_but_not_claims() {
    let tracker = Tracker::start().await;
    let (deleted, other) = two_errors(&tracker).await;
    assert_eq!(delete(&tracker, &deleted).await, 204);
    tracker.deliver(&SentEvent::new(100, tracker.now(), "TypeError", "x")).await;
    // Rows that are older, or have the same fingerprint, can still arrive.
    tracker.run_schedule().await;
    assert_eq!(tracker.items_of("error-events#").await.len(), 21);

    tracker.test.pass(3 * MINUTE);
    tracker.run_schedule().await;
    let ids: BTreeSet<String> = (0..20_u64)
        .step_by(2)
        .map(|number| SentEvent::new(number, tracker.now(), "", "").id)
        .collect();
    let is_deleted = |key: &str| ids.iter().any(|id| key.contains(id.as_str()));
    let mut claims = 0;
    for item in tracker.test.items("errors").await {
        let key = format!("{} {}", text(&item, "pk"), text(&item, "sk"));
        if is_deleted(&key) {
            assert!(key.ends_with(" claim"), "{key}");
            claims += 1;
        }
    }
    assert_eq!(claims, 10);
    assert_eq!(tracker.items_of("error-events#").await.len(), 11);

    // The tombstone is removed, and no event reappears.
    tracker.test.pass(2 * HOUR);
    tracker.run_schedule().await;
    let heads = tracker.items_of("log-head#").await;
    assert!(heads.iter().all(|head| head.keys().all(|name| !name.starts_with("t_"))));
    assert_eq!(tracker.total(&json!({})).await, 11);
    assert_eq!(tracker.errors().await.iter().find(|it| it["type"] == "KeyError"), Some(&other));
    assert_deleted(&tracker, &deleted).await;
    tracker.deliver(&SentEvent::new(2, tracker.now(), "TypeError", "x")).await;
    assert_eq!(tracker.total(&json!({})).await, 11);
    let payloads = tracker.items_of("event#").await.into_iter();
    assert!(
        payloads.filter(|it| text(it, "sk") == "payload").all(|it| !is_deleted(text(&it, "pk")))
    );
}

/// A warm function caches an error for a minute.
#[tokio::test]
async fn events_of_cached_deleted_errors_create_new_errors() {
    let tracker = Tracker::start().await;
    tracker.deliver(&SentEvent::new(1, tracker.now(), "TypeError", "x")).await;
    let error = tracker.the_error().await;
    assert_eq!(delete(&tracker, &error).await, 204);
    tracker.deliver(&SentEvent::new(2, tracker.now(), "TypeError", "x")).await;
    let new = tracker.the_error().await;
    assert_ne!(new["errorId"], error["errorId"]);
    assert_eq!(new["count"], 1);
    tracker.pack().await;
    assert_eq!(tracker.the_error().await, new);
}

#[tokio::test]
async fn deletions_over_the_tombstone_limit_return_429() {
    let tracker = Tracker::start().await;
    for number in 0..=u64::from(MAX_TOMBSTONES) {
        let error_type = format!("Error{number}");
        tracker.deliver(&SentEvent::new(number, tracker.now(), &error_type, "x")).await;
    }
    let errors = tracker.errors().await;
    assert_eq!(errors.len(), usize::try_from(MAX_TOMBSTONES).unwrap() + 1);
    let (last, first) = errors.split_last().unwrap();
    for error in first {
        let reply = tracker.call_for(DELETE, error).send(&tracker.test.app).await;
        assert_eq!(reply.status, 204);
    }
    let reply = tracker.call_for(DELETE, last).send(&tracker.test.app).await;
    assert_eq!(reply.problem(), (429, "throttled"));
    assert_eq!(reply.headers["retry-after"], "600");
    assert_eq!(tracker.errors().await, std::slice::from_ref(last));

    for time in [3 * MINUTE, 2 * HOUR] {
        tracker.test.pass(time);
        tracker.run_schedule().await;
    }
    assert_eq!(delete(&tracker, last).await, 204);
    assert_eq!(tracker.errors().await, [] as [Value; 0]);
}
