//! Tests of update-error, and of events that change a status.

use std::time::Duration;

use futures_util::future::join_all;
use serde_json::{Value, json};

use shared::timestamp::Timestamp;
use tests::errors::SentEvent;

use super::{DAY, HOUR, MINUTE, Tracker, UPDATE, etag};

const SECOND: Duration = Duration::from_secs(1);

async fn with_error() -> (Tracker, Value) {
    let tracker = Tracker::start().await;
    tracker.deliver(&SentEvent::new(0, tracker.now(), "TypeError", "x is not a function")).await;
    let error = tracker.the_error().await;
    (tracker, error)
}

/// Delivers another event of the error.
async fn recur(tracker: &Tracker, number: u64, at: Timestamp) {
    tracker.deliver(&SentEvent::new(number, at, "TypeError", "x is not a function")).await;
}

#[tokio::test]
async fn any_status_can_follow_any_other() {
    let (tracker, error) = with_error().await;
    let mut version = 1;
    let statuses =
        ["resolved", "ignored", "open", "ignored", "resolved", "open", "open", "resolved"];
    let mut expected = error.clone();
    for status in statuses {
        version += u32::from(expected["status"] != status);
        expected["status"] = json!(status);
        let (at, by) = match status {
            "resolved" => (json!(tracker.now().to_string()), json!("owner")),
            _ => (json!(null), json!(null)),
        };
        (expected["resolvedAt"], expected["resolvedBy"]) = (at, by);
        let reply = tracker.set_status(&error, status).await;
        assert_eq!((&reply.body, etag(&reply)), (&expected, &*format!("\"{version}\"")));
        let reply = tracker.get(&error).await;
        assert_eq!((&reply.body, etag(&reply)), (&expected, &*format!("\"{version}\"")));
    }
}

#[tokio::test]
async fn concurrent_changes_are_not_lost() {
    let (tracker, error) = with_error().await;
    let changes = join_all((0..6).map(|index| {
        let status = ["resolved", "ignored"][index % 2];
        tracker.set_status(&error, status)
    }));
    let events = join_all((1..7).map(|number| recur(&tracker, number, tracker.ago(hours(number)))));
    let (replies, _) = tokio::join!(changes, events);
    let mut versions: Vec<&str> = replies.iter().map(etag).collect();
    versions.sort_unstable();
    versions.dedup();
    let last = tracker.get(&error).await;
    assert_eq!(etag(&last), *versions.last().unwrap(), "versions do not match the changes");
    assert_eq!(last.body["count"], 7);
    assert_eq!(last.body["firstSeen"], tracker.ago(hours(6)).to_string());
}

fn hours(number: u64) -> Duration {
    Duration::from_hours(number)
}

#[tokio::test]
async fn only_events_after_resolution_reopen_errors() {
    let (tracker, error) = with_error().await;
    tracker.test.pass(HOUR);
    let resolved_at = tracker.now();
    tracker.set_status(&error, "resolved").await;
    tracker.test.pass(10 * MINUTE);
    // Late events from before the resolution count, but do not reopen the error.
    let millisecond = Duration::from_millis(1);
    for (number, at) in
        [(1, resolved_at.minus(30 * MINUTE)), (2, resolved_at.minus(DAY)), (3, resolved_at)]
    {
        recur(&tracker, number, at).await;
        let reply = tracker.get(&error).await;
        assert_eq!((&reply.body["status"], etag(&reply)), (&json!("resolved"), "\"2\""));
        assert_eq!(reply.body["count"], number + 1);
    }
    recur(&tracker, 4, resolved_at.plus(millisecond)).await;
    let reply = tracker.get(&error).await;
    assert_eq!((&reply.body["status"], etag(&reply)), (&json!("open"), "\"3\""));
    assert_eq!(reply.body["lastSeen"], resolved_at.plus(millisecond).to_string());
    assert_eq!(reply.body["firstSeen"], resolved_at.minus(DAY).to_string());
    // An event of an open error changes no status.
    recur(&tracker, 5, tracker.now()).await;
    assert_eq!(etag(&tracker.get(&error).await), "\"3\"");
    // The error can be resolved again.
    tracker.set_status(&error, "resolved").await;
    recur(&tracker, 6, tracker.now()).await;
    assert_eq!(tracker.get(&error).await.body["status"], "resolved");
    recur(&tracker, 7, tracker.now().plus(SECOND)).await;
    assert_eq!(tracker.get(&error).await.body["status"], "open");
}

