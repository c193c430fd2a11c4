//! Costs of rejecting unauthenticated clients: requests to DynamoDB, and CPU time.

#![allow(clippy::print_stdout)]

use std::time::Duration;

use serde_json::json;

use shared::app::Access;
use shared::projects::api_key::ApiKey;
use shared::projects::project::Project;
use shared::usage::counted;
use tests::app::{PROJECT, TestApp};
use tests::call::Call;
use tests::errors::{SentEvent, project};
use tests::operation_specs::OPERATION_SPECS;
use tests::proxy::Recorder;

/// Repetitions of each request for the median duration.
const REPETITIONS: usize = 40;

/// Returns malformed keys, which are rejected without a request to DynamoDB.
fn malformed_keys() -> Vec<String> {
    let valid = ApiKey::generate().unwrap().reveal();
    let (start, last) = valid.split_at(valid.len() - 1);
    let wrong_checksum = format!("{start}{}", if last == "0" { "1" } else { "0" });
    vec![wrong_checksum, start.to_owned(), "x".repeat(7_000), "wm_".to_owned()]
}

/// Returns a well-formed key that does not exist.
fn unknown_key() -> String {
    ApiKey::generate().unwrap().reveal()
}

/// Returns a key with an existing id and another secret.
fn with_another_secret(key: &str) -> String {
    let id_end = "wm_".len() + 16;
    let start = format!("{}{}", &key[..id_end], &unknown_key()[id_end..id_end + 44]);
    let checksum = crc32fast::hash(start.as_bytes());
    let digits = b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";
    let digit = |power: u32| char::from(digits[(checksum / 62_u32.pow(power) % 62) as usize]);
    start + &(0..6).rev().map(digit).collect::<String>()
}

/// Returns a test app behind a recorder of its DynamoDB requests.
async fn recorded() -> (TestApp, Recorder) {
    let mut test = TestApp::start().await;
    let recorder = Recorder::before(&test.engine.endpoint());
    test.put_behind(recorder.clone()).await;
    (test, recorder)
}

fn requests(recorder: &Recorder) -> Vec<String> {
    recorder.take().iter().map(ToString::to_string).collect()
}

/// For each operation with API keys: missing and malformed keys cause no request. A made-up key
/// causes one request for at most two items, and none when it is repeated.
#[tokio::test]
async fn made_up_keys_cost_at_most_one_read() {
    let (test, recorder) = recorded().await;
    // The limits of the stack are read once a minute.
    let me = Call::of(&get_caller::OPERATION);
    assert_eq!(me.key(&test.key).send(&test.app).await.status, 200);
    recorder.take();
    let mut operations = 0;
    for described in OPERATION_SPECS.iter() {
        if matches!(described.operation.access, Access::Dsn(_) | Access::Public(_)) {
            continue;
        }
        operations += 1;
        let id = described.id;
        let call = described.call();
        let has_project = described.path.contains("{idOrSlug}");
        let call = if has_project { call.parameter("idOrSlug", "unknown") } else { call };
        // Bodies for Sentry's tools have no codes.
        let rejected = |code| (401, if described.path.starts_with("/api/0/") { "" } else { code });
        let reply = call.clone().send(&test.app).await;
        assert_eq!(reply.problem(), rejected("missing_api_key"), "{id}");
        for key in malformed_keys() {
            let reply = call.clone().key(&key).send(&test.app).await;
            assert_eq!(reply.problem(), rejected("invalid_api_key"), "{id}");
        }
        assert_eq!(requests(&recorder), [""; 0], "{id}");
        let expected =
            if has_project { "BatchGetItem api-keys projects" } else { "BatchGetItem api-keys" };
        let units = if has_project { 2.0 } else { 1.0 };
        let made_up = call.clone().key(&unknown_key());
        for (expected, units) in [(&[expected][..], units), (&[], 0.0)] {
            let (reply, usage) = counted(made_up.clone().send(&test.app)).await;
            assert_eq!(reply.problem(), rejected("invalid_api_key"), "{id}");
            assert_eq!(requests(&recorder), expected, "{id}");
            assert!((usage.read_units - units).abs() < f64::EPSILON, "{id}: {usage:?}");
        }
    }
    assert!(operations > 30, "{operations}");
    // After a minute, the key is read again.
    test.pass(Duration::from_mins(1));
    let me = Call::of(&get_caller::OPERATION);
    let key = unknown_key();
    for expected in [1, 0] {
        assert_eq!(me.clone().key(&key).send(&test.app).await.status, 401);
        assert_eq!(requests(&recorder).len(), expected);
    }
    test.pass(Duration::from_mins(1));
    assert_eq!(me.key(&key).send(&test.app).await.status, 401);
    assert_eq!(requests(&recorder).len(), 1);
}

/// Wrong secrets for a known key id also cause no reads, for any project.
#[tokio::test]
async fn wrong_secrets_of_known_keys_cause_no_reads() {
    let (test, recorder) = recorded().await;
    let list = |slug: &str| Call::of(&list_errors::OPERATION).parameter("idOrSlug", slug);
    assert_eq!(list(PROJECT).key(&test.key).send(&test.app).await.status, 200);
    recorder.take();
    for slug in [PROJECT, "unknown"] {
        let reply = list(slug).key(&with_another_secret(&test.key)).send(&test.app).await;
        assert_eq!(reply.problem(), (401, "invalid_api_key"));
        assert_eq!(requests(&recorder), [""; 0], "{slug}");
    }
    assert_eq!(list(PROJECT).key(&test.key).send(&test.app).await.status, 200);
}

