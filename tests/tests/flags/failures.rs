//! Failures with DynamoDB down, slow or busy.

use std::collections::BTreeSet;

use aws_sdk_dynamodb::types::AttributeValue;
use serde_json::{Value, json};
use shared::app::Operation;
use tests::app::{PROJECT, TestApp, left_out};
use tests::call::Call;
use tests::scripted::{KEY, ScriptedReply, access, cancelled, reply_under};

use super::{DELETE, GET, LIST, TABLE, UPDATE, call_for, create, damage, keys, valid};

fn any(operation: &'static Operation) -> Call {
    valid(operation, PROJECT, "f").key(KEY)
}

fn patch(body: &Value) -> Call {
    let call = Call::of(UPDATE).parameter("idOrSlug", PROJECT).parameter("key", "f");
    call.key(KEY).json(body)
}

fn flag(archived: bool) -> Value {
    let mut item = json!({
        "projectId": {"S": "00000000-0000-7000-8000-000000000001"},
        "key": {"S": "f"},
        "id": {"S": "01902f3c-0000-7000-8000-000000000001"},
        "name": {"S": "F"}, "description": {"S": ""}, "type": {"S": "boolean"},
        "enabled": {"BOOL": true}, "version": {"N": "1"},
        "definition": {"S": "{\"variants\":[{\"key\":\"on\",\"name\":\"On\",\"value\":\"true\"}],\
            \"offVariant\":\"on\",\"fallthrough\":{\"variant\":\"on\",\"rollout\":[]},\
            \"rules\":[],\"targets\":[]}"},
        "variantKeys": {"SS": ["on"]},
        "createdAt": {"S": "2026-11-21T04:16:00.000Z"},
        "updatedAt": {"S": "2026-11-21T04:16:00.000Z"},
    });
    if archived {
        item["archivedAt"] = json!({"S": "2026-11-21T04:16:00.000Z"});
    }
    item
}

fn condition_failed() -> ScriptedReply {
    cancelled(&["ConditionalCheckFailed"])
}

#[tokio::test]
async fn permanently_changing_flags_give_409() {
    let unarchived = |target: &str, _: usize| match target {
        "BatchGetItem" => access(),
        "GetItem" => ScriptedReply::Response(json!({"Item": flag(false)})),
        _ => condition_failed(),
    };
    let (reply, dynamodb) = reply_under(unarchived, patch(&json!({"name": "n"}))).await;
    assert_eq!(reply.problem(), (409, "conflict"));
    assert_eq!(reply.headers["retry-after"], "1");
    assert!(dynamodb.requests("TransactWriteItems").len() > 2);
    let archived = |target: &str, _: usize| match target {
        "BatchGetItem" => access(),
        "GetItem" => ScriptedReply::Response(json!({"Item": flag(true)})),
        _ => condition_failed(),
    };
    let (reply, dynamodb) = reply_under(archived, any(DELETE)).await;
    assert_eq!(reply.problem(), (409, "conflict"));
    assert!(dynamodb.requests("TransactWriteItems").len() > 2);
}

#[tokio::test]
async fn attempts_of_a_write_share_one_token() {
    let script = |target: &str, before: usize| match (target, before) {
        ("BatchGetItem", _) => access(),
        ("GetItem", _) => ScriptedReply::Response(json!({"Item": flag(false)})),
        ("TransactWriteItems", 0) => ScriptedReply::Silence,
        ("TransactWriteItems", 1) => cancelled(&["TransactionConflict"]),
        ("TransactWriteItems", 2) => {
            ScriptedReply::Error("TransactionInProgressException", json!({}))
        }
        _ => ScriptedReply::Response(json!({})),
    };
    let call = patch(&json!({"name": "n"})).header("if-match", "\"1\"");
    let (reply, dynamodb) = reply_under(script, call).await;
    assert_eq!((reply.status, &reply.body["version"]), (200, &json!(2)), "{}", reply.body);
    let attempts = dynamodb.requests("TransactWriteItems");
    assert_eq!((attempts.len(), dynamodb.requests("GetItem").len()), (4, 1));
    assert!(attempts[0]["ClientRequestToken"].is_string());
    assert!(attempts.iter().all(|attempt| *attempt == attempts[0]));
}

