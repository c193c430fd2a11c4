//! The page `/docs` in a browser.

use std::collections::BTreeSet;
use std::process::Stdio;

use serde_json::Value;
use tests::contract::OPENAPI;
use tests::stack::Stack;
use tests::{browser, workspace};
use tokio::process::Command;

/// Returns method and summary of every operation.
fn described() -> BTreeSet<(String, String)> {
    let paths = OPENAPI["paths"].as_object().unwrap().values();
    let methods = paths.flat_map(|item| item.as_object().unwrap());
    let operations = methods.filter(|(_, operation)| operation["operationId"].is_string());
    operations
        .map(|(method, it)| (method.to_uppercase(), it["operationId"].as_str().unwrap().to_owned()))
        .collect()
}

#[tokio::test]
async fn api_reference_lists_every_operation_without_errors() {
    let browser = browser();
    let stack = Stack::start().await;
    let url = format!("{}/docs", stack.base_url);
    let output = Command::new("node")
        .arg(workspace().join("tests/api-reference/open.mjs"))
        .args([&url, &browser])
        .stdin(Stdio::null())
        .output()
        .await
        .expect("Node.js is installed");
    let failure = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "is the page rendered (make docs)? {failure}");
    let seen: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(seen["faults"], serde_json::json!([]), "{seen}");
    assert_eq!(seen["loaded"], serde_json::json!([url]), "the page loads other resources");

    let listed = seen["operations"].as_array().unwrap().iter().map(|shown| {
        let words = shown.as_str().unwrap().split_whitespace().map(str::to_owned);
        let words: Vec<String> = words.collect();
        (words.first().unwrap().clone(), words.last().unwrap().clone())
    });
    assert_eq!(listed.collect::<BTreeSet<_>>(), described());
}
