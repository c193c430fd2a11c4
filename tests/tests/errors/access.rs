//! Access to errors, and the order of checks.

use serde_json::json;

use shared::app::Operation;
use shared::projects::dsn::PublicKey;
use shared::projects::project::Project;
use tests::app::PROJECT;
use tests::call::Call;
use tests::errors::SentEvent;

use super::{GET, LIST, LIST_EVENTS, Tracker, UPDATE};

/// Returns a call without an API key that is valid for an existing error.
fn valid(operation: &'static Operation, project: &str, error: &str) -> Call {
    let call = Call::of(operation).parameter("idOrSlug", project).parameter("errorId", error);
    match operation.method.as_str() {
        "POST" => call.json(&json!({ "projectIds": [project] })),
        "PATCH" => call.json(&json!({ "status": "open" })),
        _ => call,
    }
}

/// Returns a tracker with one error, and the error's id.
async fn with_error() -> (Tracker, String) {
    let tracker = Tracker::start().await;
    tracker.deliver(&SentEvent::new(1, tracker.now(), "TypeError", "x is not a function")).await;
    let id = tracker.the_error().await["errorId"].as_str().unwrap().to_owned();
    (tracker, id)
}

#[tokio::test]
async fn foreign_and_malformed_error_ids_return_404() {
    let (tracker, id) = with_error().await;
    let test = &tracker.test;
    tracker.other_project("other").await;
    for operation in [GET, LIST_EVENTS, UPDATE] {
        for (project, id) in [
            ("other", id.as_str()),
            (PROJECT, "01902f3c-0000-7000-8000-000000000000"),
            (PROJECT, "nonsense"),
            (PROJECT, &id.replace('-', "")),
            (PROJECT, &format!("{{{id}}}")),
            (PROJECT, "%00"),
        ] {
            let reply = valid(operation, project, id).key(&test.key).send(&test.app).await;
            assert_eq!(reply.problem(), (404, "error_not_found"), "{} {id}", operation.name);
        }
        let project = test.project_id.to_string().to_uppercase();
        let reply =
            valid(operation, &project, &id.to_uppercase()).key(&test.key).send(&test.app).await;
        assert_eq!(reply.status, 200, "{}: {}", operation.name, reply.body);
    }
}

#[tokio::test]
async fn projects_have_separate_errors() {
    let (tracker, id) = with_error().await;
    let other = tracker.other_project("other").await;
    let event = SentEvent::new(2, tracker.now(), "TypeError", "x is not a function");
    assert_eq!(tracker.deliver_to(&other, &event).await.status, 200);
    let call = Call::of(LIST).parameter("idOrSlug", "other").key(&tracker.test.key);
    let listed = call.send(&tracker.test.app).await.body["items"].clone();
    assert_eq!(listed.as_array().unwrap().len(), 1);
    assert_ne!(listed[0]["errorId"], id, "equal events in two projects are two errors");
    assert_eq!((&listed[0]["count"], &tracker.the_error().await["count"]), (&json!(1), &json!(1)));
    tracker.set_status(&listed_error(&id), "ignored").await;
    let listed = Call::of(LIST).parameter("idOrSlug", "other").key(&tracker.test.key);
    let listed = listed.send(&tracker.test.app).await.body["items"].clone();
    assert_eq!(listed[0]["status"], "open");
}

fn listed_error(id: &str) -> serde_json::Value {
    json!({ "errorId": id })
}

#[tokio::test]
async fn projects_in_bodies_are_checked_last() {
    let tracker = Tracker::start().await;
    let reply = tracker.query(&json!({"projectIds": ["missing"], "limit": 0})).await;
    assert_eq!(reply.violations(), [("/limit", "out_of_range")]);
}

#[tokio::test]
async fn replaced_dsn_keys_work_only_while_cached() {
    let tracker = Tracker::start().await;
    let (store, old) = (&tracker.test.app.store, &tracker.project);
    let event = SentEvent::new(1, tracker.now(), "TypeError", "x");
    // A warm function caches the old key.
    tracker.deliver(&event).await;
    let public_key = PublicKey::generate().unwrap();
    assert!(store.replace_dsn_key(old, public_key, vec![]).await.unwrap());
    assert!(!store.replace_dsn_key(old, public_key, vec![]).await.unwrap());
    assert_eq!(tracker.deliver_to(old, &event).await.status, 200);
    let new = Project { public_key, ..old.clone() };
    assert_eq!(store.read_project(old.id).await.unwrap().as_ref(), Some(&new));
    assert_eq!(tracker.deliver_to(&new, &event).await.status, 200);
    assert_eq!(tracker.deliver_to(old, &event).await.status, 403);
}
