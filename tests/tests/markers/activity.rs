//! Markers, flag changes and releases of a range.

use std::time::Duration;

use serde_json::{Value, json};

use shared::app::Operation;
use shared::projects::api_key::{ApiKeyRecord, Scope};
use tests::app::{PROJECT, START, TestApp};
use tests::call::Call;
use tests::errors::{SentEvent, deliver};

use super::{add, create, events};

const ACTIVITY: &Operation = &get_project_activity::OPERATION;

/// Creates a marker, a flag change and a release, a second apart.
async fn changed() -> TestApp {
    let test = TestApp::start().await;
    let id = create(&test).await;
    add(
        &test,
        &id,
        &events(&[("deploy", "2026-11-21T04:15:00Z"), ("old", "2026-11-01T00:00:00Z")]),
    )
    .await;
    test.pass(Duration::from_secs(1));
    let body = json!({"key": "f", "name": "F", "type": "boolean"});
    let created = test.call(&create_feature_flag::OPERATION).json(&body).send(&test.app).await;
    assert_eq!(created.status, 201);
    test.pass(Duration::from_secs(1));
    let event = SentEvent::new(1, test.app.clock.now(), "E", "m").with("release", "shop@1");
    deliver(&test, test.project_id, &event).await;
    test.pass(Duration::from_secs(1));
    test
}

async fn activity(test: &TestApp, query: &[(&'static str, i64)]) -> Value {
    let call =
        query.iter().fold(test.call(ACTIVITY), |call, (name, value)| call.query(name, value));
    let reply = call.send(&test.app).await;
    assert_eq!(reply.status, 200, "{}", reply.body);
    reply.body
}

fn kinds(body: &Value) -> Vec<&str> {
    body["items"].as_array().unwrap().iter().map(|it| it["kind"].as_str().unwrap()).collect()
}

#[tokio::test]
async fn activity_lists_newest_items_of_all_kinds() {
    let test = changed().await;
    test.round_trips();
    let body = activity(&test, &[]).await;
    assert!(test.round_trips() <= 5, "collections, events, changes, releases and the key");
    assert_eq!(kinds(&body), ["release", "flag_change", "marker"]);
    let [release, change, marker] = [0, 1, 2].map(|index| body["items"][index].clone());
    assert_eq!((&release["name"], &release["id"]), (&json!("shop@1"), &json!("shop@1")));
    assert_eq!((&change["name"], &change["description"]), (&json!("f"), &json!("created")));
    assert_eq!(change["user"], "owner");
    assert_eq!(change["at"], "2026-11-21T04:16:01.000Z");
    assert_eq!((&marker["name"], marker["collectionId"].is_string()), (&json!("deploy"), true));
    let none = json!({"markers": 0, "flagChanges": 0, "releases": 0, "isExact": true});
    assert_eq!(body["leftOut"], none);
}

#[tokio::test]
async fn left_out_items_are_counted() {
    let test = changed().await;
    let body = activity(&test, &[("limit", 1), ("from", 0)]).await;
    assert_eq!(kinds(&body), ["release"]);
    let expected = json!({"markers": 2, "flagChanges": 1, "releases": 0, "isExact": true});
    assert_eq!(body["leftOut"], expected);
}

#[tokio::test]
async fn ranges_are_half_open() {
    let test = changed().await;
    let start = i64::try_from(START).unwrap();
    let of = |from: i64, to: i64| [("from", start + from), ("to", start + to)];
    assert_eq!(kinds(&activity(&test, &of(1_000, 2_000)).await), ["flag_change"]);
    assert_eq!(kinds(&activity(&test, &of(2_000, 2_001)).await), ["release"]);
    assert_eq!(kinds(&activity(&test, &of(-60_000, 1_000)).await), ["marker"]);
    assert_eq!(kinds(&activity(&test, &of(-59_999, 1_000)).await), [] as [&str; 0]);
    let call = test.call(ACTIVITY).query("from", 5).query("to", 5);
    let reply = call.send(&test.app).await;
    assert_eq!((reply.status, reply.violations()), (400, vec![("query:from", "out_of_range")]));
}

#[tokio::test]
async fn keys_see_only_kinds_of_their_scopes() {
    let test = changed().await;
    for (scope, expected) in [
        (Scope::MarkersRead, vec!["marker"]),
        (Scope::FlagsRead, vec!["flag_change"]),
        (Scope::ErrorsRead, vec!["release"]),
        (Scope::FlagsEvaluate, vec![]),
    ] {
        let key = test.key_with(|key| ApiKeyRecord { scopes: [scope].into(), ..key }).await;
        let call = Call::of(ACTIVITY).parameter("idOrSlug", PROJECT).key(&key);
        assert_eq!(kinds(&call.send(&test.app).await.body), expected);
    }
}

#[tokio::test]
async fn deleted_flags_stay_in_the_activity() {
    let test = changed().await;
    let flag = |operation| test.call(operation).parameter("key", "f");
    let archive = flag(&update_feature_flag::OPERATION).json(&json!({"archived": true}));
    assert_eq!(archive.send(&test.app).await.status, 200);
    assert_eq!(flag(&delete_feature_flag::OPERATION).send(&test.app).await.status, 204);
    let body = activity(&test, &[("from", 0), ("to", i64::MAX)]).await;
    let changes = body["items"].as_array().unwrap().iter().filter(|it| it["kind"] == "flag_change");
    let mut described: Vec<&str> = changes.map(|it| it["description"].as_str().unwrap()).collect();
    described.sort_unstable();
    assert_eq!(described, ["archived", "created", "deleted"]);
}
