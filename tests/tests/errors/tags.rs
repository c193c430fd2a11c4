//! Tests of tags as categories.

use std::collections::BTreeMap;

use aws_sdk_dynamodb::types::AttributeValue;
use serde_json::{Value, json};

use errors::store::MAX_NEW_VALUES;
use shared::app::{Ids, Operation};
use tests::call::Call;
use tests::errors::SentEvent;

use super::{BREAKDOWN, CATEGORIES, Item, MINUTE, PROJECT, QUERY_ERRORS, Tracker, envelope, text};

const SUMMARIZE: &Operation = &::summarize_error::OPERATION;
const QUERY_EVENTS: &Operation = &::query_error_events::OPERATION;

fn event(tracker: &Tracker, number: u64, tenant: &'static str) -> SentEvent {
    SentEvent::new(number, tracker.ago(MINUTE), "TypeError", "x").with("tags.tenant", tenant)
}

/// Returns the values of each category of tags, as list-error-categories lists them.
async fn listed(tracker: &Tracker) -> BTreeMap<String, Value> {
    let reply = tracker.call(CATEGORIES).send(&tracker.test.app).await;
    assert_eq!(reply.status, 200, "{}", reply.body);
    let tags = reply.body.as_array().unwrap().iter().filter_map(|category| {
        let id = category["id"].as_str()?.strip_prefix("tags.")?;
        assert_eq!(category["label"], *id);
        Some((id.to_owned(), category["values"].clone()))
    });
    tags.collect()
}

/// Returns the events of each value of a tag.
async fn breakdown(tracker: &Tracker, by: &str) -> Value {
    let mut body = tracker.since(super::HOUR);
    body["by"] = json!(by);
    let call = Call::of(BREAKDOWN).key(&tracker.test.key).json(&body);
    let reply = call.send(&tracker.test.app).await;
    assert_eq!(reply.status, 200, "{}", reply.body);
    let rows = reply.body.as_array().unwrap().iter();
    rows.map(|row| json!([row["value"], row["errors"]])).collect()
}

#[tokio::test]
async fn tags_are_categories_before_and_after_packing() {
    let tracker = Tracker::start().await;
    for (number, tenant) in [(0, "acme"), (1, "acme"), (2, "umbrella")] {
        tracker.deliver(&event(&tracker, number, tenant).with("tags.plan", "pro")).await;
    }
    tracker.deliver(&SentEvent::new(3, tracker.ago(MINUTE), "TypeError", "x")).await;
    let error = tracker.the_error().await;
    for packed in [false, true] {
        if packed {
            tracker.test.pass(2 * MINUTE);
            assert_eq!(tracker.pack().await, 1);
            assert_eq!(tracker.items_of("log#").await.len(), 4, "rows of events stay for lists");
        }
        let expected = [("plan", json!(["pro"])), ("tenant", json!(["acme", "umbrella"]))];
        assert_eq!(listed(&tracker).await, expected.map(|(id, it)| (id.to_owned(), it)).into());
        for (operator, value, events) in [
            ("is", "acme", 2),
            ("is_not", "acme", 2),
            ("contains", "MBR", 1),
            ("is_set", "", 3),
            ("is_not_set", "", 1),
        ] {
            let filter = json!({"categoryId": "tags.tenant", "operator": operator, "value": value});
            assert_eq!(tracker.total(&json!({"filters": [filter]})).await, events, "{filter}");
            let call = tracker.call_for(QUERY_EVENTS, &error).json(&json!({"filters": [filter]}));
            let page = call.send(&tracker.test.app).await.body;
            assert_eq!(page["total"], events, "{filter}");
            assert_eq!(page["items"].as_array().unwrap().len(), 1, "{filter}");
        }
        for (search, events) in [("tenant:acme", 2), ("!tenant:acme typeerror", 2), ("tenant:", 0)]
        {
            assert_eq!(tracker.total(&json!({"searchQuery": search})).await, events, "{search}");
        }
        let call = tracker.call(QUERY_ERRORS).json(&json!({"searchQuery": "tenant:umbrella"}));
        assert_eq!(call.send(&tracker.test.app).await.body["items"][0]["count"], 1);
        let rows = json!([["acme", 2], ["umbrella", 1], [null, 1]]);
        assert_eq!(breakdown(&tracker, "tags.tenant").await, rows);
        let by = json!({"by": ["tags.tenant"], "limit": 1, "searchQuery": "tenant:acme"});
        let call = tracker.call_for(SUMMARIZE, &error).json(&by);
        let summary = call.send(&tracker.test.app).await.body;
        let share = json!({"value": "acme", "errors": 2, "uniqueErrors": 1});
        assert_eq!(
            (&summary["count"], &summary["shares"]),
            (&json!(2), &json!([{"categoryId": "tags.tenant", "rows": [share]}]))
        );
    }
}

