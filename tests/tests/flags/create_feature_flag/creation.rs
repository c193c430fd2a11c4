//! Flag creations, and conflicts with existing flags.

use lambda_http::http::Method;
use std::collections::HashMap;
use tests::call::Call;

use aws_sdk_dynamodb::types::AttributeValue;
use serde_json::json;
use tests::app::{PROJECT, TestApp};
use tests::call::Gateway;

use super::{CREATE, call, create, minimal, stored_keys};

#[tokio::test]
async fn returns_201_with_flag_location_and_version() {
    let test = TestApp::start().await;
    let reply = create(&test, &minimal("new-checkout")).await;
    assert_eq!(reply.status, 201);
    let location = format!("/v0/project/{}/feature-flags/new-checkout", test.project_id);
    assert_eq!(reply.headers["location"], location);
    assert_eq!(reply.headers["etag"], "\"1\"");
    assert!(!reply.headers.contains_key("idempotency-replayed"));
    let expected = json!({
        "id": "01a1fc51-7800-7000-8000-000000000001",
        "projectId": test.project_id,
        "key": "new-checkout",
        "name": "A flag",
        "description": "",
        "type": "boolean",
        "enabled": false,
        "archivedAt": null,
        "version": 1,
        "variants": [
            {"key": "on", "name": "On", "value": "true"},
            {"key": "off", "name": "Off", "value": "false"},
        ],
        "offVariant": "off",
        "fallthrough": {"variant": "on", "rollout": []},
        "rules": [],
        "targets": [],
        "prerequisites": [],
        "createdAt": "2026-11-21T04:16:00.000Z",
        "updatedAt": "2026-11-21T04:16:00.000Z",
    });
    assert_eq!(reply.body, expected);
}

#[tokio::test]
async fn stores_the_whole_flag_in_one_item() {
    let test = TestApp::start().await;
    let body = json!({
        "key": "theme", "name": " Theme ", "type": "string", "description": "Colours", "enabled": true,
        "variants": [{"key": "dark", "value": "#000"}, {"key": "light", "name": "Light", "value": "#fff"}],
        "offVariant": null,
        "fallthrough": {"rollout": [{"variant": "dark", "weight": 33.3}, {"variant": "light", "weight": 66.7}]},
        "rules": [{"id": "eu", "conditions": [
            {"attribute": "country", "operator": "in", "values": ["DE", "FR"]}
        ], "serve": {"variant": "light"}}],
        "targets": [{"kind": "identifier", "value": "user-1", "variant": "dark"}],
    });
    assert_eq!(create(&test, &body).await.status, 201);
    let items = test.items("feature-flags").await;
    let item = items.iter().find(|item| item["key"].as_s().unwrap() == "theme").unwrap();
    let attribute = |name: &str| item[name].as_s().unwrap().as_str();
    assert_eq!(attribute("projectId"), test.project_id.to_string());
    assert_eq!(
        (attribute("name"), attribute("description"), attribute("type")),
        ("Theme", "Colours", "string")
    );
    assert_eq!(
        (attribute("createdAt"), attribute("updatedAt")),
        ("2026-11-21T04:16:00.000Z", "2026-11-21T04:16:00.000Z")
    );
    assert_eq!(item["enabled"], AttributeValue::Bool(true));
    assert_eq!(item["version"], AttributeValue::N("1".to_owned()));
    assert_eq!(
        item["variantKeys"],
        AttributeValue::Ss(vec!["dark".to_owned(), "light".to_owned()])
    );
    let definition: serde_json::Value = serde_json::from_str(attribute("definition")).unwrap();
    let expected = json!({
        "variants": [
            {"key": "dark", "name": "dark", "value": "#000"},
            {"key": "light", "name": "Light", "value": "#fff"},
        ],
        "offVariant": null,
        "fallthrough": {"variant": null, "rollout": [
            {"variant": "dark", "weight": 33.3}, {"variant": "light", "weight": 66.7},
        ]},
        "rules": [{"id": "eu", "name": "", "conditions": [
            {"attribute": "country", "operator": "in", "values": ["DE", "FR"]},
        ], "serve": {"variant": "light", "rollout": []}}],
        "targets": [{"kind": "identifier", "value": "user-1", "variant": "dark"}],
    });
    assert_eq!(definition, expected);
    for absent in ["archivedAt", "prerequisites"] {
        assert!(!item.contains_key(absent), "{absent}");
    }
}

#[tokio::test]
async fn warm_creations_take_one_round_trip() {
    let test = TestApp::start().await;
    create(&test, &minimal("cold")).await;
    assert_eq!(test.round_trips(), 2);
    create(&test, &minimal("warm")).await;
    assert_eq!(test.round_trips(), 1);
    let body = json!({"key": "dependent", "name": "A flag", "type": "boolean", "prerequisites": [
        {"flagKey": "cold", "variant": "on"}, {"flagKey": "warm", "variant": "off"},
    ]});
    assert_eq!(create(&test, &body).await.status, 201);
    assert_eq!(test.round_trips(), 1, "also with prerequisites that have none themselves");
    create(&test, &json!({})).await;
    assert_eq!(test.round_trips(), 0, "an invalid body costs none");
}

