//! Tests of query-errors.

use serde_json::{Value, json};
use tests::app::PROJECT;
use tests::call::{Call, Reply};
use tests::errors::SentEvent;

use super::{BREAKDOWN, DAY, HOUR, LIST, MINUTE, QUERY_ERRORS, Tracker, column};

async fn query(tracker: &Tracker, body: &Value) -> Reply {
    let call = tracker.call(QUERY_ERRORS).json(body);
    call.send(&tracker.test.app).await
}

async fn page(tracker: &Tracker, body: &Value) -> Vec<Value> {
    let reply = query(tracker, body).await;
    assert_eq!(reply.status, 200, "{}", reply.body);
    reply.body["items"].as_array().unwrap().clone()
}

/// Returns a tracker with three errors: four events of one user, two events of two users, and one
/// event without a user.
async fn tracker() -> Tracker {
    let tracker = Tracker::start().await;
    let event = |number, minutes, error_type| {
        SentEvent::new(number, tracker.ago(minutes * MINUTE), error_type, "x")
    };
    let mut events: Vec<SentEvent> =
        (0..4).map(|n| event(n, 30, "TypeError").with("user", "ada")).collect();
    events.push(event(10, 20, "ValueError").with("user", "ada"));
    events.push(event(11, 50, "ValueError").with("user", "bob"));
    events.push(event(12, 10, "KeyError"));
    tracker.deliver_all(&events).await;
    tracker
}

#[tokio::test]
async fn sort_order_holds_across_pages() {
    let tracker = tracker().await;
    for is_packed in [false, true] {
        for (sort, expected) in [
            (json!(null), ["KeyError", "ValueError", "TypeError"]),
            (json!("lastSeen"), ["KeyError", "ValueError", "TypeError"]),
            (json!("firstSeen"), ["KeyError", "TypeError", "ValueError"]),
            (json!("count"), ["TypeError", "ValueError", "KeyError"]),
            (json!("users"), ["ValueError", "TypeError", "KeyError"]),
        ] {
            let mut body = json!({"sort": sort, "limit": 1});
            let mut found = Vec::new();
            while found.len() < 4 {
                let reply = query(&tracker, &body).await;
                found.extend(column(reply.body["items"].as_array().unwrap(), "type"));
                body["cursor"] = reply.body["nextCursor"].clone();
                if body["cursor"].is_null() {
                    break;
                }
            }
            assert_eq!(found, expected, "{body}, {is_packed}");
        }
        tracker.pack().await;
    }
}

#[tokio::test]
async fn counts_are_limited_to_the_range() {
    let tracker = tracker().await;
    let body = json!({"from": tracker.ago(25 * MINUTE).as_millis(), "searchQuery": "ValueError"});
    let found = page(&tracker, &body).await;
    let [error] = &found[..] else { panic!("{found:?}") };
    assert_eq!((&error["count"], &error["users"]), (&json!(1), &json!(1)));
    assert_eq!(error["firstSeen"], tracker.ago(50 * MINUTE).to_string());
    assert_eq!(error["lastSeen"], tracker.ago(20 * MINUTE).to_string());
    let userless = page(&tracker, &json!({"searchQuery": "KeyError"})).await;
    assert_eq!((&userless[0]["count"], &userless[0]["users"]), (&json!(1), &json!(0)));
    assert_eq!(page(&tracker, &json!({"status": "resolved"})).await, [] as [Value; 0]);
}

#[tokio::test]
async fn first_page_fixes_the_range_end() {
    let tracker = tracker().await;
    let mut body = json!({"sort": "count", "limit": 1, "from": tracker.ago(HOUR).as_millis()});
    let first = query(&tracker, &body).await;
    tracker.test.pass(DAY);
    let late = SentEvent::new(90, tracker.ago(MINUTE), "KeyError", "x");
    tracker.deliver(&late).await;
    body["cursor"] = first.body["nextCursor"].clone();
    body["limit"] = json!(100);
    let rest = page(&tracker, &body).await;
    let shown: Vec<_> = rest.iter().map(|error| (&error["type"], &error["count"])).collect();
    assert_eq!(json!(shown), json!([["ValueError", 2], ["KeyError", 1]]));
}

