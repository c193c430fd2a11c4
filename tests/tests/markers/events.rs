//! Adding and listing events.

use std::sync::atomic::{AtomicBool, Ordering};

use futures_util::future::join_all;
use serde_json::{Value, json};
use tests::app::TestApp;
use tests::call::{Call, Gateway};

use super::{
    ADD, DELETE, LIST_EVENTS, TABLE, add, call_for, column, count_listed, create, event_count,
    event_names, events, some_events,
};

fn list(test: &TestApp, id: &str) -> Call {
    call_for(test, LIST_EVENTS, id)
}

#[tokio::test]
async fn requests_store_up_to_a_hundred_events() {
    let test = TestApp::start().await;
    for count in [1, 97, 98, 99, 100] {
        let id = create(&test).await;
        let reply = add(&test, &id, &some_events(count)).await;
        assert_eq!(reply.body["events"].as_array().unwrap().len(), count);
        assert_eq!(event_count(&test, &id).await, count);
        assert_eq!(count_listed(&test, &id).await, count);
        let retried = call_for(&test, ADD, &id).header("idempotency-key", &id);
        let retried = retried.json(&some_events(count));
        let first = retried.clone().send(&test.app).await;
        let again = retried.send(&test.app).await;
        assert_eq!((first.status, again.status), (201, 201));
        assert_eq!(first.body, again.body);
        assert_eq!(again.headers["idempotency-replayed"], "true");
        assert_eq!(event_count(&test, &id).await, 2 * count);
        assert_eq!(count_listed(&test, &id).await, 2 * count);
        assert_no_event_is_pending(&test).await;
        let call = call_for(&test, DELETE, &id);
        assert_eq!(call.send(&test.app).await.status, 204);
    }
}

async fn assert_no_event_is_pending(test: &TestApp) {
    let items = test.items(TABLE).await;
    assert!(items.iter().all(|item| !item.contains_key("pending")));
}

/// Creates a collection with a hundred events whose writer died between its two transactions.
async fn half_written(test: &TestApp) -> String {
    let id = create(test).await;
    let call = call_for(test, ADD, &id).header("idempotency-key", &id);
    let reply = call.json(&some_events(100)).send(&test.dying_after(1)).await;
    assert_eq!(reply.status, 201, "pending events count as stored");
    let items = test.items(TABLE).await;
    let pending =
        items.iter().find_map(|item| item.get("pending")).expect("some events are pending");
    assert_eq!(pending.as_l().unwrap().len(), 2);
    id
}

#[tokio::test]
async fn events_of_dead_writers_are_listed() {
    let test = TestApp::start().await;
    let id = half_written(&test).await;
    assert_eq!(event_count(&test, &id).await, 100);
    for limit in [100, 7] {
        let listed = test.pages(&list(&test, &id), limit).await.concat();
        let ids: std::collections::BTreeSet<_> = column(&listed, "id").into_iter().collect();
        assert_eq!((listed.len(), ids.len()), (100, 100));
    }
    // Readers write nothing.
    let items = test.items(TABLE).await;
    assert_eq!(items.iter().filter(|item| item.contains_key("pending")).count(), 1);

    // A page that ends before the pending events leaves them to the next page.
    let pages = test.pages(&list(&test, &id), 98).await;
    assert_eq!(pages.iter().map(Vec::len).collect::<Vec<_>>(), [98, 2]);

    // A retry returns the dead writer's response.
    let id = half_written(&test).await;
    let call = call_for(&test, ADD, &id).header("idempotency-key", &id);
    let reply = call.json(&some_events(100)).send(&test.app).await;
    assert_eq!(
        (reply.status, &reply.headers["idempotency-replayed"]),
        (201, &"true".parse().unwrap())
    );
    assert_eq!((event_count(&test, &id).await, count_listed(&test, &id).await), (100, 100));
}

#[tokio::test]
async fn writers_continue_after_one_died() {
    let test = TestApp::start().await;
    for next in [1, 98, 99, 100] {
        let id = half_written(&test).await;
        assert_eq!(add(&test, &id, &some_events(next)).await.status, 201);
        assert_eq!(event_count(&test, &id).await, 100 + next);
        assert_eq!(count_listed(&test, &id).await, 100 + next);
        assert_no_event_is_pending(&test).await;
    }
    let id = half_written(&test).await;
    assert_eq!(call_for(&test, DELETE, &id).send(&test.app).await.status, 204);
    assert_eq!(list(&test, &id).send(&test.app).await.status, 404);
    assert_eq!(add(&test, &id, &some_events(100)).await.status, 404);
    assert_no_event_is_pending(&test).await;
}