#[tokio::test]
async fn http_and_rest_api_events_are_accepted() {
    let test = TestApp::start().await;
    for (index, gateway) in [Gateway::HttpApi, Gateway::RestApi].into_iter().enumerate() {
        for (base64, name) in [(false, "text"), (true, "base64")] {
            let key = format!("{name}-{index}");
            let mut call = call(&test).gateway(gateway).json(&minimal(&key));
            if base64 {
                call = call.base64();
            }
            let reply = call.send(&test.app).await;
            assert_eq!((reply.status, &reply.body["key"]), (201, &json!(key)), "{gateway:?}");
        }
    }
    assert_eq!(stored_keys(&test).await, ["base64-0", "base64-1", "text-0", "text-1"]);
}

#[tokio::test]
async fn keys_of_archived_flags_are_taken() {
    let test = TestApp::start().await;
    create(&test, &minimal("taken")).await;
    let reply = create(&test, &minimal("taken")).await;
    assert_eq!(reply.problem(), (409, "flag_exists"));
    let project = test.project_id.to_string();
    let archived = AttributeValue::S("2026-11-21T04:16:00.000Z".to_owned());
    let key = [("projectId", project.as_str()), ("key", "taken")];
    test.tamper("feature-flags", key, "archivedAt", archived).await;
    assert_eq!(create(&test, &minimal("taken")).await.problem(), (409, "flag_exists"));
    assert_eq!(create(&test, &minimal("Taken")).await.status, 201, "keys are case-sensitive");
}

#[tokio::test]
async fn keys_are_unique_per_project() {
    let test = TestApp::start().await;
    local::demo::ensure_project(&test.app.store, "other", "Other").await.unwrap();
    create(&test, &minimal("flag")).await;
    let call = Call::of(CREATE).parameter("idOrSlug", "other").key(&test.key);
    assert_eq!(call.json(&minimal("flag")).send(&test.app).await.status, 201);
}

#[tokio::test]
async fn one_of_fifty_concurrent_creations_succeeds() {
    let test = TestApp::start().await;
    let creations = (0..50).map(|index| {
        let body =
            json!({"key": "contested", "name": format!("Number {index}"), "type": "boolean"});
        let call = call(&test).json(&body);
        let app = &test.app;
        async move { call.send(app).await }
    });
    let replies = futures_util::future::join_all(creations).await;
    let mut counts: HashMap<(u16, &str), usize> = HashMap::new();
    for reply in &replies {
        *counts.entry(reply.problem()).or_default() += 1;
    }
    assert_eq!(counts, HashMap::from([((201, ""), 1), ((409, "flag_exists"), 49)]));
    assert_eq!(stored_keys(&test).await, ["contested"]);
    assert_eq!(live_flags(&test).await, 1);
}

#[tokio::test]
async fn concurrent_creations_of_different_keys_succeed() {
    let test = TestApp::start().await;
    let creations = (0..40).map(|index| {
        let call = call(&test).json(&minimal(&format!("flag-{index}")));
        let app = &test.app;
        async move { call.send(app).await.status }
    });
    let statuses = futures_util::future::join_all(creations).await;
    assert_eq!(statuses, [201; 40]);
    assert_eq!(live_flags(&test).await, 40);
}

#[tokio::test]
async fn projects_have_at_most_2000_live_flags() {
    let test = TestApp::start().await;
    create(&test, &minimal("first")).await;
    let project = test.project_id.to_string();
    let key = [("projectId", project.as_str()), ("key", "#")];
    let count = AttributeValue::N("1999".to_owned());
    test.tamper("feature-flags", key, "liveFlags", count).await;
    assert_eq!(create(&test, &minimal("last")).await.status, 201);
    let reply = create(&test, &minimal("one-more")).await;
    assert_eq!(reply.problem(), (409, "flag_limit_reached"));
    // With a prerequisite, the project's item has another condition.
    let body = json!({"key": "one-more", "name": "A flag", "type": "boolean",
        "prerequisites": [{"flagKey": "first", "variant": "on"}]});
    assert_eq!(create(&test, &body).await.problem(), (409, "flag_limit_reached"));
    assert_eq!(create(&test, &minimal("last")).await.problem(), (409, "flag_exists"));
    assert_eq!(stored_keys(&test).await, ["first", "last"]);
    assert_eq!(live_flags(&test).await, 2_000);
}

#[tokio::test]
async fn preflights_need_no_key() {
    let test = TestApp::start().await;
    let reply = Call::of(CREATE)
        .method(Method::OPTIONS)
        .parameter("idOrSlug", PROJECT)
        .header("origin", "https://example.com")
        .header("access-control-request-method", "POST")
        .send(&test.app)
        .await;
    assert_eq!(reply.status, 204);
    assert_eq!(reply.headers["access-control-allow-origin"], "*");
    let allowed = reply.headers["access-control-allow-headers"].to_str().unwrap();
    assert_eq!(
        allowed,
        "authorization, x-api-key, content-type, if-match, if-none-match, idempotency-key"
    );
    assert_eq!(reply.headers["access-control-allow-methods"], "GET, POST, PUT, PATCH, DELETE");
    assert_eq!(test.round_trips(), 0);
}

async fn live_flags(test: &TestApp) -> u32 {
    let items = test.items("feature-flags").await;
    let project = items.iter().find(|item| item["key"].as_s().unwrap() == "#").unwrap();
    project["liveFlags"].as_n().unwrap().parse().unwrap()
}
