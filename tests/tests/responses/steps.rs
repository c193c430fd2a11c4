//! Steps of scenarios beside requests: keys, the passage of time, changes of stored data, and
//! scripted failures of DynamoDB.

use std::time::Duration;

use aws_sdk_dynamodb::types::AttributeValue;
use serde_json::json;

use shared::app::Deadline;
use shared::projects::api_key::{ApiKeyRecord, Scope, UserId};
use shared::projects::project::Organization;
use shared::timestamp::Timestamp;
use tests::app::TestApp;
use tests::scripted::{ScriptedReply, access, cancelled};

/// Returns DynamoDB's response, by target and number of earlier requests with that target.
pub(crate) type Script = fn(&str, usize) -> ScriptedReply;

/// Creates keys. Returns each with its name.
pub(crate) async fn create_keys(test: &TestApp) -> Vec<(String, &'static str)> {
    let long_ago = Some(Timestamp::from_millis(0));
    let foreign = Organization::parse("foreign").unwrap();
    let ann = UserId::parse("ann").unwrap();
    let other = test.other_project().await;
    let elsewhere = Some([other].into());
    let reads = [Scope::FlagsRead].into();
    let record = |key: ApiKeyRecord| key;
    vec![
        (test.key_with(record).await, "<key>"),
        (test.key_with(|key| ApiKeyRecord { revoked_at: long_ago, ..key }).await, "<revoked key>"),
        (test.key_with(|key| ApiKeyRecord { expires_at: long_ago, ..key }).await, "<expired key>"),
        (
            test.key_with(|key| ApiKeyRecord { scopes: [].into(), ..key }).await,
            "<key without scopes>",
        ),
        (test.key_with(|key| ApiKeyRecord { organization: foreign, ..key }).await, "<foreign key>"),
        (test.key_with(|key| ApiKeyRecord { projects: elsewhere, ..key }).await, "<key elsewhere>"),
        (test.key_with(|key| ApiKeyRecord { scopes: reads, ..key }).await, "<key that reads>"),
        (test.key_with(|key| ApiKeyRecord { user: ann, ..key }).await, "<key of ann>"),
    ]
}

/// Takes a step.
pub(crate) async fn take(test: &TestApp, step: &str) {
    let project = test.project_id.to_string();
    let flag = |key: &'static str| [("projectId", project.as_str()), ("key", key)];
    match step {
        "a day passes" => test.pass(Duration::from_hours(24)),
        "fifty hours pass, and events are packed" => {
            test.pass(Duration::from_hours(50));
            let deadline = Deadline::after(Duration::from_mins(1));
            (pack_error_log::JOB.run)(&test.app, deadline).await.unwrap();
        }
        "the project gets as many flags as allowed" => {
            let full = AttributeValue::N("2000".to_owned());
            test.tamper("feature-flags", flag("#"), "liveFlags", full).await;
        }
        "the flag theme is damaged" => {
            let nonsense = AttributeValue::S("{".to_owned());
            test.tamper("feature-flags", flag("theme"), "definition", nonsense).await;
        }
        _ => panic!("there is no step {step:?}"),
    }
}

/// Returns a DynamoDB by its name.
pub(crate) fn script(name: &str) -> Script {
    match name {
        "throttles" => |_, _| throttled(),
        "throttles after the key" => |target, before| match (target, before) {
            ("BatchGetItem", 0) => access(),
            _ => throttled(),
        },
        "has no such table" => |target, before| match (target, before) {
            ("BatchGetItem", 0) => access(),
            _ => ScriptedReply::Error("ResourceNotFoundException", json!({"message": "secret"})),
        },
        "has nothing, and takes no transaction" => |target, before| match (target, before) {
            ("BatchGetItem", 0) => access(),
            ("TransactWriteItems", _) => cancelled(&["TransactionConflict"]),
            _ => ScriptedReply::Response(json!({})),
        },
        // The last action stores the response for duplicates.
        "has a conflict in action 2" => |target, _| conflict(target, 2),
        "has a conflict in action 3" => |target, _| conflict(target, 3),
        "has a conflict in action 7" => |target, _| conflict(target, 7),
        _ => panic!("there is no DynamoDB that {name}"),
    }
}

fn throttled() -> ScriptedReply {
    ScriptedReply::Error("ThrottlingException", json!({"message": "slow down"}))
}

/// Returns the response of a DynamoDB that cancels transactions because of their `action`th action.
fn conflict(target: &str, action: usize) -> ScriptedReply {
    let mut reasons = vec!["None"; action - 1];
    reasons.push("TransactionConflict");
    match target {
        "BatchGetItem" => access(),
        "TransactWriteItems" => cancelled(&reasons),
        _ => ScriptedReply::Response(json!({})),
    }
}
