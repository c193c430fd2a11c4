//! Tests of query-error-events.

use serde_json::{Value, json};

use shared::app::Operation;
use tests::errors::SentEvent;

use super::{DAY, HOUR, MINUTE, Tracker};

const QUERY_EVENTS: &Operation = &::query_error_events::OPERATION;

/// Returns a tracker with six events of one error, a minute apart, and the error. Every second one
/// is from Chrome.
async fn filled() -> (Tracker, Value) {
    let tracker = Tracker::start().await;
    for number in 0..6 {
        let at = tracker.ago(HOUR + MINUTE * u32::try_from(number).unwrap());
        let browser = if number % 2 == 0 { "Chrome" } else { "Firefox" };
        let event = SentEvent::new(number, at, "TypeError", "x").with("browser", browser);
        tracker.deliver(&event).await;
    }
    tracker.deliver(&SentEvent::new(9, tracker.ago(HOUR), "Other", "y")).await;
    let errors = tracker.errors().await;
    let error = errors.iter().find(|it| it["type"] == "TypeError").unwrap().clone();
    (tracker, error)
}

async fn query(tracker: &Tracker, error: &Value, body: Value) -> Value {
    let call = tracker.call_for(QUERY_EVENTS, error).json(&body);
    let reply = call.send(&tracker.test.app).await;
    assert_eq!(reply.status, 200, "{}", reply.body);
    reply.body
}

/// Returns the numbers of events in a page.
fn numbers(page: &Value) -> Vec<u64> {
    let id = |it: &Value| u128::from_str_radix(it["eventId"].as_str().unwrap(), 16).unwrap();
    let items = page["items"].as_array().unwrap().iter();
    items.map(|it| u64::try_from(id(it) - (1 << 100)).unwrap()).collect()
}

#[tokio::test]
async fn events_have_positions_from_both_ends() {
    let (tracker, error) = filled().await;
    for packed in [false, true] {
        if packed {
            tracker.test.pass(MINUTE * 2);
            tracker.pack().await;
        }
        let newest = query(&tracker, &error, json!({})).await;
        assert_eq!(
            (numbers(&newest), &newest["total"], &newest["position"]),
            (vec![0], &json!(6), &json!(1))
        );
        let oldest = query(&tracker, &error, json!({"order": "oldest", "limit": 2})).await;
        assert_eq!((numbers(&oldest), &oldest["position"]), (vec![5, 4], &json!(6)));
        let id = oldest["items"][1]["eventId"].clone();
        let linked = query(&tracker, &error, json!({"event": id, "limit": 3})).await;
        assert_eq!((numbers(&linked), &linked["position"]), (vec![4, 5], &json!(5)));
        assert_eq!(linked["nextCursor"], json!(null));
        let next =
            query(&tracker, &error, json!({"event": id, "order": "oldest", "limit": 1})).await;
        let cursor = &next["nextCursor"];
        let next = query(&tracker, &error, json!({"order": "oldest", "cursor": cursor})).await;
        assert_eq!((numbers(&next), &next["position"]), (vec![3], &json!(null)));
    }
}

#[tokio::test]
async fn filtered_events_have_positions_among_each_other() {
    let (tracker, error) = filled().await;
    let filters = json!([{"categoryId": "browser", "operator": "is", "value": "Firefox"}]);
    let mut body = json!({"filters": filters, "limit": 2});
    let first = query(&tracker, &error, body.clone()).await;
    assert_eq!(
        (numbers(&first), &first["total"], &first["position"]),
        (vec![1, 3], &json!(3), &json!(1))
    );
    body["cursor"] = first["nextCursor"].clone();
    let last = query(&tracker, &error, body).await;
    assert_eq!((numbers(&last), &last["nextCursor"]), (vec![5], &json!(null)));
    // A linked event outside the filter is shown without a position.
    let id = format!("{:032x}", 2_u128 + (1 << 100));
    let linked =
        query(&tracker, &error, json!({"filters": filters, "event": id, "limit": 2})).await;
    assert_eq!((numbers(&linked), &linked["position"]), (vec![2, 3], &json!(null)));
}

#[tokio::test]
async fn pages_cover_all_events_in_each_order() {
    let (tracker, error) = filled().await;
    for (order, expected) in [("newest", [0, 1, 2, 3, 4, 5]), ("oldest", [5, 4, 3, 2, 1, 0])] {
        for limit in [1, 2, 4, 6] {
            let (mut found, mut cursor) = (Vec::new(), json!(null));
            loop {
                let body = json!({"order": order, "limit": limit, "cursor": cursor});
                let page = query(&tracker, &error, body).await;
                found.extend(numbers(&page));
                cursor = page["nextCursor"].clone();
                if cursor.is_null() {
                    break;
                }
            }
            assert_eq!(found, expected, "{order} {limit}");
        }
    }
}

#[tokio::test]
async fn events_of_other_errors_are_rejected() {
    let (tracker, error) = filled().await;
    let id = format!("{:032x}", 9_u128 + (1 << 100));
    for event in [id.as_str(), "0123456789abcdef0123456789abcdef"] {
        let call = tracker.call_for(QUERY_EVENTS, &error).json(&json!({"event": event}));
        let reply = call.send(&tracker.test.app).await;
        assert_eq!((reply.status, reply.violations()), (400, vec![("/event", "invalid_value")]));
    }
    let call = tracker.call_for(QUERY_EVENTS, &error).json(&json!({"event": "x", "order": "up"}));
    let reply = call.send(&tracker.test.app).await;
    let expected = vec![("/order", "invalid_value"), ("/event", "invalid_format")];
    assert_eq!((reply.status, reply.violations()), (400, expected));
}

#[tokio::test]
async fn ranges_and_states_can_exclude_all_events() {
    let (tracker, error) = filled().await;
    let to = tracker.ago(DAY).as_millis();
    for body in [json!({"to": to}), json!({"status": "resolved"}), json!({"searchQuery": "absent"})]
    {
        let page = query(&tracker, &error, body).await;
        assert_eq!(
            (numbers(&page), &page["total"], &page["position"]),
            (vec![], &json!(0), &json!(null))
        );
    }
}
