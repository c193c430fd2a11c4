//! Tests of query-error-timeseries.

use std::collections::BTreeSet;
use std::time::Duration;

use serde_json::{Value, json};

use shared::timestamp::Timestamp;
use tests::app::PROJECT;
use tests::call::{Call, Reply};
use tests::errors::SentEvent;

use super::{DAY, HOUR, MINUTE, Tracker};

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
async fn unknown_projects_are_all_named() {
    let tracker = Tracker::start().await;
    tracker.other_project("other").await;
    let unknown_id = "01902f3c-0000-7000-8000-00000000abcd";
    for (names, unknown) in [
        (json!(["nowhere"]), vec!["nowhere"]),
        (json!([PROJECT, "nowhere", "other", unknown_id]), vec!["nowhere", unknown_id]),
        (json!(["Not a slug", PROJECT, "", "shop "]), vec!["Not a slug", "shop "]),
    ] {
        let reply = tracker.query(&json!({ "projectIds": names })).await;
        assert_eq!(reply.problem(), (404, "project_not_found"), "{names}");
        let detail = reply.body["detail"].as_str().unwrap();
        assert!(unknown.iter().all(|name| detail.contains(name)), "{detail}");
        assert!(!detail.contains("other"), "{detail}");
    }
    let many = |count: usize| json!({"projectIds": (0..count).map(|it| format!("p{it}")).collect::<Vec<_>>()});
    assert_eq!(tracker.query(&many(50)).await.problem(), (404, "project_not_found"));
    for (body, violation) in [
        (many(51), ("/projectIds", "too_many_items")),
        (json!({"projectIds": []}), ("/projectIds", "too_few_items")),
        (json!({"projectIds": null}), ("/projectIds", "required")),
        (json!({}), ("/projectIds", "required")),
        (json!({"projectIds": PROJECT}), ("/projectIds", "invalid_type")),
        (json!({"projectIds": [PROJECT, 1]}), ("/projectIds/1", "invalid_type")),
    ] {
        assert_eq!(tracker.query(&body).await.violations(), [violation], "{body}");
    }
}

