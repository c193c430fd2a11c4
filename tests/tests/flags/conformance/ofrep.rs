//! Evaluation responses, checked against the protocol's own description (`service/openapi.yaml` of
//! the `OpenFeature` Remote Evaluation Protocol, Apache-2.0).

use std::sync::LazyLock;

use serde_json::{Value, json};
use tests::app::TestApp;
use tests::call::Reply;
use tests::workspace;

use crate::{EVALUATE, EVALUATE_ALL, archive, call_for, create, create_dependent};

/// Replaces `oneOf` with `anyOf`: the schema of a flag with a code default also accepts every other
/// flag.
static PROTOCOL: LazyLock<Value> = LazyLock::new(|| {
    let file = workspace().join("tests/conformance/ofrep/openapi.yaml");
    let text = std::fs::read_to_string(file).unwrap().replace("oneOf:", "anyOf:");
    yaml_serde::from_str(&text).unwrap()
});

/// Panics unless the protocol describes this response of a path.
fn check(path: &str, reply: &Reply) {
    let described = &PROTOCOL["paths"][path]["post"]["responses"][reply.status.to_string()];
    assert!(described.is_object(), "{path} {}", reply.status);
    if reply.status == 304 {
        assert_eq!(reply.text, "");
        return;
    }
    // References start at the root of the protocol's description.
    let mut schema = described["content"]["application/json"]["schema"].clone();
    schema["components"] = PROTOCOL["components"].clone();
    let validator = jsonschema::draft202012::new(&schema).unwrap();
    let faults: Vec<String> =
        validator.iter_errors(&reply.body).map(|fault| fault.to_string()).collect();
    assert!(faults.is_empty(), "{path} {}: {}\n{faults:#?}", reply.status, reply.text);
}

#[tokio::test]
async fn responses_match_the_protocol() {
    const ONE: &str = "/ofrep/v1/evaluate/flags/{key}";
    const ALL: &str = "/ofrep/v1/evaluate/flags";
    let test = TestApp::start().await;
    let halves = json!([{"variant": "on", "weight": 1}, {"variant": "off", "weight": 1}]);
    create(&test, "boolean", &json!({})).await;
    create(&test, "split", &json!({"fallthrough": {"rollout": halves}})).await;
    create(&test, "disabled", &json!({"enabled": false})).await;
    create(&test, "default", &json!({"enabled": false, "offVariant": null})).await;
    create_dependent(&test, "dependent", &["disabled"]).await;
    create(&test, "archived", &json!({})).await;
    archive(&test, "archived").await;
    for (key, flag_type, values) in [
        ("text", "string", ["a", "b"]),
        ("integer", "number", ["1", "2"]),
        ("decimal", "number", ["0.5", "1"]),
        ("object", "json", [r#"{"a": [1]}"#, "{}"]),
    ] {
        let variants = [("one", values[0]), ("other", values[1])]
            .map(|(key, value)| json!({"key": key, "value": value}));
        create(&test, key, &json!({"type": flag_type, "variants": variants})).await;
    }

    let keys = ["boolean", "split", "disabled", "default", "dependent", "text", "integer"];
    let mut statuses = Vec::new();
    for key in keys.into_iter().chain(["decimal", "object", "archived", "gone"]) {
        for body in [
            json!({"context": {"targetingKey": "user-1"}}),
            json!({"context": {}}),
            json!({"context": []}),
            json!([]),
        ] {
            let reply = call_for(&test, EVALUATE, key).json(&body).send(&test.app).await;
            check(ONE, &reply);
            statuses.push(reply.status);
        }
    }
    for body in [json!({"context": {"targetingKey": "user-1"}}), json!({}), json!({"context": 1})] {
        let call = || call_for(&test, EVALUATE_ALL, "").json(&body);
        let reply = call().send(&test.app).await;
        check(ALL, &reply);
        statuses.push(reply.status);
        if let Some(etag) = reply.headers.get("etag") {
            let again = call().header("if-none-match", etag.to_str().unwrap());
            let again = again.send(&test.app).await;
            check(ALL, &again);
            statuses.push(again.status);
        }
    }
    statuses.sort_unstable();
    statuses.dedup();
    assert_eq!(statuses, [200, 304, 400, 404]);
}
