//! The SDK for web pages, which requests all flags of a context.

use std::time::{Duration, Instant};

use serde_json::{Value, json};
use tests::app::PROJECT;
use tests::stack::Stack;

use crate::recording_proxy::{Exchange, RecordingProxy};

use super::{Program, RESPONSE_TIMEOUT, statuses, update};

const WEB: [&str; 2] = ["node", "node/show_flags.mjs"];

/// The SDK in Chromium, on a page of another origin.
const CHROMIUM: [&str; 2] = ["node", "browser/show_flags.mjs"];

async fn start_page(program: &mut Program, context: Value, poll_millis: u32) -> Value {
    let command = json!({"command": "start", "context": context, "pollInterval": poll_millis});
    program.send(&command).await["status"].clone()
}

/// Waits until the proxy has forwarded enough.
async fn until(proxy: &RecordingProxy, enough: impl Fn(&[Exchange]) -> bool) -> Vec<Exchange> {
    let started = Instant::now();
    loop {
        let exchanges = proxy.exchanges();
        if enough(&exchanges) {
            return exchanges;
        }
        assert!(started.elapsed() < RESPONSE_TIMEOUT, "{exchanges:?}");
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

pub(super) async fn web_sdk_loads_all_flags_with_one_request(stack: &Stack) {
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
    assert_eq!(details.metadata(stack), json!({"ruleId": "staff", "bucketed": false}));
    for unknown in ["retired", "unknown"] {
        let details = page.evaluate(unknown, "boolean", json!(true), Value::Null).await;
        assert_eq!(details.failed(), (&json!(true), "FLAG_NOT_FOUND"));
    }
    let details = page.evaluate("checkout", "string", json!("x"), Value::Null).await;
    assert_eq!(details.failed(), (&json!("x"), "TYPE_MISMATCH"));
    let exchanges = proxy.exchanges();
    assert_eq!(statuses(&exchanges), [200], "one request returns all flags");
    assert_eq!(exchanges[0].path, format!("/v0/project/{PROJECT}/ofrep/v1/evaluate/flags"));

    // A new context is evaluated again, even if only an attribute changes. Then the provider sends
    // the entity tag of the previous context, which must not match.
    let context = json!({"targetingKey": "user-1", "email": "ada@example.org"});
    page.send(&json!({"command": "setContext", "context": context})).await;
    let details = page.evaluate("banner", "string", json!(""), Value::Null).await;
    assert_eq!(details.served(), (&json!("Hello"), &json!("plain"), "DEFAULT"));
    let exchanges = proxy.exchanges();
    assert_eq!(statuses(&exchanges), [200, 200]);
    assert_eq!(exchanges[1].if_none_match, exchanges[0].etag);
    assert!(exchanges[1].etag.is_some() && exchanges[1].etag != exchanges[0].etag);
    let sent: Value = serde_json::from_slice(&exchanges[1].body).unwrap();
    assert_eq!(sent["context"], context);

    // A flag that needs a targeting key does not affect the others.
    page.send(&json!({"command": "setContext", "context": {}})).await;
    let details = page.evaluate("new-checkout", "boolean", json!(true), Value::Null).await;
    assert_eq!(details.failed(), (&json!(true), "TARGETING_KEY_MISSING"));
    let details = page.evaluate("checkout", "boolean", json!(false), Value::Null).await;
    assert_eq!(details.served(), (&json!(true), &json!("on"), "STATIC"));
}

pub(super) async fn web_sdk_polls_with_its_entity_tag(stack: &Stack) {
    let proxy = RecordingProxy::start(&stack.base_url).await;
    let mut page = Program::start(WEB, &proxy.base_url, &stack.key);
    assert_eq!(start_page(&mut page, json!({"targetingKey": "user-1"}), 200).await, "READY");

    // Without changes, polls send the first entity tag and get 304.
    let exchanges = until(&proxy, |exchanges| exchanges.len() >= 4).await;
    let [first, polls @ ..] = exchanges.as_slice() else { unreachable!() };
    assert_eq!((first.status, &first.if_none_match), (200, &None));
    for poll in polls {
        assert_eq!((poll.status, poll.response_body.as_str()), (304, ""));
        assert!(first.etag.is_some());
        assert_eq!((&poll.if_none_match, &poll.etag), (&first.etag, &first.etag));
    }
    let details = page.evaluate("new-checkout", "boolean", json!(false), Value::Null).await;
    assert_eq!(details.served(), (&json!(true), &json!("on"), "SPLIT"));

    // Only the changed flag is reported.
    update(stack, "new-checkout", &json!({"enabled": false})).await;
    let event = page.send(&json!({"command": "nextEvent"})).await;
    let reported = (&event["type"], &event["flagsChanged"]);
    assert_eq!(reported, (&json!("PROVIDER_CONFIGURATION_CHANGED"), &json!(["new-checkout"])));
    let details = page.evaluate("new-checkout", "boolean", json!(true), Value::Null).await;
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

pub(super) async fn web_sdk_backs_off_and_resumes(stack: &Stack) {
    let proxy = RecordingProxy::start(&stack.base_url).await;
    let mut page = Program::start(WEB, &proxy.base_url, &stack.key);
    assert_eq!(start_page(&mut page, json!({"targetingKey": "user-1"}), 200).await, "READY");
    proxy.reject_next("3");
    let event = page.send(&json!({"command": "nextEvent"})).await;
    assert_eq!(event["type"], "PROVIDER_STALE");
    // The provider continues to serve its flags.
    let details = page.evaluate("checkout", "boolean", json!(false), Value::Null).await;
    assert_eq!(details.served(), (&json!(true), &json!("on"), "STATIC"));

    let is_rejected = |exchange: &Exchange| exchange.status == 429;
    let exchanges = until(&proxy, |all| {
        all.iter().position(is_rejected).is_some_and(|rejected| all.len() > rejected + 1)
    })
    .await;
    let rejected = exchanges.iter().position(is_rejected).unwrap();
    let (rejected, next) = (&exchanges[rejected], &exchanges[rejected + 1]);
    let pause = next.at.duration_since(rejected.at);
    assert!(pause >= Duration::from_millis(2_990), "{pause:?}");
    assert_eq!(next.status, 304);

    let mut unauthenticated = Program::start(WEB, &stack.base_url, &format!("{}x", stack.key));
    let status = start_page(&mut unauthenticated, json!({"targetingKey": "user-1"}), 0).await;
    assert_eq!(status, "FATAL");
    let details = unauthenticated.evaluate("checkout", "boolean", json!(false), Value::Null).await;
    assert_eq!(details.failed(), (&json!(false), "PROVIDER_FATAL"));
}

/// Only a browser checks the preflight request, the request headers `x-api-key` and
/// `if-none-match`, and access to `etag`. Without `etag`, each poll would get a full response.
pub(super) async fn web_sdk_in_chromium_polls_across_origins(stack: &Stack) {
    let proxy = RecordingProxy::start(&stack.base_url).await;
    let mut page = Program::start(CHROMIUM, &proxy.base_url, &stack.key);
    let ada = json!({"targetingKey": "user-1", "email": "ada@example.com"});
    assert_eq!(start_page(&mut page, ada, 200).await, "READY");
    let details = page.evaluate("banner", "string", json!(""), Value::Null).await;
    assert_eq!(details.served(), (&json!("Hi\n\"you\""), &json!("internal"), "TARGETING_MATCH"));

    // The preflight request, the response, and then only 304. An automated browser does not cache
    // preflight responses.
    let is_not_preflight = |exchange: &&Exchange| exchange.status != 204;
    let exchanges = until(&proxy, |all| all.iter().filter(is_not_preflight).count() >= 4).await;
    assert_eq!(exchanges[0].status, 204, "{exchanges:?}");
    let polls: Vec<Exchange> = exchanges.iter().filter(is_not_preflight).cloned().collect();
    assert_eq!(statuses(&polls)[..4], [200, 304, 304, 304]);
    let tag = &polls[0].etag;
    assert!(tag.is_some() && polls[1..4].iter().all(|poll| poll.if_none_match == *tag));

    update(stack, "checkout", &json!({"enabled": false})).await;
    let change = page.send(&json!({"command": "nextChange"})).await;
    assert_eq!(change, json!({"flagsChanged": ["checkout"]}));
    let details = page.evaluate("checkout", "boolean", json!(true), Value::Null).await;
    assert_eq!(details.served(), (&json!(false), &json!("off"), "DISABLED"));

    // With the same key, the provider first serves flags from the browser's storage.
    let other = json!({"targetingKey": "user-2", "email": "ada@example.org"});
    page.send(&json!({"command": "setContext", "context": other})).await;
    let details = page.evaluate("banner", "string", json!(""), Value::Null).await;
    assert_eq!(details.served(), (&json!("Hello"), &json!("plain"), "DEFAULT"));
    // The browser's messages would show blocked access.
    assert_eq!(page.send(&json!({"command": "end"})).await, json!({"messages": []}));
}
