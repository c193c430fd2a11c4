//! Errors of several projects, and replaced DSN keys.

use serde_json::json;

use shared::projects::dsn::PublicKey;
use shared::projects::project::Project;
use tests::call::Call;
use tests::errors::SentEvent;

use super::{LIST, Tracker};

/// Returns a tracker with one error, and the error's id.
async fn with_error() -> (Tracker, String) {
    let tracker = Tracker::start().await;
    tracker.deliver(&SentEvent::new(1, tracker.now(), "TypeError", "x is not a function")).await;
    let id = tracker.the_error().await["errorId"].as_str().unwrap().to_owned();
    (tracker, id)
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
