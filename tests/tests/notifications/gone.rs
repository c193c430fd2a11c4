//! Emails about deleted subjects.

use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};
use tests::app::{PROJECT, TestApp, app_over};
use tests::call::Call;
use tests::notifications::{SentMessages, give_address, user};
use tests::proxy::{self, Proxy, ProxyResponse, Upstream};
use tests::wire::Request;

use super::actions::{create_errors, create_flag, create_insight, start, subjects};

async fn errors(test: &TestApp) -> Vec<Value> {
    let list = test.call(&list_errors::OPERATION);
    list.send(&test.app).await.body["items"].as_array().unwrap().clone()
}

async fn delete_error(test: &TestApp, error: &Value) {
    let delete = test.call(&delete_error::OPERATION);
    let delete = delete.parameter("errorId", error["errorId"].as_str().unwrap());
    assert_eq!(delete.send(&test.app).await.status, 204);
}

/// Archives and deletes a flag.
async fn delete_flag(test: &TestApp, key: &str) {
    let call = |operation| {
        Call::of(operation).parameter("idOrSlug", PROJECT).parameter("key", key).key(&test.key)
    };
    let archive = call(&update_feature_flag::OPERATION).json(&json!({"archived": true}));
    assert_eq!(archive.send(&test.app).await.status, 200);
    assert_eq!(call(&delete_feature_flag::OPERATION).send(&test.app).await.status, 204);
}

#[tokio::test]
async fn deleted_errors_are_not_emailed() {
    let (test, outbound) = start().await;
    create_errors(&test, 0, 1).await;
    for error in errors(&test).await {
        delete_error(&test, &error).await;
    }
    outbound.run(&test.app).await;
    assert!(outbound.emails().await.is_empty());

    // The next error is the first to be emailed, immediately. Later ones are batched.
    create_errors(&test, 1, 1).await;
    outbound.run(&test.app).await;
    let emailed = errors(&test).await;
    create_errors(&test, 2, 12).await;
    outbound.run(&test.app).await;
    let batched = errors(&test).await.into_iter().filter(|error| !emailed.contains(error));
    let deleted: Vec<Value> = batched.take(3).collect();
    for error in &deleted {
        delete_error(&test, error).await;
    }
    test.pass(Duration::from_mins(10));
    outbound.run(&test.app).await;
    let emails = outbound.emails().await;
    assert_eq!((emails.len(), subjects(&emails)[0]), (2, "[Shop] 9 new errors"));
    let body = emails[0]["text"].as_str().unwrap();
    assert_eq!(body.matches("/console/error?").count(), 9, "{body}");
    for error in deleted {
        assert!(!body.contains(error["errorId"].as_str().unwrap()), "{body}");
    }
    let events = outbound.events().await;
    let published = events.iter().filter(|event| event["detailType"] == "error.created").count();
    assert_eq!(published, 14, "events of deleted errors are published");
}

#[tokio::test]
async fn only_deletions_of_deleted_flags_are_emailed() {
    let (test, outbound) = (TestApp::start().await, SentMessages::open());
    test.key_of("ada").await;
    outbound.run(&test.app).await;
    give_address(&test.app, &user("ada"), "ada@example.com").await;
    for key in ["gone", "kept"] {
        create_flag(&test, PROJECT, key).await;
    }
    create_insight(&test, 1, "Checkout").await;
    delete_flag(&test, "gone").await;
    outbound.run(&test.app).await;
    let emails = outbound.emails().await;
    let mut sorted = subjects(&emails);
    sorted.sort_unstable();
    assert_eq!(sorted, ["[Shop] 2 flag changes", "[Shop] New insight: Checkout"]);
    let flag_email = emails.iter().find(|mail| mail["subject"] == sorted[0]).unwrap();
    let body = flag_email["text"].as_str().unwrap();
    assert!(body.contains("The gone\n  deleted") && body.contains("The kept\n  created"), "{body}");
    assert!(!body.contains("archived"), "{body}");
}

/// A DynamoDB that fails batch reads of errors.
struct FailingErrorReads(Upstream);

impl Proxy for FailingErrorReads {
    async fn respond(&self, request: Request) -> ProxyResponse {
        let body: Value = serde_json::from_slice(&request.body).unwrap();
        let tables = body["RequestItems"].as_object();
        if tables.is_some_and(|tables| tables.keys().any(|name| name.ends_with("-errors"))) {
            let error = json!({"__type": "com.amazonaws.dynamodb.v20120810#InternalServerError"});
            return (500, error.to_string().into_bytes());
        }
        self.0.forward(&request).await
    }
}

#[tokio::test]
async fn outages_drop_no_lines() {
    let (test, outbound) = start().await;
    create_errors(&test, 0, 3).await;
    let url =
        proxy::serve(Arc::new(FailingErrorReads(Upstream::new(&test.engine.endpoint())))).await;
    let (app, _) = app_over(&url);
    let deadline = shared::app::Deadline::after(Duration::from_mins(1));
    let outcome =
        send_notifications::send(&app, &outbound.senders, Duration::ZERO, deadline).await.unwrap();
    assert!(outcome.failure.is_some(), "the failure is reported");
    assert_eq!(subjects(&outbound.emails().await), ["[Shop] 3 new errors"]);
}
