//! Prerequisites: conditions of the same transaction, and never a chain of more than ten flags.

use aws_sdk_dynamodb::types::AttributeValue;
use serde_json::{Value, json};
use tests::app::TestApp;

use super::{create, minimal, stored_keys};

fn dependent(key: &str, prerequisites: &[(&str, &str)]) -> Value {
    let prerequisites: Vec<Value> = prerequisites
        .iter()
        .map(|(flag_key, variant)| json!({"flagKey": flag_key, "variant": variant}))
        .collect();
    json!({"key": key, "name": "A flag", "type": "boolean", "prerequisites": prerequisites})
}

#[tokio::test]
async fn names_every_prerequisite_that_does_not_fit() {
    let test = TestApp::start().await;
    create(&test, &minimal("there")).await;
    create(&test, &minimal("archived")).await;
    create(&test, &json!({"key": "draft", "name": "Draft", "type": "string"})).await;
    let project = test.project_id.to_string();
    let key = [("projectId", project.as_str()), ("key", "archived")];
    let at = AttributeValue::S("2026-11-21T04:16:00.000Z".to_owned());
    test.tamper("feature-flags", key, "archivedAt", at).await;

    let prerequisites = [
        ("there", "on"),
        ("missing", "on"),
        ("there-too", "on"),
        ("archived", "on"),
        ("draft", "on"),
    ];
    let reply = create(&test, &dependent("new", &prerequisites)).await;
    assert_eq!(reply.problem(), (400, "validation_failed"));
    assert_eq!(
        reply.violations(),
        [
            ("/prerequisites/1/flagKey", "unknown_flag"),
            ("/prerequisites/2/flagKey", "unknown_flag"),
            ("/prerequisites/3/flagKey", "flag_archived"),
            ("/prerequisites/4/variant", "unknown_variant"),
        ]
    );
    let reply = create(&test, &dependent("new", &[("there", "blue")])).await;
    assert_eq!(reply.violations(), [("/prerequisites/0/variant", "unknown_variant")]);
    assert_eq!(stored_keys(&test).await, ["archived", "draft", "there"]);
}

#[tokio::test]
async fn wrong_prerequisites_come_before_a_key_that_is_taken() {
    let test = TestApp::start().await;
    create(&test, &minimal("taken")).await;
    let reply = create(&test, &dependent("taken", &[("missing", "on")])).await;
    assert_eq!(reply.problem(), (400, "validation_failed"));
}

#[tokio::test]
async fn a_project_cannot_depend_on_flags_of_another() {
    let test = TestApp::start().await;
    local::demo::ensure_project(&test.app.store, "other", "Other").await.unwrap();
    let elsewhere = super::CREATE.call().parameter("idOrSlug", "other").key(&test.key);
    elsewhere.json(&minimal("foreign")).send(&test.app).await;
    let reply = create(&test, &dependent("new", &[("foreign", "on")])).await;
    assert_eq!(reply.violations(), [("/prerequisites/0/flagKey", "unknown_flag")]);
}

#[tokio::test]
async fn a_chain_has_at_most_ten_flags() {
    let test = TestApp::start().await;
    create(&test, &minimal("f1")).await;
    for depth in 2..=10 {
        let below = format!("f{}", depth - 1);
        let body = dependent(&format!("f{depth}"), &[(below.as_str(), "on")]);
        assert_eq!(create(&test, &body).await.status, 201, "{depth}");
    }
    let reply = create(&test, &dependent("f11", &[("f3", "on"), ("f10", "on")])).await;
    assert_eq!(reply.violations(), [("/prerequisites/1", "too_deep")]);
    let message = reply.body["errors"][0]["message"].as_str().unwrap();
    assert!(message.contains("f10 → f9 → f8"), "{message}");
    assert_eq!(create(&test, &dependent("wide", &[("f9", "on"), ("f1", "on")])).await.status, 201);
}

#[tokio::test]
async fn a_chain_that_changes_between_reading_and_writing_is_read_again() {
    let test = TestApp::start().await;
    create(&test, &minimal("leaf")).await;
    create(&test, &dependent("middle", &[("leaf", "on")])).await;
    // Twenty clients add to the same chains at once: each write makes all others read again.
    let creations = (0..20).map(|index| {
        let body = dependent(&format!("top-{index}"), &[("middle", "on")]);
        let call = super::call(&test).json(&body);
        let app = &test.app;
        async move { call.send(app).await }
    });
    let replies = futures_util::future::join_all(creations).await;
    let created = replies.iter().filter(|reply| reply.status == 201).count();
    for reply in &replies {
        assert!(matches!(reply.problem(), (201, "") | (409, "conflict")), "{:?}", reply.body);
    }
    assert_eq!(stored_keys(&test).await.len(), created + 2);
    assert!(created >= 1);
}

#[tokio::test]
async fn prerequisites_are_stored_beside_the_definition() {
    let test = TestApp::start().await;
    create(&test, &minimal("base")).await;
    let reply = create(&test, &dependent("top", &[("base", "off")])).await;
    assert_eq!(reply.body["prerequisites"], json!([{"flagKey": "base", "variant": "off"}]));
    let items = test.items("feature-flags").await;
    let top = items.iter().find(|item| item["key"].as_s().unwrap() == "top").unwrap();
    let prerequisite = top["prerequisites"].as_l().unwrap()[0].as_m().unwrap();
    assert_eq!(prerequisite["flagKey"].as_s().unwrap(), "base");
    assert_eq!(prerequisite["variant"].as_s().unwrap(), "off");
    let project = items.iter().find(|item| item["key"].as_s().unwrap() == "#").unwrap();
    assert_eq!(project["prerequisitesState"].as_n().unwrap(), "1");
}