#[tokio::test]
async fn events_of_concurrent_writers_are_counted_once() {
    let test = TestApp::start().await;
    let id = create(&test).await;
    let writers = (0..16).map(|writer| {
        let (test, id) = (&test, &id);
        async move {
            let mut added = 0;
            for round in 0..3 {
                // Some writers need two transactions, and meet each other's pending events.
                let count = if writer % 4 == 0 && round == 0 { 99 } else { 1 + writer % 4 };
                let reply = add(test, id, &some_events(count)).await;
                assert_eq!(reply.status, 201, "{}", reply.body);
                added += count;
            }
            added
        }
    });
    let reading = AtomicBool::new(true);
    let reader = async {
        let mut last = 0;
        while reading.load(Ordering::Relaxed) {
            let count = event_count(&test, &id).await;
            assert!(count >= last, "{count} follows {last}");
            last = count;
        }
    };
    let writing = async {
        let added: usize = join_all(writers).await.into_iter().sum();
        reading.store(false, Ordering::Relaxed);
        added
    };
    let (added, ()) = tokio::join!(writing, reader);
    assert_eq!(event_count(&test, &id).await, added);
    assert_eq!(count_listed(&test, &id).await, added);
    assert_no_event_is_pending(&test).await;
}

#[tokio::test]
async fn retried_requests_add_their_events_once() {
    let test = TestApp::start().await;
    let id = create(&test).await;
    let request =
        |count| call_for(&test, ADD, &id).header("idempotency-key", "k").json(&some_events(count));
    let duplicates = join_all((0..8).map(|_| request(99).send(&test.app))).await;
    assert!(duplicates.iter().all(|reply| reply.status == 201 && reply.body == duplicates[0].body));
    assert_eq!((event_count(&test, &id).await, count_listed(&test, &id).await), (99, 99));
    let other = request(1).send(&test.app).await;
    assert_eq!(other.problem(), (409, "idempotency_conflict"));
    // The same key for another collection is a different request.
    let elsewhere = create(&test).await;
    let call = call_for(&test, ADD, &elsewhere).header("idempotency-key", "k");
    let reply = call.json(&some_events(99)).send(&test.app).await;
    assert_eq!(reply.problem(), (409, "idempotency_conflict"));
    assert_eq!(event_count(&test, &elsewhere).await, 0);
    for nowhere in ["no-id", "0b24dd5a-0000-4000-8000-00000000000a"] {
        let call = call_for(&test, ADD, nowhere).header("idempotency-key", "k");
        let reply = call.json(&some_events(99)).send(&test.app).await;
        assert_eq!(reply.problem(), (409, "idempotency_conflict"), "{nowhere}");
    }
}

/// Times from the first to the last that RFC 3339 allows.
const HISTORY: [(&str, &str); 8] = [
    ("year 0", "0000-01-01T00:00:00.000Z"),
    ("before 1970", "1969-12-31T23:59:59.999Z"),
    ("1970", "1970-01-01T00:00:00.000Z"),
    ("2001", "2001-09-09T01:46:39.999Z"),
    ("a second", "2026-11-21T04:16:00.000Z"),
    ("a millisecond later", "2026-11-21T04:16:00.001Z"),
    ("the next second", "2026-11-21T04:16:01.000Z"),
    ("year 9999", "9999-12-31T23:59:59.999Z"),
];

async fn with_history(test: &TestApp) -> String {
    let id = create(test).await;
    let mut shuffled = HISTORY;
    shuffled.reverse();
    shuffled.swap(1, 4);
    assert_eq!(add(test, &id, &events(&shuffled)).await.status, 201);
    id
}

#[tokio::test]
async fn events_from_year_0_to_9999_are_listed() {
    let test = TestApp::start().await;
    let id = with_history(&test).await;
    let listed = test.pages(&list(&test, &id), 100).await.concat();
    assert_eq!(column(&listed, "name"), HISTORY.map(|(name, _)| name));
    assert_eq!(column(&listed, "occurredAt"), HISTORY.map(|(_, at)| at));
    for limit in [1, 3, 8] {
        let listed = test.pages(&list(&test, &id), limit).await.concat();
        assert_eq!(column(&listed, "name"), HISTORY.map(|(name, _)| name));
    }
}

