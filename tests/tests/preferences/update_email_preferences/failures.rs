//! A DynamoDB that is down, busy or forbidding, and an item that is damaged.

use aws_sdk_dynamodb::types::AttributeValue;
use serde_json::{Value, json};
use tests::app::TestApp;
use tests::call::Call;
use tests::scripted::{KEY, Turn, access, reply_under};

use super::{UPDATE, all_but, call, preferences, update};

/// A call of [`KEY`] that sets these preferences.
fn setting(items: &[(&str, bool)]) -> Call {
    Call::of(UPDATE).key(KEY).json(&preferences(items))
}

#[tokio::test]
async fn sets_what_is_named_and_nothing_else_and_reads_nothing() {
    let script = |target: &str, _: usize| match target {
        "BatchGetItem" => access(),
        _ => Turn::Answer(json!({"Attributes": {
            "userId": {"S": "default/owner"},
            "billing": {"BOOL": false},
            "error_new": {"BOOL": true},
            "weekly_digest": {"BOOL": false},
            "retired_type": {"BOOL": false},
        }})),
    };
    let items = [("billing", false), ("error_new", true)];
    let (reply, dynamodb) = reply_under(script, setting(&items)).await;
    assert_eq!((reply.status, reply.body), (200, all_but(&["billing", "weekly_digest"])));
    let expected = json!({
        "TableName": "waymark-email-preferences",
        "Key": {"userId": {"S": "default/owner"}},
        "UpdateExpression": "SET #billing = :billing, #error_new = :error_new",
        "ExpressionAttributeNames": {"#billing": "billing", "#error_new": "error_new"},
        "ExpressionAttributeValues": {":billing": {"BOOL": false}, ":error_new": {"BOOL": true}},
        "ReturnValues": "ALL_NEW",
        "ReturnConsumedCapacity": "TOTAL",
    });
    assert_eq!(dynamodb.requests("UpdateItem"), [expected]);
    assert_eq!(dynamodb.requests("GetItem"), [Value::Null; 0]);
}

#[tokio::test]
async fn an_empty_array_is_one_strongly_consistent_read() {
    let script = |target: &str, _: usize| match target {
        "BatchGetItem" => access(),
        _ => Turn::Answer(json!({})),
    };
    let (reply, dynamodb) = reply_under(script, setting(&[])).await;
    assert_eq!((reply.status, reply.body), (200, all_but(&[])));
    assert_eq!(dynamodb.requests("GetItem")[0]["ConsistentRead"], true);
    assert_eq!(dynamodb.requests("UpdateItem"), [Value::Null; 0]);
}

#[tokio::test]
async fn a_write_that_is_throttled_is_tried_again() {
    let script = |target: &str, before: usize| match (target, before) {
        ("BatchGetItem", _) => access(),
        (_, 0) => Turn::Error("ThrottlingException", json!({"message": "slow down"})),
        (_, 1) => Turn::Error("InternalServerError", json!({"message": "try again"})),
        _ => Turn::Answer(json!({"Attributes": {"billing": {"BOOL": false}}})),
    };
    let (reply, dynamodb) = reply_under(script, setting(&[("billing", false)])).await;
    assert_eq!((reply.status, reply.body), (200, all_but(&["billing"])));
    assert_eq!(dynamodb.requests("UpdateItem").len(), 3);
}

#[tokio::test]
async fn a_dynamodb_that_throttles_or_is_down_gives_503() {
    let throttle = |target: &str, _: usize| match target {
        "BatchGetItem" => access(),
        _ => Turn::Error("ProvisionedThroughputExceededException", json!({"message": "slow down"})),
    };
    let (reply, _) = reply_under(throttle, setting(&[("billing", false)])).await;
    assert_eq!(reply.problem(), (503, "unavailable"));
    assert_eq!(reply.headers["retry-after"], "1");

    let mut test = TestApp::start().await;
    test.engine.kill();
    assert_eq!(update(&test, &[("billing", false)]).await.problem(), (503, "unavailable"));
}

#[tokio::test]
async fn what_dynamodb_refuses_is_500_without_a_cause() {
    let denied = |target: &str, _: usize| match target {
        "BatchGetItem" => access(),
        _ => Turn::Error("AccessDeniedException", json!({"message": "role/secret-role may not"})),
    };
    let (reply, _) = reply_under(denied, setting(&[("billing", false)])).await;
    assert_eq!(reply.problem(), (500, "internal"));
    assert!(!reply.body.to_string().contains("role"), "{}", reply.body);
}

#[tokio::test]
async fn a_damaged_preference_is_500_until_it_is_set_anew() {
    let test = TestApp::start().await;
    let no_boolean = AttributeValue::S("no".to_owned());
    test.tamper("email-preferences", [("userId", "default/owner")], "billing", no_boolean).await;
    assert_eq!(update(&test, &[]).await.problem(), (500, "internal"));
    let reply = call(&test).json(&preferences(&[("billing", false)])).send(&test.app).await;
    assert_eq!((reply.status, reply.body), (200, all_but(&["billing"])));
}
