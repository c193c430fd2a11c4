//! Sentry's plugins for Vite, webpack and esbuild, unmodified: they upload the source maps of minified
//! builds, whose errors then have source names.

use std::process::Stdio;

use serde_json::{Value, json};
use tests::browser;
use tests::errors::project;
use tests::stack::{Stack, send};
use tokio::process::Command;

use local::demo;

/// The throwing frame and its caller: function, line and source line.
const FRAMES: [(&str, u64, &str); 2] = [
    ("collectOrders", 15, "    charged += charge(order);"),
    ("charge", 7, "    throw new PaymentError(`order ${order.id} cannot be charged`);"),
];

/// Checks that two builds by each bundler report one error with source names.
pub(super) async fn resolve_minified_builds(stack: &Stack) {
    let chromium = browser();
    let id = demo::ensure_project(&stack.store, "bundled", "Bundled").await.unwrap();
    let project = project(&stack.store, id).await;
    let dsn = project.dsn(&stack.base_url);
    let folder = tests::workspace().join("tests/sdks/bundlers");
    let mut node = Command::new("node");
    let node = node.current_dir(folder).args(["build_and_visit.mjs", &chromium]);
    // The tools keep the address of the last server in the user's folder.
    let home = tempfile::tempdir().unwrap();
    let node = node
        .env("HOME", home.path())
        .env_remove("XDG_CONFIG_HOME")
        .env("SENTRY_URL", &stack.base_url)
        .env("SENTRY_ORG", "default")
        .env("SENTRY_PROJECT", "bundled")
        .env("SENTRY_AUTH_TOKEN", &stack.key)
        .env("SENTRY_DSN", dsn.to_string());
    let output = node.stdin(Stdio::null()).output().await.unwrap();
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{stderr}");
    // The tools print their progress before.
    let stdout = String::from_utf8_lossy(&output.stdout);
    let seen = stdout.lines().last().unwrap_or_default();
    let seen: Value =
        serde_json::from_str(seen).unwrap_or_else(|error| panic!("{error}: {stdout} {stderr}"));
    assert_eq!(seen["failures"], json!([]), "{stderr}");
    assert_eq!(seen["visits"].as_array().unwrap().len(), 6, "{seen}");

    let get = |path: &str| {
        let url = format!("{}/v0/projects/bundled/{path}", stack.base_url);
        stack.http.get(url).header("x-api-key", &stack.key)
    };
    let maps = send("list-source-maps", get("source-maps")).await.body;
    assert_eq!(maps["failures"], json!([]));
    assert!(maps["items"].as_array().unwrap().len() >= 6, "{maps}");
    let errors = send("list-errors", get("errors")).await.body;
    let errors = errors["items"].as_array().unwrap();
    assert_eq!(errors.len(), 1, "six builds of the same code report one error: {errors:#?}");
    let path = format!("errors/{}/events", errors[0]["errorId"].as_str().unwrap());
    let events = send("list-error-events", get(&path)).await.body;
    for event in events["items"].as_array().unwrap() {
        assert_eq!(event["mapStatus"], Value::Null);
        let frames =
            event["event"]["exception"]["values"][0]["stacktrace"]["frames"].as_array().unwrap();
        let last = &frames[frames.len() - FRAMES.len()..];
        for (frame, (function, line, source)) in last.iter().zip(FRAMES) {
            let shown =
                (&frame["filename"], &frame["function"], &frame["lineno"], &frame["contextLine"]);
            let release = &event["event"]["release"];
            assert!(shown.0.as_str().unwrap().ends_with("checkout.js"), "{release}: {frame}");
            assert_eq!(
                (shown.1, shown.2, shown.3),
                (&json!(function), &json!(line), &json!(source)),
                "{release}: {frame}"
            );
            assert_eq!(frame["preContext"].as_array().unwrap().len(), 5);
            assert_eq!(frame["in_app"], true);
            assert!(frame["minified"]["filename"].as_str().unwrap().starts_with("http://"));
        }
    }
}
