//! Tests of list-errors, get-error and list-error-events.

use std::collections::BTreeSet;
use std::time::Duration;

use aws_sdk_dynamodb::types::AttributeValue;
use futures_util::future::join_all;
use serde_json::{Value, json};
use tests::app::left_out;
use tests::errors::SentEvent;

use super::{
    DAY, GET, LIST, LIST_EVENTS, MINUTE, QUERY_ERRORS, TABLE, Tracker, column, number, text,
};

const SECOND: Duration = Duration::from_secs(1);

#[tokio::test]
async fn counts_and_times_are_exact() {
    let tracker = Tracker::start().await;
    // In shuffled order, from 29 days ago to 30 s ahead.
    let steps = 120_u64;
    let events: Vec<SentEvent> = (0..steps)
        .map(|number| {
            let step = number * 77 % steps;
            let ahead = tracker.now().plus(30 * SECOND);
            let back = Duration::from_mins(step * 347) + Duration::from_millis(step);
            let error = if step.is_multiple_of(3) { "ValueError" } else { "TypeError" };
            SentEvent::new(number, ahead.minus(back), error, "x")
        })
        .collect();
    tracker.deliver_all(&events).await;
    let expected = |error_type: &str| {
        let times = events.iter().filter(|event| event.error_type == error_type);
        let times: Vec<String> = times.map(|event| event.at.to_string()).collect();
        let (first, last) = (times.iter().min().unwrap(), times.iter().max().unwrap());
        (json!(error_type), json!(first), json!(last), json!(times.len()))
    };
    for _ in 0..2 {
        let errors = tracker.errors().await;
        let shown = |error: &Value| {
            let field = |name: &str| error[name].clone();
            (field("type"), field("firstSeen"), field("lastSeen"), field("count"))
        };
        let mut found: Vec<_> = errors.iter().map(shown).collect();
        found.sort_by_key(|(error_type, ..)| error_type.to_string());
        assert_eq!(found, [expected("TypeError"), expected("ValueError")]);
        for error in &errors {
            assert_eq!(&tracker.get(error).await.body, error);
            let mut expected: Vec<&SentEvent> =
                events.iter().filter(|event| event.error_type == error["type"]).collect();
            expected.sort_by_key(|event| std::cmp::Reverse(event.at));
            let expected: Vec<&str> = expected.iter().map(|event| event.id.as_str()).collect();
            assert_eq!(tracker.event_ids(error).await, expected);
        }
        tracker.test.pass(DAY);
        tracker.run_schedule().await;
        assert!(!tracker.runs().await.is_empty());
    }
}

#[tokio::test]
async fn unpacked_events_move_errors_up_in_lists() {
    let tracker = Tracker::start().await;
    let text_of = |error: &Value| error["type"].as_str().unwrap().to_owned();
    let error_type =
        |index: u64| format!("Error{}", char::from(b'A' + u8::try_from(index).unwrap()));
    let event = |id: u64, index: u64, minutes: u64| {
        let at = tracker.ago(Duration::from_mins(minutes));
        SentEvent::new(id, at, &error_type(index), "x")
    };
    let first: Vec<SentEvent> = (0..9).map(|index| event(index, index, 100 + 10 * index)).collect();
    tracker.deliver_all(&first).await;
    tracker.pack().await;
    for error in tracker.errors().await.iter().filter(|error| *text_of(error) > *"ErrorE") {
        tracker.set_status(error, "ignored").await;
    }
    tracker.test.pass(2 * MINUTE);
    let stored = tracker.items_of(&format!("errors#{}", tracker.project.id)).await;

    // Two minutes later D moves between B and C, and E keeps its place.
    let again = [event(20, 8, 10), event(21, 3, 115), event(22, 4, 142), event(23, 6, 20)];
    tracker.deliver_all(&again).await;
    let expected = ["I", "G", "A", "B", "D", "C", "E", "F", "H"].map(|it| format!("Error{it}"));
    let unmoved = tracker.items_of(&format!("errors#{}", tracker.project.id)).await;
    assert_eq!(unmoved, stored, "events of known errors write no error");
    for is_packed in [false, true] {
        for limit in [1, 2, 4, 9, 100] {
            let pages = tracker.pages(&tracker.call(LIST), limit).await;
            assert_eq!(column(&pages.concat(), "type"), expected, "{is_packed} {limit}");
            let ignored = tracker.call(LIST).query("status", "ignored");
            let pages = tracker.pages(&ignored, limit).await;
            let types = ["I", "G", "F", "H"].map(|it| format!("Error{it}"));
            assert_eq!(column(&pages.concat(), "type"), types, "{is_packed} {limit}");
        }
        let reply = tracker.call(QUERY_ERRORS).json(&json!({})).send(&tracker.test.app).await;
        assert_eq!(column(reply.body["items"].as_array().unwrap(), "type"), expected);
        for error in tracker.errors().await {
            assert_eq!(tracker.get(&error).await.body["lastSeen"], error["lastSeen"]);
        }
        tracker.pack().await;
    }
    let moved = tracker.items_of(&format!("errors#{}", tracker.project.id)).await;
    let changed = stored.iter().filter(|item| !moved.contains(item)).count();
    assert_eq!(changed, 3, "packing updates lastSeen");
}

