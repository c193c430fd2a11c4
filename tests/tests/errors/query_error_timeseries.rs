//! Tests of query-error-timeseries.

use serde_json::{Value, json};

use shared::timestamp::Timestamp;
use tests::app::PROJECT;
use tests::call::{Call, Reply};
use tests::errors::SentEvent;

use super::{HOUR, MINUTE, Tracker};

fn at(text: &str) -> Timestamp {
    Timestamp::parse_date_or_date_time(text).unwrap()
}

fn millis(text: &str) -> i64 {
    at(text).as_millis()
}

/// Returns a tracker with one event at each of these times, each of another error.
async fn with_events(times: &[&str]) -> Tracker {
    let tracker = Tracker::start().await;
    deliver_at(&tracker, times).await;
    tracker
}

async fn deliver_at(tracker: &Tracker, times: &[&str]) {
    for (number, time) in (0_u8..).zip(times) {
        let error_type = format!("Error{}", char::from(b'A' + number));
        tracker.deliver(&SentEvent::new(number.into(), at(time), &error_type, "x")).await;
    }
}

fn headers(reply: &Reply) -> [&str; 3] {
    ["x-bucket-seconds", "x-range-from", "x-range-to"]
        .map(|name| reply.headers[name].to_str().unwrap())
}

/// Returns the bucket size in seconds and the bounds of the range, from the response headers.
async fn range(tracker: &Tracker, mut body: Value) -> (u64, Timestamp, Timestamp) {
    body["projectIds"] = json!([PROJECT]);
    let reply = tracker.query(&body).await;
    assert_eq!(reply.status, 200, "{}", reply.body);
    let [seconds, from, to] = headers(&reply).map(|text| text.parse::<i64>().unwrap());
    let [from, to] = [from, to].map(Timestamp::from_millis);
    (seconds.unsigned_abs(), from, to)
}

#[tokio::test]
async fn events_and_errors_of_several_projects_add_up() {
    let tracker = Tracker::start().await;
    let [one, two] = [tracker.other_project("one").await, tracker.other_project("two").await];
    let event = |number, error_type: &str, minutes| {
        SentEvent::new(number, tracker.ago(minutes * MINUTE), error_type, "x")
    };
    for (project, event) in [
        (&tracker.project, event(1, "TypeError", 10)),
        (&tracker.project, event(2, "TypeError", 10)),
        (&tracker.project, event(3, "ValueError", 10)),
        (&one, event(4, "TypeError", 10)),
        (&one, event(5, "TypeError", 9)),
        (&two, event(6, "KeyError", 9)),
    ] {
        assert_eq!(tracker.deliver_to(project, &event).await.status, 200);
    }
    let query = |names: Value| json!({"projectIds": names, "from": tracker.ago(HOUR).as_millis()});
    let [ten, nine] = ["2026-11-21T04:06".to_owned(), "2026-11-21T04:07".to_owned()];
    for (names, expected) in [
        (json!(["shop"]), vec![(ten.clone(), 3, 2)]),
        (json!(["one"]), vec![(ten.clone(), 1, 1), (nine.clone(), 1, 1)]),
        (json!(["shop", "one", "two"]), vec![(ten.clone(), 4, 3), (nine.clone(), 2, 2)]),
        (json!(["two", "one"]), vec![(ten, 1, 1), (nine, 2, 2)]),
    ] {
        assert_eq!(tracker.filled(&query(names)).await, expected);
    }
}

#[tokio::test]
async fn range_ends_cut_the_outer_buckets() {
    let times = [
        "2026-11-19T23:59:59.999Z",
        "2026-11-20T00:00:00.000Z",
        "2026-11-20T10:29:59.999Z",
        "2026-11-20T10:30:00.000Z",
        "2026-11-20T10:30:59.999Z",
        "2026-11-20T10:31:00.000Z",
        "2026-11-20T23:59:59.999Z",
        "2026-11-21T00:00:00.000Z",
    ];
    let tracker = with_events(&times).await;
    // The pairs of ends give all five bucket sizes. Each pair is tested before and after packing.
    let ends = [
        "2026-11-19T23:59:00Z",
        "2026-11-20T00:00:00Z",
        "2026-11-20T10:30:00Z",
        "2026-11-20T10:31:00Z",
        "2026-11-20T23:59:00Z",
        "2026-11-21T00:00:00Z",
        "2026-11-21T00:01:00Z",
        "2026-10-30T10:31:00Z",
        "2026-11-10T10:31:00Z",
    ];
    for _ in 0..2 {
        for from in ends {
            for to in ends.into_iter().filter(|to| millis(to) > millis(from)) {
                let body = json!({"projectIds": [PROJECT], "from": millis(from), "to": millis(to)});
                let step = range(&tracker, body.clone()).await.0;
                let step = i64::try_from(step).unwrap() * 1_000;
                let inside = times.iter().map(|time| millis(time));
                let inside = inside.filter(|time| (millis(from)..millis(to)).contains(time));
                let mut expected: Vec<(String, u64, u64)> = Vec::new();
                for time in inside {
                    let start = Timestamp::from_millis(time.div_euclid(step) * step);
                    let start = start.to_string()[..16].to_owned();
                    match expected.last_mut() {
                        Some(last) if last.0 == start => *last = (start, last.1 + 1, last.2 + 1),
                        _ => expected.push((start, 1, 1)),
                    }
                }
                assert_eq!(tracker.filled(&body).await, expected, "{from} {to}");
            }
        }
        tracker.pack().await;
    }
}

#[tokio::test]
async fn queries_ignore_idempotency_keys() {
    let tracker = Tracker::start().await;
    let query = async || {
        let body = tracker.since(HOUR);
        let call = Call::of(super::QUERY).key(&tracker.test.key).header("idempotency-key", "k");
        let reply = call.json(&body).send(&tracker.test.app).await;
        assert!(!reply.headers.contains_key("idempotency-replayed"));
        reply.body
    };
    let before = query().await;
    tracker.deliver(&SentEvent::new(1, tracker.now(), "TypeError", "x")).await;
    assert_ne!(query().await, before);
}
