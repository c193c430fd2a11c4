//! DynamoDB outages, delays and throttling, and deliveries that fail in part or as a whole.

use serde_json::{Value, json};

use errors::store::ErrorStore;
use ingest_error_events::delivery::add_log_shards;
use shared::dynamodb::Store;
use shared::projects::project::Project;
use shared::timestamp::Timestamp;
use tests::app::{START, TestApp, app_over};
use tests::call::{Call, Reply};
use tests::errors::SentEvent;
use tests::scripted::{ScriptedDynamoDb, ScriptedReply, cancelled, reply_under};

use super::{ENVELOPE, Tracker};

const INGEST_ID: u64 = 42;
const PUBLIC_KEY: &str = "0123456789abcdef0123456789abcdef";

/// Returns a delivery to the scripted project.
fn scripted_delivery() -> Call {
    let event =
        SentEvent::new(1, Timestamp::from_millis(i64::try_from(START).unwrap()), "TypeError", "x");
    let call = Call::of(&ingest_error_events::OPERATION)
        .parameter("ingestId", INGEST_ID)
        .query("sentry_key", PUBLIC_KEY);
    call.bytes(event.envelope())
}

/// Returns the project for the first `GetItem`, and no item for later ones.
fn get_item(before: usize) -> ScriptedReply {
    match before {
        0 => ScriptedReply::Response(json!({"Item": {
            "idOrSlug": {"S": "ingest#42"},
            "projectId": {"S": "00000000-0000-7000-8000-000000000001"},
            "publicKey": {"S": PUBLIC_KEY},
        }})),
        _ => ScriptedReply::Response(json!({})),
    }
}

fn throttled() -> ScriptedReply {
    ScriptedReply::Error("ThrottlingException", json!({"message": "slow down"}))
}

fn assert_unavailable(reply: &Reply) {
    assert_eq!(reply.status, 503, "{}", reply.body);
    let fields: Vec<&String> = reply.body.as_object().unwrap().keys().collect();
    assert_eq!(fields, ["detail"]);
    // With these headers, SDKs would stop sending anything.
    assert!(!reply.headers.contains_key("retry-after"));
    assert!(!reply.headers.contains_key("x-sentry-rate-limits"));
}

#[tokio::test]
async fn throttled_deliveries_return_503_without_retry_after() {
    let scripts: [fn(&str, usize) -> ScriptedReply; 3] = [
        |_, _| throttled(),
        |target, before| match target {
            "GetItem" => get_item(before),
            _ => throttled(),
        },
        |target, before| match target {
            "GetItem" => get_item(before),
            "PutItem" => throttled(),
            _ => ScriptedReply::Response(json!({})),
        },
    ];
    for script in scripts {
        let (reply, _) = reply_under(script, scripted_delivery()).await;
        assert_unavailable(&reply);
    }
}

#[tokio::test]
async fn silent_or_stopped_dynamodb_gives_503() {
    let (reply, _) = reply_under(|_, _| ScriptedReply::Silence, scripted_delivery()).await;
    assert_unavailable(&reply);

    let mut tracker = Tracker::start().await;
    let event = SentEvent::new(1, tracker.now(), "TypeError", "x");
    tracker.deliver(&event).await;
    tracker.test.engine.kill();
    let reply = tracker.deliver_to(&tracker.project, &event).await;
    assert_unavailable(&reply);
}

/// The partition of the row or of the event's key is throttled.
#[tokio::test]
async fn throttled_log_partitions_get_more_shards() {
    fn script(target: &str, before: usize, reasons: &[&str]) -> ScriptedReply {
        match (target, before) {
            ("GetItem", _) => get_item(before),
            // All three attempts.
            ("TransactWriteItems", 0..=2) => cancelled(reasons),
            _ => ScriptedReply::Response(json!({})),
        }
    }
    let scripts: [fn(&str, usize) -> ScriptedReply; 2] = [
        |target, before| script(target, before, &["None", "ThrottlingError", "None"]),
        |target, before| script(target, before, &["None", "None", "ThrottlingError"]),
    ];
    for script in scripts {
        let (reply, dynamodb) = reply_under(script, scripted_delivery()).await;
        assert_eq!(reply.status, 200, "{}", reply.body);
        let updates = dynamodb.single_writes("Update");
        assert_eq!(updates.len(), 1);
        assert_eq!(updates[0]["ExpressionAttributeValues"], json!({":shards": {"N": "2"}}));
        let transactions = dynamodb.requests("TransactWriteItems");
        let shard = |transaction: &Value, action: usize| {
            let pk = &transaction["TransactItems"][action]["Put"]["Item"]["pk"]["S"];
            pk.as_str().unwrap().rsplit('#').next().unwrap().to_owned()
        };
        // The event's id ends with 1, an odd number.
        for action in [1, 2] {
            assert_eq!(shard(&transactions[0], action), "00");
            assert_eq!(shard(&transactions[4], action), "01");
        }
    }
}

#[tokio::test]
async fn events_throttled_on_all_shards_return_429() {
    let (reply, dynamodb) = reply_under(
        |target, before| match (target, before) {
            ("GetItem", _) => get_item(before),
            // Three attempts each, then the log gets more shards.
            ("TransactWriteItems", _) if before % 4 < 3 => {
                cancelled(&["None", "ThrottlingError", "None"])
            }
            _ => ScriptedReply::Response(json!({})),
        },
        scripted_delivery(),
    )
    .await;
    assert_eq!(reply.status, 429, "{}", reply.body);
    assert_eq!(reply.headers["retry-after"], "5");
    assert_eq!(reply.headers["x-sentry-rate-limits"], "5::project:events_per_minute");
    assert_eq!(dynamodb.single_writes("Update").len(), 4);
}

#[tokio::test]
async fn all_log_shards_are_counted_and_packed() {
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
    // A caller that knows fewer shards adds none.
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

/// Returns the status of a delivery, and how many payload puts (at most one) and transactions it
/// sends.
async fn written(script: fn(&str, usize) -> ScriptedReply) -> (u16, [usize; 2]) {
    let dynamodb = ScriptedDynamoDb::start(script).await;
    let (app, _) = app_over(&dynamodb.endpoint);
    let reply = scripted_delivery().send(&app).await;
    let count = |target| dynamodb.requests(target).len();
    (reply.status, [count("PutItem").min(1), count("TransactWriteItems")])
}

#[tokio::test]
async fn events_without_stored_payload_are_not_counted() {
    let (status, writes) = written(|target, before| match target {
        "GetItem" => get_item(before),
        "PutItem" => ScriptedReply::Error("ValidationException", json!({"message": "no"})),
        _ => ScriptedReply::Response(json!({})),
    })
    .await;
    assert_eq!((status, writes[0]), (500, 1));
    assert_eq!(writes[1], 0);
}

#[tokio::test]
async fn dsn_keys_are_cached() {
    let tracker = Tracker::start().await;
    let trips = async |number| {
        tracker.test.round_trips();
        tracker.deliver(&SentEvent::new(number, tracker.now(), "TypeError", "x")).await;
        tracker.test.round_trips()
    };
    let (first, second) = (trips(1).await, trips(2).await);
    assert!(second < first, "{first} {second}");
    // Payload, transaction and error.
    assert_eq!(second, 3);
}

/// Missing projects are never cached.
#[tokio::test]
async fn dsns_of_new_projects_work_immediately() {
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
