//! get-email-preferences with a real engine.

use aws_sdk_dynamodb::types::AttributeValue;
use serde_json::{Value, json};

use shared::app::Operation;
use tests::app::{TestApp, app_over};
use tests::call::Call;
use tests::preferences::TYPES;
use tests::scripted::{ScriptedDynamoDb, ScriptedReply};

const GET: &Operation = &::get_email_preferences::OPERATION;

fn call(test: &TestApp) -> Call {
    Call::of(GET).key(&test.key)
}

/// Returns the response body with all types on, except for these.
fn all_but(disabled: &[&str]) -> Value {
    json!(TYPES.map(|name| json!({"type": name, "emailEnabled": !disabled.contains(&name)})))
}

/// Stores a user's choice for a type.
async fn store_choice(test: &TestApp, user_id: &str, name: &str, value: AttributeValue) {
    test.tamper("email-preferences", [("userId", user_id)], name, value).await;
}

#[tokio::test]
async fn warm_reads_cost_one_round_trip() {
    let test = TestApp::start().await;
    call(&test).send(&test.app).await;
    assert_eq!(test.round_trips(), 2);
    call(&test).send(&test.app).await;
    assert_eq!(test.round_trips(), 1);
}

#[tokio::test]
async fn unreadable_preferences_return_500_and_outages_503() {
    let mut test = TestApp::start().await;
    let no_boolean = AttributeValue::S("secret cause".to_owned());
    store_choice(&test, "default/owner", "billing", no_boolean).await;
    let reply = call(&test).send(&test.app).await;
    assert_eq!(reply.problem(), (500, "internal"));
    assert!(!reply.body.to_string().contains("secret"), "{}", reply.body);
    test.engine.kill();
    let reply = call(&test).send(&test.app).await;
    assert_eq!(reply.problem(), (503, "unavailable"));
    assert_eq!(reply.headers["retry-after"], "1");
}

#[tokio::test]
async fn reads_one_item_strongly_consistently() {
    let script = |target: &str, _: usize| match target {
        "BatchGetItem" => ScriptedReply::Response(json!({"Responses": {"waymark-api-keys": [{
            "keyId": {"S": "AAAABBBBCCCC0001"},
            // SHA-256 of the secret.
            "secretHash": {"B": "3tVsQnEb71QIfMtd2ot1lsXQcKRPMRVJ6H8GcRKnzOA="},
            "organization": {"S": "default"},
            "user": {"S": "owner"},
            "scopes": {"SS": ["notifications:read"]},
            "createdAt": {"S": "2026-01-01T00:00:00.000Z"},
        }]}, "UnprocessedKeys": {}})),
        _ => ScriptedReply::Response(json!({})),
    };
    let dynamodb = ScriptedDynamoDb::start(script).await;
    let (app, _) = app_over(&dynamodb.endpoint);
    let key = "wm_AAAABBBBCCCC0001_0123456789abcdefghijABCDEFGHIJ0123456789xyz0zL89M";
    assert_eq!(Call::of(GET).key(key).send(&app).await.body, all_but(&[]));
    let expected = json!({
        "TableName": "waymark-email-preferences",
        "Key": {"userId": {"S": "default/owner"}},
        "ConsistentRead": true,
        "ReturnConsumedCapacity": "TOTAL",
    });
    assert_eq!(dynamodb.requests("GetItem"), [expected]);
    assert_eq!(dynamodb.requests("BatchGetItem").len(), 1);
}