#[tokio::test]
async fn frequent_keys_replace_rare_ones() {
    let mut tracker = Tracker::start().await;
    // A random sample of events names further keys.
    tracker.test.app.ids = Ids::Random;
    // A hostile sender takes all keys first.
    let mut payload = event(&tracker, 0, "").payload();
    for number in 0..30 {
        payload["tags"][format!("junk{number}")] = json!("x");
    }
    let hostile = tests::errors::envelope(&json!({}), &[("event", payload.to_string())]);
    let call = super::delivery(&tracker.project, super::ENVELOPE).bytes(hostile);
    assert_eq!(call.send(&tracker.test.app).await.status, 200);
    assert_eq!(listed(&tracker).await.len(), 20);
    let events: Vec<SentEvent> = (1..400).map(|number| event(&tracker, number, "acme")).collect();
    tracker.deliver_all(&events).await;
    assert!(!listed(&tracker).await.contains_key("tenant"));
    tracker.test.pass(2 * MINUTE);
    tracker.pack().await;
    // Warm functions cache the keys for a minute.
    tracker.test.pass(2 * MINUTE);
    tracker.deliver(&event(&tracker, 900, "acme")).await;
    let listed = listed(&tracker).await;
    assert_eq!((listed.len(), &listed["tenant"]), (20, &json!(["acme"])));
}

#[tokio::test]
async fn values_beyond_the_limit_are_other() {
    let tracker = Tracker::start().await;
    tracker.deliver(&event(&tracker, 0, "acme")).await;
    let is_count = |item: &Item| text(item, "sk").starts_with("count#");
    let items = tracker.items_of("tags#").await;
    let count = items.iter().find(|item| is_count(item)).unwrap();
    tracker.tamper(count, "newValues", AttributeValue::N(MAX_NEW_VALUES.to_string())).await;
    for (number, tenant) in [(1, "umbrella"), (2, "initech"), (3, "acme")] {
        tracker.deliver(&event(&tracker, number, tenant)).await;
    }
    let values = tracker.items_of("tag-values#").await;
    let mut values: Vec<&str> = values.iter().map(|item| text(item, "value")).collect();
    values.sort_unstable();
    assert_eq!(values, ["<other>", "acme"]);
    let rows = json!([["<other>", 2], ["acme", 2]]);
    assert_eq!(breakdown(&tracker, "tags.tenant").await, rows);
    // Other keys and the next day have their own numbers.
    tracker.deliver(&event(&tracker, 4, "acme").with("tags.plan", "pro")).await;
    tracker.test.pass(super::DAY);
    tracker.deliver(&event(&tracker, 5, "umbrella")).await;
    assert_eq!(tracker.items_of("tag-values#").await.len(), 4);
}

#[tokio::test]
async fn a_tag_takes_at_most_8_bytes_of_a_row() {
    let tracker = Tracker::start().await;
    let long: &'static str =
        "a value that is longer than most, of more than sixty-four bytes in UTF-8";
    for (number, tags) in [(0, 0), (1, 1), (2, 20)] {
        let mut payload = SentEvent::new(number, tracker.now(), "TypeError", "x").payload();
        for tag in 0..tags {
            payload["tags"][format!("key{tag:02}")] = json!(format!("{tag}{long}"));
        }
        let body = tests::errors::envelope(&json!({}), &[("event", payload.to_string())]);
        let call = super::delivery(&tracker.project, super::ENVELOPE).bytes(body);
        assert_eq!(call.send(&tracker.test.app).await.status, 200);
    }
    let mut rows = tracker.items_of("log#").await;
    rows.sort_by_key(|item| text(item, "sk").to_owned());
    let size = |item: &Item| -> usize {
        item.iter().map(|(name, value)| name.len() + format!("{value:?}").len()).sum()
    };
    let bytes = |item: &Item| match item.get("t") {
        Some(AttributeValue::B(tags)) => 1 + tags.as_ref().len(),
        _ => 0,
    };
    let of: Vec<usize> = rows.iter().map(bytes).collect();
    println!("bytes of 0, 1 and 20 tags in rows: {of:?}");
    assert_eq!(of, [0, 8, 141]);
    // Nothing else differs.
    let others = |item: &Item| {
        let mut item = item.clone();
        item.remove("t");
        size(&item)
    };
    assert!(rows.iter().all(|row| others(row) == others(&rows[0])));
}

#[tokio::test]
async fn tags_survive_retries_and_other_instances() {
    let tracker = Tracker::start().await;
    let sent = event(&tracker, 0, "acme");
    for _ in 0..2 {
        assert_eq!(envelope(&tracker.project, &sent).send(&tracker.test.app).await.status, 200);
    }
    assert_eq!(breakdown(&tracker, "tags.tenant").await, json!([["acme", 1]]));
    assert_eq!(tracker.items_of("tag-values#").await.len(), 1);
    let body = json!({"projectIds": [PROJECT], "by": "tags.a b"});
    let call = Call::of(BREAKDOWN).key(&tracker.test.key).json(&body);
    let reply = call.send(&tracker.test.app).await;
    assert_eq!((reply.status, reply.violations()), (400, vec![("/by", "invalid_value")]));
}
