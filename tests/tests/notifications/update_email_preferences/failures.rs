//! A DynamoDB that is down, busy or forbidding, and an item that is damaged.

use aws_sdk_dynamodb::types::AttributeValue;
use serde_json::{Value, json};
use tests::app::{START, TestApp, app_over};
use tests::call::{self, Call};
use tests::scripted::{KEY, ScriptedDynamoDb, ScriptedReply, access, reply_under};

use super::{UPDATE, all_but, call, preferences, update};

/// A call of [`KEY`] that sets these preferences.
fn setting(items: &[(&str, bool)]) -> Call {
    Call::of(UPDATE).key(KEY).json(&preferences(items))
}

#[tokio::test]
async fn sets_what_is_named_and_nothing_else_and_reads_nothing() {
    let script = |target: &str, _: usize| match target {
        "BatchGetItem" => access(),
        _ => ScriptedReply::Answer(json!({"Attributes": {
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
    let [sent] = &dynamodb.requests("UpdateItem")[..] else { panic!("it is one request") };
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
async fn an_empty_array_is_one_strongly_consistent_read() {
    let script = |target: &str, _: usize| match target {
        "BatchGetItem" => access(),
        _ => ScriptedReply::Answer(json!({})),
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
        (_, 0) => ScriptedReply::Error("ThrottlingException", json!({"message": "slow down"})),
        (_, 1) => ScriptedReply::Error("InternalServerError", json!({"message": "try again"})),
        _ => ScriptedReply::Answer(json!({"Attributes": {"billing": {"BOOL": false}}})),
    };
    let (reply, dynamodb) = reply_under(script, setting(&[("billing", false)])).await;
    assert_eq!((reply.status, reply.body), (200, all_but(&["billing"])));
    assert_eq!(dynamodb.requests("UpdateItem").len(), 3);
}

/// An item that a condition failed on, with the ids of its latest writes.
fn written_by(latest: &[String]) -> ScriptedReply {
    let mut item = json!({"userId": {"S": "default/owner"}, "billing": {"BOOL": true}});
    for (index, id) in latest.iter().enumerate() {
        item[format!("write{index}")] = json!({ "B": id });
    }
    ScriptedReply::Error(
        "ConditionalCheckFailedException",
        json!({ "message": "no", "Item": item }),
    )
}

/// The id of a write so many milliseconds after the tests begin, in base64.
fn id(after: u64) -> String {
    let id = uuid::Builder::from_unix_timestamp_millis(START + after, &[0; 10]).into_uuid();
    call::base64(id.as_bytes())
}

/// The id under which a request writes.
fn own_id(request: &Value) -> &str {
    request["ExpressionAttributeValues"][":id"]["B"].as_str().unwrap()
}

#[tokio::test]
async fn an_update_whose_answer_was_lost_finds_itself_under_later_ones() {
    // The first update of an app that counts its identifiers.
    let own = call::base64(
        uuid::Builder::from_unix_timestamp_millis(START, &[0, 0, 0, 0, 0, 0, 0, 0, 0, 1])
            .into_uuid()
            .as_bytes(),
    );
    let dynamodb = ScriptedDynamoDb::start(|target, before| match (target, before) {
        ("BatchGetItem", _) => access(),
        ("UpdateItem", 0) => ScriptedReply::Silence,
        _ => ScriptedReply::Answer(json!({})),
    })
    .await;
    let (app, _) = app_over(&dynamodb.endpoint);
    setting(&[("billing", false)]).send(&app).await;
    let sent = dynamodb.requests("UpdateItem");
    assert_eq!((own_id(&sent[0]), own_id(&sent[1])), (&*own, &*own), "its attempts have one id");

    let script = |target: &str, before: usize| match (target, before) {
        ("BatchGetItem", _) => access(),
        ("UpdateItem", 0) => ScriptedReply::Silence,
        _ => {
            let own =
                uuid::Builder::from_unix_timestamp_millis(START, &[0, 0, 0, 0, 0, 0, 0, 0, 0, 1]);
            written_by(&[id(9), id(5), call::base64(own.into_uuid().as_bytes())])
        }
    };
    let (reply, dynamodb) = reply_under(script, setting(&[("billing", false)])).await;
    assert_eq!((reply.status, reply.body), (200, all_but(&[])), "what holds is what came later");
    assert_eq!(dynamodb.requests("UpdateItem").len(), 2);
}

#[tokio::test]
async fn an_update_of_a_clock_that_is_behind_comes_after_what_was_there() {
    let script = |target: &str, before: usize| match (target, before) {
        ("BatchGetItem", _) => access(),
        ("UpdateItem", 0) => written_by(&[id(60_000), id(1_000)]),
        ("UpdateItem", 1) => written_by(&[id(60_000), id(1_000), id(0)]),
        _ => ScriptedReply::Answer(json!({"Attributes": {"billing": {"BOOL": false}}})),
    };
    // All of them are later than the update.
    let (reply, dynamodb) = reply_under(script, setting(&[("billing", false)])).await;
    assert_eq!((reply.status, reply.body), (200, all_but(&["billing"])));
    let sent = dynamodb.requests("UpdateItem");
    let time = |request| own_id(request)[..8].to_owned();
    assert_eq!(time(&sent[1]), id(60_001)[..8], "the earliest time that is later");
    assert_eq!(sent.len(), 3);
}

#[tokio::test]
async fn an_update_that_too_many_overtook_says_what_became_of_it_only_if_it_knows() {
    let lost = |target: &str, before: usize| match (target, before) {
        ("BatchGetItem", _) => access(),
        ("UpdateItem", 0) => ScriptedReply::Silence,
        _ => written_by(&[8, 7, 6, 5, 4, 3, 2, 1].map(id)),
    };
    let (reply, dynamodb) = reply_under(lost, setting(&[("billing", false)])).await;
    assert_eq!(reply.problem(), (503, "unavailable"));
    assert_eq!(dynamodb.requests("UpdateItem").len(), 2);
    // The first attempt was answered: it was not carried out, and only its clock is behind.
    let behind = |target: &str, before: usize| match (target, before) {
        ("BatchGetItem", _) => access(),
        ("UpdateItem", 0) => written_by(&[8, 7, 6, 5, 4, 3, 2, 1].map(id)),
        _ => ScriptedReply::Answer(json!({"Attributes": {"billing": {"BOOL": false}}})),
    };
    let (reply, dynamodb) = reply_under(behind, setting(&[("billing", false)])).await;
    assert_eq!(reply.status, 200);
    assert_eq!(own_id(&dynamodb.requests("UpdateItem")[1])[..8], id(9)[..8]);
}

#[tokio::test]
async fn a_write_that_meets_a_transaction_is_tried_again() {
    let script = |target: &str, before: usize| match (target, before) {
        ("BatchGetItem", _) => access(),
        (_, 0 | 1) => {
            ScriptedReply::Error("TransactionConflictException", json!({"message": "ongoing"}))
        }
        _ => ScriptedReply::Answer(json!({"Attributes": {"billing": {"BOOL": false}}})),
    };
    let (reply, dynamodb) = reply_under(script, setting(&[("billing", false)])).await;
    assert_eq!((reply.status, reply.body), (200, all_but(&["billing"])));
    assert_eq!(dynamodb.requests("UpdateItem").len(), 3);
    let always = |target: &str, _: usize| match target {
        "BatchGetItem" => access(),
        _ => ScriptedReply::Error("TransactionConflictException", json!({"message": "ongoing"})),
    };
    let (reply, _) = reply_under(always, setting(&[("billing", false)])).await;
    assert_eq!(reply.problem(), (503, "unavailable"));
}

#[tokio::test]
async fn a_dynamodb_that_throttles_or_is_down_gives_503() {
    let throttle = |target: &str, _: usize| match target {
        "BatchGetItem" => access(),
        _ => ScriptedReply::Error(
            "ProvisionedThroughputExceededException",
            json!({"message": "slow down"}),
        ),
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
        _ => ScriptedReply::Error(
            "AccessDeniedException",
            json!({"message": "role/secret-role may not"}),
        ),
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
