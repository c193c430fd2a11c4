//! Concurrent writes over a network that loses, delays and rejects requests, while other clients
//! change, delete and recreate the same item. No executed write is reported as rejected, and none
//! is executed twice (docs/data-model.md, "Idempotent writes").
//!
//! `WRITES` sets the number of contended writes per test, `SEED` the random choices.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
#![allow(clippy::print_stdout)] // Prints the outcomes of all writes.

mod faults;
mod kills;
mod network;
mod verdict;

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use aws_sdk_dynamodb::types::AttributeValue;
use futures_util::future::join_all;
use network::{Item, Network};
use rand::rngs::ChaCha8Rng;
use rand::{RngExt, SeedableRng};
use serde_json::json;
use verdict::{ExpectedItem, Operation as CompletedOperation, judge};

use shared::app::Operation;
use tests::app::TestApp;
use tests::call::Call;
use tests::errors::{SentEvent, delivery, project};
use tests::preferences::TYPES;
use tests::seed;

/// Fault rates in percent on the lines of clients. The last clients are rivals without faults.
const LINES: [u32; 6] = [1, 10, 30, 30, 0, 0];
/// Number of writes per test, unless `WRITES` is set.
const WRITES: usize = 250;
/// Maximum number of rounds until a write was overtaken, as two or three of 250 are.
const MAX_ROUNDS: u64 = 6;

fn item<const N: usize>(attributes: [(&str, &str); N]) -> Item {
    attributes.map(|(name, value)| (name.to_owned(), AttributeValue::S(value.to_owned()))).into()
}

/// The next step of a client: a call, and the expected item after its execution.
type Step = (Call, ExpectedItem);

/// Lets clients on all lines do one step after another, and judges the history. Repeats if by
/// chance no write was overtaken, since that tests little.
async fn contend(
    network: &Arc<Network>,
    seed: u64,
    next: impl AsyncFn(&mut ChaCha8Rng, usize) -> Step,
) {
    let writes = std::env::var("WRITES").map_or(WRITES, |writes| writes.parse().unwrap());
    let mut done = Vec::new();
    for round in 1..=MAX_ROUNDS {
        done.extend(work(network, writes, seed ^ round << 16, &next).await);
        // Late requests arrive.
        tokio::time::sleep(Duration::from_millis(1_500)).await;
        let history = network.history.lock().await;
        let verdict = judge(&history, &done);
        println!("seed {seed}: {verdict}");
        assert!(verdict.faults.is_empty(), "SEED={seed}: {:#?}", verdict.faults);
        assert_eq!(verdict.writes as u64, round * writes as u64);
        if verdict.overtaken > 0 {
            return;
        }
    }
    panic!("no write was overtaken in {} writes", done.len());
}

/// Sends this number of writes on all lines together.
async fn work(
    network: &Arc<Network>,
    writes: usize,
    seed: u64,
    next: &impl AsyncFn(&mut ChaCha8Rng, usize) -> Step,
) -> Vec<CompletedOperation> {
    let left = AtomicUsize::new(writes);
    let is_left = || {
        let one_less = |left: usize| left.checked_sub(1);
        left.fetch_update(Ordering::Relaxed, Ordering::Relaxed, one_less).is_ok()
    };
    let work = async |number: u64, percent: u32| {
        let line = network.line(percent).await;
        let mut rng = ChaCha8Rng::seed_from_u64(seed ^ (number + 1) << 32);
        let mut done = Vec::new();
        while is_left() {
            let marker = rng.random_range(0..usize::MAX);
            let (call, expected) = next(&mut rng, marker).await;
            let (number, reply) = network.run(&line, call.send(&line.app)).await;
            done.push(CompletedOperation {
                number,
                status: reply.status,
                reply: reply.text,
                expected,
            });
        }
        done
    };
    let all = (0..).zip(LINES).map(|(number, percent)| work(number, percent));
    join_all(all).await.into_iter().flatten().collect()
}

fn text<'a>(item: Option<&'a Item>, attribute: &str) -> Option<&'a str> {
    item?.get(attribute)?.as_s().ok().map(String::as_str)
}

mod flags {
    use super::*;

    const CREATE: &Operation = &create_feature_flag::OPERATION;
    const GET: &Operation = &get_feature_flag::OPERATION;
    const UPDATE: &Operation = &update_feature_flag::OPERATION;
    const DELETE: &Operation = &delete_feature_flag::OPERATION;

    /// Adds a condition on the version that was read to half of the changes.
    fn maybe_conditional(call: Call, version: &serde_json::Value, rng: &mut ChaCha8Rng) -> Call {
        if rng.random_range(0..2) == 0 {
            return call;
        }
        call.header("if-match", &format!("\"{version}\""))
    }

