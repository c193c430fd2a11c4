//! query-errors.

use serde_json::{Value, json};
use tests::app::PROJECT;
use tests::call::{Call, Reply};
use tests::error_tracking::SentEvent;

use super::{DAY, HOUR, LIST, MINUTE, QUERY_ERRORS, Tracker, column};

async fn ask(tracker: &Tracker, body: &Value) -> Reply {
    let call = tracker.call(QUERY_ERRORS).json(body);
    call.send(&tracker.test.app).await
}

async fn page(tracker: &Tracker, body: &Value) -> Vec<Value> {
    let reply = ask(tracker, body).await;
    assert_eq!(reply.status, 200, "{}", reply.body);
    reply.body["items"].as_array().unwrap().clone()
}

/// Three errors: many events of one user, few of several, one of nobody.
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
async fn each_sort_has_its_order_from_page_to_page() {
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
                let reply = ask(&tracker, &body).await;
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
async fn counts_are_those_of_the_range_and_times_those_of_the_error() {
    let tracker = tracker().await;
    let body = json!({"from": tracker.ago(25 * MINUTE).as_millis(), "searchQuery": "ValueError"});
    let found = page(&tracker, &body).await;
    let [error] = &found[..] else { panic!("{found:?}") };
    assert_eq!((&error["count"], &error["users"]), (&json!(1), &json!(1)));
    assert_eq!(error["firstSeen"], tracker.ago(50 * MINUTE).to_string());
    assert_eq!(error["lastSeen"], tracker.ago(20 * MINUTE).to_string());
    let nobody = page(&tracker, &json!({"searchQuery": "KeyError"})).await;
    assert_eq!((&nobody[0]["count"], &nobody[0]["users"]), (&json!(1), &json!(0)));
    assert_eq!(page(&tracker, &json!({"status": "resolved"})).await, [] as [Value; 0]);
}

#[tokio::test]
async fn a_range_without_an_end_stays_as_it_was_on_the_first_page() {
    let tracker = tracker().await;
    let mut body = json!({"sort": "count", "limit": 1, "from": tracker.ago(HOUR).as_millis()});
    let first = ask(&tracker, &body).await;
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
async fn only_its_own_cursors_of_the_same_order_are_taken() {
    let tracker = tracker().await;
    let first = ask(&tracker, &json!({"sort": "count", "limit": 1})).await;
    let cursor = &first.body["nextCursor"];
    let list = tracker.call(LIST).query("limit", 1).send(&tracker.test.app).await;
    let other = tracker.other_project("one").await;
    for body in [
        json!({"sort": "users", "cursor": cursor}),
        json!({ "cursor": cursor }),
        json!({"sort": "count", "cursor": list.body["nextCursor"]}),
        json!({"cursor": ""}),
    ] {
        let reply = ask(&tracker, &body).await;
        assert_eq!(reply.status, 400, "{body}");
        assert_eq!(reply.violations(), [("/cursor", "invalid_value")], "{body}");
    }
    let call = Call::of(QUERY_ERRORS).key(&tracker.test.key).parameter("idOrSlug", other.id);
    let reply =
        call.json(&json!({"sort": "count", "cursor": cursor})).send(&tracker.test.app).await;
    assert_eq!(reply.violations(), [("/cursor", "invalid_value")]);
}

#[tokio::test]
async fn what_is_wrong_is_told_at_its_place() {
    let tracker = Tracker::start().await;
    for (body, violation) in [
        (json!({"sort": "title"}), ("/sort", "invalid_value")),
        (json!({"limit": 0}), ("/limit", "out_of_range")),
        (json!({"limit": 101}), ("/limit", "out_of_range")),
        (json!({"limit": 1.5}), ("/limit", "out_of_range")),
        (json!({"projectIds": [PROJECT]}), ("/projectIds", "unknown_field")),
        (json!({"from": 2e12, "to": 1e12}), ("/to", "out_of_range")),
        (
            json!({"filters": [{"categoryId": "user", "operator": "contains", "value": "a"}]}),
            ("/filters/0/operator", "invalid_value"),
        ),
    ] {
        let reply = ask(&tracker, &body).await;
        assert_eq!((reply.status, reply.violations()), (400, vec![violation]), "{body}");
    }
}

#[tokio::test]
async fn a_deleted_error_is_gone_at_once_and_what_comes_after_counts_anew() {
    let tracker = tracker().await;
    tracker.pack().await;
    // That was as of two minutes from now.
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
