//! Flag creations, and conflicts with existing flags.

use std::collections::HashMap;

use aws_sdk_dynamodb::types::AttributeValue;
use serde_json::{Value, json};
use tests::app::TestApp;

use super::{CREATE, create, minimal, stored_keys};

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
async fn one_of_fifty_concurrent_creations_succeeds() {
    let test = TestApp::start().await;
    let creations = (0..50).map(|index| {
        let body =
            json!({"key": "contested", "name": format!("Number {index}"), "type": "boolean"});
        let call = test.call(CREATE).json(&body);
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
    assert_eq!(super::super::live_flags(&test).await, 1);
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
    assert_eq!(super::super::live_flags(&test).await, 2_000);
}

#[tokio::test]
async fn flags_over_200_kb_are_rejected() {
    let test = TestApp::start().await;
    let variants = |count: usize| -> Vec<Value> {
        (0..count).map(|n| json!({"key": format!("v{n}"), "value": "x".repeat(20_000)})).collect()
    };
    let body = |count| json!({"key": "large", "name": "Large", "type": "string", "variants": variants(count)});
    let reply = create(&test, &body(10)).await;
    assert_eq!(reply.violations(), [("", "too_long")]);
    assert_eq!(create(&test, &body(9)).await.status, 201);
}
