//! The path from list-error-categories through interpret-error-filters to event queries. Each
//! operation accepts the previous response, and all event queries return equal counts.

use std::collections::HashSet;

use serde_json::{Value, json};

use shared::app::Operation;
use tests::app::PROJECT;
use tests::call::Call;
use tests::errors::SentEvent;

use super::interpret_error_filters::all_queries;
use super::{
    BREAKDOWN, CATEGORIES, DAY, ENVELOPE, HOUR, MINUTE, QUERY, QUERY_ERRORS, Tracker, delivery,
};

const INTERPRET: &Operation = &::interpret_error_filters::OPERATION;

/// Recorded SDK requests, from the first day of the test clock.
const RECORDED: [&str; 7] = [
    "node-chained-exception",
    "node-message",
    "node-unhandled",
    "python-chained-exception",
    "python-client-fingerprint",
    "python-logged-message",
    "python-unhandled",
];

fn recorded(name: &str) -> String {
    let folder = tests::workspace().join("crates/errors/src/testdata");
    std::fs::read_to_string(folder.join(format!("{name}.envelope"))).unwrap()
}

/// Returns a project with recorded events of several SDKs, and generated events in runs and in
/// rows. The generated events have values that occur in queries.
async fn tracker() -> Tracker {
    let tracker = Tracker::start().await;
    let event = |number: u64| {
        let types = ["TypeError", "ValueError", "TimeoutError"];
        let pick = |values: &[&'static str], by: u64| {
            values[usize::try_from(number / by).unwrap() % values.len()]
        };
        let age = if number < 20 { 2 * DAY } else { HOUR };
        let at = tracker.ago(age + u32::try_from(number).unwrap() * MINUTE);
        SentEvent::new(number, at, pick(&types, 1), "x")
            .with("browser", pick(&["Chrome", "Firefox", "Mobile Safari", "Edge"], 2))
            .with("os", pick(&["Windows", "Mac OS X", "Android", "iOS"], 3))
            .with("environment", pick(&["production", "staging"], 1))
            .with("release", pick(&["shop@2.4.0", "shop@2.4.1"], 5))
            .with("level", pick(&["error", "warning", "fatal"], 4))
            .with("country", pick(&["DE", "FR", "US"], 2))
            .with("handled", pick(&["true", "false"], 3))
            .with("platform", pick(&["javascript", "python"], 7))
            .with("transaction", pick(&["/checkout", "/cart", "/login"], 2))
            .with("user", pick(&["ada", "bob", "eve"], 6))
    };
    let events: Vec<SentEvent> = (0..40).map(event).collect();
    tracker.deliver_all(&events[..20]).await;
    tracker.pack().await;
    // Later rows must not be older than packed ones.
    tracker.test.pass(2 * MINUTE);
    tracker.deliver_all(&events[20..]).await;
    // The recordings are from later on that day.
    tracker.test.pass(8 * HOUR);
    for envelope in RECORDED.map(recorded) {
        // The recorded header names another project.
        let (_, items) = envelope.split_once('\n').unwrap();
        let call = delivery(&tracker.project, ENVELOPE).bytes(format!("{{}}\n{items}"));
        let reply = call.send(&tracker.test.app).await;
        assert_eq!(reply.status, 200, "{}", reply.body);
    }
    tracker
}

fn keyed(tracker: &Tracker, operation: &'static Operation) -> Call {
    Call::of(operation).key(&tracker.test.key)
}

async fn response(tracker: &Tracker, call: Call, body: &Value) -> Value {
    let reply = call.json(body).send(&tracker.test.app).await;
    assert_eq!(reply.status, 200, "{body}: {}", reply.body);
    reply.body
}

fn sum(rows: &Value, field: &str) -> u64 {
    rows.as_array().unwrap().iter().map(|row| row[field].as_u64().unwrap()).sum()
}

