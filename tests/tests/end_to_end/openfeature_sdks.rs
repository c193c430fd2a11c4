//! The official `OpenFeature` SDKs with their OFREP providers, unmodified: what an application gets
//! of the flags that were made through the API.

use std::process::Stdio;
use std::time::{Duration, Instant};

use reqwest::Method;
use serde_json::{Value, json};
use shared::models::api_key::{ApiKeyRecord, Scope};
use tests::app::PROJECT;
use tests::stack::{Stack, send};
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader, Lines};
use tokio::process::{Child, ChildStdin, ChildStdout, Command};

use crate::recording_proxy::{Exchange, RecordingProxy};

/// The longest that a program may take for an answer: a busy computer may be slow.
const PATIENCE: Duration = Duration::from_secs(60);

// ------------------------------------------------------------------------------------------- flags

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

/// A stack with a flag for each case.
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
    // Providers wait for a few seconds only, which a cold function of a busy computer may need.
    for (operation, path) in
        [("evaluate-feature-flag", "/checkout"), ("evaluate-feature-flags", "")]
    {
        let url = format!("{}/ofrep/v1/evaluate/flags{path}", endpoint(&stack.base_url));
        let request = stack.http.post(url).header("x-api-key", &stack.key).json(&json!({}));
        assert_eq!(send(operation, request).await.status, 200);
    }
    stack
}

/// Where a provider asks.
fn endpoint(base_url: &str) -> String {
    format!("{base_url}/v0/project/{PROJECT}")
}

// ---------------------------------------------------------------------------------------- programs

/// A running program of `tests/sdks` that answers each line with one.
struct Program {
    _child: Child,
    stdin: ChildStdin,
    answers: Lines<BufReader<ChildStdout>>,
}

impl Program {
    fn start([interpreter, script]: [&str; 2], base_url: &str, key: &str) -> Self {
        let script = tests::workspace().join("tests/sdks").join(script);
        let mut child = Command::new(interpreter)
            .arg(&script)
            .current_dir(script.parent().expect("it lies in a folder"))
            // Nothing else may configure the SDK.
            .env_clear()
            .env("PATH", std::env::var_os("PATH").unwrap_or_default())
            .env("OFREP_ENDPOINT", endpoint(base_url))
            .env("API_KEY", key)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .kill_on_drop(true)
            .spawn()
            .unwrap_or_else(|error| panic!("{interpreter}: {error}; run `make test-tools`"));
        let stdin = child.stdin.take().unwrap();
        let answers = BufReader::new(child.stdout.take().unwrap()).lines();
        Self { _child: child, stdin, answers }
    }

    async fn ask(&mut self, question: &Value) -> Value {
        self.stdin.write_all(format!("{question}\n").as_bytes()).await.unwrap();
        let answer = tokio::time::timeout(PATIENCE, self.answers.next_line()).await;
        let answer = answer.unwrap_or_else(|_| panic!("no answer to {question}"));
        let answer = answer.unwrap().unwrap_or_else(|| panic!("it ended at {question}"));
        serde_json::from_str(&answer).unwrap()
    }

    /// What the SDK tells about a flag.
    async fn evaluate(&mut self, flag: &str, of: &str, default: Value, context: Value) -> Details {
        let question = json!({
            "command": "evaluate", "flag": flag, "type": of, "default": default, "context": context,
        });
        Details(self.ask(&question).await)
    }
}

/// What an SDK tells about an evaluation.
#[derive(Debug)]
struct Details(Value);

impl Details {
    /// Value, variant and reason, if there is no error.
    #[track_caller]
    fn served(&self) -> (&Value, &Value, &str) {
        assert!(self.0["errorCode"].is_null(), "{}", self.0);
        (&self.0["value"], &self.0["variant"], self.0["reason"].as_str().unwrap())
    }

    /// The value and the code of an error.
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
        let members = metadata.as_object_mut().unwrap();
        assert_eq!(members.remove("flagSetId"), Some(json!(stack.project_id)));
        assert_eq!(members.remove("version"), Some(json!("1")));
        metadata
    }
}