#[tokio::test]
async fn cursors_of_other_queries_are_rejected() {
    let tracker = tracker().await;
    let first = query(&tracker, &json!({"sort": "count", "limit": 1})).await;
    let cursor = &first.body["nextCursor"];
    let list = tracker.call(LIST).query("limit", 1).send(&tracker.test.app).await;
    let other = tracker.other_project("one").await;
    for body in [
        json!({"sort": "users", "cursor": cursor}),
        json!({ "cursor": cursor }),
        json!({"sort": "count", "cursor": list.body["nextCursor"]}),
        json!({"cursor": ""}),
    ] {
        let reply = query(&tracker, &body).await;
        assert_eq!(reply.status, 400, "{body}");
        assert_eq!(reply.violations(), [("/cursor", "invalid_value")], "{body}");
    }
    let call = Call::of(QUERY_ERRORS).key(&tracker.test.key).parameter("idOrSlug", other.id);
    let reply =
        call.json(&json!({"sort": "count", "cursor": cursor})).send(&tracker.test.app).await;
    assert_eq!(reply.violations(), [("/cursor", "invalid_value")]);
}

#[tokio::test]
async fn events_after_deletion_count_from_zero() {
    let tracker = tracker().await;
    tracker.pack().await;
    // `pack` used a clock two minutes ahead.
    tracker.test.pass(3 * MINUTE);
    let found = page(&tracker, &json!({"sort": "count"})).await;
    let delete = tracker.call_for(&delete_error::OPERATION, &found[0]);
    assert_eq!(delete.send(&tracker.test.app).await.status, 204);
    tracker.test.pass(MINUTE);
    let types = |found: &[Value]| column(found, "type");
    let left = page(&tracker, &json!({"sort": "count"})).await;
    assert_eq!(types(&left), ["ValueError", "KeyError"]);
    let again = SentEvent::new(99, tracker.ago(MINUTE), "TypeError", "x").with("user", "eve");
    tracker.deliver(&again).await;
    let found = page(&tracker, &json!({"searchQuery": "TypeError"})).await;
    assert_eq!((&found[0]["count"], &found[0]["users"]), (&json!(1), &json!(1)));
}

/// Returns a filter for one error.
fn of_error(operator: &str, error: &Value) -> Value {
    json!({"categoryId": "errorId", "operator": operator, "value": error["errorId"]})
}

/// Returns the counts of an error over time and the bucket headers, from query-error-timeseries.
async fn series_of(tracker: &Tracker, body: &Value, error: &Value) -> (Value, Vec<String>) {
    let mut body = body.clone();
    body.as_object_mut().unwrap().remove("series");
    body["projectIds"] = json!([PROJECT]);
    body["filters"] = json!([of_error("is", error)]);
    let reply = tracker.query(&body).await;
    assert_eq!(reply.status, 200, "{}", reply.body);
    let buckets = reply.body.as_array().unwrap();
    (buckets.iter().map(|bucket| bucket["errors"].clone()).collect(), bucket_headers(&reply))
}

fn bucket_headers(reply: &Reply) -> Vec<String> {
    let names = ["x-bucket-seconds", "x-range-from", "x-range-to"];
    let headers = names.iter().filter_map(|name| reply.headers.get(*name));
    headers.map(|value| value.to_str().unwrap().to_owned()).collect()
}

#[tokio::test]
async fn series_matches_count_and_timeseries() {
    let tracker = tracker().await;
    let earlier = [3 * HOUR, 20 * HOUR, 3 * DAY, 20 * DAY];
    for (number, time) in (20..).zip(earlier) {
        let event = SentEvent::new(number, tracker.ago(time), "ValueError", "x");
        tracker.deliver(&event.with("user", "eve")).await;
    }
    for is_packed in [false, true] {
        for (time, seconds) in [
            (HOUR, "60"),
            (6 * HOUR, "300"),
            (DAY, "1800"),
            (5 * DAY, "3600"),
            (300 * DAY, "86400"),
        ] {
            let to = tracker.now().plus(MINUTE).as_millis();
            let body = json!({"from": tracker.ago(time).as_millis(), "to": to, "series": true});
            let reply = query(&tracker, &body).await;
            let headers = bucket_headers(&reply);
            assert_eq!(headers[0], seconds);
            let errors = reply.body["items"].as_array().unwrap();
            assert_eq!(errors.len(), 3, "{body}");
            for error in errors {
                let series = error["series"].as_array().unwrap();
                let sum: u64 = series.iter().map(|count| count.as_u64().unwrap()).sum();
                assert_eq!(json!(sum), error["count"], "{body}, {is_packed}");
                assert!(series.len() <= 401);
                let expected = series_of(&tracker, &body, error).await;
                assert_eq!((&error["series"], &headers), (&expected.0, &expected.1), "{body}");
            }
        }
        tracker.pack().await;
    }
}

