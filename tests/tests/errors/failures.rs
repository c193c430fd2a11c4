//! A DynamoDB that is down, slow or busy, and deliveries that come to nothing or to half of it.

use serde_json::{Value, json};

use errors::store::ErrorStore;
use ingest_error_events::delivery::add_log_shards;
use shared::dynamodb::Store;
use shared::projects::project::Project;
use shared::timestamp::Timestamp;
use tests::app::{PROJECT, START, TestApp, app_over};
use tests::call::{Call, Reply};
use tests::errors::SentEvent;
use tests::scripted::{KEY, ScriptedDynamoDb, ScriptedReply, access, cancelled, reply_under};

use super::{ENVELOPE, GET, LIST, LIST_EVENTS, QUERY, Tracker, UPDATE};

const ERROR: &str = "01902f3c-0000-7000-8000-000000000000";
const INGEST_ID: u64 = 42;
const PUBLIC_KEY: &str = "0123456789abcdef0123456789abcdef";

/// A delivery to the project of the script.
fn scripted_delivery() -> Call {
    let event =
        SentEvent::new(1, Timestamp::from_millis(i64::try_from(START).unwrap()), "TypeError", "x");
    let call = Call::of(&ingest_error_events::OPERATION)
        .parameter("ingestId", INGEST_ID)
        .query("sentry_key", PUBLIC_KEY);
    call.bytes(event.envelope())
}

/// The answers to `GetItem`: the project, and nothing else.
fn get_item(before: usize) -> ScriptedReply {
    match before {
        0 => ScriptedReply::Answer(json!({"Item": {
            "idOrSlug": {"S": "ingest#42"},
            "projectId": {"S": "00000000-0000-7000-8000-000000000001"},
            "publicKey": {"S": PUBLIC_KEY},
        }})),
        _ => ScriptedReply::Answer(json!({})),
    }
}

fn throttled() -> ScriptedReply {
    ScriptedReply::Error("ThrottlingException", json!({"message": "slow down"}))
}

fn assert_unavailable(reply: &Reply) {
    assert_eq!(reply.status, 503, "{}", reply.body);
    let members: Vec<&String> = reply.body.as_object().unwrap().keys().collect();
    assert_eq!(members, ["detail"]);
    // SDKs would take it for a ban of all that they send.
    assert!(!reply.headers.contains_key("retry-after"));
    assert!(!reply.headers.contains_key("x-sentry-rate-limits"));
}

#[tokio::test]
async fn a_delivery_that_dynamodb_throttles_gets_503_without_a_time_to_wait() {
    let scripts: [fn(&str, usize) -> ScriptedReply; 3] = [
        |_, _| throttled(),
        |target, before| match target {
            "GetItem" => get_item(before),
            _ => throttled(),
        },
        |target, before| match target {
            "GetItem" => get_item(before),
            "PutItem" => throttled(),
            _ => ScriptedReply::Answer(json!({})),
        },
    ];
    for script in scripts {
        let (reply, _) = reply_under(script, scripted_delivery()).await;
        assert_unavailable(&reply);
    }
}

#[tokio::test]
async fn a_dynamodb_that_is_silent_or_down_gives_503() {
    let (reply, _) = reply_under(|_, _| ScriptedReply::Silence, scripted_delivery()).await;
    assert_unavailable(&reply);

    let mut tracker = Tracker::start().await;
    let event = SentEvent::new(1, tracker.now(), "TypeError", "x");
    tracker.deliver(&event).await;
    let error = tracker.the_error().await;
    tracker.test.engine.kill();
    let reply = tracker.deliver_to(&tracker.project, &event).await;
    assert_unavailable(&reply);
    for operation in [LIST, GET, LIST_EVENTS] {
        let reply = tracker.call_for(operation, &error).send(&tracker.test.app).await;
        assert_eq!(reply.problem(), (503, "unavailable"), "{}", operation.name);
        assert_eq!(reply.headers["retry-after"], "1");
    }
    let call = tracker.call_for(UPDATE, &error).json(&json!({"status": "ignored"}));
    assert_eq!(call.send(&tracker.test.app).await.problem(), (503, "unavailable"));
    let reply = tracker.query(&json!({"projectIds": [PROJECT]})).await;
    assert_eq!(reply.problem(), (503, "unavailable"));
}

