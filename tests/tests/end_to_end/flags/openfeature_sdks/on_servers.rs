//! The server SDKs of Python and Node, which send a request per evaluation.

use std::time::{Duration, Instant};

use serde_json::json;
use shared::projects::api_key::{ApiKeyRecord, Scope};
use tests::stack::Stack;

use crate::recording_proxy::RecordingProxy;

use super::{Program, statuses};

/// Differences between server SDKs: names of number types, and flags without a value.
struct ServerSdk<'p> {
    program: [&'p str; 2],
    integer: &'static str,
    float: &'static str,
    reports_code_default: bool,
}

const NODE: ServerSdk<'static> = ServerSdk {
    program: ["node", "node/evaluate_flags.mjs"],
    integer: "number",
    float: "number",
    // The provider treats a response without a value as an error; the value is the same.
    reports_code_default: false,
};

fn python(interpreter: &str) -> ServerSdk<'_> {
    ServerSdk {
        program: [interpreter, "python/evaluate_flags.py"],
        integer: "integer",
        float: "float",
        reports_code_default: true,
    }
}

pub(super) async fn python_sdk_evaluates_types_and_reports_failures(stack: &Stack) {
    let interpreter = tests::workspace().join(".venv/openfeature/bin/python");
    let sdk = python(interpreter.to_str().expect("the path is UTF-8"));
    server_sdk_serves(stack, &sdk).await;
    server_sdk_fails(stack, &sdk).await;
}

pub(super) async fn node_sdk_evaluates_types_and_reports_failures(stack: &Stack) {
    server_sdk_serves(stack, &NODE).await;
    server_sdk_fails(stack, &NODE).await;
}

async fn server_sdk_serves(stack: &Stack, sdk: &ServerSdk<'_>) {
    let mut program = Program::start(sdk.program, &stack.base_url, &stack.key);
    let no_context = || json!({});

    let details = program.evaluate("checkout", "boolean", json!(false), no_context()).await;
    assert_eq!(details.served(), (&json!(true), &json!("on"), "STATIC"));
    assert_eq!(details.metadata(stack), json!({}));

    // Matches a rule, a target, and neither.
    let ada = json!({"targetingKey": "user-1", "email": "ada@example.com"});
    let details = program.evaluate("banner", "string", json!(""), ada).await;
    assert_eq!(details.served(), (&json!("Hi\n\"you\""), &json!("internal"), "TARGETING_MATCH"));
    assert_eq!(details.metadata(stack), json!({"ruleId": "staff", "bucketed": false}));
    let seventh = json!({"targetingKey": "user-7"});
    let details = program.evaluate("banner", "string", json!(""), seventh).await;
    assert_eq!(details.served(), (&json!("Hi\n\"you\""), &json!("internal"), "TARGETING_MATCH"));
    assert_eq!(details.metadata(stack), json!({"targeted": true}));
    let other = json!({"targetingKey": "user-1", "email": "ada@example.org"});
    let details = program.evaluate("banner", "string", json!(""), other).await;
    assert_eq!(details.served(), (&json!("Hello"), &json!("plain"), "DEFAULT"));

    // The shares of `new-checkout` + `user-1` and `user-3` are 45.5% and 77.1%.
    for (user, value, variant) in [("user-1", true, "on"), ("user-3", false, "off")] {
        let user = json!({"targetingKey": user});
        let details = program.evaluate("new-checkout", "boolean", json!(!value), user).await;
        assert_eq!(details.served(), (&json!(value), &json!(variant), "SPLIT"));
        assert_eq!(details.metadata(stack), json!({"bucketed": true}));
    }

    let details = program.evaluate("page-size", sdk.integer, json!(1), no_context()).await;
    assert_eq!(details.served(), (&json!(25), &json!("small"), "STATIC"));
    let details = program.evaluate("discount", sdk.float, json!(0.25), no_context()).await;
    assert_eq!((details.served().0.as_f64(), details.served().2), (Some(1.0), "STATIC"));
    let details = program.evaluate("theme", "object", json!({}), no_context()).await;
    let theme = json!({"dark": true, "sizes": [1, 2.5], "name": null});
    assert_eq!(details.served(), (&theme, &json!("dark"), "STATIC"));

    let details = program.evaluate("switched-off", "boolean", json!(true), no_context()).await;
    assert_eq!(details.served(), (&json!(false), &json!("off"), "DISABLED"));
    let details = program.evaluate("dependent", "boolean", json!(true), no_context()).await;
    assert_eq!(details.served(), (&json!(false), &json!("off"), "DISABLED"));
    assert_eq!(details.metadata(stack), json!({"prerequisite": "switched-off"}));
    for default in [true, false] {
        let details =
            program.evaluate("left-to-code", "boolean", json!(default), no_context()).await;
        if sdk.reports_code_default {
            assert_eq!(details.served(), (&json!(default), &json!(""), "DISABLED"));
        } else {
            assert_eq!(details.failed(), (&json!(default), "GENERAL"));
        }
    }
}