    #[tokio::test(flavor = "multi_thread")]
    async fn flag_writes_happen_once_or_are_rejected() {
        let (test, seed) = (TestApp::start().await, seed());
        let network = Network::in_front_of(&test.engine.endpoint(), seed);
        let project = test.project_id.to_string();
        network.watch("feature-flags", item([("projectId", &project), ("key", "contended")])).await;
        let test = &test;
        let of = |operation| {
            let call = test.call(operation);
            call.parameter("key", "contended")
        };
        contend(&network, seed, async move |rng: &mut ChaCha8Rng, marker: usize| -> Step {
            let flag = of(GET).send(&test.app).await;
            let marker = marker.to_string();
            if flag.status == 404 {
                let body = json!({
                    "key": "contended", "name": "n", "type": "boolean", "description": marker,
                });
                let call = test.call(CREATE);
                let expected: ExpectedItem =
                    Box::new(move |it| text(it, "description") == Some(&*marker));
                return (call.json(&body), expected);
            }
            let version = &flag.body["version"];
            let is_archived = !flag.body["archivedAt"].is_null();
            let (patch, expected): (_, ExpectedItem) = match (is_archived, rng.random_range(0..4)) {
                (true, 0 | 1) => {
                    let call = maybe_conditional(of(DELETE), version, rng);
                    return (call, Box::new(|it| it.is_none()));
                }
                (true, _) => (
                    json!({"archived": false}),
                    Box::new(|it| it.is_some() && text(it, "archivedAt").is_none()),
                ),
                (false, 0) => {
                    (json!({"archived": true}), Box::new(|it| text(it, "archivedAt").is_some()))
                }
                (false, _) => (
                    json!({"description": marker}),
                    Box::new(move |it| text(it, "description") == Some(&*marker)),
                ),
            };
            (maybe_conditional(of(UPDATE).json(&patch), version, rng), expected)
        })
        .await;
    }
}

mod errors {
    use super::*;

    const GET: &Operation = &get_error::OPERATION;
    const LIST: &Operation = &list_errors::OPERATION;
    const UPDATE: &Operation = &update_error::OPERATION;

    #[tokio::test(flavor = "multi_thread")]
    async fn error_updates_happen_once_while_events_reopen_it() {
        let (test, seed) = (TestApp::start().await, seed());
        let network = Network::in_front_of(&test.engine.endpoint(), seed);
        let clean = network.direct_app();
        let project = project(&test.app.store, test.project_id).await;
        let event = |number: u64| {
            let now = clean.clock.now();
            delivery(&project, &SentEvent::new(number, now, "TypeError", "x is not a function"))
        };
        let of = |operation| test.call(operation);
        assert_eq!(event(0).send(&clean).await.status, 200);
        let list = of(LIST).send(&clean).await;
        assert_eq!(list.status, 200, "{}", list.text);
        let id = list.body["items"][0]["errorId"].as_str().unwrap().to_owned();
        let key = item([("pk", &format!("errors#{}", test.project_id)), ("sk", &id)]);
        network.watch("errors", key).await;
        let (event, of, id, clean) = (&event, &of, &id, &clean);
        contend(&network, seed, async move |rng: &mut ChaCha8Rng, marker: usize| -> Step {
            if rng.random_range(0..4) == 0 {
                let expected: ExpectedItem = Box::new(|_| true);
                return (event(marker as u64), expected);
            }
            let error = of(GET).parameter("errorId", id).send(clean).await;
            let other = |status: &&&str| error.body["status"] != **status;
            let others: Vec<&str> =
                ["open", "resolved", "ignored"].iter().filter(other).copied().collect();
            let status = others[rng.random_range(0..2)];
            let mut call = of(UPDATE).parameter("errorId", id).json(&json!({ "status": status }));
            if rng.random_range(0..2) == 0 {
                call = call.header("if-match", error.headers["etag"].to_str().unwrap());
            }
            let expected: ExpectedItem = Box::new(move |it| text(it, "status") == Some(status));
            (call, expected)
        })
        .await;
    }
}

mod notifications {
    use super::*;

    const UPDATE: &Operation = &update_email_preferences::OPERATION;

    #[tokio::test(flavor = "multi_thread")]
    async fn preference_updates_happen_once_and_in_order() {
        let (test, seed) = (TestApp::start().await, seed());
        let network = Network::in_front_of(&test.engine.endpoint(), seed);
        network.watch("email-preferences", item([("userId", "default/owner")])).await;
        let key = &test.key;
        contend(&network, seed, async move |rng: &mut ChaCha8Rng, _: usize| -> Step {
            let mut choices = Vec::new();
            for name in &TYPES[..4] {
                if choices.is_empty() || rng.random_range(0..2) == 0 {
                    choices.push((*name, rng.random_range(0..2) == 0));
                }
            }
            let update: Vec<_> = choices
                .iter()
                .map(|(name, enabled)| json!({"type": name, "emailEnabled": enabled}))
                .collect();
            let call = Call::of(UPDATE).key(key).json(&json!({ "preferences": update }));
            let expected: ExpectedItem = Box::new(move |it| {
                let is = |name: &str| it?.get(name)?.as_bool().ok().copied();
                choices.iter().all(|(name, enabled)| is(name) == Some(*enabled))
            });
            (call, expected)
        })
        .await;
    }
}
