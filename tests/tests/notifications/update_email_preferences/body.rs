//! Bodies that are refused: all that is wrong is said at once, and nothing is written.

use serde_json::{Value, json};
use tests::app::TestApp;

use super::{TYPES, all_but, call, preferences, update};

/// Sends a body that must be refused, and answers places and codes of its violations.
async fn refused(test: &TestApp, body: &Value) -> Vec<(String, String)> {
    let before = test.items("email-preferences").await;
    let reply = call(test).json(body).send(&test.app).await;
    assert_eq!(reply.problem(), (400, "validation_failed"), "{body}");
    assert_eq!(test.items("email-preferences").await, before, "{body}");
    let violations = reply.violations().into_iter();
    violations.map(|(place, code)| (place.to_owned(), code.to_owned())).collect()
}

fn one(place: &str, code: &str) -> [(String, String); 1] {
    [(place.to_owned(), code.to_owned())]
}

#[tokio::test]
async fn each_fault_is_told_at_its_place_and_nothing_is_changed() {
    let test = TestApp::start().await;
    let beside_a_valid_one =
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
    for (body, place, code) in bodies {
        assert_eq!(refused(&test, &body).await, one(place, code), "{body}");
    }
    for (item, place, code) in items {
        let body = beside_a_valid_one(item);
        let place = format!("/preferences/1{place}");
        assert_eq!(refused(&test, &body).await, one(&place, code), "{body}");
    }
    assert_eq!(update(&test, &[]).await.body, all_but(&["insight_new"]));
}

#[tokio::test]
async fn says_all_that_is_wrong_at_once() {
    let test = TestApp::start().await;
    let body = json!({
        "preferences": [
            {"type": "newsletter"},
            {"type": "billing", "emailEnabled": 1},
            {"type": "billing", "emailEnabled": true, "channel": "sms"},
        ],
        "mode": "replace",
    });
    let mut violations = refused(&test, &body).await;
    violations.sort();
    let expected = [
        ("/mode", "unknown_field"),
        ("/preferences/0/emailEnabled", "required"),
        ("/preferences/0/type", "invalid_value"),
        ("/preferences/1/emailEnabled", "invalid_type"),
        ("/preferences/2/channel", "unknown_field"),
        ("/preferences/2/type", "duplicate"),
    ];
    assert_eq!(violations, expected.map(|(place, code)| (place.to_owned(), code.to_owned())));
}

#[tokio::test]
async fn an_unknown_type_is_answered_with_the_types_that_there_are() {
    let test = TestApp::start().await;
    let reply = update(&test, &[("newsletter", false)]).await;
    let message = reply.body["errors"][0]["message"].as_str().unwrap();
    assert!(message.contains(&TYPES.join(", ")), "{message}");
}

#[tokio::test]
async fn more_than_a_hundred_items_are_refused_as_a_whole() {
    let test = TestApp::start().await;
    let items = |count: usize| json!({"preferences": vec![json!({"type": "x"}); count]});
    assert_eq!(refused(&test, &items(101)).await, one("/preferences", "too_many_items"));
    // Each lacks a value and has an unknown type, which all but the first repeat.
    assert_eq!(refused(&test, &items(100)).await.len(), 299);
}

#[tokio::test]
async fn a_member_that_stands_twice_is_refused() {
    let test = TestApp::start().await;
    for (body, place) in [
        (r#"{"preferences":[],"preferences":[]}"#, "/preferences"),
        (
            r#"{"preferences":[{"type":"billing","type":"error_new","emailEnabled":true}]}"#,
            "/preferences/0/type",
        ),
    ] {
        let reply = call(&test).bytes(body).send(&test.app).await;
        assert_eq!(reply.violations(), [(place, "duplicate")]);
    }
    assert!(test.items("email-preferences").await.is_empty());
}

#[tokio::test]
async fn takes_256_kib_of_json_and_nothing_else() {
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
