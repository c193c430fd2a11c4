//! Evaluations with unreadable flags, over time, and with expensive contexts. `responses/` has
//! their responses, byte for byte.

use std::collections::BTreeSet;

use aws_sdk_dynamodb::types::AttributeValue;
use serde_json::{Value, json};
use tests::app::{TestApp, left_out};

use super::{EVALUATE_ALL, TABLE, create, create_dependent, damage, evaluate, evaluate_all, keys};

#[tokio::test]
async fn unreadable_flags_fail_only_with_their_dependents() {
    let test = TestApp::start().await;
    for key in ["bad1", "bad2", "bad3", "good"] {
        create(&test, key, &json!({})).await;
    }
    create_dependent(&test, "top", &["bad1"]).await;
    let attribute = |text: &str| AttributeValue::S(text.to_owned());
    damage(&test, "bad1", "definition", attribute("{")).await;
    damage(&test, "bad2", "version", attribute("x")).await;
    let lost = r#"{"variants":[],"offVariant":"off","fallthrough":{"variant":"on","rollout":[]},"rules":[],"targets":[]}"#;
    damage(&test, "bad3", "definition", attribute(lost)).await;
    let reply = evaluate_all(&test, json!({})).await;
    assert_eq!(reply.status, 200);
    assert_eq!(keys(&reply.body["flags"]), ["bad1", "bad2", "bad3", "good", "top"]);
    for item in reply.body["flags"].as_array().unwrap() {
        let key = item["key"].as_str().unwrap();
        let code = if key == "good" { json!(null) } else { json!("PARSE_ERROR") };
        assert_eq!(item["errorCode"], code, "{item}");
        let alone = evaluate(&test, key, json!({})).await;
        assert_eq!((alone.status, &alone.body), (if key == "good" { 200 } else { 400 }, item));
    }
    let details = &reply.body["flags"][0]["errorDetails"];
    assert_eq!(details, "the stored flag bad1 is corrupted: it cannot be read");
    let project = test.project_id.to_string();
    let reported = |key: &str| left_out(&format!("{project}, key {key}"));
    assert_eq!(reported("bad1"), BTreeSet::from([(TABLE, "definition")]));
    assert_eq!(reported("bad2"), BTreeSet::from([(TABLE, "version")]));
    assert!(reported("good").is_empty());
}

#[tokio::test]
async fn releases_can_be_scheduled() {
    let test = TestApp::start().await;
    let rule = json!({"serve": {"variant": "on"}, "conditions": [
        {"attribute": "$now", "operator": "after", "values": ["2026-11-21T04:16:01Z"]},
    ]});
    let members = json!({"rules": [rule], "fallthrough": {"variant": "off"}});
    create(&test, "f", &members).await;
    assert_eq!(evaluate(&test, "f", json!({})).await.body["value"], false);
    // The flag is cached, the time is not.
    test.pass(std::time::Duration::from_millis(1_001));
    assert_eq!(evaluate(&test, "f", json!({})).await.body["value"], true);
}

#[tokio::test]
async fn expensive_contexts_fail_only_for_the_flag() {
    let test = TestApp::start().await;
    let patterns: Vec<String> = (0..250).map(|at| format!("[a-z]{{20}}!{at}")).collect();
    let conditions = json!([{"attribute": "text", "operator": "matches", "values": patterns}]);
    let rules =
        |conditions: &Value| json!([{"conditions": conditions, "serve": {"variant": "on"}}]);
    create(&test, "many", &json!({"rules": rules(&conditions)})).await;
    create(&test, "plain", &json!({})).await;
    // A context that exceeds the limit for a segment is neither in it nor outside it.
    let conditions =
        json!([{"attribute": "text", "operator": "matches", "values": patterns[..25]}]);
    let segment = json!({"key": "slow", "name": "Slow", "conditions": conditions});
    let created = test.call(&create_segment::OPERATION).json(&segment).send(&test.app).await;
    assert_eq!(created.status, 201, "{}", created.text);
    let outside = json!([{"operator": "not_in_segment", "values": ["slow"]}]);
    create(&test, "outside", &json!({"rules": rules(&outside)})).await;

    let of = |bytes: usize| json!({"text": "a".repeat(bytes)});
    for key in ["many", "outside", "plain"] {
        assert_eq!(evaluate(&test, key, of(300)).await.status, 200, "{key}");
        let long = evaluate(&test, key, of(30_000)).await;
        let expected =
            if key == "plain" { (200, Value::Null) } else { (400, json!("INVALID_CONTEXT")) };
        assert_eq!((long.status, long.body["errorCode"].clone()), expected, "{}", long.text);
    }
    let all = evaluate_all(&test, of(30_000)).await;
    assert_eq!(all.status, 200);
    let failed =
        all.body["flags"].as_array().unwrap().iter().filter(|it| it["errorCode"].is_string());
    let failed: Vec<&str> = failed.map(|it| it["key"].as_str().unwrap()).collect();
    assert_eq!(failed, ["many", "outside"]);
}

#[tokio::test]
async fn other_paths_of_the_function_are_not_found() {
    let test = TestApp::start().await;
    let other = "/v0/project/{idOrSlug}/ofrep/v1/evaluate/other";
    let reply = test.call(EVALUATE_ALL).path(other).json(&json!({})).send(&test.app).await;
    assert_eq!((reply.status, &reply.body["errorCode"]), (404, &json!("FLAG_NOT_FOUND")));
}
