//! Invalid bodies: all violations are listed, and nothing is written.

use serde_json::{Value, json};
use tests::app::TestApp;

use super::{call, create, minimal, stored_keys};

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
