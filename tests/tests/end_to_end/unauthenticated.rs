//! Unauthenticated requests at the machine's limit, next to a caller with credentials. The caller's
//! requests succeed, and take at most twice as long as next to equally many clients with
//! credentials. Both cases alternate every second, so that other load affects both.
//! `STRANGERS_SECONDS` extends the test.

#![allow(clippy::print_stdout)]

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use futures_util::future::join_all;
use reqwest::{Method, RequestBuilder};
use serde_json::json;

use shared::app::Clock;
use shared::projects::api_key::ApiKey;
use tests::app::PROJECT;
use tests::errors::{SentEvent, project};
use tests::latency::percentiles;
use tests::stack::Stack;

/// Unauthenticated clients that send requests without pauses: more than there are cores.
const UNAUTHENTICATED: u32 = 6;
/// Bytes of a body with a wrong encoding header, which must not be decompressed. Larger bodies
/// would only load the local gateway, which forwards them: an unoptimized build needs tens of
/// milliseconds for 50 kB.
const LARGE: usize = 5_000;
/// Duration of each turn.
const TURN: Duration = Duration::from_secs(1);
/// Seconds of both cases in total; `STRANGERS_SECONDS` overrides it.
const SECONDS: u32 = 6;

/// The project under load.
struct Target<'s> {
    stack: &'s Stack,
    ingestion: String,
    events: AtomicU64,
}

impl Target<'_> {
    fn evaluation(&self) -> RequestBuilder {
        let path = format!("/v0/project/{PROJECT}/ofrep/v1/evaluate/flags/checkout");
        let request = self.stack.request(Method::POST, &path);
        request.json(&json!({"context": {"targetingKey": "user-1"}}))
    }

    fn delivery(&self, key: &str) -> RequestBuilder {
        let number = self.events.fetch_add(1, Ordering::Relaxed);
        let event = SentEvent::new(number, Clock::System.now(), "TypeError", "x");
        let path = format!("{}?sentry_key={key}", self.ingestion);
        self.stack.request(Method::POST, &path).body(event.envelope())
    }

    /// Sends unauthenticated requests until `is_over`, and returns their number.
    async fn send_unauthenticated(&self, first: u32, is_over: &AtomicBool) -> u32 {
        let large = vec![b'x'; LARGE];
        let mut sent = 0;
        while !is_over.load(Ordering::Relaxed) {
            let made_up = ApiKey::generate().unwrap().reveal();
            let (request, expected) = match (first + sent) % 5 {
                0 => (self.evaluation(), 401),
                1 => (self.evaluation().header("x-api-key", "wm_nonsense"), 401),
                2 => (self.evaluation().header("x-api-key", made_up), 401),
                3 => (self.delivery(&format!("{:032x}", first * 1_000_000 + sent)), 403),
                _ => {
                    let delivery = self.delivery(&"f".repeat(32)).body(large.clone());
                    (delivery.header("content-encoding", "gzip"), 403)
                }
            };
            let response = request.send().await.unwrap();
            assert_eq!(response.status(), expected, "{}", response.text().await.unwrap());
            response.bytes().await.unwrap();
            sent += 1;
        }
        sent
    }

    /// Sends requests with credentials until `is_over`, and returns their latencies.
    async fn send_authenticated(&self, dsn_key: &str, is_over: &AtomicBool) -> Vec<Duration> {
        let mut latencies = Vec::new();
        while !is_over.load(Ordering::Relaxed) {
            let evaluation = self.evaluation().header("x-api-key", &self.stack.key);
            for request in [evaluation, self.delivery(dsn_key)] {
                let started = Instant::now();
                let response = request.send().await.unwrap();
                assert_eq!(response.status(), 200, "{}", response.text().await.unwrap());
                response.bytes().await.unwrap();
                latencies.push(started.elapsed());
            }
        }
        latencies
    }

    /// Runs a turn with `others` clients with credentials and `unauthenticated` ones without.
    /// Returns the caller's latencies and the number of unauthenticated requests.
    async fn turn(&self, dsn_key: &str, others: u32, unauthenticated: u32) -> (Vec<Duration>, u32) {
        let is_over = AtomicBool::new(false);
        let time = async {
            tokio::time::sleep(TURN).await;
            is_over.store(true, Ordering::Relaxed);
        };
        let unauthenticated =
            (0..unauthenticated).map(|first| self.send_unauthenticated(first, &is_over));
        let others = (0..others).map(|_| self.send_authenticated(dsn_key, &is_over));
        let (latencies, rejected, _, ()) = tokio::join!(
            self.send_authenticated(dsn_key, &is_over),
            join_all(unauthenticated),
            join_all(others),
            time
        );
        (latencies, rejected.into_iter().sum())
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn unauthenticated_requests_displace_no_callers() {
    let seconds = std::env::var("STRANGERS_SECONDS").map_or(SECONDS, |it| it.parse().unwrap());
    let stack = Stack::start().await;
    let project = project(&stack.store, stack.project_id).await;
    let dsn_key = project.public_key.to_string();
    let ingestion = format!("/api/{}/envelope/", project.ingest_id);
    let target = Target { stack: &stack, ingestion, events: AtomicU64::new(0) };
    let flag = json!({"key": "checkout", "name": "Checkout", "type": "boolean"});
    let flags = format!("/v0/project/{PROJECT}/feature-flags");
    let created = stack.with_key(Method::POST, &flags).json(&flag).send().await.unwrap();
    assert_eq!(created.status(), 201);
    // Functions start with their first request, in as many processes as there are concurrent
    // requests.
    target.turn(&dsn_key, UNAUTHENTICATED, 0).await;
    target.turn(&dsn_key, 0, UNAUTHENTICATED).await;

    let (mut next_to_others, mut next_to_unauthenticated, mut rejected) =
        (Vec::new(), Vec::new(), 0);
    for _ in 0..seconds / 2 {
        next_to_others.append(&mut target.turn(&dsn_key, UNAUTHENTICATED, 0).await.0);
        let (mut latencies, count) = target.turn(&dsn_key, 0, UNAUTHENTICATED).await;
        next_to_unauthenticated.append(&mut latencies);
        rejected += count;
    }
    let [count_next_to_others, count_next_to_unauthenticated] =
        [next_to_others.len(), next_to_unauthenticated.len()];
    let [next_to_others, next_to_unauthenticated] = [next_to_others, next_to_unauthenticated]
        .map(|mut latencies| percentiles(&mut latencies, [50, 95]));
    println!(
        "{next_to_others:?} (median, p95) of {count_next_to_others} requests next to \
         {UNAUTHENTICATED} others; {next_to_unauthenticated:?} of \
         {count_next_to_unauthenticated} next to {UNAUTHENTICATED} unauthenticated clients with \
         {rejected} requests"
    );
    for (unauthenticated, others) in next_to_unauthenticated.into_iter().zip(next_to_others) {
        assert!(
            unauthenticated <= others * 2,
            "{others:?} next to others, {unauthenticated:?} next to unauthenticated clients"
        );
    }
}