/// Made-up ids evict no existing keys, of which a thousand are cached.
#[tokio::test]
async fn made_up_keys_displace_no_known_ones() {
    let (test, recorder) = recorded().await;
    let me = Call::of(&get_caller::OPERATION);
    assert_eq!(me.clone().key(&test.key).send(&test.app).await.status, 200);
    for _ in 0..1_010 {
        assert_eq!(me.clone().key(&unknown_key()).send(&test.app).await.status, 401);
    }
    recorder.take();
    let reply = me.key(&test.key).send(&test.app).await;
    assert_eq!(reply.status, 200);
    assert!(requests(&recorder).iter().all(|it| !it.contains("api-keys")), "the key is not cached");
}

/// Returns a delivery with a key in the query.
fn delivery(project: &Project, event: &SentEvent, key: &str) -> Call {
    let call = Call::of(&ingest_error_events::OPERATION).parameter("ingestId", project.ingest_id);
    call.query("sentry_key", key).bytes(event.envelope())
}

#[tokio::test]
async fn made_up_dsns_cost_at_most_one_read() {
    let (test, recorder) = recorded().await;
    let project = project(&test.app.store, test.project_id).await;
    let event = SentEvent::new(1, test.app.clock.now(), "TypeError", "x");
    let of = |key: &str| delivery(&project, &event, key);
    // The limits of the stack are read once a minute.
    assert_eq!(of(&project.public_key.to_string()).send(&test.app).await.status, 200);
    recorder.take();
    for malformed in ["", "x", &"f".repeat(33)] {
        assert_eq!(of(malformed).send(&test.app).await.status, 403);
    }
    for id in ["x", "99999999999999999999999", "-1"] {
        let call = of(&project.public_key.to_string()).parameter("ingestId", id);
        assert_eq!(call.send(&test.app).await.status, 403);
    }
    assert_eq!(requests(&recorder), [""; 0]);
    let other = of(&"f".repeat(32)).parameter("ingestId", 424_242);
    for made_up in [of(&"f".repeat(32)), of(&"e".repeat(32)), other] {
        for expected in [&["GetItem projects"][..], &[]] {
            assert_eq!(made_up.clone().send(&test.app).await.status, 403);
            assert_eq!(requests(&recorder), expected);
        }
    }
    assert_eq!(of(&project.public_key.to_string()).send(&test.app).await.status, 200);
}

/// Returns the median CPU time of the function's thread for several similar requests.
async fn cost(test: &TestApp, status: u16, call: impl Fn(usize) -> Call) -> Duration {
    let mut times = Vec::with_capacity(REPETITIONS);
    for number in 0..REPETITIONS {
        let call = call(number);
        let (response, spent) = call.timed(&test.app, &call.event().to_string()).await;
        times.push(spent);
        assert_eq!(response.status().as_u16(), status);
    }
    times.sort_unstable();
    times[REPETITIONS / 2]
}

/// A rejected request costs less than the cheapest successful request of the operation, whatever
/// its content.
#[tokio::test]
async fn rejections_cost_less_than_accepted_requests() {
    let test = TestApp::start().await;
    let project = project(&test.app.store, test.project_id).await;
    let made_at = test.app.clock.now();
    let event = |number: usize| SentEvent::new(number as u64, made_at, "TypeError", "x");
    let known = project.public_key.to_string();
    let accepted = cost(&test, 200, |number| delivery(&project, &event(number), &known)).await;
    let made_up = |number: usize| format!("{:032x}", number + 1);
    let new = cost(&test, 403, |number| delivery(&project, &event(number), &made_up(number))).await;
    let again = cost(&test, 403, |number| delivery(&project, &event(number), &made_up(1))).await;
    let large = vec![b'x'; 1_000_000];
    let bomb = cost(&test, 403, |_| {
        let call = delivery(&project, &event(1), &made_up(1)).header("content-encoding", "gzip");
        call.bytes(large.clone())
    })
    .await;
    println!(
        "a delivery {accepted:?}; with a made-up key {new:?}, again {again:?}, of 1 MB {bomb:?}"
    );
    assert!(new < accepted && again * 4 < accepted, "{accepted:?} {new:?} {again:?}");

    let create = |_| {
        let call = Call::of(&create_feature_flag::OPERATION).parameter("idOrSlug", PROJECT);
        call.json(&json!({"key": "beta", "name": "Beta", "type": "boolean"}))
    };
    assert_eq!(create(0).key(&test.key).send(&test.app).await.status, 201);
    // The creating transaction detects that the flag exists.
    let exists = cost(&test, 409, |number| create(number).key(&test.key)).await;
    let update = |number| {
        let call = Call::of(&update_feature_flag::OPERATION).parameter("idOrSlug", PROJECT);
        call.parameter("key", "beta").json(&json!({"enabled": number % 2 == 0}))
    };
    let changed = cost(&test, 200, |number| update(number).key(&test.key)).await;
    let new = cost(&test, 401, |number| update(number).key(&unknown_key())).await;
    let key = unknown_key();
    let again = cost(&test, 401, |number| update(number).key(&key)).await;
    let none = cost(&test, 401, update).await;
    println!(
        "a flag change {changed:?}, a rejected creation {exists:?}; with a made-up key {new:?}, \
         again {again:?}, without one {none:?}"
    );
    assert!(new < changed && again * 4 < changed && none * 4 < changed);
}
