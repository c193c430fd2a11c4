//! Failures of DynamoDB, and an unreadable item.

use aws_sdk_dynamodb::types::AttributeValue;
use serde_json::{Value, json};
use tests::app::TestApp;
use tests::call::Call;
use tests::scripted::{KEY, ScriptedReply, access, cancelled, reply_under};

use super::{UPDATE, all_but, call, preferences, update};

/// The request that writes.
const WRITE: &str = "TransactWriteItems";

/// Returns a call with [`KEY`] that sets these preferences.
fn update_call(items: &[(&str, bool)]) -> Call {
    Call::of(UPDATE).key(KEY).json(&preferences(items))
}

#[tokio::test]
async fn updates_write_chosen_types_without_reading() {
    let script = |target: &str, _: usize| match target {
        "BatchGetItem" => access(),
        "GetItem" => ScriptedReply::Response(json!({"Item": {
            "userId": {"S": "default/owner"},
            "billing": {"BOOL": false},
            "error_new": {"BOOL": true},
            "weekly_digest": {"BOOL": false},
            "retired_type": {"BOOL": false},
        }})),
        _ => ScriptedReply::Response(json!({})),
    };
    let items = [("billing", false), ("error_new", true)];
    let (reply, dynamodb) = reply_under(script, update_call(&items)).await;
    assert_eq!((reply.status, reply.body), (200, all_but(&["billing", "weekly_digest"])));
    let [sent] = &dynamodb.requests(WRITE)[..] else { panic!("expected one request") };
    let sent = &sent["TransactItems"][0]["Update"];
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
    assert_eq!(dynamodb.requests("GetItem").len(), 1, "only the result is read");
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
    assert_eq!(dynamodb.requests(WRITE), [Value::Null; 0]);
}

/// Returns the item after an update of one type.
fn without_billing() -> ScriptedReply {
    ScriptedReply::Response(json!({"Item": {"billing": {"BOOL": false}}}))
}

#[tokio::test]
async fn conflicting_writes_are_retried() {
    let script = |target: &str, before: usize| match (target, before) {
        ("BatchGetItem", _) => access(),
        (WRITE, 0 | 1) => cancelled(&["TransactionConflict"]),
        _ => without_billing(),
    };
    let (reply, dynamodb) = reply_under(script, update_call(&[("billing", false)])).await;
    assert_eq!((reply.status, reply.body), (200, all_but(&["billing"])));
    assert_eq!(dynamodb.requests(WRITE).len(), 3);
    let always = |target: &str, _: usize| match target {
        "BatchGetItem" => access(),
        _ => cancelled(&["TransactionConflict"]),
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
