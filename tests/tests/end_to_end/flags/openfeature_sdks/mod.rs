//! The official `OpenFeature` SDKs with their OFREP providers, unmodified: evaluations of flags
//! that were created through the API.

mod on_pages;
mod on_servers;

use std::process::Stdio;
use std::time::Duration;

use reqwest::Method;
use serde_json::{Value, json};
use tests::app::PROJECT;
use tests::stack::{Stack, send};
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader, Lines};
use tokio::process::{Child, ChildStdin, ChildStdout, Command};

use crate::recording_proxy::Exchange;

/// Timeout of a program's response. A busy computer can be slow.
const RESPONSE_TIMEOUT: Duration = Duration::from_mins(1);

async fn create(stack: &Stack, flag: &Value) {
    let url = format!("{}/v0/project/{PROJECT}/feature-flags", stack.base_url);
    let request = stack.http.post(url).header("x-api-key", &stack.key).json(flag);
    let reply = send("create-feature-flag", request).await;
    assert_eq!(reply.status, 201, "{}", reply.body);
}

async fn update(stack: &Stack, key: &str, patch: &Value) {
    let url = format!("{}/v0/project/{PROJECT}/feature-flags/{key}", stack.base_url);
    let request = stack.http.request(Method::PATCH, url).header("x-api-key", &stack.key);
    let reply = send("update-feature-flag", request.json(patch)).await;
    assert_eq!(reply.status, 200, "{}", reply.body);
}

/// All SDKs share a stack. Those that expect its initial flags come first.
#[tokio::test]
async fn openfeature_sdks_evaluate_flags() {
    let stack = stack_with_flags().await;
    on_servers::python_sdk_evaluates_types_and_reports_failures(&stack).await;
    on_servers::node_sdk_evaluates_types_and_reports_failures(&stack).await;
    on_pages::web_sdk_loads_all_flags_with_one_request(&stack).await;
    on_pages::web_sdk_backs_off_and_resumes(&stack).await;
    on_pages::web_sdk_in_chromium_polls_across_origins(&stack).await;
    // All functions know the changed flag by then.
    tokio::time::sleep(Duration::from_secs(6)).await;
    on_pages::web_sdk_polls_with_its_entity_tag(&stack).await;
}

