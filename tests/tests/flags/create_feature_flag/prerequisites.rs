//! Prerequisites: checked in the same transaction, with chains of at most ten flags.

use serde_json::{Value, json};
use tests::app::{PROJECT, TestApp, app_over};
use tests::call::Call;
use tests::scripted::{KEY, ScriptedDynamoDb, ScriptedReply, access};

use super::{CREATE, create, minimal, stored_keys};

fn dependent(key: &str, prerequisites: &[(&str, &str)]) -> Value {
    let prerequisites: Vec<Value> = prerequisites
        .iter()
        .map(|(flag_key, variant)| json!({"flagKey": flag_key, "variant": variant}))
        .collect();
    json!({"key": key, "name": "A flag", "type": "boolean", "prerequisites": prerequisites})
}

#[tokio::test]
async fn prerequisites_are_checked_before_taken_keys() {
    let test = TestApp::start().await;
    create(&test, &minimal("taken")).await;
    let reply = create(&test, &dependent("taken", &[("missing", "on")])).await;
    assert_eq!(reply.problem(), (400, "validation_failed"));
}

#[tokio::test]
async fn prerequisites_are_in_the_same_project() {
    let test = TestApp::start().await;
    test.other_project().await;
    let elsewhere = super::Call::of(CREATE).parameter("idOrSlug", "other").key(&test.key);
    elsewhere.json(&minimal("foreign")).send(&test.app).await;
    let reply = create(&test, &dependent("new", &[("foreign", "on")])).await;
    assert_eq!(reply.violations(), [("/prerequisites/0/flagKey", "unknown_flag")]);
}

#[tokio::test]
async fn concurrent_additions_keep_chains_valid() {
    let test = TestApp::start().await;
    create(&test, &minimal("leaf")).await;
    create(&test, &dependent("middle", &[("leaf", "on")])).await;
    let creations = (0..12).map(|index| {
        let body = dependent(&format!("top-{index}"), &[("middle", "on")]);
        let call = test.call(CREATE).json(&body);
        let app = &test.app;
        async move { call.send(app).await }
    });
    let replies = futures_util::future::join_all(creations).await;
    let created = replies.iter().filter(|reply| reply.status == 201).count();
    for reply in &replies {
        assert!(matches!(reply.problem(), (201, "") | (409, "conflict")), "{:?}", reply.body);
    }
    assert_eq!(stored_keys(&test).await.len(), created + 2);
    assert!(created >= 1);
}

/// Simulates a DynamoDB in which `middle` has a prerequisite that changes between the first read of
/// the chain and the write.
fn changed_in_between(target: &str, before: usize) -> ScriptedReply {
    let state =
        |number: &str| json!({"liveFlags": {"N": "2"}, "prerequisitesState": {"N": number}});
    let flag = |key: &str, prerequisites: Value| json!({"key": {"S": key}, "variantKeys": {"SS": ["on"]}, "prerequisites": prerequisites});
    let leaf = json!({"key": {"S": "leaf"}, "variantKeys": {"SS": ["on"]}});
    let on_leaf = json!({"L": [{"M": {"flagKey": {"S": "leaf"}, "variant": {"S": "on"}}}]});
    let failed = |code: &str, item: Value| match item {
        Value::Null => json!({"Code": code}),
        item => json!({"Code": code, "Item": item}),
    };
    let cancelled = |reasons: Vec<Value>| {
        let members = json!({"message": "cancelled", "CancellationReasons": reasons});
        ScriptedReply::Error("TransactionCanceledException", members)
    };
    let flags = |flags: Value| {
        ScriptedReply::Response(
            json!({"Responses": {"waymark-feature-flags": flags}, "UnprocessedKeys": {}}),
        )
    };
    let none = || failed("None", Value::Null);
    match (target, before) {
        ("BatchGetItem", 0) => access(),
        // Level by level, twice.
        ("BatchGetItem", 1 | 3) => flags(json!([flag("middle", on_leaf)])),
        ("BatchGetItem", _) => flags(json!([leaf])),
        ("GetItem", 0) => ScriptedReply::Response(json!({"Item": state("6")})),
        ("GetItem", _) => ScriptedReply::Response(json!({"Item": state("7")})),
        ("TransactWriteItems", 0) => {
            cancelled(vec![none(), none(), failed("ConditionalCheckFailed", Value::Null)])
        }
        ("TransactWriteItems", 1) => {
            cancelled(vec![none(), failed("ConditionalCheckFailed", state("7")), none()])
        }
        _ => ScriptedReply::Response(json!({})),
    }
}

#[tokio::test]
async fn chains_that_change_before_the_write_are_reread() {
    let dynamodb = ScriptedDynamoDb::start(changed_in_between).await;
    let (app, _) = app_over(&dynamodb.endpoint);
    let call = Call::of(CREATE).parameter("idOrSlug", PROJECT).key(KEY);
    let reply = call.json(&dependent("top", &[("middle", "on")])).send(&app).await;
    assert_eq!(reply.status, 201);
    let transactions = dynamodb.requests("TransactWriteItems");
    let counting = |index: usize| &transactions[index]["TransactItems"][1]["Update"];
    let requiring = |index: usize| &transactions[index]["TransactItems"][2]["ConditionCheck"];
    assert_eq!(transactions.len(), 3);
    let without_chains = requiring(0)["ConditionExpression"].as_str().unwrap();
    assert!(without_chains.ends_with("AND attribute_not_exists(prerequisites)"));
    for (index, state) in [(1, "6"), (2, "7")] {
        let condition = counting(index)["ConditionExpression"].as_str().unwrap();
        assert!(condition.ends_with("AND prerequisitesState = :revision"), "{condition}");
        assert_eq!(counting(index)["ExpressionAttributeValues"][":revision"], json!({"N": state}));
        assert_eq!(
            requiring(index)["ConditionExpression"],
            "contains(variantKeys, :variant) AND attribute_not_exists(archivedAt)"
        );
    }
    let update = counting(2)["UpdateExpression"].as_str().unwrap();
    assert_eq!(
        update,
        "ADD flagsState :one, liveFlags :one, flagBytes :bytes, prerequisitesState :one"
    );
    // The revision was read before the flags, so that no change between them is missed.
    assert!(dynamodb.requests("GetItem").iter().all(|get| get["ConsistentRead"] == true));
}

#[tokio::test]
async fn prerequisites_are_stored_outside_the_definition() {
    let test = TestApp::start().await;
    create(&test, &minimal("base")).await;
    let reply = create(&test, &dependent("top", &[("base", "off")])).await;
    assert_eq!(reply.body["prerequisites"], json!([{"flagKey": "base", "variant": "off"}]));
    let items = test.items("feature-flags").await;
    let top = items.iter().find(|item| item["key"].as_s().unwrap() == "top").unwrap();
    let prerequisite = top["prerequisites"].as_l().unwrap()[0].as_m().unwrap();
    assert_eq!(prerequisite["flagKey"].as_s().unwrap(), "base");
    assert_eq!(prerequisite["variant"].as_s().unwrap(), "off");
    let project = items.iter().find(|item| item["key"].as_s().unwrap() == "#").unwrap();
    assert_eq!(project["prerequisitesState"].as_n().unwrap(), "1");
}
