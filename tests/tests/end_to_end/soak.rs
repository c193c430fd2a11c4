//! Mixed work at the machine's limit: nothing fails, and no function's memory grows.
//! `make soak ONLY=mixed_work` runs it for ten minutes, and prints the latency of each operation.

#![allow(clippy::print_stdout)]

use std::collections::BTreeMap;
use std::env;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use futures_util::future::join_all;
use rand::rngs::ChaCha8Rng;
use rand::{RngExt, SeedableRng};
use reqwest::{Method, RequestBuilder};
use serde_json::{Value, json};

use shared::timestamp::Timestamp;
use tests::app::PROJECT;
use tests::errors::{SentEvent, project};
use tests::insights::upload;
use tests::latency::percentiles;
use tests::seed;
use tests::stack::Stack;

/// Duration in seconds; `SOAK_SECONDS` overrides it.
const SECONDS: u64 = 20;
/// Concurrent clients: more than the processes of any function.
const CLIENTS: u64 = 6;
/// Number of operations.
const OPERATIONS: usize = 11;
/// Number of request slots: mostly evaluations and events, as in production.
const SLOTS: u64 = 22;
/// Slots between consecutive requests. After as many requests as there are slots, each slot was
/// used.
const STRIDE: u64 = 7;
/// Duration after the functions' start before their memory is measured.
const WARM_UP: Duration = Duration::from_secs(3);
/// Allowed memory growth in the second half in bytes, in addition to a quarter of the memory.
const SLACK: u64 = 8 << 20;

/// Latencies by operation.
type Latencies = BTreeMap<&'static str, Vec<Duration>>;

/// The resources that clients use.
struct Work<'s> {
    stack: &'s Stack,
    collection: String,
    ingestion: String,
    insight: String,
    requests: AtomicU64,
}

impl Work<'_> {
    fn request(&self, method: Method, path: &str) -> RequestBuilder {
        self.stack.with_key(method, &path.replace("{project}", PROJECT))
    }

    fn post(&self, path: &str, body: &Value) -> RequestBuilder {
        self.request(Method::POST, path).json(body)
    }

    /// Returns an event of one of twenty errors.
    fn event(&self, number: u64) -> RequestBuilder {
        let kind = format!("Error{}", char::from(b'A' + u8::try_from(number % 20).unwrap_or(0)));
        let event = SentEvent::new(number, now(), &kind, "x");
        let event = event.with("user", &format!("user-{}", number % 1_000));
        self.stack.request(Method::POST, &self.ingestion).body(event.envelope())
    }

    /// Returns the next request.
    fn next(&self, rng: &mut ChaCha8Rng) -> (&'static str, RequestBuilder) {
        let user = rng.random_range(0..1_000);
        let context = json!({"context": {"targetingKey": format!("user-{user}")}});
        let errors = json!({"projectIds": [PROJECT], "from": 0});
        let number = self.requests.fetch_add(1, Ordering::Relaxed);
        match number * STRIDE % SLOTS {
            0..8 => {
                let path = "/v0/project/{project}/ofrep/v1/evaluate/flags/checkout";
                ("evaluate-feature-flag", self.post(path, &context))
            }
            8..10 => {
                let path = "/v0/project/{project}/ofrep/v1/evaluate/flags";
                ("evaluate-feature-flags", self.post(path, &context))
            }
            10..14 => ("ingest-error-events", self.event(number)),
            14 => ("list-errors", self.request(Method::GET, "/v0/projects/{project}/errors")),
            15 => ("query-error-timeseries", self.post("/v0/errors/timeseries/query", &errors)),
            16 => {
                let flags = self.request(Method::GET, "/v0/project/{project}/feature-flags");
                ("list-feature-flags", flags)
            }
            17 => {
                let path = format!(
                    "/v0/projects/{PROJECT}/event-marker-collections/{}/events",
                    self.collection
                );
                let marker = json!({"name": "v1", "occurredAt": now().to_string()});
                ("add-event-markers", self.post(&path, &json!({ "events": [marker] })))
            }
            18 => {
                let path = "/v0/notifications/email-preferences";
                ("get-email-preferences", self.request(Method::GET, path))
            }
            19 => {
                let path = "/v0/project/{project}/feature-flags/checkout";
                let change = json!({"description": number.to_string()});
                ("update-feature-flag", self.request(Method::PATCH, path).json(&change))
            }
            20 => {
                let path = format!("/v0/projects/{PROJECT}/replay-insights/{}", self.insight);
                ("get-insight", self.request(Method::GET, &path))
            }
            _ => {
                let level = json!({
                    "id": "level", "label": "Level", "values": ["error", "warning"],
                    "isNumeric": false, "isBoolean": false, "isArray": false,
                });
                let body = json!({
                    "projectId": PROJECT, "query": "level is error", "currentFilters": [],
                    "categories": [level],
                });
                ("interpret-error-filters", self.post("/v0/errors/filters/interpret", &body))
            }
        }
    }

    /// Works until `end`.
    async fn until(&self, end: Instant, seed: u64) -> Latencies {
        let mut rng = ChaCha8Rng::seed_from_u64(seed);
        let mut latencies = Latencies::new();
        while Instant::now() < end {
            let (operation, request) = self.next(&mut rng);
            let began = Instant::now();
            let response = request.send().await.unwrap();
            let status = response.status();
            let text = response.text().await.unwrap();
            assert!(status.is_success(), "{operation}: {status} {text}");
            latencies.entry(operation).or_default().push(began.elapsed());
        }
        latencies
    }

    /// Runs all clients concurrently until `end`.
    async fn of_all(&self, end: Instant, seed: u64) -> Latencies {
        let clients = (0..CLIENTS).map(|client| self.until(end, seed ^ client << 32));
        let mut all = Latencies::new();
        for latencies in join_all(clients).await {
            for (operation, mut of_client) in latencies {
                all.entry(operation).or_default().append(&mut of_client);
            }
        }
        all
    }
}