#[tokio::test]
async fn conflicting_patches_are_applied_to_the_new_version() {
    let script = |target: &str, before: usize| match (target, before) {
        ("BatchGetItem", _) => access(),
        ("GetItem", 0) => ScriptedReply::Response(json!({"Item": flag(false)})),
        ("GetItem", _) => {
            let mut item = flag(false);
            item["version"] = json!({"N": "8"});
            item["description"] = json!({"S": "theirs"});
            ScriptedReply::Response(json!({ "Item": item }))
        }
        ("TransactWriteItems", 0) => condition_failed(),
        _ => ScriptedReply::Response(json!({})),
    };
    let (reply, dynamodb) = reply_under(script, patch(&json!({"name": "ours"}))).await;
    assert_eq!((reply.status, &reply.body["version"]), (200, &json!(9)));
    let actions = &dynamodb.requests("TransactWriteItems")[1]["TransactItems"];
    let written = &actions[0]["Put"];
    assert_eq!(written["Item"]["description"]["S"], "theirs");
    assert_eq!(written["Item"]["name"]["S"], "ours");
    assert_eq!(written["ConditionExpression"], "id = :id AND version = :version");
    assert_eq!(written["ExpressionAttributeValues"][":version"], json!({"N": "8"}));
    assert_eq!(actions[1]["Update"]["UpdateExpression"], "ADD flagsState :one");
    assert!(dynamodb.requests("GetItem").iter().all(|get| get["ConsistentRead"] == true));
}

#[tokio::test]
async fn archiving_requires_the_revision_of_read_dependents() {
    let script = |target: &str, before: usize| match (target, before) {
        ("BatchGetItem", _) => access(),
        ("GetItem", number) if number % 2 == 0 => {
            ScriptedReply::Response(json!({"Item": flag(false)}))
        }
        ("GetItem", 1) => {
            ScriptedReply::Response(json!({"Item": {"prerequisitesState": {"N": "6"}}}))
        }
        ("GetItem", _) => {
            ScriptedReply::Response(json!({"Item": {"prerequisitesState": {"N": "7"}}}))
        }
        ("Query", _) => ScriptedReply::Response(json!({"Items": [], "Count": 0})),
        ("TransactWriteItems", 0) => cancelled(&["None", "ConditionalCheckFailed"]),
        _ => ScriptedReply::Response(json!({})),
    };
    let (reply, dynamodb) = reply_under(script, any(UPDATE)).await;
    assert_eq!(reply.status, 200);
    let transactions = dynamodb.requests("TransactWriteItems");
    assert_eq!(transactions.len(), 2);
    for (transaction, state) in transactions.iter().zip(["6", "7"]) {
        let project = &transaction["TransactItems"][1]["Update"];
        assert_eq!(project["ConditionExpression"], "prerequisitesState = :revision");
        assert_eq!(project["ExpressionAttributeValues"][":revision"], json!({"N": state}));
        assert_eq!(project["UpdateExpression"], "ADD flagsState :one, liveFlags :minusOne");
    }
    let queries = dynamodb.requests("Query");
    assert!(
        queries.iter().all(|it| it["ConsistentRead"] == true && it["IndexName"] == "byDependent")
    );
}

#[tokio::test]
async fn lists_omit_only_unreadable_flags() {
    let test = TestApp::start().await;
    for key in ["a", "b", "c", "d"] {
        create(&test, key, &json!({})).await;
    }
    for key in ["b", "d"] {
        damage(&test, key, "definition", AttributeValue::S("{".to_owned())).await;
    }
    for limit in [1, 2, 3, 100] {
        let pages = test.pages(&test.call(LIST), limit).await;
        assert_eq!(keys(&json!(pages.concat())), ["a", "c"], "{limit}");
    }
    let reported = left_out(&format!("{}, key d", test.project_id));
    assert_eq!(reported, BTreeSet::from([(TABLE, "definition")]));
    let alone = call_for(&test, GET, "b").send(&test.app).await;
    assert_eq!(alone.problem(), (500, "internal"));
}