#[tokio::test]
async fn large_events_get_smaller_pages() {
    let tracker = Tracker::start().await;
    let events: Vec<SentEvent> =
        (0..12).map(|number| SentEvent::new(number, tracker.now(), "TypeError", "x")).collect();
    for event in &events {
        let mut payload = event.payload();
        payload["extra"] = json!({"x": "y".repeat(250_000)});
        let call = super::delivery(&tracker.project, super::STORE).bytes(payload.to_string());
        assert_eq!(call.send(&tracker.test.app).await.status, 200);
    }
    let error = tracker.the_error().await;
    let pages = tracker.pages(&tracker.call_for(LIST_EVENTS, &error), 100).await;
    assert!(pages.len() > 1);
    for page in &pages {
        assert!(json!(page).to_string().len() < 5_000_000);
    }
    let mut ids = column(&pages.concat(), "eventId");
    ids.sort();
    assert_eq!(ids, events.iter().map(|event| event.id.clone()).collect::<Vec<_>>());
}

#[tokio::test]
async fn expired_events_are_skipped_in_lists() {
    let tracker = Tracker::start().await;
    let events: Vec<SentEvent> = (0..8_u64)
        .map(|number| {
            let at = tracker.ago(Duration::from_mins(number));
            SentEvent::new(number, at, "TypeError", "x")
        })
        .collect();
    tracker.deliver_all(&events).await;
    let now = number(tracker.now().as_seconds());
    // The time of receipt decides, so later events can expire first. All but two have expired.
    for item in tracker.items_of("error-events#").await {
        if events[..6].iter().any(|event| text(&item, "sk").ends_with(&event.id)) {
            tracker.tamper(&item, "expiresAt", now.clone()).await;
        }
    }
    let error = tracker.the_error().await;
    for limit in [1, 2, 3, 100] {
        let pages = tracker.pages(&tracker.call_for(LIST_EVENTS, &error), limit).await;
        let ids = column(&pages.concat(), "eventId");
        assert_eq!(ids, [events[6].id.as_str(), events[7].id.as_str()], "{limit}");
    }
}

#[tokio::test]
async fn concurrent_first_events_set_exact_times() {
    let tracker = Tracker::start().await;
    let events: Vec<SentEvent> = (0..24_u64)
        .map(|number| {
            let at = tracker.ago(Duration::from_mins(number * 13 % 24 * 5));
            SentEvent::new(number, at, "TypeError", "x")
        })
        .collect();
    join_all(events.iter().map(|event| tracker.deliver(event))).await;
    let error = tracker.the_error().await;
    assert_eq!(error["count"], 24);
    assert_eq!(error["firstSeen"], tracker.ago(23 * 5 * MINUTE).to_string());
    assert_eq!(error["lastSeen"], tracker.now().to_string());
    assert_eq!(tracker.items_of("fingerprints#").await.len(), 1);
}

#[tokio::test]
async fn lists_skip_corrupted_errors() {
    let tracker = Tracker::start().await;
    let types = ["AError", "BError", "CError"];
    for (number, error_type) in (0..).zip(types) {
        tracker.deliver(&SentEvent::new(number, tracker.now(), error_type, "x")).await;
    }
    let errors = tracker.errors().await;
    let bad = errors.iter().find(|error| error["type"] == "BError").unwrap();
    let bad = bad["errorId"].as_str().unwrap();
    let pk = format!("errors#{}", tracker.project.id);
    let status = AttributeValue::S("closed".to_owned());
    tracker.test.tamper(TABLE, [("pk", &pk), ("sk", bad)], "status", status).await;
    for limit in [1, 2, 100] {
        let listed = tracker.pages(&tracker.call(LIST), limit).await.concat();
        let mut types = column(&listed, "type");
        types.sort();
        assert_eq!(types, ["AError", "CError"], "{limit}");
    }
    assert_eq!(left_out(bad), BTreeSet::from([(TABLE, "status")]));
    let alone = tracker.call(GET).parameter("errorId", bad).send(&tracker.test.app).await;
    assert_eq!(alone.problem(), (500, "internal"));
}
