//! Failures with DynamoDB down, slow or busy.

use std::collections::BTreeSet;

use aws_sdk_dynamodb::types::AttributeValue;
use serde_json::json;
use shared::app::Operation;
use tests::app::{PROJECT, TestApp, left_out};
use tests::call::Call;
use tests::scripted::{KEY, ScriptedReply, access, cancelled, reply_under};

use super::{
    ADD, CREATE, DELETE, GET, LIST, LIST_EVENTS, TABLE, add, call_for, column, create, some_events,
    stored, valid,
};

const COLLECTION: &str = "01902f3c-0000-7000-8000-000000000000";

fn any(operation: &'static Operation) -> Call {
    valid(operation, PROJECT, COLLECTION).key(KEY)
}

#[tokio::test]
async fn events_are_queried_after_the_collection() {
    // A concurrent query could miss events that are stored between the reads.
    let (reply, dynamodb) = reply_under(
        |target, _| match target {
            "BatchGetItem" => access(),
            "GetItem" => ScriptedReply::Silence,
            _ => ScriptedReply::Response(json!({})),
        },
        any(LIST_EVENTS),
    )
    .await;
    assert_eq!(reply.problem(), (503, "unavailable"));
    assert!(!dynamodb.requests("GetItem").is_empty());
    assert!(dynamodb.requests("Query").is_empty());
}

#[tokio::test]
async fn conflicting_writes_are_retried() {
    for operation in [CREATE, ADD, DELETE] {
        let (reply, dynamodb) = reply_under(
            |target, before| match (target, before) {
                ("BatchGetItem", _) => access(),
                (_, 0) => cancelled(&["TransactionConflict", "None"]),
                (_, 1) => cancelled(&["None", "ThrottlingError"]),
                _ => ScriptedReply::Response(json!({})),
            },
            any(operation),
        )
        .await;
        assert!(reply.status < 300, "{}", reply.body);
        assert_eq!(dynamodb.requests("TransactWriteItems").len(), 3);
    }
}

#[tokio::test]
async fn stored_events_are_acknowledged_while_pending() {
    let call = Call::of(ADD).parameter("idOrSlug", PROJECT).parameter("collectionId", COLLECTION);
    let call = call.key(KEY).json(&some_events(100));
    let (reply, dynamodb) = reply_under(
        |target, before| match (target, before) {
            ("BatchGetItem", _) => access(),
            (_, 0) => ScriptedReply::Response(json!({})),
            _ => ScriptedReply::Error("ThrottlingException", json!({"message": "slow down"})),
        },
        call,
    )
    .await;
    assert_eq!(reply.status, 201);
    assert!(dynamodb.requests("TransactWriteItems").len() > 1);
}

#[tokio::test]
async fn lists_omit_only_unreadable_items() {
    let test = TestApp::start().await;
    let [first, bad, last] = [create(&test).await, create(&test).await, create(&test).await];
    let value = |text: &str| AttributeValue::S(text.to_owned());
    let (project, sk) = (format!("project#{}", test.project_id), format!("collection#{bad}"));
    test.tamper(TABLE, [("pk", &project), ("sk", &sk)], "eventCount", value("many")).await;
    for limit in [1, 2, 100] {
        let pages = test.pages(&test.call(LIST), limit).await;
        assert_eq!(column(&pages.concat(), "id"), [last.clone(), first.clone()], "{limit}");
    }
    assert_eq!(left_out(&bad), BTreeSet::from([(TABLE, "eventCount")]));
    let alone = call_for(&test, GET, &bad).send(&test.app).await;
    assert_eq!(alone.problem(), (500, "internal"));

    add(&test, &first, &some_events(3)).await;
    let events = format!("events#{first}");
    let keys = stored(&test).await.into_iter().filter(|(pk, _)| *pk == events);
    let keys: Vec<_> = keys.map(|(_, sk)| sk).collect();
    let key = [("pk", events.as_str()), ("sk", keys[1].as_str())];
    test.tamper(TABLE, key, "occurredAt", value("then")).await;
    for limit in [1, 2, 100] {
        let pages = test.pages(&call_for(&test, LIST_EVENTS, &first), limit).await;
        assert_eq!(pages.concat().len(), 2, "{limit}");
    }
    assert_eq!(left_out(&keys[1]), BTreeSet::from([(TABLE, "occurredAt")]));
}
