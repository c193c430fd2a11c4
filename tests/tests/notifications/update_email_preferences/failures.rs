//! Failures of DynamoDB, and an unreadable item.

use aws_sdk_dynamodb::types::AttributeValue;
use serde_json::{Value, json};
use tests::app::{START, TestApp, app_over};
use tests::call::{self, Call};
use tests::scripted::{KEY, ScriptedDynamoDb, ScriptedReply, access, reply_under};

use super::{UPDATE, all_but, call, preferences, update};

/// Returns a call with [`KEY`] that sets these preferences.
fn update_call(items: &[(&str, bool)]) -> Call {
    Call::of(UPDATE).key(KEY).json(&preferences(items))
}

#[tokio::test]
async fn updates_write_chosen_types_without_reading() {
    let script = |target: &str, _: usize| match target {
        "BatchGetItem" => access(),
        _ => ScriptedReply::Response(json!({"Attributes": {
            "userId": {"S": "default/owner"},
            "billing": {"BOOL": false},
            "error_new": {"BOOL": true},
            "weekly_digest": {"BOOL": false},
            "retired_type": {"BOOL": false},
        }})),
    };
    let items = [("billing", false), ("error_new", true)];
    let (reply, dynamodb) = reply_under(script, update_call(&items)).await;
    assert_eq!((reply.status, reply.body), (200, all_but(&["billing", "weekly_digest"])));
    let [sent] = &dynamodb.requests("UpdateItem")[..] else { panic!("expected one request") };
    assert_eq!(sent["Key"], json!({"userId": {"S": "default/owner"}}));
    assert_eq!(
        sent["ExpressionAttributeNames"],
        json!({"#billing": "billing", "#error_new": "error_new"})
    );
    let values = &sent["ExpressionAttributeValues"];
    assert_eq!(
        (&values[":billing"], &values[":error_new"]),
        (&json!({"BOOL": false}), &json!({"BOOL": true}))
    );
    assert_eq!(dynamodb.requests("GetItem"), [Value::Null; 0]);
}

#[tokio::test]
async fn empty_updates_cost_one_consistent_read() {
    let script = |target: &str, _: usize| match target {
        "BatchGetItem" => access(),
        _ => ScriptedReply::Response(json!({})),
    };
    let (reply, dynamodb) = reply_under(script, update_call(&[])).await;
    assert_eq!((reply.status, reply.body), (200, all_but(&[])));
    assert_eq!(dynamodb.requests("GetItem")[0]["ConsistentRead"], true);
    assert_eq!(dynamodb.requests("UpdateItem"), [Value::Null; 0]);
}

#[tokio::test]
async fn throttled_writes_are_retried() {
    let script = |target: &str, before: usize| match (target, before) {
        ("BatchGetItem", _) => access(),
        (_, 0) => ScriptedReply::Error("ThrottlingException", json!({"message": "slow down"})),
        (_, 1) => ScriptedReply::Error("InternalServerError", json!({"message": "try again"})),
        _ => ScriptedReply::Response(json!({"Attributes": {"billing": {"BOOL": false}}})),
    };
    let (reply, dynamodb) = reply_under(script, update_call(&[("billing", false)])).await;
    assert_eq!((reply.status, reply.body), (200, all_but(&["billing"])));
    assert_eq!(dynamodb.requests("UpdateItem").len(), 3);
}

/// Returns a failed condition, with an item that has the ids of its latest writes.
fn conflict_with(latest: &[String]) -> ScriptedReply {
    let mut item = json!({"userId": {"S": "default/owner"}, "billing": {"BOOL": true}});
    for (index, id) in latest.iter().enumerate() {
        item[format!("write{index}")] = json!({ "B": id });
    }
    ScriptedReply::Error(
        "ConditionalCheckFailedException",
        json!({ "message": "no", "Item": item }),
    )
}

/// Returns the id of a write `after` milliseconds from the start, in base64.
fn id(after: u64) -> String {
    let id = uuid::Builder::from_unix_timestamp_millis(START + after, &[0; 10]).into_uuid();
    call::base64(id.as_bytes())
}

/// Returns the write id of a request.
fn request_id(request: &Value) -> &str {
    request["ExpressionAttributeValues"][":id"]["B"].as_str().unwrap()
}

#[tokio::test]
async fn lost_responses_are_recognized_among_later_updates() {
    // The id of an app's first update.
    let first_id = call::base64(
        uuid::Builder::from_unix_timestamp_millis(START, &[0, 0, 0, 0, 0, 0, 0, 0, 0, 1])
            .into_uuid()
            .as_bytes(),
    );
    let dynamodb = ScriptedDynamoDb::start(|target, before| match (target, before) {
        ("BatchGetItem", _) => access(),
        ("UpdateItem", 0) => ScriptedReply::Silence,
        _ => ScriptedReply::Response(json!({})),
    })
    .await;
    let (app, _) = app_over(&dynamodb.endpoint);
    update_call(&[("billing", false)]).send(&app).await;
    let sent = dynamodb.requests("UpdateItem");
    assert_eq!([&sent[0], &sent[1]].map(request_id), [&*first_id; 2], "attempts share one id");

    let script = |target: &str, before: usize| match (target, before) {
        ("BatchGetItem", _) => access(),
        ("UpdateItem", 0) => ScriptedReply::Silence,
        _ => {
            let first_id =
                uuid::Builder::from_unix_timestamp_millis(START, &[0, 0, 0, 0, 0, 0, 0, 0, 0, 1]);
            conflict_with(&[id(9), id(5), call::base64(first_id.into_uuid().as_bytes())])
        }
    };
    let (reply, dynamodb) = reply_under(script, update_call(&[("billing", false)])).await;
    assert_eq!((reply.status, reply.body), (200, all_but(&[])), "later updates apply");
    assert_eq!(dynamodb.requests("UpdateItem").len(), 2);
}

