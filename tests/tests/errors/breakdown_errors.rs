//! Tests of breakdown-errors.

use serde_json::{Value, json};
use tests::app::PROJECT;
use tests::call::{Call, Reply};
use tests::errors::SentEvent;

use super::{BREAKDOWN, MINUTE, Tracker};

async fn query(tracker: &Tracker, body: &Value) -> Reply {
    let mut whole = json!({"projectIds": [PROJECT], "by": "browser"});
    for (name, value) in body.as_object().unwrap() {
        whole[name] = value.clone();
    }
    let reply = Call::of(BREAKDOWN).key(&tracker.test.key).json(&whole);
    reply.send(&tracker.test.app).await
}

#[tokio::test]
async fn breakdown_has_top_values_and_a_rest() {
    let tracker = Tracker::start().await;
    let other = tracker.other_project("other").await;
    let event =
        |number, error_type| SentEvent::new(number, tracker.ago(10 * MINUTE), error_type, "x");
    let events = [
        event(1, "A").with("browser", "Firefox"),
        event(2, "B").with("browser", "Firefox"),
        event(3, "A"),
        event(4, "A"),
        event(5, "B").with("browser", "Chrome"),
        event(6, "B").with("browser", "Safari"),
    ];
    tracker.deliver_all(&events).await;
    let of_other = event(7, "A").with("browser", "Firefox");
    assert_eq!(tracker.deliver_to(&other, &of_other).await.status, 200);
    let row = |value: Value, errors: u64, unique: u64| json!({"value": value, "errors": errors, "uniqueErrors": unique});
    for is_packed in [false, true] {
        let all = query(&tracker, &json!({})).await;
        let expected = json!([
            row(json!("Firefox"), 2, 2),
            row(Value::Null, 2, 1),
            row(json!("Chrome"), 1, 1),
            row(json!("Safari"), 1, 1),
        ]);
        assert_eq!(all.body, expected, "{is_packed}");
        assert_eq!(query(&tracker, &json!({"limit": 4})).await.body, expected);
        let mut rest = row(Value::Null, 2, 1);
        rest["other"] = json!(true);
        let both = json!({"limit": 2, "projectIds": [PROJECT, "other"]});
        let expected = json!([row(json!("Firefox"), 3, 3), row(Value::Null, 2, 1), rest]);
        let cut = query(&tracker, &both).await;
        assert_eq!(cut.body, expected);
        let none = query(&tracker, &json!({"searchQuery": "nothing-like-it"})).await;
        assert_eq!(none.body, json!([]));
        tracker.pack().await;
    }
}