async fn server_sdk_fails(stack: &Stack, sdk: &ServerSdk<'_>) {
    let mut program = Program::start(sdk.program, &stack.base_url, &stack.key);
    let no_context = || json!({});
    for unknown in ["retired", "unknown"] {
        let details = program.evaluate(unknown, "boolean", json!(true), no_context()).await;
        assert_eq!(details.failed(), (&json!(true), "FLAG_NOT_FOUND"));
        assert_eq!(details.message(), "the project has no flag with this key");
    }
    for (flag, of, default) in [
        ("checkout", "string", json!("x")),
        ("banner", "boolean", json!(true)),
        ("banner", sdk.integer, json!(7)),
        ("page-size", "object", json!({"a": 1})),
        ("theme", "string", json!("x")),
    ] {
        let details = program.evaluate(flag, of, default.clone(), no_context()).await;
        assert_eq!(details.failed(), (&default, "TYPE_MISMATCH"), "{flag} as {of}");
    }
    let details = program.evaluate("new-checkout", "boolean", json!(true), no_context()).await;
    assert_eq!(details.failed(), (&json!(true), "TARGETING_KEY_MISSING"));

    let reader = |key: ApiKeyRecord| ApiKeyRecord { scopes: [Scope::FlagsRead].into(), ..key };
    let wrong = format!("{}x", stack.key);
    for key in [wrong, stack.key_with(reader).await] {
        let mut program = Program::start(sdk.program, &stack.base_url, &key);
        let details = program.evaluate("checkout", "boolean", json!(false), no_context()).await;
        assert_eq!(details.failed(), (&json!(false), "GENERAL"));
    }

    // After a rejection with `retry-after`, the provider sends no request until then, and then
    // resumes.
    let proxy = RecordingProxy::start(&stack.base_url).await;
    let mut program = Program::start(sdk.program, &proxy.base_url, &stack.key);
    let mut evaluate =
        async || program.evaluate("checkout", "boolean", json!(false), no_context()).await;
    assert_eq!(evaluate().await.served().2, "STATIC");
    proxy.reject_next("2");
    let rejected = Instant::now();
    assert_eq!(evaluate().await.failed(), (&json!(false), "GENERAL"));
    let paused = evaluate().await;
    if rejected.elapsed() < Duration::from_secs(2) {
        assert_eq!(paused.failed(), (&json!(false), "GENERAL"));
        assert!(paused.message().contains("paused"), "{}", paused.message());
        assert_eq!(proxy.exchanges().len(), 2);
    }
    tokio::time::sleep(Duration::from_millis(2_100)).await;
    assert_eq!(evaluate().await.served(), (&json!(true), &json!("on"), "STATIC"));
    assert_eq!(statuses(&proxy.exchanges()), [200, 429, 200]);
}
