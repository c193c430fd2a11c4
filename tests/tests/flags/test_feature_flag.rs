//! Tests of flags with unsaved changes.

use serde_json::{Value, json};

use shared::app::Operation;
use tests::app::TestApp;

use super::{archive, call_for, create, stored};

const TEST: &Operation = &::test_feature_flag::OPERATION;

async fn tested(test: &TestApp, key: &str, body: Value) -> Value {
    let reply = call_for(test, TEST, key).json(&body).send(&test.app).await;
    assert_eq!(reply.status, 200, "{}", reply.body);
    reply.body
}

#[tokio::test]
async fn flags_that_are_off_show_what_they_would_serve() {
    let test = TestApp::start().await;
    create(&test, "f", &json!({"enabled": false, "fallthrough": {"variant": "on"}})).await;
    let outcome = tested(&test, "f", json!({})).await;
    assert_eq!(
        (&outcome["enabled"], &outcome["evaluation"]["variant"]),
        (&json!(false), &json!("on"))
    );
    assert_eq!(outcome["evaluation"]["value"], true);
    archive(&test, "f").await;
    assert_eq!(tested(&test, "f", json!({})).await["evaluation"]["variant"], "on");
}

#[tokio::test]
async fn unsaved_changes_are_evaluated_and_not_stored() {
    let test = TestApp::start().await;
    create(&test, "base", &json!({"enabled": true, "fallthrough": {"variant": "on"}})).await;
    let segment = json!({"key": "beta", "name": "Beta",
        "conditions": [{"attribute": "plan", "operator": "equals", "values": ["pro"]}]});
    let created = test.call(&create_segment::OPERATION).json(&segment).send(&test.app).await;
    assert_eq!(created.status, 201, "{}", created.body);
    create(&test, "f", &json!({"enabled": true, "fallthrough": {"variant": "off"}})).await;
    let before = stored(&test).await;
    let rules = json!([{"name": "r", "conditions": [{"operator": "in_segment", "values": ["beta"]}],
        "serve": {"variant": "on"}}]);
    let changes = json!({"rules": rules, "enabled": false,
        "prerequisites": [{"flagKey": "base", "variant": "on"}]});
    let outcome = tested(&test, "f", json!({"context": {"plan": "pro"}, "changes": changes})).await;
    assert_eq!(
        (&outcome["enabled"], &outcome["evaluation"]["reason"]),
        (&json!(false), &json!("TARGETING_MATCH"))
    );
    assert_eq!(outcome["evaluation"]["metadata"]["version"], "1");
    let other = tested(&test, "f", json!({"context": {"plan": "free"}, "changes": changes})).await;
    assert_eq!(other["evaluation"]["variant"], "off");
    let rollout = json!({"fallthrough": {"rollout": [{"variant": "on", "weight": 50}, {"variant": "off", "weight": 50}]}});
    let failed = tested(&test, "f", json!({"changes": rollout})).await;
    assert_eq!(failed["evaluation"]["errorCode"], "TARGETING_KEY_MISSING");
    assert_eq!(stored(&test).await, before);
}
