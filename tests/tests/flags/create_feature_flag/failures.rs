//! Failures with DynamoDB silent or busy, and a panicking handler.

use lambda_http::http::Method;
use serde_json::json;
use shared::app::{Access, Operation};
use shared::projects::api_key::Scope;
use tests::app::{PROJECT, TestApp};
use tests::call::{Call, Reply};
use tests::scripted::{KEY, ScriptedReply, access, reply_under};

use super::{CREATE, minimal};

fn any_call() -> Call {
    Call::of(CREATE).parameter("idOrSlug", PROJECT).key(KEY).json(&minimal("flag"))
}

fn assert_unavailable(reply: &Reply) {
    assert_eq!(reply.problem(), (503, "unavailable"));
    assert_eq!(reply.headers["retry-after"], "1");
    assert_eq!(reply.body["detail"], "The service is temporarily unavailable. Retry in 1 s.");
}

#[tokio::test]
async fn silent_dynamodb_gives_503_within_three_seconds() {
    let (reply, _) = reply_under(|_, _| ScriptedReply::Silence, any_call()).await;
    assert_unavailable(&reply);
    let silent_write = |target: &str, _: usize| match target {
        "BatchGetItem" => access(),
        _ => ScriptedReply::Silence,
    };
    let (reply, _) = reply_under(silent_write, any_call()).await;
    assert_unavailable(&reply);
}

#[tokio::test]
async fn throttled_requests_are_retried_then_give_503() {
    let throttle = |_: &str, _: usize| {
        ScriptedReply::Error(
            "ProvisionedThroughputExceededException",
            json!({"message": "slow down"}),
        )
    };
    let (reply, dynamodb) = reply_under(throttle, any_call()).await;
    assert_unavailable(&reply);
    assert_eq!(dynamodb.requests("BatchGetItem").len(), 3);
}

#[tokio::test]
async fn retried_throttled_reads_succeed() {
    let script = |target: &str, before: usize| match (target, before) {
        ("BatchGetItem", 0) => {
            ScriptedReply::Error("ThrottlingException", json!({"message": "slow down"}))
        }
        ("BatchGetItem", 1) => {
            ScriptedReply::Response(json!({"Responses": {}, "UnprocessedKeys": {
                "waymark-api-keys": {"Keys": [{"keyId": {"S": "AAAABBBBCCCC0001"}}]},
                "waymark-projects": {"Keys": [{"idOrSlug": {"S": PROJECT}}]},
            }}))
        }
        ("BatchGetItem", _) => access(),
        _ => ScriptedReply::Response(json!({})),
    };
    let (reply, dynamodb) = reply_under(script, any_call()).await;
    assert_eq!(reply.status, 201);
    assert_eq!(dynamodb.requests("BatchGetItem").len(), 3);
}

#[tokio::test]
async fn sdk_retries_cannot_write_twice() {
    let script = |target: &str, before: usize| match (target, before) {
        ("BatchGetItem", _) => access(),
        (_, 0) => ScriptedReply::Error("InternalServerError", json!({"message": "try again"})),
        _ => ScriptedReply::Response(json!({})),
    };
    let (reply, dynamodb) = reply_under(script, any_call()).await;
    assert_eq!(reply.status, 201);
    let transactions = dynamodb.requests("TransactWriteItems");
    assert_eq!(transactions.len(), 2);
    assert_eq!(transactions[0], transactions[1], "the token identifies the retry");
}

#[tokio::test]
async fn panics_give_500_and_later_requests_work() {
    static PANICKING: Operation = Operation::new(
        "create-feature-flag",
        Method::POST,
        "/v0/project/{idOrSlug}/feature-flags",
        Access::ApiKey(Scope::FlagsWrite, |_, _, _| Box::pin(async { panic!("secret cause") })),
    );

    let test = TestApp::start().await;
    let reply = test.call(&PANICKING);
    let reply = reply.send(&test.app).await;
    assert_eq!(reply.problem(), (500, "internal"));
    assert!(!reply.body.to_string().contains("secret"), "{}", reply.body);
    assert_eq!(test.call(CREATE).json(&minimal("flag")).send(&test.app).await.status, 201);
}