#[tokio::test]
async fn many_events_reopen_an_error_once() {
    let (tracker, error) = with_error().await;
    tracker.set_status(&error, "resolved").await;
    tracker.test.pass(HOUR);
    join_all((1..13).map(|number| recur(&tracker, number, tracker.ago(SECOND)))).await;
    let reply = tracker.get(&error).await;
    assert_eq!((&reply.body["status"], etag(&reply)), (&json!("open"), "\"3\""));
}

#[tokio::test]
async fn ignored_errors_continue_to_count() {
    let (tracker, error) = with_error().await;
    tracker.set_status(&error, "ignored").await;
    tracker.test.pass(HOUR);
    for number in 1..4 {
        recur(&tracker, number, tracker.now()).await;
    }
    let reply = tracker.get(&error).await;
    assert_eq!((&reply.body["status"], etag(&reply)), (&json!("ignored"), "\"2\""));
    assert_eq!(
        (&reply.body["count"], &reply.body["lastSeen"]),
        (&json!(4), &json!(tracker.now().to_string()))
    );
    assert_eq!(tracker.total(&json!({"status": "ignored"})).await, 4);
}

#[tokio::test]
async fn regressions_count_under_the_current_status() {
    let (tracker, error) = with_error().await;
    let counts = async || {
        let mut counts = Vec::new();
        for status in ["open", "resolved", "ignored"] {
            counts.push(tracker.total(&json!({ "status": status })).await);
        }
        counts
    };
    assert_eq!(counts().await, [1, 0, 0]);
    tracker.set_status(&error, "resolved").await;
    assert_eq!(counts().await, [0, 1, 0]);
    recur(&tracker, 1, tracker.now().plus(SECOND)).await;
    assert_eq!(counts().await, [2, 0, 0]);
}

#[tokio::test]
async fn assignees_are_set_and_removed() {
    let (tracker, error) = with_error().await;
    for (patch, assignee, version) in [
        (json!({"assignee": "ada@example.com"}), json!("ada@example.com"), "\"2\""),
        (json!({"status": "ignored"}), json!("ada@example.com"), "\"3\""),
        (json!({"assignee": null}), json!(null), "\"4\""),
    ] {
        let reply = tracker.call_for(UPDATE, &error).json(&patch).send(&tracker.test.app).await;
        assert_eq!((&reply.body["assignee"], etag(&reply)), (&assignee, version));
    }
    let call = tracker
        .call_for(UPDATE, &error)
        .json(&json!({"assignee": "a b", "resolvedIn": "next_release"}));
    let reply = call.send(&tracker.test.app).await;
    let expected = vec![("/assignee", "invalid_format"), ("/resolvedIn", "invalid_value")];
    assert_eq!((reply.status, reply.violations()), (400, expected));
}

#[tokio::test]
async fn only_later_releases_reopen_errors_resolved_in_the_next() {
    let (tracker, error) = with_error().await;
    let recur = async |number: u64, release: &str| {
        tracker.test.pass(SECOND);
        let event = SentEvent::new(number, tracker.now(), "TypeError", "x is not a function");
        tracker.deliver(&event.with("release", release)).await;
        tracker.the_error().await["status"].clone()
    };
    assert_eq!(recur(1, "1").await, "open");
    tracker.test.pass(SECOND);
    let patch = json!({"status": "resolved", "resolvedIn": "next_release"});
    let reply = tracker.call_for(UPDATE, &error).json(&patch).send(&tracker.test.app).await;
    assert_eq!((reply.status, &reply.body["resolvedIn"]), (200, &json!("next_release")));
    assert_eq!(recur(2, "1").await, "resolved");
    tracker.test.pass(MINUTE * 2);
    tracker.pack().await;
    assert_eq!(tracker.the_error().await["status"], "resolved", "packing knows no releases");
    assert_eq!(recur(3, "2").await, "open");
}