/// Returns a stack with a flag for each case.
async fn stack_with_flags() -> Stack {
    let stack = Stack::start().await;
    let half =
        json!({"rollout": [{"variant": "on", "weight": 50}, {"variant": "off", "weight": 50}]});
    let staff = json!({
        "id": "staff", "serve": {"variant": "internal"},
        "conditions": [{"attribute": "email", "operator": "ends_with", "values": ["@example.com"]}],
    });
    for flag in [
        json!({"key": "checkout", "type": "boolean", "enabled": true}),
        json!({"key": "new-checkout", "type": "boolean", "enabled": true, "fallthrough": half}),
        json!({
            "key": "banner", "type": "string", "enabled": true, "rules": [staff],
            "variants": [{"key": "plain", "value": "Hello"}, {"key": "internal", "value": "Hi\n\"you\""}],
            "targets": [{"kind": "identifier", "value": "user-7", "variant": "internal"}],
        }),
        json!({
            "key": "page-size", "type": "number", "enabled": true,
            "variants": [{"key": "small", "value": "25"}],
        }),
        json!({
            "key": "discount", "type": "number", "enabled": true,
            "variants": [{"key": "none", "value": "1"}, {"key": "some", "value": "0.5"}],
        }),
        json!({
            "key": "theme", "type": "json", "enabled": true,
            "variants": [{"key": "dark", "value": r#"{"dark": true, "sizes": [1, 2.5], "name": null}"#}],
        }),
        json!({"key": "switched-off", "type": "boolean"}),
        json!({"key": "left-to-code", "type": "boolean", "offVariant": null}),
        json!({
            "key": "dependent", "type": "boolean", "enabled": true,
            "prerequisites": [{"flagKey": "switched-off", "variant": "off"}],
        }),
        json!({"key": "retired", "type": "boolean", "enabled": true}),
    ] {
        let mut named = flag.clone();
        named["name"] = flag["key"].clone();
        create(&stack, &named).await;
    }
    update(&stack, "retired", &json!({"archived": true})).await;
    // Warms up the functions: providers wait only a few seconds, which a cold function on a busy
    // computer can exceed.
    for (operation, path) in
        [("evaluate-feature-flag", "/checkout"), ("evaluate-feature-flags", "")]
    {
        let url = format!("{}/ofrep/v1/evaluate/flags{path}", endpoint(&stack.base_url));
        let request = stack.http.post(url).header("x-api-key", &stack.key).json(&json!({}));
        assert_eq!(send(operation, request).await.status, 200);
    }
    stack
}

/// Returns the provider's endpoint.
fn endpoint(base_url: &str) -> String {
    format!("{base_url}/v0/project/{PROJECT}")
}

/// A running program of `tests/sdks` that responds to each line with a line.
struct Program {
    _child: Child,
    stdin: ChildStdin,
    responses: Lines<BufReader<ChildStdout>>,
}

impl Program {
    fn start([interpreter, script]: [&str; 2], base_url: &str, key: &str) -> Self {
        let script = tests::workspace().join("tests/sdks").join(script);
        let mut child = Command::new(interpreter)
            .arg(&script)
            .current_dir(script.parent().expect("the script is in a folder"))
            // The environment must not configure the SDK.
            .env_clear()
            .env("PATH", std::env::var_os("PATH").unwrap_or_default())
            .env("OFREP_ENDPOINT", endpoint(base_url))
            .env("API_KEY", key)
            .env("CHROMIUM", tests::browser())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .kill_on_drop(true)
            .spawn()
            .unwrap_or_else(|error| panic!("{interpreter}: {error}; run `make test-tools`"));
        let stdin = child.stdin.take().unwrap();
        let responses = BufReader::new(child.stdout.take().unwrap()).lines();
        Self { _child: child, stdin, responses }
    }

    async fn send(&mut self, request: &Value) -> Value {
        self.stdin.write_all(format!("{request}\n").as_bytes()).await.unwrap();
        let response = tokio::time::timeout(RESPONSE_TIMEOUT, self.responses.next_line()).await;
        let response = response.unwrap_or_else(|_| panic!("no response to {request}"));
        let response =
            response.unwrap().unwrap_or_else(|| panic!("the program ended at {request}"));
        serde_json::from_str(&response).unwrap()
    }

    /// Returns the SDK's details of an evaluation.
    async fn evaluate(&mut self, flag: &str, of: &str, default: Value, context: Value) -> Details {
        let request = json!({
            "command": "evaluate", "flag": flag, "type": of, "default": default, "context": context,
        });
        Details(self.send(&request).await)
    }
}

/// The SDK's details of an evaluation.
#[derive(Debug)]
struct Details(Value);

impl Details {
    /// Returns value, variant and reason. Panics if there is an error.
    #[track_caller]
    fn served(&self) -> (&Value, &Value, &str) {
        assert!(self.0["errorCode"].is_null(), "{}", self.0);
        (&self.0["value"], &self.0["variant"], self.0["reason"].as_str().unwrap())
    }

    /// Returns the default value and the error code.
    #[track_caller]
    fn failed(&self) -> (&Value, &str) {
        assert_eq!(self.0["reason"], "ERROR", "{}", self.0);
        (&self.0["value"], self.0["errorCode"].as_str().unwrap())
    }

    fn message(&self) -> &str {
        self.0["errorMessage"].as_str().unwrap()
    }

    fn metadata(&self, stack: &Stack) -> Value {
        let mut metadata = self.0["flagMetadata"].clone();
        let fields = metadata.as_object_mut().unwrap();
        assert_eq!(fields.remove("flagSetId"), Some(json!(stack.project_id)));
        assert_eq!(fields.remove("version"), Some(json!("1")));
        metadata
    }
}

fn statuses(exchanges: &[Exchange]) -> Vec<u16> {
    exchanges.iter().map(|exchange| exchange.status).collect()
}