#[tokio::test]
async fn ranges_include_from_and_exclude_to() {
    let test = TestApp::start().await;
    let id = with_history(&test).await;
    let at: i64 = 1_795_234_560_000;
    let (year_0, end) = (-62_167_219_200_000, 253_402_300_799_999_i64);
    for (from, to, expected) in [
        (Some(at), Some(at + 1), 4..5),
        (Some(at), Some(at + 2), 4..6),
        (Some(at + 1), Some(at + 1_000), 5..6),
        (Some(at + 2), Some(at + 1_000), 6..6),
        (Some(at + 2), Some(at + 1_001), 6..7),
        (Some(-1), Some(0), 1..2),
        (Some(-1), Some(1), 1..3),
        (None, Some(0), 0..2),
        (None, Some(year_0), 0..0),
        (None, Some(year_0 + 1), 0..1),
        (Some(0), None, 2..8),
        (Some(end), None, 7..8),
        (None, Some(end), 0..7),
        (None, Some(end + 1), 0..8),
        (Some(end + 1), None, 8..8),
        (Some(end + 1), Some(end + 2), 8..8),
        (Some(i64::MIN), Some(i64::MAX), 0..8),
        (Some(year_0 - 2), Some(year_0 - 1), 0..0),
    ] {
        let mut call = list(&test, &id);
        for (name, bound) in [("from", from), ("to", to)] {
            if let Some(bound) = bound {
                call = call.query(name, bound);
            }
        }
        let names: Vec<&str> = HISTORY[expected].iter().map(|(name, _)| *name).collect();
        for (gateway, limit) in [(Gateway::HttpApi, 100), (Gateway::RestApi, 1)] {
            let found = test.pages(&call.clone().gateway(gateway), limit).await.concat();
            assert_eq!(column(&found, "name"), names, "from {from:?} to {to:?}");
        }
    }
}

#[tokio::test]
async fn simultaneous_events_keep_their_order_across_pages() {
    let test = TestApp::start().await;
    let id = create(&test).await;
    add(&test, &id, &some_events(9)).await;
    let all = test.pages(&list(&test, &id), 100).await.concat();
    for limit in [1, 2, 9] {
        assert_eq!(test.pages(&list(&test, &id), limit).await.concat(), all);
    }
}

#[tokio::test]
async fn events_added_while_paging_cause_no_repeats() {
    let test = TestApp::start().await;
    let id = create(&test).await;
    let day = |day: u32| format!("2026-11-{day:02}T00:00:00Z");
    let add_days = async |days: &[u32]| {
        let days: Vec<String> = days.iter().map(|number| day(*number)).collect();
        let items: Vec<(&str, &str)> = days.iter().map(|at| (&at[8..10], at.as_str())).collect();
        assert_eq!(add(&test, &id, &events(&items)).await.status, 201);
    };
    add_days(&[2, 4, 6, 8]).await;
    let first = list(&test, &id).query("limit", 2).send(&test.app).await;
    assert_eq!(column(first.body["items"].as_array().unwrap(), "name"), ["02", "04"]);
    add_days(&[1, 3, 5, 7, 9]).await;
    let cursor = first.body["nextCursor"].as_str().unwrap();
    let second = list(&test, &id).query("limit", 2).query("cursor", cursor).send(&test.app).await;
    assert_eq!(column(second.body["items"].as_array().unwrap(), "name"), ["05", "06"]);
    let cursor = second.body["nextCursor"].as_str().unwrap();
    let rest = list(&test, &id).query("cursor", cursor).send(&test.app).await;
    assert_eq!(column(rest.body["items"].as_array().unwrap(), "name"), ["07", "08", "09"]);
}

#[tokio::test]
async fn ranges_apply_to_cursors_of_other_ranges() {
    let test = TestApp::start().await;
    let id = with_history(&test).await;
    let first = list(&test, &id).query("limit", 1).send(&test.app).await;
    let cursor = first.body["nextCursor"].as_str().unwrap();
    let call = list(&test, &id).query("cursor", cursor).query("from", 0).query("to", 1);
    let reply = call.send(&test.app).await;
    assert_eq!(column(reply.body["items"].as_array().unwrap(), "name"), ["1970"]);
    // No event is left in a range that ends before the cursor.
    let call = list(&test, &id).query("cursor", cursor).query("to", -62_167_219_200_000_i64);
    let reply = call.send(&test.app).await;
    assert_eq!(reply.body, json!({"items": [], "nextCursor": null}));
}

#[tokio::test]
async fn large_events_make_pages_shorter() {
    let test = TestApp::start().await;
    let id = create(&test).await;
    let members = (0..50).map(|n| (format!("k{n}"), json!("x".repeat(1_000))));
    let attributes = Value::Object(members.collect());
    let mut names = Vec::new();
    for request in 0..5 {
        let items: Vec<Value> = (0..5)
            .map(|n| {
                let name = format!("{request}{n}");
                names.push(name.clone());
                let at = format!("2026-11-21T04:{name}:00Z");
                json!({"name": name, "occurredAt": at, "attributes": attributes})
            })
            .collect();
        assert_eq!(add(&test, &id, &json!({"events": items})).await.status, 201);
    }
    let pages = test.pages(&list(&test, &id), 100).await;
    assert!(pages.len() > 1, "DynamoDB reads end at 1 MB");
    assert_eq!(column(&pages.concat(), "name"), names);
    assert_eq!(event_names(&test, &id).await, names);
}
