//! Requests without credentials at the limit of the machine, beside some with: all of those are carried out, and
//! wait at most twice as long as beside as many others who have credentials. Seconds beside strangers and beside
//! others take turns, so that what else the machine does slows both alike. `STRANGERS_SECONDS` has it last longer.

#![allow(clippy::print_stdout)]

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use futures_util::future::join_all;
use reqwest::RequestBuilder;
use serde_json::json;

use shared::app::Clock;
use shared::projects::api_key::ApiKey;
use tests::app::PROJECT;
use tests::errors::{SentEvent, project};
use tests::latency::percentiles;
use tests::stack::Stack;

/// How many strangers ask as fast as they are answered: more than there are cores.
const STRANGERS: u32 = 6;
/// The bytes of a body that is not what it says, of which nothing is to be decompressed. More of them would keep the
/// local gateway busy, which has to hand them over.
const LARGE: usize = 50_000;
/// How long each turn lasts.
const TURN: Duration = Duration::from_secs(1);
/// How many seconds there are of both kinds together, unless `STRANGERS_SECONDS` says it.
const SECONDS: u32 = 6;

/// What is asked.
struct Target<'s> {
    stack: &'s Stack,
    ingestion: String,
    events: AtomicU64,
}

impl Target<'_> {
    fn evaluation(&self) -> RequestBuilder {
        let path = format!("/v0/project/{PROJECT}/ofrep/v1/evaluate/flags/checkout");
        let request = self.stack.http.post(format!("{}{path}", self.stack.base_url));
        request.json(&json!({"context": {"targetingKey": "user-1"}}))
    }

    fn delivery(&self, key: &str) -> RequestBuilder {
        let number = self.events.fetch_add(1, Ordering::Relaxed);
        let event = SentEvent::new(number, Clock::System.now(), "TypeError", "x");
        let url = format!("{}{}?sentry_key={key}", self.stack.base_url, self.ingestion);
        self.stack.http.post(url).body(event.envelope())
    }

    /// Asks without credentials until `is_over`, and answers how often.
    async fn ask_as_stranger(&self, first: u32, is_over: &AtomicBool) -> u32 {
        let large = vec![b'x'; LARGE];
        let mut asked = 0;
        while !is_over.load(Ordering::Relaxed) {
            let made_up = ApiKey::generate().unwrap().reveal();
            let (request, expected) = match (first + asked) % 5 {
                0 => (self.evaluation(), 401),
                1 => (self.evaluation().header("x-api-key", "wm_nonsense"), 401),
                2 => (self.evaluation().header("x-api-key", made_up), 401),
                3 => (self.delivery(&format!("{:032x}", first * 1_000_000 + asked)), 403),
                _ => {
                    let delivery = self.delivery(&"f".repeat(32)).body(large.clone());
                    (delivery.header("content-encoding", "gzip"), 403)
                }
            };
            let answer = request.send().await.unwrap();
            assert_eq!(answer.status(), expected, "{}", answer.text().await.unwrap());
            answer.bytes().await.unwrap();
            asked += 1;
        }
        asked
    }

    /// Asks with credentials until `is_over`, and answers how long each took.
    async fn ask(&self, dsn_key: &str, is_over: &AtomicBool) -> Vec<Duration> {
        let mut latencies = Vec::new();
        while !is_over.load(Ordering::Relaxed) {
            let evaluation = self.evaluation().header("x-api-key", &self.stack.key);
            for request in [evaluation, self.delivery(dsn_key)] {
                let started = Instant::now();
                let answer = request.send().await.unwrap();
                assert_eq!(answer.status(), 200, "{}", answer.text().await.unwrap());
                answer.bytes().await.unwrap();
                latencies.push(started.elapsed());
            }
        }
        latencies
    }

    /// A turn beside so many others with credentials, and so many strangers: how long one's requests with
    /// credentials took, and how many there were without.
    async fn turn(&self, dsn_key: &str, others: u32, strangers: u32) -> (Vec<Duration>, u32) {
        let is_over = AtomicBool::new(false);
        let time = async {
            tokio::time::sleep(TURN).await;
            is_over.store(true, Ordering::Relaxed);
        };
        let strangers = (0..strangers).map(|first| self.ask_as_stranger(first, &is_over));
        let others = (0..others).map(|_| self.ask(dsn_key, &is_over));
        let (latencies, refused, _, ()) =
            tokio::join!(self.ask(dsn_key, &is_over), join_all(strangers), join_all(others), time);
        (latencies, refused.into_iter().sum())
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn requests_without_credentials_push_out_none_that_have_them() {
    let seconds = std::env::var("STRANGERS_SECONDS").map_or(SECONDS, |it| it.parse().unwrap());
    let stack = Stack::start().await;
    let project = project(&stack.store, stack.project_id).await;
    let dsn_key = project.public_key.to_string();
    let ingestion = format!("/api/{}/envelope/", project.ingest_id);
    let target = Target { stack: &stack, ingestion, events: AtomicU64::new(0) };
    let flag = json!({"key": "checkout", "name": "Checkout", "type": "boolean"});
    let url = format!("{}/v0/project/{PROJECT}/feature-flags", stack.base_url);
    let made =
        stack.http.post(url).header("x-api-key", &stack.key).json(&flag).send().await.unwrap();
    assert_eq!(made.status(), 201);
    // Functions start when they are asked for the first time, and as many of them as are asked at once.
    target.turn(&dsn_key, STRANGERS, 0).await;
    target.turn(&dsn_key, 0, STRANGERS).await;

    let (mut beside_others, mut beside_strangers, mut refused) = (Vec::new(), Vec::new(), 0);
    for _ in 0..seconds / 2 {
        beside_others.append(&mut target.turn(&dsn_key, STRANGERS, 0).await.0);
        let (mut latencies, count) = target.turn(&dsn_key, 0, STRANGERS).await;
        beside_strangers.append(&mut latencies);
        refused += count;
    }
    let [count_beside_others, count_beside_strangers] =
        [beside_others.len(), beside_strangers.len()];
    let [beside_others, beside_strangers] = [beside_others, beside_strangers]
        .map(|mut latencies| percentiles(&mut latencies, [50, 95]));
    println!(
        "{beside_others:?} for half and 95 % of {count_beside_others} beside {STRANGERS} others; \
         {beside_strangers:?} of {count_beside_strangers} beside {refused} without credentials, of as many strangers"
    );
    for (strangers, others) in beside_strangers.into_iter().zip(beside_others) {
        assert!(
            strangers <= others * 2,
            "{others:?} beside others, and {strangers:?} beside strangers"
        );
    }
}