#[tokio::test]
async fn a_partition_that_is_throttled_gets_more_shards_and_the_event_is_counted() {
    let (reply, dynamodb) = reply_under(
        |target, before| match (target, before) {
            ("GetItem", _) => get_item(before),
            // As often as it is tried.
            ("TransactWriteItems", 0..=2) => cancelled(&["None", "ThrottlingError", "None"]),
            _ => ScriptedReply::Answer(json!({})),
        },
        scripted_delivery(),
    )
    .await;
    assert_eq!(reply.status, 200, "{}", reply.body);
    let updates = dynamodb.single_writes("Update");
    assert_eq!(updates.len(), 1);
    assert_eq!(updates[0]["ExpressionAttributeValues"], json!({":shards": {"N": "2"}}));
    let transactions = dynamodb.requests("TransactWriteItems");
    let row = |transaction: &Value| {
        let pk = &transaction["TransactItems"][1]["Put"]["Item"]["pk"]["S"];
        pk.as_str().unwrap().rsplit('#').next().unwrap().to_owned()
    };
    // The event's id ends with 1, an odd number.
    assert_eq!((row(&transactions[0]), row(&transactions[4])), ("00".to_owned(), "01".to_owned()));
}

#[tokio::test]
async fn an_event_that_finds_no_room_however_it_is_spread_gets_429_and_a_time_to_wait() {
    let (reply, dynamodb) = reply_under(
        |target, before| match (target, before) {
            ("GetItem", _) => get_item(before),
            // Three tries, then the log is spread, and so on.
            ("TransactWriteItems", _) if before % 4 < 3 => {
                cancelled(&["None", "ThrottlingError", "None"])
            }
            _ => ScriptedReply::Answer(json!({})),
        },
        scripted_delivery(),
    )
    .await;
    assert_eq!(reply.status, 429, "{}", reply.body);
    assert_eq!(reply.headers["retry-after"], "5");
    assert_eq!(reply.headers["x-sentry-rate-limits"], "5::project:events_per_minute");
    assert_eq!(dynamodb.single_writes("Update").len(), 4);
}

/// What is throttled is told by its place among the actions, and only that is spread.
#[tokio::test]
async fn keys_of_an_errors_events_that_are_throttled_get_more_partitions() {
    let (reply, dynamodb) = reply_under(
        |target, before| match (target, before) {
            ("GetItem", 1) => ScriptedReply::Answer(json!({"Item": {
                "errorId": {"S": ERROR},
                "eventShards": {"N": "1"},
            }})),
            ("GetItem", 2..) => ScriptedReply::Answer(json!({"Item": {
                "sk": {"S": ERROR},
                "fingerprint": {"B": "AAAAAAAAAAAAAAAAAAAAAA=="},
                "title": {"S": "TypeError: x"},
                "type": {"S": "TypeError"},
                "message": {"S": "x"},
                "culprit": {"S": ""},
                "status": {"S": "open"},
                "version": {"N": "1"},
                "firstSeen": {"S": "2026-11-21T04:16:00.000Z"},
                "lastSeen": {"S": "2026-11-21T04:16:00.000Z"},
                "eventShards": {"N": "1"},
                "expiresAt": {"N": "1829794560"},
            }})),
            ("GetItem", _) => get_item(before),
            ("TransactWriteItems", 0..=2) => cancelled(&["None", "None", "ThrottlingError"]),
            _ => ScriptedReply::Answer(json!({})),
        },
        scripted_delivery(),
    )
    .await;
    assert_eq!(reply.status, 200, "{}", reply.body);
    let transactions = dynamodb.requests("TransactWriteItems");
    let spread = transactions[3]["TransactItems"].as_array().unwrap();
    let shards = |action: &Value| action["Update"]["ExpressionAttributeValues"][":shards"].clone();
    assert_eq!([&spread[0], &spread[1]].map(shards), [json!({"N": "2"}), json!({"N": "2"})]);
    let key = |transaction: &Value, action: usize| {
        transaction["TransactItems"][action]["Put"]["Item"]["pk"]["S"].as_str().unwrap().to_owned()
    };
    // The event's id ends with 1, an odd number.
    assert!(key(&transactions[0], 2).ends_with("#00") && key(&transactions[4], 2).ends_with("#01"));
    assert_eq!(key(&transactions[0], 1), key(&transactions[4], 1));
}

