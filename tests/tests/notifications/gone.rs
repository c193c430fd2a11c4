//! Emails about deleted subjects.

use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};
use shared::projects::api_key::{ApiKeyRecord, UserId};
use tests::app::{PROJECT, TestApp, app_over};
use tests::call::Call;
use tests::notifications::{SentMessages, give_address, user};
use tests::proxy::{self, Proxy, ProxyResponse, Upstream};
use tests::wire::Request;

use super::actions::{create_flag, create_insight, make_errors, start, subjects};

async fn errors(test: &TestApp) -> Vec<Value> {
    let list = Call::of(&list_errors::OPERATION).parameter("idOrSlug", PROJECT).key(&test.key);
    list.send(&test.app).await.body["items"].as_array().unwrap().clone()
}

async fn delete_error(test: &TestApp, error: &Value) {
    let delete = Call::of(&delete_error::OPERATION).parameter("idOrSlug", PROJECT).key(&test.key);
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
async fn deleted_errors_are_not_mailed() {
    let (test, post) = start().await;
    make_errors(&test, 0, 1).await;
    for error in errors(&test).await {
        delete_error(&test, &error).await;
    }
    post.run(&test.app).await;
    assert!(post.mails().await.is_empty(), "none of it is there");

    // Nothing was mailed, so the next error is mailed at once; what follows is gathered.
    make_errors(&test, 1, 1).await;
    post.run(&test.app).await;
    let mailed = errors(&test).await;
    make_errors(&test, 2, 12).await;
    post.run(&test.app).await;
    let gathered = errors(&test).await.into_iter().filter(|error| !mailed.contains(error));
    let gone: Vec<Value> = gathered.take(3).collect();
    for error in &gone {
        delete_error(&test, error).await;
    }
    test.pass(Duration::from_mins(10));
    post.run(&test.app).await;
    let mails = post.mails().await;
    assert_eq!((mails.len(), subjects(&mails)[0]), (2, "9 new errors in Shop"));
    let body = mails[0]["text"].as_str().unwrap();
    assert_eq!(body.matches("/console/error?").count(), 9, "{body}");
    for error in gone {
        assert!(!body.contains(error["errorId"].as_str().unwrap()), "{body}");
    }
    let events = post.events().await;
    let told = events.iter().filter(|event| event["detailType"] == "error.created").count();
    assert_eq!(told, 14, "EventBridge is told what happened, whatever became of it");
}

#[tokio::test]
async fn changes_of_deleted_flags_are_not_mailed_but_their_deletion_is() {
    let (test, post) = (TestApp::start().await, SentMessages::open());
    let ada = UserId::parse("ada").unwrap();
    test.key_with(|key| ApiKeyRecord { user: ada, ..key }).await;
    post.run(&test.app).await;
    give_address(&test.app, &user("ada"), "ada@example.com").await;
    for key in ["gone", "kept"] {
        create_flag(&test, PROJECT, key).await;
    }
    create_insight(&test, 1, "Checkout").await;
    delete_flag(&test, "gone").await;
    post.run(&test.app).await;
    let mails = post.mails().await;
    let mut told = subjects(&mails);
    told.sort_unstable();
    assert_eq!(told, ["2 changes of flags in Shop", "New insight in Shop: Checkout"]);
    let of_flags = mails.iter().find(|mail| mail["subject"] == told[0]).unwrap();
    let body = of_flags["text"].as_str().unwrap();
    assert!(body.contains("The gone\n  deleted") && body.contains("The kept\n  created"), "{body}");
    assert!(!body.contains("archived"), "{body}");
}

/// DynamoDB, which does not answer which errors there are.
struct Forgetful(Upstream);

impl Proxy for Forgetful {
    async fn answer(&self, request: Request) -> ProxyResponse {
        let asked: Value = serde_json::from_slice(&request.body).unwrap();
        let tables = asked["RequestItems"].as_object();
        if tables.is_some_and(|tables| tables.keys().any(|name| name.ends_with("-errors"))) {
            let refusal = json!({"__type": "com.amazonaws.dynamodb.v20120810#InternalServerError"});
            return (500, refusal.to_string().into_bytes());
        }
        self.0.forward(&request).await
    }
}

#[tokio::test]
async fn an_outage_drops_no_line() {
    let (test, post) = start().await;
    make_errors(&test, 0, 3).await;
    let url = proxy::serve(Arc::new(Forgetful(Upstream::new(&test.engine.endpoint())))).await;
    let (app, _) = app_over(&url);
    let deadline = shared::app::Deadline::after(Duration::from_mins(1));
    let outcome =
        send_notifications::send(&app, &post.senders, Duration::ZERO, deadline).await.unwrap();
    assert!(outcome.failure.is_some(), "it is told");
    assert_eq!(subjects(&post.mails().await), ["3 new errors in Shop"]);
}
