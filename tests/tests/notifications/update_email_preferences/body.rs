//! Rejected bodies: the response contains all violations, and nothing is written.

use serde_json::{Value, json};
use tests::app::TestApp;

use super::{TYPES, all_but, call, preferences, update};

/// Sends an invalid body, and returns pointers and codes of its violations.
async fn violations(test: &TestApp, body: &Value) -> Vec<(String, String)> {
    let before = test.items("email-preferences").await;
    let reply = call(test).json(body).send(&test.app).await;
    assert_eq!(reply.problem(), (400, "validation_failed"), "{body}");
    assert_eq!(test.items("email-preferences").await, before, "{body}");
    let violations = reply.violations().into_iter();
    violations.map(|(pointer, code)| (pointer.to_owned(), code.to_owned())).collect()
}

fn violation(pointer: &str, code: &str) -> [(String, String); 1] {
    [(pointer.to_owned(), code.to_owned())]
}

#[tokio::test]
async fn violations_name_field_and_code() {
    let test = TestApp::start().await;
    let after_valid_item =
        |item: Value| json!({"preferences": [{"type": "billing", "emailEnabled": false}, item]});
    let bodies = [
        (json!({}), "/preferences", "required"),
        (json!({"preferences": null}), "/preferences", "required"),
        (json!({"preferences": "billing"}), "/preferences", "invalid_type"),
        (json!({"preferences": {"billing": false}}), "/preferences", "invalid_type"),
        (json!({"preferences": [], "userId": "mira"}), "/userId", "unknown_field"),
        (json!([]), "", "invalid_type"),
        (json!(null), "", "invalid_type"),
    ];
    let items = [
        (json!({"type": "newsletter", "emailEnabled": true}), "/type", "invalid_value"),
        (json!({"type": "Billing", "emailEnabled": true}), "/type", "invalid_value"),
        (json!({"type": "error-new", "emailEnabled": true}), "/type", "invalid_value"),
        (json!({"type": "", "emailEnabled": true}), "/type", "invalid_value"),
        (json!({"type": "error_new\0", "emailEnabled": true}), "/type", "invalid_format"),
        (json!({"type": 1, "emailEnabled": true}), "/type", "invalid_type"),
        (json!({"type": null, "emailEnabled": true}), "/type", "required"),
        (json!({"emailEnabled": true}), "/type", "required"),
        (json!({"type": "billing", "emailEnabled": false}), "/type", "duplicate"),
        (json!({"type": "billing", "emailEnabled": true}), "/type", "duplicate"),
        (json!({"type": "error_new"}), "/emailEnabled", "required"),
        (json!({"type": "error_new", "emailEnabled": null}), "/emailEnabled", "required"),
        (json!({"type": "error_new", "emailEnabled": "false"}), "/emailEnabled", "invalid_type"),
        (json!({"type": "error_new", "emailEnabled": 0}), "/emailEnabled", "invalid_type"),
        (
            json!({"type": "error_new", "emailEnabled": true, "smsEnabled": true}),
            "/smsEnabled",
            "unknown_field",
        ),
        (json!("error_new"), "", "invalid_type"),
        (json!(null), "", "invalid_type"),
    ];
    update(&test, &[("insight_new", false)]).await;
    for (body, pointer, code) in bodies {
        assert_eq!(violations(&test, &body).await, violation(pointer, code), "{body}");
    }
    for (item, pointer, code) in items {
        let body = after_valid_item(item);
        let pointer = format!("/preferences/1{pointer}");
        assert_eq!(violations(&test, &body).await, violation(&pointer, code), "{body}");
    }
    assert_eq!(update(&test, &[]).await.body, all_but(&["insight_new"]));
}

#[tokio::test]
async fn all_violations_are_reported() {
    let test = TestApp::start().await;
    let body = json!({
        "preferences": [
            {"type": "newsletter"},
            {"type": "billing", "emailEnabled": 1},
            {"type": "billing", "emailEnabled": true, "channel": "sms"},
        ],
        "mode": "replace",
    });
    let mut violations = violations(&test, &body).await;
    violations.sort();
    let expected = [
        ("/mode", "unknown_field"),
        ("/preferences/0/emailEnabled", "required"),
        ("/preferences/0/type", "invalid_value"),
        ("/preferences/1/emailEnabled", "invalid_type"),
        ("/preferences/2/channel", "unknown_field"),
        ("/preferences/2/type", "duplicate"),
    ];
    assert_eq!(violations, expected.map(|(pointer, code)| (pointer.to_owned(), code.to_owned())));
}

#[tokio::test]
async fn unknown_types_are_rejected_with_valid_ones() {
    let test = TestApp::start().await;
    let reply = update(&test, &[("newsletter", false)]).await;
    let message = reply.body["errors"][0]["message"].as_str().unwrap();
    assert!(message.contains(&TYPES.join(", ")), "{message}");
}

#[tokio::test]
async fn arrays_over_100_items_are_rejected() {
    let test = TestApp::start().await;
    let items = |count: usize| json!({"preferences": vec![json!({"type": "x"}); count]});
    assert_eq!(violations(&test, &items(101)).await, violation("/preferences", "too_many_items"));
    // Each item lacks a value and has an unknown type. All except the first are duplicates.
    assert_eq!(violations(&test, &items(100)).await.len(), 299);
}

#[tokio::test]
async fn duplicate_json_fields_are_rejected() {
    let test = TestApp::start().await;
    for (body, pointer) in [
        (r#"{"preferences":[],"preferences":[]}"#, "/preferences"),
        (
            r#"{"preferences":[{"type":"billing","type":"error_new","emailEnabled":true}]}"#,
            "/preferences/0/type",
        ),
    ] {
        let reply = call(&test).bytes(body).send(&test.app).await;
        assert_eq!(reply.violations(), [(pointer, "duplicate")]);
    }
    assert!(test.items("email-preferences").await.is_empty());
}

#[tokio::test]
async fn bodies_must_be_json_up_to_256_kib() {
    let test = TestApp::start().await;
    let mut body = preferences(&[("billing", false)]).to_string();
    body.push_str(&" ".repeat(256 * 1024 - body.len()));
    assert_eq!(call(&test).bytes(body.clone()).send(&test.app).await.status, 200);
    let reply = call(&test).bytes(format!("{body} ")).send(&test.app).await;
    assert_eq!(reply.problem(), (413, "body_too_large"));
    let plain = call(&test).header("content-type", "text/plain").bytes("{}");
    assert_eq!(plain.send(&test.app).await.problem(), (415, "unsupported_media_type"));
    for malformed in [&b""[..], b"{", b"{\"preferences\": [}", b"{\"\xff\": 1}"] {
        let reply = call(&test).bytes(malformed).send(&test.app).await;
        assert_eq!(reply.problem(), (400, "malformed_json"));
    }
    assert_eq!(update(&test, &[]).await.body, all_but(&["billing"]));
}
