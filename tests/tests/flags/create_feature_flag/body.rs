//! Invalid bodies: all violations are listed, and nothing is written.

use serde_json::{Value, json};
use tests::app::TestApp;

use super::{call, create, minimal, stored_keys};

#[tokio::test]
async fn all_violations_are_listed_and_nothing_is_written() {
    let test = TestApp::start().await;
    let body = json!({
        "key": "a/b",
        "type": "bool",
        "enabled": "yes",
        "varaints": [],
        "variants": [{"key": "on", "value": true}, {"key": "on", "value": "x"}],
        "offVariant": "missing",
        "rules": [{
            "conditions": [{"attribute": "plan", "operator": "equal", "values": ["pro"]}],
            "serve": {"variant": "on", "rollout": [{"variant": "on", "weight": 1}]},
        }],
        "targets": [{"kind": "identifier", "value": "u", "variant": "on", "x/y": 1}],
        "prerequisites": [{"flagKey": "other"}],
    });
    let reply = create(&test, &body).await;
    assert_eq!(reply.problem(), (400, "validation_failed"));
    let mut violations = reply.violations();
    violations.sort_unstable();
    let mut expected = [
        ("/enabled", "invalid_type"),
        ("/key", "invalid_format"),
        ("/name", "required"),
        ("/offVariant", "unknown_variant"),
        ("/prerequisites/0/variant", "required"),
        ("/rules/0/conditions/0/operator", "invalid_value"),
        ("/rules/0/serve", "invalid_value"),
        ("/targets/0/x~1y", "unknown_field"),
        ("/type", "invalid_value"),
        ("/varaints", "unknown_field"),
        ("/variants/0/value", "invalid_type"),
        ("/variants/1/key", "duplicate"),
    ];
    expected.sort_unstable();
    assert_eq!(violations, expected);
    assert_eq!(reply.body["detail"], "The request has 12 errors; see `errors`.");
    assert!(test.items("feature-flags").await.is_empty());
}

#[tokio::test]
async fn bodies_have_at_most_256_kib() {
    let test = TestApp::start().await;
    let mut body = minimal("large").to_string();
    body.push_str(&" ".repeat(256 * 1024 - body.len()));
    assert_eq!(call(&test).bytes(body.clone()).send(&test.app).await.status, 201);
    let reply = call(&test).bytes(format!("{body} ")).send(&test.app).await;
    assert_eq!(reply.problem(), (413, "body_too_large"));
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

#[tokio::test]
async fn json_errors_have_their_position() {
    let test = TestApp::start().await;
    for (body, detail) in [
        (&b""[..], "The body is empty. Send a JSON object."),
        (b"{\"key\": \"a\",\n}", "key must be a string at line 2 column 1"),
        (b"{\"key\": \"\xff\"}", "The body is not valid UTF-8 at byte 9. Encode it as UTF-8."),
        (b"\xef\xbb\xbf{}", "expected value at line 1 column 1"),
        (&b"[".repeat(200_000), "nested deeper than 32 levels at line 1 column 33"),
    ] {
        let reply = call(&test).bytes(body).send(&test.app).await;
        assert_eq!(reply.problem(), (400, "malformed_json"));
        let said = reply.body["detail"].as_str().unwrap();
        assert!(said.contains(detail), "{said}");
    }
}

#[tokio::test]
async fn bodies_must_be_objects() {
    let test = TestApp::start().await;
    for body in ["null", "true", "1", "\"x\"", "[]", "[{}]"] {
        let reply = call(&test).bytes(body).send(&test.app).await;
        assert_eq!(reply.violations(), [("", "invalid_type")], "{body}");
    }
}

#[tokio::test]
async fn at_most_a_thousand_violations_are_listed() {
    let test = TestApp::start().await;
    let members: Vec<String> = (0..20_000).map(|n| format!("\"x{n}\":0")).collect();
    let reply = call(&test).bytes(format!("{{{}}}", members.join(","))).send(&test.app).await;
    assert_eq!(reply.problem(), (400, "validation_failed"));
    assert_eq!(reply.violations().len(), 1_000);
    let detail = "The request has 20003 errors; `errors` lists the first 1000.";
    assert_eq!(reply.body["detail"], detail);
    assert_eq!(stored_keys(&test).await, [""; 0]);
}

#[tokio::test]
async fn null_in_an_optional_field_means_absent() {
    let test = TestApp::start().await;
    let nulls = json!({
        "key": "nulls", "name": "A flag", "type": "boolean", "description": null, "enabled": null,
        "variants": null, "fallthrough": null, "rules": null, "targets": null, "prerequisites": null,
    });
    let with_nulls = create(&test, &nulls).await;
    let without = create(&test, &minimal("without")).await;
    assert_eq!(with_nulls.status, 201);
    for member in
        ["description", "enabled", "variants", "fallthrough", "rules", "targets", "prerequisites"]
    {
        assert_eq!(with_nulls.body[member], without.body[member], "{member}");
    }
    let null = json!({"key": "null-off", "name": "A flag", "type": "boolean", "offVariant": null});
    assert_eq!(create(&test, &null).await.body["offVariant"], Value::Null);
}
