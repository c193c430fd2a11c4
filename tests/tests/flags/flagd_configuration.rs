//! The configuration that flagd fetches.

use std::time::Duration;

use serde_json::json;
use shared::app::Operation;
use tests::app::{PROJECT, TestApp};
use tests::call::{Call, Reply, send_event};

use super::{archive, change, copy, create, etag};

const GET_CONFIGURATION: &Operation = &get_flagd_configuration::OPERATION;

async fn fetch(test: &TestApp, if_none_match: Option<&str>) -> Reply {
    let call = test.call(GET_CONFIGURATION);
    let call = if_none_match.iter().fold(call, |call, tag| call.header("if-none-match", tag));
    call.send(&test.app).await
}

#[tokio::test]
async fn configurations_include_expressible_flags() {
    let test = TestApp::start().await;
    let staff =
        json!([{"attribute": "email", "operator": "ends_with", "values": ["@example.com"]}]);
    let segment = json!({"key": "staff", "name": "Staff", "conditions": staff});
    let reply = test.call(&create_segment::OPERATION).json(&segment).send(&test.app).await;
    assert_eq!(reply.status, 201);
    let rule =
        |condition| json!({"rules": [{"conditions": [condition], "serve": {"variant": "off"}}]});
    create(&test, "asking", &rule(json!({"operator": "in_segment", "values": ["staff"]}))).await;
    create(&test, "disabled", &json!({"enabled": false})).await;
    create(&test, "retired", &json!({})).await;
    assert_eq!(archive(&test, "retired").await.status, 200);
    let matching = json!({"attribute": "a", "operator": "matches", "values": ["x"]});
    create(&test, "inexpressible", &rule(matching)).await;

    let reply = fetch(&test, None).await;
    assert_eq!(reply.status, 200);
    let flag = |state: &str, default: &str| {
        json!({
            "state": state, "variants": {"on": true, "off": false}, "defaultVariant": default,
            "metadata": {"version": "1"},
        })
    };
    let mut asking = flag("ENABLED", "on");
    asking["targeting"] = json!({"if": [{"$ref": "staff"}, "off"]});
    let expected = json!({
        "$schema": "https://flagd.dev/schema/v0/flags.json",
        "flags": {"asking": asking, "disabled": flag("DISABLED", "off")},
        "$evaluators": {"staff": {"ends_with": [{"var": "email"}, "@example.com"]}},
        "metadata": {"flagSetId": test.project_id},
    });
    assert_eq!(reply.body, expected);
    assert!(!reply.text.contains('\n'), "the document has no indentation");
}

/// The function's runtime removes the header, unless it has the distribution's secret.
#[tokio::test]
async fn the_distribution_keeps_configurations_for_five_seconds() {
    let test = TestApp::start().await;
    let tag = etag(&fetch(&test, None).await).to_owned();
    let cached = |key: &str, tag: &str| {
        let call = Call::of(GET_CONFIGURATION).parameter("idOrSlug", PROJECT).key(key);
        let call = call.header("x-waymark-edge", "1").header("if-none-match", tag);
        call.event().to_string()
    };
    for (sent, status) in [("\"other\"", 200), (tag.as_str(), 304)] {
        let reply = send_event(&test.app, GET_CONFIGURATION, &cached(&test.key, sent)).await;
        assert_eq!(reply.status, status);
        assert_eq!(reply.headers["cache-control"], "max-age=2, stale-while-revalidate=3");
    }
    let reply = send_event(&test.app, GET_CONFIGURATION, &cached("unknown", "")).await;
    assert_eq!(
        (reply.status, &reply.headers["cache-control"]),
        (401, &"no-store".parse().unwrap())
    );
}

#[tokio::test]
async fn oversized_configurations_are_rejected() {
    let test = TestApp::start().await;
    let rule = |rule: u32| {
        // A quote takes four bytes as JSON within JSON within JSON.
        let value = |it: u32| format!("{}{it}", "\"".repeat(100));
        let values: Vec<String> = (0..90).map(|it| value(100 * rule + it)).collect();
        json!({
            "conditions": [{"attribute": "customer", "operator": "in", "values": values}],
            "serve": {"variant": "on"},
        })
    };
    let rules: Vec<_> = (0..10).map(rule).collect();
    create(&test, "large-00", &json!({"enabled": true, "rules": rules})).await;
    copy(&test, "large-00", 18).await;
    let reply = fetch(&test, None).await;
    assert_eq!(reply.problem(), (409, "flagd_configuration_too_large"));
}

#[tokio::test]
async fn cached_configurations_return_304_until_flags_change() {
    let test = TestApp::start().await;
    create(&test, "flag", &json!({})).await;
    let first = fetch(&test, None).await;
    let tag = etag(&first).to_owned();
    for tags in [tag.clone(), format!("W/{tag}"), format!("\"x\", {tag}"), "*".to_owned()] {
        let again = fetch(&test, Some(&tags)).await;
        assert_eq!((again.status, again.text.as_str(), etag(&again)), (304, "", tag.as_str()));
    }
    assert_eq!(fetch(&test, Some("\"x\"")).await.text, first.text);

    change(&test, "flag", json!({"enabled": false})).await;
    assert_eq!(fetch(&test, Some(&tag)).await.status, 304);
    test.pass(Duration::from_secs(5));
    let changed = fetch(&test, Some(&tag)).await;
    assert_eq!(
        (changed.status, &changed.body["flags"]["flag"]["state"]),
        (200, &json!("DISABLED"))
    );
    assert_ne!(etag(&changed), tag);
}

#[tokio::test]
async fn unchanged_flags_cost_one_revision_read() {
    let test = TestApp::start().await;
    create(&test, "flag", &json!({})).await;
    let first = fetch(&test, None).await;
    test.round_trips();
    for _ in 0..5 {
        test.pass(Duration::from_secs(4));
        assert_eq!(fetch(&test, None).await.text, first.text);
    }
    // Every second time the cached revision is too old; the key is still cached.
    assert_eq!(test.round_trips(), 2);
}
