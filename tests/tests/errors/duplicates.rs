//! Repeated deliveries of an event.

use futures_util::future::join_all;
use serde_json::json;
use tests::app::app_over;
use tests::errors::SentEvent;

use super::{DAY, ENVELOPE, HOUR, MINUTE, Tracker, delivery};

#[tokio::test]
async fn repeated_deliveries_count_once() {
    let tracker = Tracker::start().await;
    let event = SentEvent::new(1, tracker.ago(HOUR), "TypeError", "x is not a function");
    for _ in 0..3 {
        tracker.deliver(&event).await;
    }
    let error = tracker.the_error().await;
    assert_eq!(error["count"], 1);
    assert_eq!(tracker.event_ids(&error).await, [event.id.as_str()]);
    assert_eq!(tracker.total(&json!({})).await, 1);
    for prefix in ["event#", "log#", "error-events#"] {
        let expected = if prefix == "event#" { 2 } else { 1 };
        assert_eq!(tracker.items_of(prefix).await.len(), expected, "{prefix}");
    }
}

#[tokio::test]
async fn concurrent_deliveries_count_once() {
    let tracker = Tracker::start().await;
    let event = SentEvent::new(1, tracker.ago(3 * DAY), "TypeError", "x is not a function");
    join_all((0..20).map(|_| tracker.deliver(&event))).await;
    let error = tracker.the_error().await;
    assert_eq!(error["count"], 1);
    assert_eq!(tracker.event_ids(&error).await.len(), 1);
    assert_eq!(tracker.total(&json!({})).await, 1);
}

#[tokio::test]
async fn first_of_several_events_with_one_id_counts() {
    let tracker = Tracker::start().await;
    let first = SentEvent::new(1, tracker.ago(HOUR), "TypeError", "x is not a function");
    tracker.deliver(&first).await;
    let before = tracker.errors().await;
    for other in [
        SentEvent::new(1, tracker.ago(MINUTE), "ValueError", "another error"),
        SentEvent::new(1, tracker.ago(9 * DAY), "TypeError", "x is not a function"),
        SentEvent::new(1, tracker.now(), "TypeError", "x is not a function"),
        first.clone().with("release", "2.0"),
    ] {
        tracker.deliver(&other).await;
        assert_eq!(tracker.errors().await, before, "{other:?}");
    }
    let call = tracker.call_for(super::LIST_EVENTS, &before[0]);
    let events = tracker.pages(&call, 100).await.concat();
    assert_eq!(events.len(), 1);
    assert_eq!(events[0]["event"]["exception"]["values"][0]["type"], "TypeError");
    assert!(events[0]["event"]["release"].is_null());
    let filled = tracker.filled(&tracker.since(11 * HOUR + 57 * MINUTE)).await;
    assert_eq!(filled, [("2026-11-21T03:15".to_owned(), 1, 1)]);
    assert_eq!(tracker.total(&json!({})).await, 1);
}

#[tokio::test]
async fn repeated_deliveries_do_not_reopen_errors() {
    let tracker = Tracker::start().await;
    // An event without a timestamp occurs when it arrives.
    let mut payload = SentEvent::new(1, tracker.now(), "TypeError", "x").payload();
    payload.as_object_mut().unwrap().remove("timestamp");
    let deliver = async || {
        let call = delivery(&tracker.project, super::STORE).bytes(payload.to_string());
        assert_eq!(call.send(&tracker.test.app).await.status, 200);
    };
    deliver().await;
    let error = tracker.the_error().await;
    tracker.test.pass(5 * MINUTE);
    tracker.set_status(&error, "resolved").await;
    tracker.test.pass(5 * MINUTE);
    deliver().await;
    let mut expected = error.clone();
    expected["status"] = json!("resolved");
    expected["resolvedAt"] = json!("2026-11-21T04:21:00.000Z");
    expected["resolvedBy"] = json!("owner");
    assert_eq!(tracker.the_error().await, expected);
}

#[tokio::test]
async fn next_delivery_completes_an_interrupted_one() {
    // Each case removes the writes that follow an interruption.
    for lost in
        [&["errors#", "fingerprints#"][..], &["log#", "error-events#", "errors#", "fingerprints#"]]
    {
        let tracker = Tracker::start().await;
        let event = SentEvent::new(1, tracker.ago(HOUR), "TypeError", "x is not a function");
        tracker.deliver(&event).await;
        let whole = tracker.the_error().await;
        for prefix in lost {
            for item in tracker.items_of(prefix).await {
                tracker.remove(&item).await;
            }
        }
        if lost.contains(&"log#") {
            for item in tracker.items_of("event#").await {
                if super::text(&item, "sk") == "claim" {
                    tracker.remove(&item).await;
                }
            }
        }
        assert!(tracker.errors().await.is_empty());
        // Another process, since an interrupted one has no cache.
        let (app, _) = app_over(&tracker.test.engine.endpoint());
        let call = delivery(&tracker.project, ENVELOPE).bytes(event.envelope());
        assert_eq!(call.send(&app).await.status, 200);
        let mut error = tracker.the_error().await;
        error["errorId"] = whole["errorId"].clone();
        assert_eq!(error, whole);
        assert_eq!(tracker.total(&json!({})).await, 1);
    }
}