/// Returns the number of events that match the filters. All three event queries must agree.
async fn count(tracker: &Tracker, filters: &Value) -> u64 {
    let from = tracker.ago(7 * DAY).as_millis();
    let events = json!({ "from": from, "filters": filters });
    let found = response(tracker, tracker.call(QUERY_ERRORS), &events).await;
    let mut events = json!({"projectIds": [PROJECT], "from": from, "filters": filters});
    let buckets = response(tracker, keyed(tracker, QUERY), &events).await;
    events["by"] = json!("browser");
    let shares = response(tracker, keyed(tracker, BREAKDOWN), &events).await;
    let counts = [sum(&found["items"], "count"), sum(&buckets, "errors"), sum(&shares, "errors")];
    assert!(counts.iter().all(|count| *count == counts[0]), "{filters}: {counts:?}");
    counts[0]
}

#[tokio::test]
async fn event_queries_accept_interpreted_filters() {
    let tracker = tracker().await;
    let reply = tracker.call(CATEGORIES).send(&tracker.test.app).await;
    assert_eq!(reply.status, 200, "{}", reply.body);
    let categories = reply.body;
    let mut seen = HashSet::new();
    let mut with_events = 0;
    for query in all_queries() {
        let question = json!({"projectId": PROJECT, "query": query, "categories": categories,
            "currentFilters": []});
        let filters =
            response(&tracker, keyed(&tracker, INTERPRET), &question).await["filters"].clone();
        let filters_count = filters.as_array().unwrap().len();
        // Queries of other categories have no filters, or those of an earlier query.
        if filters_count > 0 && filters_count <= 20 && seen.insert(filters.to_string()) {
            with_events += usize::from(count(&tracker, &filters).await > 0);
        }
    }
    assert!(seen.len() > 100 && with_events > 20, "{} {with_events}", seen.len());
    let all = count(&tracker, &json!([])).await;
    assert_eq!(all, 40 + RECORDED.len() as u64);
}

#[tokio::test]
async fn categories_list_most_frequent_values_first() {
    let tracker = Tracker::start().await;
    let event = |number: u64, browser: &str| {
        SentEvent::new(number, tracker.ago(HOUR), "TypeError", "x").with("browser", browser)
    };
    let mut events: Vec<SentEvent> = (0..3).map(|number| event(number, "Firefox")).collect();
    events.push(event(10, "Chrome"));
    events.push(
        SentEvent::new(11, tracker.ago(29 * DAY + HOUR), "TypeError", "x").with("browser", "Edge"),
    );
    events.push(
        SentEvent::new(12, tracker.ago(29 * DAY), "TypeError", "x").with("browser", "Chrome"),
    );
    for number in 100..360 {
        events.push(
            SentEvent::new(number, tracker.ago(MINUTE), "TypeError", "x")
                .with("transaction", &format!("/{number}")),
        );
    }
    tracker.deliver_all(&events).await;
    for is_packed in [false, true] {
        let reply = tracker.call(CATEGORIES).send(&tracker.test.app).await;
        let of = |id: &str| {
            let mut categories = reply.body.as_array().unwrap().iter();
            categories.find(|category| category["id"] == id).map(|it| it["values"].clone())
        };
        assert_eq!(of("browser"), Some(json!(["Firefox", "Chrome", "Edge"])), "{is_packed}");
        assert_eq!(of("type"), Some(json!(["TypeError"])));
        assert_eq!(of("url"), Some(json!([])));
        assert_eq!(of("user"), None);
        let transactions = of("transaction").unwrap();
        assert_eq!(transactions.as_array().unwrap().len(), 200);
        assert_eq!(transactions[0], "/100");
        tracker.pack().await;
    }
    // Values are no longer listed after 30 days.
    tracker.test.pass(DAY);
    let reply = tracker.call(CATEGORIES).send(&tracker.test.app).await;
    let browsers = &reply.body.as_array().unwrap().iter().find(|it| it["id"] == "browser");
    assert_eq!(browsers.unwrap()["values"], json!(["Firefox", "Chrome"]));
}