#[tokio::test]
async fn series_is_omitted_by_default() {
    let tracker = tracker().await;
    let plain = query(&tracker, &json!({})).await;
    assert!(bucket_headers(&plain).is_empty());
    for body in [json!({"series": null}), json!({"series": false})] {
        assert_eq!(query(&tracker, &body).await.body, plain.body);
    }
    let mut with_series = query(&tracker, &json!({"series": true})).await.body;
    for error in with_series["items"].as_array_mut().unwrap() {
        assert!(error.as_object_mut().unwrap().remove("series").is_some());
    }
    assert_eq!(with_series, plain.body);
    // A future range has no events.
    let from = tracker.now().plus(DAY).as_millis();
    let none = query(&tracker, &json!({"from": from, "to": from + 1, "series": true})).await;
    assert_eq!(none.body["items"], json!([]));
}

#[tokio::test]
async fn every_query_filters_by_error_id() {
    let tracker = tracker().await;
    for is_packed in [false, true] {
        let all = page(&tracker, &json!({"sort": "count"})).await;
        let [most, some, one] = &all[..] else { panic!("{all:?}") };
        for (filters, expected) in [
            (vec![of_error("is", some)], vec![some]),
            (vec![of_error("is", some), of_error("is", one)], vec![some, one]),
            (vec![of_error("is_not", some)], vec![most, one]),
            (vec![of_error("is", some), of_error("is_not", some)], vec![]),
        ] {
            let body = json!({"sort": "count", "filters": filters});
            let found = page(&tracker, &body).await;
            assert_eq!(found.iter().collect::<Vec<_>>(), expected, "{is_packed}");
            let events: u64 = expected.iter().map(|it| it["count"].as_u64().unwrap()).sum();
            assert_eq!(tracker.total(&json!({ "filters": filters })).await, events);
            let body = json!({"projectIds": [PROJECT], "by": "type", "filters": filters});
            let call = Call::of(BREAKDOWN).key(&tracker.test.key).json(&body);
            let rows = call.send(&tracker.test.app).await.body;
            let rows: Vec<_> = rows.as_array().unwrap().iter().map(|it| &it["value"]).collect();
            assert_eq!(rows, expected.iter().map(|it| &it["type"]).collect::<Vec<_>>());
        }
        // Errors of other projects and unknown errors match no event.
        let other = tracker.other_project("one").await;
        let of_other =
            Call::of(QUERY_ERRORS).key(&tracker.test.key).parameter("idOrSlug", other.id);
        let reply = of_other.json(&json!({"filters": [of_error("is", most)]}));
        assert_eq!(reply.send(&tracker.test.app).await.body["items"], json!([]));
        let unknown = json!({"errorId": "01a20b44-5f80-7d12-8e6a-3b9c7f1d2a40"});
        assert_eq!(tracker.total(&json!({"filters": [of_error("is", &unknown)]})).await, 0);
        tracker.pack().await;
    }
}

#[tokio::test]
async fn events_after_deletion_have_a_new_series() {
    let tracker = tracker().await;
    tracker.pack().await;
    tracker.test.pass(3 * MINUTE);
    let body = json!({"searchQuery": "TypeError", "series": true});
    let before = page(&tracker, &body).await;
    let delete = tracker.call_for(&delete_error::OPERATION, &before[0]);
    assert_eq!(delete.send(&tracker.test.app).await.status, 204);
    tracker.test.pass(MINUTE);
    let sum = |series: &Value| -> u64 {
        series.as_array().unwrap().iter().map(|count| count.as_u64().unwrap()).sum()
    };
    assert_eq!(sum(&series_of(&tracker, &body, &before[0]).await.0), 0);
    let again = SentEvent::new(99, tracker.ago(MINUTE), "TypeError", "x");
    tracker.deliver(&again).await;
    let after = page(&tracker, &body).await;
    assert_eq!((after.len(), sum(&after[0]["series"])), (1, 1));
    assert_eq!(sum(&series_of(&tracker, &body, &before[0]).await.0), 0);
}