#[tokio::test]
async fn projects_named_repeatedly_count_once() {
    let tracker = with_events(&["2026-11-21T04:00:00Z", "2026-11-21T04:01:00Z"]).await;
    let id = tracker.project.id.to_string();
    let mut names = vec![PROJECT.to_owned(), id.clone(), id.to_uppercase(), PROJECT.to_owned()];
    names.extend(vec![PROJECT.to_owned(); 100]);
    let body = json!({"projectIds": names, "from": millis("2026-11-20")});
    assert_eq!(tracker.filled(&body).await, [("2026-11-21T04:00".to_owned(), 2, 2)]);
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
async fn range_defaults_to_the_last_seven_days() {
    let tracker = Tracker::start().await;
    tracker.test.pass(Duration::from_millis(30_500));
    for body in [
        json!({}),
        json!({"from": null, "to": null, "limit": null, "status": null,
        "searchQuery": null, "filters": null}),
    ] {
        let expected = (3_600, at("2026-11-14T04:16:00Z"), at("2026-11-21T04:17:00Z"));
        assert_eq!(range(&tracker, body).await, expected);
    }
    let to = json!({"to": millis("2026-11-10T00:00:00.001Z")});
    let expected = (3_600, at("2026-11-03"), at("2026-11-10T00:01:00Z"));
    assert_eq!(range(&tracker, to).await, expected);
    let from = json!({"from": millis("2026-11-21T04:00:59.999Z")});
    let expected = (60, at("2026-11-21T04:00:00Z"), at("2026-11-21T04:17:00Z"));
    assert_eq!(range(&tracker, from).await, expected);
}

#[tokio::test]
async fn times_can_be_seconds_or_milliseconds() {
    let tracker = Tracker::start().await;
    let expected = (60, at("2026-11-21T04:00:00Z"), at("2026-11-21T04:10:00Z"));
    for (from, to) in [
        ("1795233600000", "1795234200000"),
        ("1795233600", "1795234200"),
        ("1795233600", "1795234200000"),
        ("1795233659.9994", "1795234140001.5e0"),
        ("1.7952336e9", "17952342e5"),
    ] {
        let body = format!("{{\"projectIds\":[\"{PROJECT}\"],\"from\":{from},\"to\":{to}}}");
        let call = Call::of(super::QUERY).key(&tracker.test.key).bytes(body);
        let reply = call.send(&tracker.test.app).await;
        let [seconds, from, to] = headers(&reply).map(|text| text.parse::<i64>().unwrap());
        let found =
            (seconds.unsigned_abs(), Timestamp::from_millis(from), Timestamp::from_millis(to));
        assert_eq!(found, expected);
    }
    for (body, violation) in [
        (json!({"from": "1795233600000"}), ("/from", "invalid_type")),
        (json!({"from": true}), ("/from", "invalid_type")),
        (json!({"to": "2026-11-21"}), ("/to", "invalid_type")),
        (json!({"from": 1_795_234_200, "to": 1_795_233_600}), ("/to", "out_of_range")),
        (json!({"from": 1_795_233_600, "to": 1_795_233_600_000_u64}), ("/to", "out_of_range")),
        (json!({"from": tracker.now().as_millis()}), ("/from", "out_of_range")),
    ] {
        let mut body = body;
        body["projectIds"] = json!([PROJECT]);
        let reply = tracker.query(&body).await;
        assert_eq!((reply.status, reply.violations()), (400, vec![violation]), "{body}");
    }
}

#[tokio::test]
async fn bucket_size_depends_on_range_length() {
    let tracker = Tracker::start().await;
    let end = millis("2026-11-21T00:00:00Z");
    let cases = [
        (2 * 60, 60, 300),
        (12 * 60, 300, 1_800),
        (48 * 60, 1_800, 3_600),
        (14 * 1_440, 3_600, 86_400),
    ];
    for (minutes, seconds, next) in cases {
        for (more, seconds) in [(0, seconds), (1, next)] {
            let from = end - minutes * 60_000 - more;
            let found = range(&tracker, json!({"from": from, "to": end})).await.0;
            assert_eq!(found, seconds, "{minutes} min and {more} ms");
        }
    }
}

#[tokio::test]
async fn all_buckets_are_returned_oldest_first() {
    let tracker = with_events(&["2026-11-21T03:00:00Z"]).await;
    for (from, to) in [
        ("2026-11-21T02:31:00Z", "2026-11-21T04:16:00Z"),
        ("2026-11-20T17:33:00Z", "2026-11-21T04:16:00Z"),
        ("2026-11-19T13:00:00Z", "2026-11-21T04:16:00Z"),
        ("2026-11-10T13:59:00Z", "2026-11-21T04:16:00Z"),
        ("2026-10-01T13:59:00Z", "2026-11-21T04:16:00Z"),
    ] {
        let body = json!({"projectIds": [PROJECT], "from": millis(from), "to": millis(to)});
        let reply = tracker.query(&body).await;
        let step = headers(&reply)[0].parse::<i64>().unwrap() * 1_000;
        let starts: Vec<i64> =
            tracker.buckets(&body).await.iter().map(|it| millis(&it.0)).collect();
        let first = millis(from).div_euclid(step);
        let expected: Vec<i64> =
            (first * step..millis(to)).step_by(usize::try_from(step).unwrap()).collect();
        assert_eq!(starts, expected, "{from}");
        for bucket in reply.body.as_array().unwrap() {
            let fields: Vec<&String> = bucket.as_object().unwrap().keys().collect();
            assert_eq!(fields, ["bucketStart", "date", "errors", "uniqueErrors"]);
        }
        let filled = tracker.filled(&body).await;
        assert_eq!(filled.iter().map(|(_, events, _)| events).sum::<u64>(), 1);
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
async fn limit_keeps_the_newest_buckets() {
    let tracker = with_events(&[
        "2026-11-20T10:00:00Z",
        "2026-11-20T10:59:00Z",
        "2026-11-21T04:15:30Z",
        "2026-11-21T03:30:00Z",
    ])
    .await;
    for from in ["2026-11-21T03:00:00Z", "2026-11-20T10:30:00Z", "2026-11-18", "2026-10-01"] {
        let mut body = json!({"projectIds": [PROJECT], "from": millis(from)});
        let all = tracker.buckets(&body).await;
        for limit in [1, 2, 7, 50, 1_000] {
            body["limit"] = json!(limit);
            let kept = all.len().min(limit);
            assert_eq!(tracker.buckets(&body).await, all[all.len() - kept..], "{from} {limit}");
            let (_, shown_from, _) = range(&tracker, body.clone()).await;
            assert_eq!(shown_from, at(from));
        }
    }
    for limit in [json!(0), json!(1_001), json!(-1), json!(1.5)] {
        let body = json!({"projectIds": [PROJECT], "limit": limit});
        assert_eq!(tracker.query(&body).await.violations(), [("/limit", "out_of_range")]);
    }
    let body = json!({"projectIds": [PROJECT], "limit": "1"});
    assert_eq!(tracker.query(&body).await.violations(), [("/limit", "invalid_type")]);
}

#[tokio::test]
async fn ranges_end_with_the_current_bucket() {
    let tracker = Tracker::start().await;
    tracker.test.pass(Duration::from_secs(30));
    // SDK clocks can be a minute ahead.
    let ahead = tracker.now().plus(Duration::from_secs(59));
    tracker.deliver(&SentEvent::new(1, tracker.now(), "TypeError", "x")).await;
    tracker.deliver(&SentEvent::new(2, ahead, "TypeError", "x")).await;
    let minutes = json!({"projectIds": [PROJECT], "from": tracker.ago(HOUR).as_millis()});
    assert_eq!(tracker.filled(&minutes).await, [("2026-11-21T04:16".to_owned(), 1, 1)]);
    assert_eq!(tracker.buckets(&minutes).await.len(), 61);
    let mut later = minutes.clone();
    later["to"] = json!(tracker.now().plus(30 * MINUTE).as_millis());
    assert_eq!(tracker.buckets(&later).await.last().unwrap().0, "2026-11-21T04:16:00.000Z");
    let hours = json!({"projectIds": [PROJECT], "from": tracker.ago(3 * DAY).as_millis(),
        "to": tracker.now().plus(DAY).as_millis()});
    assert_eq!(tracker.filled(&hours).await, [("2026-11-21T04:00".to_owned(), 2, 1)]);
    let future = json!({"projectIds": [PROJECT], "from": tracker.now().plus(HOUR).as_millis(),
        "to": tracker.now().plus(DAY).as_millis()});
    assert!(tracker.buckets(&future).await.is_empty());
}

#[tokio::test]
async fn buckets_before_the_retention_are_omitted() {
    let tracker = Tracker::start().await;
    let oldest = at("2025-10-17T04:16:00Z");
    for from in [json!(0), json!(-1e30), json!(millis("2025-01-01"))] {
        let (seconds, from, _) = range(&tracker, json!({ "from": from })).await;
        assert_eq!((seconds, from), (86_400, oldest));
    }
    let buckets = tracker.buckets(&json!({"projectIds": [PROJECT], "from": 0})).await;
    assert_eq!((buckets.len(), buckets[0].0.as_str()), (401, "2025-10-17T00:00:00.000Z"));
    let gone =
        json!({"projectIds": [PROJECT], "from": millis("2025-01-01"), "to": oldest.as_millis()});
    assert_eq!(tracker.query(&gone).await.body, json!([]));
}

#[tokio::test]
async fn leap_days_and_year_ends_are_ordinary_days() {
    let tracker = Tracker::start().await;
    let until = |text: &str| {
        let left = millis(text) - tracker.now().as_millis();
        Duration::from_millis(left.unsigned_abs())
    };
    tracker.test.pass(until("2027-01-01T02:00:00Z"));
    deliver_at(&tracker, &["2026-12-31T23:59:59.999Z", "2027-01-01T00:00:00Z"]).await;
    let new_year = json!({"projectIds": [PROJECT], "from": millis("2026-12-01")});
    let expected = [("2026-12-31T00:00".to_owned(), 1, 1), ("2027-01-01T00:00".to_owned(), 1, 1)];
    assert_eq!(tracker.filled(&new_year).await, expected);
    tracker.pack().await;
    assert_eq!(tracker.filled(&new_year).await, expected);

    tracker.test.pass(until("2028-03-01T12:00:00Z"));
    let times = [
        "2028-02-28T23:59:00Z",
        "2028-02-29T00:00:00Z",
        "2028-02-29T23:59:59.999Z",
        "2028-03-01T00:00:00Z",
    ];
    for (number, time) in (10..).zip(times) {
        tracker.deliver(&SentEvent::new(number, at(time), "TypeError", "x")).await;
    }
    let leap = json!({"projectIds": [PROJECT], "from": millis("2028-02-01")});
    let expected = [
        ("2028-02-28T00:00".to_owned(), 1, 1),
        ("2028-02-29T00:00".to_owned(), 2, 1),
        ("2028-03-01T00:00".to_owned(), 1, 1),
    ];
    for _ in 0..2 {
        assert_eq!(tracker.filled(&leap).await, expected);
        tracker.pack().await;
    }
    // The events of the year's end, 426 days ago, have expired.
    let all = json!({"projectIds": [PROJECT], "from": 0});
    assert_eq!(tracker.filled(&all).await, expected);
}

/// Returns a tracker with four events that differ in their filterable attributes.
async fn with_variety() -> Tracker {
    let tracker = Tracker::start().await;
    let event = |number: u64, error_type: &str, message: &str| {
        SentEvent::new(
            number,
            tracker.ago(MINUTE * u32::try_from(number).unwrap()),
            error_type,
            message,
        )
    };
    let events = [
        event(1, "TypeError", "Cannot read property of undefined")
            .with("browser", "Chrome")
            .with("environment", "production")
            .with("transaction", "GET /cart")
            .with("country", "DE"),
        event(2, "TypeError", "Cannot read property of undefined")
            .with("browser", "Firefox")
            .with("transaction", "GET /cart")
            .with("release", "shop@2.0.0"),
        event(3, "ValueError", "bad card: Rack::Timeout")
            .with("browser", "Chrome Mobile")
            .with("handled", "false")
            .with("level", "warning"),
        event(4, "PaymentDeclined", "the card was declined")
            .with("os", "Android")
            .with("device", "Pixel")
            .with("platform", "javascript")
            .with("release", "shop@2.0.1"),
    ];
    tracker.deliver_all(&events).await;
    tracker
}

/// Returns the numbers of the events of [`with_variety`] that match a query.
async fn matching(tracker: &Tracker, more: Value) -> Vec<i64> {
    let mut body = json!({"projectIds": [PROJECT], "from": tracker.ago(HOUR).as_millis()});
    body.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    let mut matching = Vec::new();
    for (start, events, errors) in tracker.buckets(&body).await {
        assert_eq!(events, errors);
        if events > 0 {
            matching.push((tracker.now().as_millis() - millis(&start)) / 60_000);
        }
    }
    matching.sort_unstable();
    matching
}

#[tokio::test]
async fn search_matches_errors_and_event_attributes() {
    let tracker = with_variety().await;
    for _ in 0..2 {
        for (search, expected) in [
            ("", vec![1, 2, 3, 4]),
            ("  ", vec![1, 2, 3, 4]),
            ("typeerror", vec![1, 2]),
            ("CARD", vec![3, 4]),
            ("card bad", vec![3]),
            ("card -bad", vec![4]),
            ("\"card was\"", vec![4]),
            ("\"was card\"", vec![]),
            ("/cart", vec![1, 2]),
            ("ValueError: bad card", vec![3]),
            ("Rack::Timeout", vec![3]),
            ("browser:Chrome", vec![1]),
            ("browser:chrome", vec![]),
            ("!browser:Chrome", vec![2, 3, 4]),
            ("browser:[Chrome,Firefox]", vec![1, 2]),
            ("browser:[Chrome,Firefox] release:\"shop@2.0.0\"", vec![2]),
            ("typeerror !browser:Chrome", vec![2]),
            ("handled:false", vec![3]),
            ("handled:true card", vec![4]),
            ("level: warning", vec![]),
            ("unknown:key", vec![]),
            ("\"unbalanced", vec![]),
        ] {
            let found = matching(&tracker, json!({ "searchQuery": search })).await;
            assert_eq!(found, expected, "{search:?}");
        }
        tracker.test.pass(DAY);
        tracker.run_schedule().await;
        tracker.test.pass(MINUTE);
        // The next round counts the events from a run, with the clock of the first round.
        return_to_the_past(&tracker);
    }
    let long = "x".repeat(1_025);
    let body = json!({"projectIds": [PROJECT], "searchQuery": long});
    assert_eq!(tracker.query(&body).await.violations(), [("/searchQuery", "too_long")]);
}

/// Sets the clock back to the delivery of the events.
fn return_to_the_past(tracker: &Tracker) {
    tracker.test.set_time(Timestamp::from_millis(i64::try_from(tests::app::START).unwrap()));
}

#[tokio::test]
async fn filters_on_one_attribute_are_alternatives() {
    let tracker = with_variety().await;
    let filter = |category: &str, operator: &str, value: &str| json!({"categoryId": category, "operator": operator, "value": value});
    for packed in [false, true] {
        for (filters, expected) in [
            (vec![], vec![1, 2, 3, 4]),
            (vec![filter("browser", "is", "Chrome")], vec![1]),
            (vec![filter("browser", "is_not", "Chrome")], vec![2, 3, 4]),
            (vec![filter("browser", "contains", "CHROME")], vec![1, 3]),
            (vec![filter("browser", "not_contains", "chrome")], vec![2, 4]),
            (vec![filter("browser", "is_set", "")], vec![1, 2, 3]),
            (vec![filter("browser", "is_not_set", "")], vec![4]),
            (
                vec![filter("browser", "is", "Chrome"), filter("browser", "is", "Firefox")],
                vec![1, 2],
            ),
            (
                vec![filter("browser", "is", "Firefox"), filter("release", "contains", "2.0")],
                vec![2],
            ),
            (
                vec![
                    filter("release", "contains", "2.0"),
                    filter("release", "is_not", "shop@2.0.0"),
                ],
                vec![4],
            ),
            (vec![filter("environment", "is", "production")], vec![1]),
            (vec![filter("level", "is", "warning")], vec![3]),
            (vec![filter("handled", "is", "false")], vec![3]),
            (vec![filter("os", "is", "Android")], vec![4]),
            (vec![filter("device", "is", "Pixel")], vec![4]),
            (vec![filter("country", "is", "DE")], vec![1]),
            (vec![filter("platform", "is", "javascript")], vec![4]),
            (vec![filter("transaction", "is", "GET /cart")], vec![1, 2]),
        ] {
            let found = matching(&tracker, json!({ "filters": filters })).await;
            assert_eq!(found, expected, "{filters:?} {packed}");
            // A search applies in addition to the filters.
            let both = json!({"filters": filters, "searchQuery": "card"});
            let also: Vec<i64> = expected.into_iter().filter(|number| *number > 2).collect();
            assert_eq!(matching(&tracker, both).await, also, "{filters:?}");
        }
        tracker.test.pass(DAY);
        tracker.run_schedule().await;
        return_to_the_past(&tracker);
    }
    let body = json!({"projectIds": [PROJECT], "filters": [
        filter("address", "is", "x"),
        filter("browser", "starts_with", "x"),
        filter("level", "gt", "1"),
        {"categoryId": "os", "operator": "is"},
    ]});
    let violations = [
        ("/filters/0/categoryId", "invalid_value"),
        ("/filters/1/operator", "invalid_value"),
        ("/filters/2/operator", "invalid_value"),
        ("/filters/3/value", "required"),
    ];
    assert_eq!(tracker.query(&body).await.violations(), violations);
    let many = json!({"projectIds": [PROJECT], "filters": vec![filter("os", "is", "x"); 21]});
    assert_eq!(tracker.query(&many).await.violations(), [("/filters", "too_many_items")]);
}

#[tokio::test]
async fn status_filter_uses_the_current_status() {
    let tracker = with_variety().await;
    for error in tracker.errors().await {
        match error["type"].as_str().unwrap() {
            "TypeError" => tracker.set_status(&error, "resolved").await,
            "ValueError" => tracker.set_status(&error, "ignored").await,
            _ => continue,
        };
    }
    for _ in 0..2 {
        for (status, expected) in [
            (json!("open"), vec![4]),
            (json!("resolved"), vec![1, 2]),
            (json!("ignored"), vec![3]),
            (json!(null), vec![1, 2, 3, 4]),
        ] {
            let found = matching(&tracker, json!({ "status": status })).await;
            assert_eq!(found, expected, "{status}");
        }
        let both = json!({"status": "resolved", "searchQuery": "undefined browser:Firefox"});
        assert_eq!(matching(&tracker, both).await, [2]);
        tracker.test.pass(DAY);
        tracker.run_schedule().await;
        return_to_the_past(&tracker);
    }
    for status in [json!("merged"), json!("Open"), json!("")] {
        let body = json!({"projectIds": [PROJECT], "status": status});
        assert_eq!(tracker.query(&body).await.violations(), [("/status", "invalid_value")]);
    }
}

#[tokio::test]
async fn all_violations_are_reported() {
    let tracker = Tracker::start().await;
    let body = json!({"projectIds": [], "from": 2_000_000_000, "to": 1_000_000_000, "limit": 0,
        "searchQuery": 1, "status": "x", "filters": {}, "bucket": "day"});
    let reply = tracker.query(&body).await;
    assert_eq!(reply.problem(), (400, "validation_failed"));
    let violations: BTreeSet<(&str, &str)> = reply.violations().into_iter().collect();
    let expected = [
        ("/projectIds", "too_few_items"),
        ("/to", "out_of_range"),
        ("/limit", "out_of_range"),
        ("/searchQuery", "invalid_type"),
        ("/status", "invalid_value"),
        ("/filters", "invalid_type"),
        ("/bucket", "unknown_field"),
    ];
    assert_eq!(violations, expected.into());
    let reply = tracker.query(&json!([])).await;
    assert_eq!(reply.violations(), [("", "invalid_type")]);
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