fn now() -> Timestamp {
    shared::app::Clock::System.now()
}

fn print(latencies: &mut Latencies) {
    println!(
        "{:26} {:>8} {:>8} {:>8} {:>8}",
        "operation", "requests", "p50 ms", "p95 ms", "p99 ms"
    );
    for (operation, latencies) in latencies {
        let [p50, p95, p99] =
            percentiles(latencies, [50, 95, 99]).map(|it| it.as_secs_f64() * 1_000.0);
        let count = latencies.len();
        println!("{operation:26} {count:>8} {p50:>8.1} {p95:>8.1} {p99:>8.1}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn mixed_work_succeeds_without_memory_growth() {
    let seconds = env::var("SOAK_SECONDS").map_or(SECONDS, |seconds| seconds.parse().unwrap());
    let half = Duration::from_secs(seconds) / 2;
    let stack = Stack::start().await;
    let project = project(&stack.store, stack.project_id).await;
    let ingestion =
        format!("/api/{}/envelope/?sentry_key={}", project.ingest_id, project.public_key);
    let mut work = Work {
        stack: &stack,
        collection: String::new(),
        ingestion,
        insight: String::new(),
        requests: AtomicU64::new(0),
    };
    let flag = json!({"key": "checkout", "name": "Checkout", "type": "boolean"});
    let created = work.post("/v0/project/{project}/feature-flags", &flag).send().await.unwrap();
    assert_eq!(created.status(), 201);
    let path = "/v0/projects/{project}/event-marker-collections";
    let created = work.post(path, &json!({"name": "Releases"})).send().await.unwrap();
    let collection: Value = created.json().await.unwrap();
    collection["id"].as_str().unwrap().clone_into(&mut work.collection);
    let path = "/v0/projects/{project}/replay-insights";
    let mut insight = upload(0..10);
    insight["title"] = json!("Checkout");
    let created = work.post(path, &insight).send().await.unwrap();
    let insight: Value = created.json().await.unwrap();
    insight["id"].as_str().unwrap().clone_into(&mut work.insight);

    let seed = seed();
    println!("SEED={seed}");
    // Functions start with their first request, and the last ones have done little by then.
    let mut started = Latencies::new();
    while started.len() < OPERATIONS {
        started.append(&mut work.of_all(Instant::now() + half, seed).await);
    }
    work.of_all(Instant::now() + WARM_UP, seed).await;
    let before = stack.memory().await;
    let mut latencies = work.of_all(Instant::now() + half, !seed).await;
    let after = stack.memory().await;
    print(&mut latencies);
    assert_eq!(latencies.len(), OPERATIONS, "an operation was not requested");
    assert!(before.len() >= OPERATIONS, "{before:?}");
    for (function, bytes) in &after {
        println!("{function:26} {:>8} kB", bytes / 1_024);
        let at_most = before.get(function).map_or(u64::MAX, |bytes| bytes * 5 / 4 + SLACK);
        assert!(*bytes <= at_most, "{function}: {before:?} {after:?}");
    }
}
