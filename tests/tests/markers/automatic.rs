//! Automatic events of collections with a source.

use std::time::Duration;

use futures_util::future::join_all;
use serde_json::{Value, json};

use local::demo::{ensure_complete_project, ensure_project};
use shared::projects::project::ProjectId;
use tests::app::{Item, TestApp};
use tests::call::Call;
use tests::errors::{SentEvent, deliver, delivery, project};
use tests::notifications::SentMessages;

use super::{DELETE, LIST, LIST_EVENTS, TABLE};

const CREATE_FLAG: &shared::app::Operation = &create_feature_flag::OPERATION;
const UPDATE_FLAG: &shared::app::Operation = &update_feature_flag::OPERATION;
const DELETE_FLAG: &shared::app::Operation = &delete_feature_flag::OPERATION;

fn in_project(test: &TestApp, operation: &'static shared::app::Operation, slug: &str) -> Call {
    Call::of(operation).parameter("idOrSlug", slug).key(&test.key)
}

/// Returns the project's collection of a source.
async fn collection(test: &TestApp, slug: &str, source: &str) -> Value {
    let listed = in_project(test, LIST, slug).send(&test.app).await.body;
    let items = listed["items"].as_array().unwrap();
    items.iter().find(|it| it["source"] == source).unwrap().clone()
}

/// Returns the names of a collection's events, after checking their number.
async fn names(test: &TestApp, slug: &str, source: &str) -> Vec<String> {
    let found = collection(test, slug, source).await;
    let call = in_project(test, LIST_EVENTS, slug);
    let call = call.parameter("collectionId", found["id"].as_str().unwrap());
    let events = test.pages(&call, 100).await.concat();
    assert_eq!(found["eventCount"], events.len());
    events.iter().map(|it| it["name"].as_str().unwrap().to_owned()).collect()
}

fn of_release(test: &TestApp, number: u64, release: &str) -> SentEvent {
    let event = SentEvent::new(number, test.app.clock.now(), "TypeError", "cart is undefined");
    event.with("release", release)
}

async fn started() -> (TestApp, ProjectId) {
    let test = TestApp::start().await;
    let id = ensure_complete_project(&test.patient_store(), "full", "Full").await.unwrap();
    (test, id)
}

#[tokio::test]
async fn new_projects_have_one_collection_of_each_source() {
    let (test, _) = started().await;
    let listed = in_project(&test, LIST, "full").send(&test.app).await.body;
    let mut found: Vec<(&str, &str)> = listed["items"]
        .as_array()
        .unwrap()
        .iter()
        .map(|it| (it["name"].as_str().unwrap(), it["source"].as_str().unwrap()))
        .collect();
    found.sort_unstable();
    assert_eq!(found, [("Flag changes", "flags"), ("Releases", "releases")]);
    let id = collection(&test, "full", "flags").await["id"].as_str().unwrap().to_owned();
    let delete = in_project(&test, DELETE, "full").parameter("collectionId", id);
    assert_eq!(delete.send(&test.app).await.status, 204);
}

#[tokio::test]
async fn each_release_is_marked_once() {
    let (test, id) = started().await;
    let deliveries = (0..12).map(|number| {
        let event = of_release(
            &test,
            number,
            ["shop@1", "shop@2", "shop@3"][usize::try_from(number % 3).unwrap()],
        );
        let test = &test;
        async move { deliver(test, id, &event).await }
    });
    join_all(deliveries).await;
    // A later execution environment caches nothing.
    let app = test.app_at(shared::app::Clock::System);
    let project = project(&test.patient_store(), id).await;
    let again = delivery(&project, &of_release(&test, 20, "shop@1"));
    assert_eq!(again.send(&app).await.status, 200);

    let mut marked = names(&test, "full", "releases").await;
    marked.sort_unstable();
    assert_eq!(marked, ["shop@1", "shop@2", "shop@3"]);
}

#[tokio::test]
async fn releases_are_limited_per_day() {
    let (test, id) = started().await;
    for number in 0..103 {
        deliver(&test, id, &of_release(&test, number, &format!("r{number:03}"))).await;
    }
    assert_eq!(names(&test, "full", "releases").await.len(), 100);
    test.pass(Duration::from_hours(24));
    deliver(&test, id, &of_release(&test, 200, "r102")).await;
    deliver(&test, id, &of_release(&test, 201, "r001")).await;
    assert_eq!(names(&test, "full", "releases").await.len(), 101);
}

#[tokio::test]
async fn each_flag_change_is_marked_once() {
    let (test, _) = started().await;
    let outbound = SentMessages::open();
    let body = json!({"key": "f", "name": "F", "type": "boolean"});
    assert_eq!(
        in_project(&test, CREATE_FLAG, "full").json(&body).send(&test.app).await.status,
        201
    );
    let flag = |operation| in_project(&test, operation, "full").parameter("key", "f");
    for patch in [json!({"enabled": true}), json!({"description": "d"}), json!({"archived": true})]
    {
        test.pass(Duration::from_secs(1));
        assert_eq!(flag(UPDATE_FLAG).json(&patch).send(&test.app).await.status, 200);
    }
    test.pass(Duration::from_secs(1));
    assert_eq!(flag(DELETE_FLAG).send(&test.app).await.status, 204);
    let outbox = test.items("notifications").await;
    outbound.run(&test.app).await;
    let expected = ["f created", "f turned on", "f changed", "f archived", "f deleted"];
    assert_eq!(names(&test, "full", "flags").await, expected);

    // A run that was killed after it added the markers left the outbox as it was.
    let is_outbox = |it: &Item| it["sk"].as_s().unwrap().starts_with("outbox#");
    test.put("notifications", outbox.into_iter().filter(is_outbox)).await;
    outbound.run(&test.app).await;
    assert_eq!(names(&test, "full", "flags").await, expected);
}

#[tokio::test]
async fn projects_without_sources_get_no_events() {
    let test = TestApp::start().await;
    let id = ensure_project(&test.patient_store(), "bare", "Bare").await.unwrap();
    deliver(&test, id, &of_release(&test, 0, "shop@1")).await;
    let body = json!({"key": "f", "name": "F", "type": "boolean"});
    assert_eq!(
        in_project(&test, CREATE_FLAG, "bare").json(&body).send(&test.app).await.status,
        201
    );
    SentMessages::open().run(&test.app).await;
    assert!(test.items(TABLE).await.is_empty());
}