/// What an SDK of a server calls its types of numbers, and how it takes a flag without a value.
struct ServerSdk {
    program: [&'static str; 2],
    integer: &'static str,
    float: &'static str,
    tells_code_default: bool,
}

const NODE: ServerSdk = ServerSdk {
    program: ["node", "node/evaluate_flags.mjs"],
    integer: "number",
    float: "number",
    // Its provider takes an answer without a value for an error; the value is the same.
    tells_code_default: false,
};

fn python(interpreter: &str) -> ServerSdk {
    ServerSdk {
        program: [interpreter.to_owned().leak(), "python/evaluate_flags.py"],
        integer: "integer",
        float: "float",
        tells_code_default: true,
    }
}

fn python_interpreter() -> String {
    let python = tests::workspace().join(".venv/openfeature/bin/python");
    python.to_str().expect("its path is text").to_owned()
}

// --------------------------------------------------------------------------------------- on servers

#[tokio::test]
async fn openfeature_python_evaluates_each_type_and_tells_each_failure() {
    let stack = stack_with_flags().await;
    let sdk = python(&python_interpreter());
    server_sdk_serves(&stack, &sdk).await;
    server_sdk_fails(&stack, &sdk).await;
}

#[tokio::test]
async fn openfeature_node_evaluates_each_type_and_tells_each_failure() {
    let stack = stack_with_flags().await;
    server_sdk_serves(&stack, &NODE).await;
    server_sdk_fails(&stack, &NODE).await;
}

async fn server_sdk_serves(stack: &Stack, sdk: &ServerSdk) {
    let mut program = Program::start(sdk.program, &stack.base_url, &stack.key);
    let nobody = || json!({});

    let details = program.evaluate("checkout", "boolean", json!(false), nobody()).await;
    assert_eq!(details.served(), (&json!(true), &json!("on"), "STATIC"));
    assert_eq!(details.metadata(stack), json!({}));

    // A rule, a target, and neither.
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

    // The shares of `new-checkout` + `user-1` and `user-3` are 45.5 % and 77.1 %.
    for (user, value, variant) in [("user-1", true, "on"), ("user-3", false, "off")] {
        let user = json!({"targetingKey": user});
        let details = program.evaluate("new-checkout", "boolean", json!(!value), user).await;
        assert_eq!(details.served(), (&json!(value), &json!(variant), "SPLIT"));
        assert_eq!(details.metadata(stack), json!({"bucketed": true}));
    }

    let details = program.evaluate("page-size", sdk.integer, json!(1), nobody()).await;
    assert_eq!(details.served(), (&json!(25), &json!("small"), "STATIC"));
    let details = program.evaluate("discount", sdk.float, json!(0.25), nobody()).await;
    assert_eq!((details.served().0.as_f64(), details.served().2), (Some(1.0), "STATIC"));
    let details = program.evaluate("theme", "object", json!({}), nobody()).await;
    let theme = json!({"dark": true, "sizes": [1, 2.5], "name": null});
    assert_eq!(details.served(), (&theme, &json!("dark"), "STATIC"));

    let details = program.evaluate("switched-off", "boolean", json!(true), nobody()).await;
    assert_eq!(details.served(), (&json!(false), &json!("off"), "DISABLED"));
    let details = program.evaluate("dependent", "boolean", json!(true), nobody()).await;
    assert_eq!(details.served(), (&json!(false), &json!("off"), "DISABLED"));
    assert_eq!(details.metadata(stack), json!({"prerequisite": "switched-off"}));
    for default in [true, false] {
        let details = program.evaluate("left-to-code", "boolean", json!(default), nobody()).await;
        if sdk.tells_code_default {
            assert_eq!(details.served(), (&json!(default), &json!(""), "DISABLED"));
        } else {
            assert_eq!(details.failed(), (&json!(default), "GENERAL"));
        }
    }
}

async fn server_sdk_fails(stack: &Stack, sdk: &ServerSdk) {
    let mut program = Program::start(sdk.program, &stack.base_url, &stack.key);
    let nobody = || json!({});
    for unknown in ["retired", "unknown"] {
        let details = program.evaluate(unknown, "boolean", json!(true), nobody()).await;
        assert_eq!(details.failed(), (&json!(true), "FLAG_NOT_FOUND"));
        assert_eq!(details.message(), "the project has no flag of this key");
    }
    for (flag, of, default) in [
        ("checkout", "string", json!("x")),
        ("banner", "boolean", json!(true)),
        ("banner", sdk.integer, json!(7)),
        ("page-size", "object", json!({"a": 1})),
        ("theme", "string", json!("x")),
    ] {
        let details = program.evaluate(flag, of, default.clone(), nobody()).await;
        assert_eq!(details.failed(), (&default, "TYPE_MISMATCH"), "{flag} as {of}");
    }
    let details = program.evaluate("new-checkout", "boolean", json!(true), nobody()).await;
    assert_eq!(details.failed(), (&json!(true), "TARGETING_KEY_MISSING"));

    let reader = |key: ApiKeyRecord| ApiKeyRecord { scopes: [Scope::FlagsRead].into(), ..key };
    let wrong = format!("{}x", stack.key);
    for key in [wrong, stack.key_with(reader).await] {
        let mut program = Program::start(sdk.program, &stack.base_url, &key);
        let details = program.evaluate("checkout", "boolean", json!(false), nobody()).await;
        assert_eq!(details.failed(), (&json!(false), "GENERAL"));
    }

    // Refused with `retry-after`, a provider asks nothing until then, and then goes on.
    let proxy = RecordingProxy::start(&stack.base_url).await;
    let mut program = Program::start(sdk.program, &proxy.base_url, &stack.key);
    let mut evaluate =
        async || program.evaluate("checkout", "boolean", json!(false), nobody()).await;
    assert_eq!(evaluate().await.served().2, "STATIC");
    proxy.refuse_next("2");
    let refused = Instant::now();
    assert_eq!(evaluate().await.failed(), (&json!(false), "GENERAL"));
    let paused = evaluate().await;
    if refused.elapsed() < Duration::from_secs(2) {
        assert_eq!(paused.failed(), (&json!(false), "GENERAL"));
        assert!(paused.message().contains("paused"), "{}", paused.message());
        assert_eq!(proxy.exchanges().len(), 2);
    }
    tokio::time::sleep(Duration::from_millis(2_100)).await;
    assert_eq!(evaluate().await.served(), (&json!(true), &json!("on"), "STATIC"));
    assert_eq!(statuses(&proxy.exchanges()), [200, 429, 200]);
}

fn statuses(exchanges: &[Exchange]) -> Vec<u16> {
    exchanges.iter().map(|exchange| exchange.status).collect()
}

// ---------------------------------------------------------------------------------------- on pages

const WEB: [&str; 2] = ["node", "node/show_flags.mjs"];

async fn start_page(program: &mut Program, context: Value, poll_millis: u32) -> Value {
    let command = json!({"command": "start", "context": context, "pollInterval": poll_millis});
    program.ask(&command).await["status"].clone()
}

/// Waits until enough has gone through a proxy.
async fn until(proxy: &RecordingProxy, enough: impl Fn(&[Exchange]) -> bool) -> Vec<Exchange> {
    let started = Instant::now();
    loop {
        let exchanges = proxy.exchanges();
        if enough(&exchanges) {
            return exchanges;
        }
        assert!(started.elapsed() < PATIENCE, "{exchanges:?}");
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

#[tokio::test]
async fn openfeature_web_has_all_flags_of_a_context_at_once() {
    let stack = stack_with_flags().await;
    let proxy = RecordingProxy::start(&stack.base_url).await;
    let mut page = Program::start(WEB, &proxy.base_url, &stack.key);
    let ada = json!({"targetingKey": "user-1", "email": "ada@example.com"});
    assert_eq!(start_page(&mut page, ada, 0).await, "READY");

    let theme = json!({"dark": true, "sizes": [1, 2.5], "name": null});
    for (flag, of, default, served) in [
        ("checkout", "boolean", json!(false), (json!(true), "on", "STATIC")),
        ("new-checkout", "boolean", json!(false), (json!(true), "on", "SPLIT")),
        ("banner", "string", json!(""), (json!("Hi\n\"you\""), "internal", "TARGETING_MATCH")),
        ("page-size", "number", json!(1), (json!(25), "small", "STATIC")),
        ("discount", "number", json!(0), (json!(1), "none", "STATIC")),
        ("theme", "object", json!({}), (theme, "dark", "STATIC")),
        ("switched-off", "boolean", json!(true), (json!(false), "off", "DISABLED")),
        ("left-to-code", "boolean", json!(true), (json!(true), "", "DISABLED")),
    ] {
        let details = page.evaluate(flag, of, default, Value::Null).await;
        let (value, variant, reason) = served;
        assert_eq!(details.served(), (&value, &json!(variant), reason), "{flag}");
    }
    let details = page.evaluate("banner", "string", json!(""), Value::Null).await;
    assert_eq!(details.metadata(&stack), json!({"ruleId": "staff", "bucketed": false}));
    for unknown in ["retired", "unknown"] {
        let details = page.evaluate(unknown, "boolean", json!(true), Value::Null).await;
        assert_eq!(details.failed(), (&json!(true), "FLAG_NOT_FOUND"));
    }
    let details = page.evaluate("checkout", "string", json!("x"), Value::Null).await;
    assert_eq!(details.failed(), (&json!("x"), "TYPE_MISMATCH"));
    let exchanges = proxy.exchanges();
    assert_eq!(statuses(&exchanges), [200], "one request tells of all flags");
    assert_eq!(exchanges[0].path, format!("/v0/project/{PROJECT}/ofrep/v1/evaluate/flags"));

    // Another context is evaluated anew, also where only an attribute is another: then the provider
    // sends the entity tag of the context before, which must not be taken for this one's.
    let context = json!({"targetingKey": "user-1", "email": "ada@example.org"});
    page.ask(&json!({"command": "setContext", "context": context})).await;
    let details = page.evaluate("banner", "string", json!(""), Value::Null).await;
    assert_eq!(details.served(), (&json!("Hello"), &json!("plain"), "DEFAULT"));
    let exchanges = proxy.exchanges();
    assert_eq!(statuses(&exchanges), [200, 200]);
    assert_eq!(exchanges[1].if_none_match, exchanges[0].etag);
    assert!(exchanges[1].etag.is_some() && exchanges[1].etag != exchanges[0].etag);
    let sent: Value = serde_json::from_str(&exchanges[1].body).unwrap();
    assert_eq!(sent["context"], context);

    // One flag that needs a targeting key is no hindrance for the others.
    page.ask(&json!({"command": "setContext", "context": {}})).await;
    let details = page.evaluate("new-checkout", "boolean", json!(true), Value::Null).await;
    assert_eq!(details.failed(), (&json!(true), "TARGETING_KEY_MISSING"));
    let details = page.evaluate("checkout", "boolean", json!(false), Value::Null).await;
    assert_eq!(details.served(), (&json!(true), &json!("on"), "STATIC"));
}

#[tokio::test]
async fn openfeature_web_polls_with_its_entity_tag_and_sees_a_change() {
    let stack = stack_with_flags().await;
    let proxy = RecordingProxy::start(&stack.base_url).await;
    let mut page = Program::start(WEB, &proxy.base_url, &stack.key);
    assert_eq!(start_page(&mut page, json!({"targetingKey": "user-1"}), 200).await, "READY");

    // Nothing changes: the tag of the first answer is sent, and nothing else comes back.
    let exchanges = until(&proxy, |exchanges| exchanges.len() >= 4).await;
    let [first, polls @ ..] = exchanges.as_slice() else { unreachable!() };
    assert_eq!((first.status, &first.if_none_match), (200, &None));
    for poll in polls {
        assert_eq!((poll.status, poll.answer.as_str()), (304, ""));
        assert!(first.etag.is_some());
        assert_eq!((&poll.if_none_match, &poll.etag), (&first.etag, &first.etag));
    }
    let details = page.evaluate("checkout", "boolean", json!(false), Value::Null).await;
    assert_eq!(details.served(), (&json!(true), &json!("on"), "STATIC"));

    // A change arrives, alone.
    update(&stack, "checkout", &json!({"enabled": false})).await;
    let event = page.ask(&json!({"command": "nextEvent"})).await;
    let changed = (&event["type"], &event["flagsChanged"]);
    assert_eq!(changed, (&json!("PROVIDER_CONFIGURATION_CHANGED"), &json!(["checkout"])));
    let details = page.evaluate("checkout", "boolean", json!(true), Value::Null).await;
    assert_eq!(details.served(), (&json!(false), &json!("off"), "DISABLED"));
    let exchanges = proxy.exchanges();
    let changes: Vec<_> = exchanges.iter().filter(|exchange| exchange.status == 200).collect();
    assert_eq!(changes.len(), 2);
    assert_eq!(changes[1].if_none_match, first.etag);
    let new_tag = changes[1].etag.clone();
    let polls = until(&proxy, |all| {
        all.last().is_some_and(|poll| poll.status == 304 && poll.if_none_match == new_tag)
    })
    .await;
    assert!(new_tag.is_some() && new_tag != first.etag, "{polls:?}");
}

#[tokio::test]
async fn openfeature_web_backs_off_when_it_is_refused_and_goes_on_then() {
    let stack = stack_with_flags().await;
    let proxy = RecordingProxy::start(&stack.base_url).await;
    let mut page = Program::start(WEB, &proxy.base_url, &stack.key);
    assert_eq!(start_page(&mut page, json!({"targetingKey": "user-1"}), 200).await, "READY");
    proxy.refuse_next("3");
    let event = page.ask(&json!({"command": "nextEvent"})).await;
    assert_eq!(event["type"], "PROVIDER_STALE");
    // What it has it goes on serving.
    let details = page.evaluate("checkout", "boolean", json!(false), Value::Null).await;
    assert_eq!(details.served(), (&json!(true), &json!("on"), "STATIC"));

    let is_refused = |exchange: &Exchange| exchange.status == 429;
    let exchanges = until(&proxy, |all| {
        all.iter().position(is_refused).is_some_and(|refused| all.len() > refused + 1)
    })
    .await;
    let refused = exchanges.iter().position(is_refused).unwrap();
    let (refused, next) = (&exchanges[refused], &exchanges[refused + 1]);
    let pause = next.at.duration_since(refused.at);
    assert!(pause >= Duration::from_millis(2_990), "{pause:?}");
    assert_eq!(next.status, 304);

    let mut stranger = Program::start(WEB, &stack.base_url, &format!("{}x", stack.key));
    let status = start_page(&mut stranger, json!({"targetingKey": "user-1"}), 0).await;
    assert_eq!(status, "FATAL");
    let details = stranger.evaluate("checkout", "boolean", json!(false), Value::Null).await;
    assert_eq!(details.failed(), (&json!(false), "PROVIDER_FATAL"));
}