#[tokio::test]
async fn all_shards_of_a_log_are_counted_and_packed() {
    let tracker = Tracker::start().await;
    let store = &tracker.test.app.store;
    let mut events = 0_u64;
    for shards in [1, 2, 4, 8, 16, 16] {
        for _ in 0..5 {
            tracker.deliver(&SentEvent::new(events, tracker.now(), "TypeError", "x")).await;
            events += 1;
        }
        assert_eq!(tracker.total(&json!({})).await, events);
        let now_has = add_log_shards(&tracker.test.app, tracker.project.id, shards).await.unwrap();
        assert_eq!(now_has, (shards * 2).min(16));
    }
    // Whoever has seen fewer shards adds none.
    assert_eq!(ErrorStore::new(store).add_log_shards(tracker.project.id, 1).await.unwrap(), 16);
    assert!(
        tracker.items_of("log#").await.iter().any(|item| !super::text(item, "pk").ends_with("#00"))
    );
    tracker.test.pass(2 * super::DAY);
    tracker.run_schedule().await;
    for row in tracker.items_of("log#").await {
        tracker.remove(&row).await;
    }
    assert_eq!(tracker.total(&json!({})).await, events);
    assert_eq!(tracker.the_error().await["count"], events);
}

/// How far a delivery gets if DynamoDB takes only its first writes.
async fn written(script: fn(&str, usize) -> ScriptedReply) -> (u16, [usize; 2]) {
    let dynamodb = ScriptedDynamoDb::start(script).await;
    let (app, _) = app_over(&dynamodb.endpoint);
    let reply = scripted_delivery().send(&app).await;
    let count = |target| dynamodb.requests(target).len();
    (reply.status, [count("PutItem").min(1), count("TransactWriteItems")])
}

#[tokio::test]
async fn nothing_is_counted_whose_payload_is_not_stored() {
    let (status, writes) = written(|target, before| match target {
        "GetItem" => get_item(before),
        "PutItem" => ScriptedReply::Error("ValidationException", json!({"message": "no"})),
        _ => ScriptedReply::Answer(json!({})),
    })
    .await;
    assert_eq!((status, writes[0]), (500, 1));
    assert_eq!(writes[1], 0);
}

#[tokio::test]
async fn reads_of_a_dynamodb_that_throttles_give_503() {
    for operation in [LIST, GET, LIST_EVENTS, QUERY, UPDATE] {
        let call = Call::of(operation).parameter("idOrSlug", PROJECT).parameter("errorId", ERROR);
        let call = match operation.method.as_str() {
            "POST" => call.json(&json!({"projectIds": [PROJECT]})),
            "PATCH" => call.json(&json!({"status": "open"})),
            _ => call,
        };
        let (reply, _) = reply_under(
            |target, _| match target {
                "BatchGetItem" => access(),
                _ => throttled(),
            },
            call.key(KEY),
        )
        .await;
        assert_eq!(reply.problem(), (503, "unavailable"), "{}", operation.name);
    }
}

#[tokio::test]
async fn a_key_is_looked_up_once_in_a_minute() {
    let tracker = Tracker::start().await;
    let trips = async |number| {
        tracker.test.round_trips();
        tracker.deliver(&SentEvent::new(number, tracker.now(), "TypeError", "x")).await;
        tracker.test.round_trips()
    };
    let (first, second) = (trips(1).await, trips(2).await);
    assert!(second < first, "{first} {second}");
    // The payload, the transaction, and the error.
    assert_eq!(second, 3);
}

/// What does not exist is never remembered.
#[tokio::test]
async fn a_dsn_works_as_soon_as_its_project_is_made() {
    let tracker = Tracker::start().await;
    let store: &Store = &tracker.test.app.store;
    let id = local::demo::ensure_project(store, "new", "New").await.unwrap();
    let project: Project = tests::errors::project(store, id).await;
    let event = SentEvent::new(1, tracker.now(), "TypeError", "x");
    let unknown = TestApp::start().await;
    let call = super::delivery(&project, ENVELOPE).bytes(event.envelope());
    assert_eq!(call.send(&unknown.app).await.status, 403);
    assert_eq!(tracker.deliver_to(&project, &event).await.status, 200);
}