#[tokio::test]
async fn updates_with_slow_clocks_apply_last() {
    let script = |target: &str, before: usize| match (target, before) {
        ("BatchGetItem", _) => access(),
        ("UpdateItem", 0) => conflict_with(&[id(60_000), id(1_000)]),
        ("UpdateItem", 1) => conflict_with(&[id(60_000), id(1_000), id(0)]),
        _ => ScriptedReply::Response(json!({"Attributes": {"billing": {"BOOL": false}}})),
    };
    // All stored writes are later than the update.
    let (reply, dynamodb) = reply_under(script, update_call(&[("billing", false)])).await;
    assert_eq!((reply.status, reply.body), (200, all_but(&["billing"])));
    let sent = dynamodb.requests("UpdateItem");
    let time = |request| request_id(request)[..8].to_owned();
    assert_eq!(time(&sent[1]), id(60_001)[..8], "one millisecond after the latest write");
    assert_eq!(sent.len(), 3);
}

#[tokio::test]
async fn overtaken_updates_with_unknown_outcome_return_503() {
    let silent = |target: &str, before: usize| match (target, before) {
        ("BatchGetItem", _) => access(),
        ("UpdateItem", 0) => ScriptedReply::Silence,
        _ => conflict_with(&[8, 7, 6, 5, 4, 3, 2, 1].map(id)),
    };
    let (reply, dynamodb) = reply_under(silent, update_call(&[("billing", false)])).await;
    assert_eq!(reply.problem(), (503, "unavailable"));
    assert_eq!(dynamodb.requests("UpdateItem").len(), 2);
    // With a response, the first attempt was not applied: only its clock is slow.
    let rejected = |target: &str, before: usize| match (target, before) {
        ("BatchGetItem", _) => access(),
        ("UpdateItem", 0) => conflict_with(&[8, 7, 6, 5, 4, 3, 2, 1].map(id)),
        _ => ScriptedReply::Response(json!({"Attributes": {"billing": {"BOOL": false}}})),
    };
    let (reply, dynamodb) = reply_under(rejected, update_call(&[("billing", false)])).await;
    assert_eq!(reply.status, 200);
    assert_eq!(request_id(&dynamodb.requests("UpdateItem")[1])[..8], id(9)[..8]);
}

#[tokio::test]
async fn conflicting_writes_are_retried() {
    let script = |target: &str, before: usize| match (target, before) {
        ("BatchGetItem", _) => access(),
        (_, 0 | 1) => {
            ScriptedReply::Error("TransactionConflictException", json!({"message": "ongoing"}))
        }
        _ => ScriptedReply::Response(json!({"Attributes": {"billing": {"BOOL": false}}})),
    };
    let (reply, dynamodb) = reply_under(script, update_call(&[("billing", false)])).await;
    assert_eq!((reply.status, reply.body), (200, all_but(&["billing"])));
    assert_eq!(dynamodb.requests("UpdateItem").len(), 3);
    let always = |target: &str, _: usize| match target {
        "BatchGetItem" => access(),
        _ => ScriptedReply::Error("TransactionConflictException", json!({"message": "ongoing"})),
    };
    let (reply, _) = reply_under(always, update_call(&[("billing", false)])).await;
    assert_eq!(reply.problem(), (503, "unavailable"));
}

#[tokio::test]
async fn denied_access_returns_500_without_cause() {
    let denied = |target: &str, _: usize| match target {
        "BatchGetItem" => access(),
        _ => ScriptedReply::Error(
            "AccessDeniedException",
            json!({"message": "role/secret-role may not"}),
        ),
    };
    let (reply, _) = reply_under(denied, update_call(&[("billing", false)])).await;
    assert_eq!(reply.problem(), (500, "internal"));
    assert!(!reply.body.to_string().contains("role"), "{}", reply.body);
}

#[tokio::test]
async fn unreadable_preferences_return_500_until_set() {
    let test = TestApp::start().await;
    let no_boolean = AttributeValue::S("no".to_owned());
    test.tamper("email-preferences", [("userId", "default/owner")], "billing", no_boolean).await;
    assert_eq!(update(&test, &[]).await.problem(), (500, "internal"));
    let reply = call(&test).json(&preferences(&[("billing", false)])).send(&test.app).await;
    assert_eq!((reply.status, reply.body), (200, all_but(&["billing"])));
}
