//! exchange-console-code: single-use links to the console.

use std::time::Duration;

use serde_json::{Value, json};
use shared::http::Method;
use shared::projects::api_key::ApiKey;
use shared::projects::console_code::{CODE_LIFETIME, ConsoleCode};
use tests::app::TestApp;
use tests::call::{Call, Reply};
use tests::contract;

async fn exchange(test: &TestApp, body: &Value) -> Reply {
    let call = Call::of(&serve_console::OPERATION).method(Method::POST);
    let reply = call.path("/v0/console-codes/exchange").json(body).send(&test.app).await;
    contract::check("exchange-console-code", &reply);
    reply
}

/// Stores the test's key under a new code, like `waymark console`.
async fn issue(test: &TestApp) -> ConsoleCode {
    let (key, code) = (ApiKey::parse(&test.key).unwrap(), ConsoleCode::generate().unwrap());
    let expires_at = test.app.clock.now().plus(CODE_LIFETIME);
    test.app.store.put_console_code(&code, &key, expires_at).await.unwrap();
    code
}

fn assert_unusable(reply: &Reply) {
    assert_eq!(reply.problem(), (400, "validation_failed"), "{}", reply.body);
    assert_eq!(reply.body["errors"][0]["pointer"], "/code");
}

#[tokio::test]
async fn codes_return_their_key_once() {
    let test = TestApp::start().await;
    let code = issue(&test).await;
    let stored = format!("{:?}", test.items("idempotency").await);
    assert!(stored.contains("console-code#"), "{stored}");
    for secret in [&code.reveal(), &test.key] {
        assert!(!stored.contains(secret.as_str()), "{stored}");
    }

    let body = json!({"code": code.reveal()});
    let reply = exchange(&test, &body).await;
    assert_eq!((reply.status, &reply.body), (200, &json!({"apiKey": test.key})));
    assert_eq!(reply.headers["cache-control"], "no-store");
    assert_unusable(&exchange(&test, &body).await);
    assert!(test.items("idempotency").await.is_empty(), "the code leaves an item");
}

#[tokio::test]
async fn concurrent_exchanges_return_a_key_once() {
    let test = TestApp::start().await;
    let body = json!({"code": issue(&test).await.reveal()});
    let all = futures_util::future::join_all((0..8).map(|_| exchange(&test, &body))).await;
    let keys = all.iter().filter(|reply| reply.status == 200).count();
    assert_eq!(keys, 1, "{all:?}");
}

#[tokio::test]
async fn expired_codes_return_no_key() {
    let test = TestApp::start().await;
    let body = json!({"code": issue(&test).await.reveal()});
    test.pass(CODE_LIFETIME);
    assert_unusable(&exchange(&test, &body).await);
    let later = json!({"code": issue(&test).await.reveal()});
    test.pass(CODE_LIFETIME.saturating_sub(Duration::from_secs(2)));
    assert_eq!(exchange(&test, &later).await.status, 200);
}

#[tokio::test]
async fn wrong_codes_cost_one_read_and_malformed_ones_none() {
    let test = TestApp::start().await;
    let code = issue(&test).await;
    let wrong = ConsoleCode::generate().unwrap().reveal();
    for (text, round_trips) in [(wrong.as_str(), 1), (&code.reveal()[..91], 0), ("", 0)] {
        test.round_trips();
        assert_unusable(&exchange(&test, &json!({"code": text})).await);
        assert_eq!(test.round_trips(), round_trips, "{text}");
    }
    assert_eq!(exchange(&test, &json!({"code": code.reveal()})).await.status, 200);
}
