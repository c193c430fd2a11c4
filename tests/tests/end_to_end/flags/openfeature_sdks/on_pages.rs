//! The SDK of web pages, which asks for all flags of a context at once.

use std::time::{Duration, Instant};

use serde_json::{Value, json};
use tests::app::PROJECT;

use crate::recording_proxy::{Exchange, RecordingProxy};

use super::{PATIENCE, Program, stack_with_flags, statuses, update};

const WEB: [&str; 2] = ["node", "node/show_flags.mjs"];

/// The same in Chromium, on a page of another origin.
const CHROMIUM: [&str; 2] = ["node", "browser/show_flags.mjs"];

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
async fn openfeature_web_has_all_flags_of_a_context_with_one_request() {
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
    let sent: Value = serde_json::from_slice(&exchanges[1].body).unwrap();
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
    let told = (&event["type"], &event["flagsChanged"]);
    assert_eq!(told, (&json!("PROVIDER_CONFIGURATION_CHANGED"), &json!(["checkout"])));
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

/// What a browser lets a page send and read, it shows only there: the preflight request, the headers
/// `x-api-key` and `if-none-match`, and `etag`, without which each poll would be answered in full.
#[tokio::test]
async fn openfeature_web_in_chromium_polls_across_origins_and_sees_a_change() {
    tests::browser().expect("Chromium is on the PATH (Debian: apt install chromium)");
    let stack = stack_with_flags().await;
    let proxy = RecordingProxy::start(&stack.base_url).await;
    let mut page = Program::start(CHROMIUM, &proxy.base_url, &stack.key);
    let ada = json!({"targetingKey": "user-1", "email": "ada@example.com"});
    assert_eq!(start_page(&mut page, ada, 200).await, "READY");
    let details = page.evaluate("banner", "string", json!(""), Value::Null).await;
    assert_eq!(details.served(), (&json!("Hi\n\"you\""), &json!("internal"), "TARGETING_MATCH"));

    // Whether it may ask, the answer, and from then on nothing but that it still holds. A browser that is
    // driven forgets each time that it may.
    let is_asked = |exchange: &&Exchange| exchange.status != 204;
    let exchanges = until(&proxy, |all| all.iter().filter(is_asked).count() >= 4).await;
    assert_eq!(exchanges[0].status, 204, "{exchanges:?}");
    let asked: Vec<Exchange> = exchanges.iter().filter(is_asked).cloned().collect();
    assert_eq!(statuses(&asked)[..4], [200, 304, 304, 304]);
    let tag = &asked[0].etag;
    assert!(tag.is_some() && asked[1..4].iter().all(|poll| poll.if_none_match == *tag));

    update(&stack, "checkout", &json!({"enabled": false})).await;
    let change = page.ask(&json!({"command": "nextChange"})).await;
    assert_eq!(change, json!({"flagsChanged": ["checkout"]}));
    let details = page.evaluate("checkout", "boolean", json!(true), Value::Null).await;
    assert_eq!(details.served(), (&json!(false), &json!("off"), "DISABLED"));

    // Of the same key the provider first shows what the browser has stored.
    let other = json!({"targetingKey": "user-2", "email": "ada@example.org"});
    page.ask(&json!({"command": "setContext", "context": other})).await;
    let details = page.evaluate("banner", "string", json!(""), Value::Null).await;
    assert_eq!(details.served(), (&json!("Hello"), &json!("plain"), "DEFAULT"));
    // What a browser keeps from a page, it tells there.
    assert_eq!(page.ask(&json!({"command": "end"})).await, json!({"messages": []}));
}
