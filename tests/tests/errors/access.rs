//! Access to errors, and the order of checks.

use serde_json::json;

use shared::app::Operation;
use shared::projects::api_key::{ApiKeyRecord, Scope};
use shared::projects::dsn::PublicKey;
use shared::projects::project::Project;
use tests::app::PROJECT;
use tests::call::Call;
use tests::errors::SentEvent;

use super::{GET, LIST, LIST_EVENTS, QUERY, Tracker, UPDATE};

const OPERATIONS: [&Operation; 5] = [LIST, GET, LIST_EVENTS, QUERY, UPDATE];

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
async fn inaccessible_projects_return_404() {
    let (tracker, id) = with_error().await;
    let test = &tracker.test;
    let other = tracker.other_project("other").await.id;
    let unseen = test.unseen_projects(other).await;
    for operation in OPERATIONS {
        for (project, key) in &unseen {
            let reply = valid(operation, project, &id).key(key).send(&test.app).await;
            assert_eq!(reply.problem(), (404, "project_not_found"), "{} {project}", operation.name);
        }
        let reply = valid(operation, PROJECT, &id).key(&test.key).send(&test.app).await;
        assert_eq!(reply.status, 200, "{}", operation.name);
    }
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
async fn requests_are_checked_in_documented_order() {
    let (tracker, id) = with_error().await;
    let test = &tracker.test;
    for operation in [LIST, LIST_EVENTS] {
        let call = valid(operation, "missing", "nonsense").key(&test.key);
        let reply = call.query("limit", 0).query("cursor", "x").send(&test.app).await;
        let violations = [("query:limit", "out_of_range"), ("query:cursor", "invalid_value")];
        assert_eq!(reply.violations(), violations);
    }
    let update = |project: &str, id: &str| {
        Call::of(UPDATE).parameter("idOrSlug", project).parameter("errorId", id).key(&test.key)
    };
    let reply = update("missing", &id).bytes("{").send(&test.app).await;
    assert_eq!(reply.problem(), (404, "project_not_found"));
    let reply = update(PROJECT, "nonsense").bytes("{").send(&test.app).await;
    assert_eq!(reply.problem(), (400, "malformed_json"));
    let write_key =
        test.key_with(|key| ApiKeyRecord { scopes: [Scope::ErrorsWrite].into(), ..key }).await;
    let query = |key: &str| Call::of(QUERY).key(key);
    let reply = query(&write_key).bytes("{").send(&test.app).await;
    assert_eq!(reply.problem(), (403, "insufficient_scope"));
    let large = query(&test.key).header("content-type", "text/plain");
    let reply = large.bytes(" ".repeat(256 * 1024 + 1)).send(&test.app).await;
    assert_eq!(reply.problem(), (413, "body_too_large"));
    let reply = query(&test.key).header("content-type", "text/plain").bytes("{").send(&test.app);
    assert_eq!(reply.await.problem(), (415, "unsupported_media_type"));
    let reply = query(&test.key).bytes("").send(&test.app).await;
    assert_eq!(reply.problem(), (400, "malformed_json"));
    // Projects in a body are checked last, after all its other fields.
    let body = json!({"projectIds": ["missing"], "limit": 0});
    let reply = query(&test.key).json(&body).send(&test.app).await;
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
