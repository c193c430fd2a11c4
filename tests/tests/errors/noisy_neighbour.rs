//! A project far over its quota, next to a project within its quota.
//!
//! Partitions have a share of DynamoDB's limits, the quota is the same share of the default, and a
//! minute of the test clock takes seconds. Minutes with and without the flood alternate, so that
//! other load on the machine affects both. `NEIGHBOUR_MINUTES` sets the number of pairs.

#![allow(clippy::print_stdout)]

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use futures_util::future::join_all;
use serde_json::json;

use shared::app::Clock;
use shared::projects::limits::{Limit, Limits};
use shared::projects::project::Project;
use shared::quotas::ADDED_AT_ONCE;
use tests::app::app_over;
use tests::call::Call;
use tests::errors::SentEvent;
use tests::latency::percentiles;
use tests::proxy::{self, PartitionLimits};

use super::{MINUTE, QUERY, Tracker};

/// The partitions' share of DynamoDB's limits.
const SHARE: f64 = 0.05;
/// The latency of a DynamoDB call. It dominates all other work, so that a busy machine hardly
/// changes the latency of requests.
const CALL: Duration = Duration::from_millis(80);
/// The same share of `EventsPerMinute`, in a short minute: five events per second.
const QUOTA: u32 = 15;
const SHORT_MINUTE: Duration = Duration::from_secs(3);
/// The events per second of the flood: four times the quota. Those at the start of a minute are
/// accepted.
const FLOOD: u32 = 20;
/// The number of clients of the other project.
const CLIENTS: usize = 3;
/// The maximum latency of the other project, as a multiple of its latency without the flood.
const FACTOR: u32 = 2;

/// The latencies of the other project's requests.
#[derive(Default)]
struct Latencies {
    deliveries: Vec<Duration>,
    queries: Vec<Duration>,
}

/// The flooding project and the other project.
struct Neighbours {
    tracker: Tracker,
    other: Project,
    next: AtomicU64,
    accepted: AtomicUsize,
    rejected: AtomicUsize,
    partitions: Arc<PartitionLimits>,
}

impl Neighbours {
    async fn start() -> Self {
        let mut tracker = Tracker::start().await;
        let other = tracker.other_project("other").await;
        let partitions = PartitionLimits::before(&tracker.test.engine.endpoint(), SHARE, CALL);
        let partitions = Arc::new(partitions);
        let endpoint = proxy::serve(Arc::clone(&partitions)).await;
        let limits = Limits::default().with(Limit::EventsPerMinute, Some(QUOTA));
        tracker.test.app = app_over(&endpoint).0.with_limits(limits);
        let (accepted, rejected) = Default::default();
        Self { tracker, other, next: AtomicU64::new(1), accepted, rejected, partitions }
    }

    /// Returns a new event of one of three errors.
    fn event(&self) -> SentEvent {
        let number = self.next.fetch_add(1, Ordering::Relaxed);
        let types = ["TypeError", "ValueError", "RangeError"];
        let error_type = types[usize::try_from(number % 3).unwrap()];
        SentEvent::new(number, self.tracker.now(), error_type, "too many")
    }

    /// Advances the test clock by a minute, over [`SHORT_MINUTE`].
    async fn pass_minute(&self) {
        const STEPS: u32 = 60;
        let Clock::Fixed(millis) = &self.tracker.test.app.clock else {
            unreachable!("the test clock is fixed")
        };
        let (from, started) = (millis.load(Ordering::Relaxed), Instant::now());
        for step in 1..=STEPS {
            tokio::time::sleep_until((started + SHORT_MINUTE * step / STEPS).into()).await;
            let passed = u64::try_from((MINUTE * step / STEPS).as_millis()).unwrap();
            millis.store(from + passed, Ordering::Relaxed);
        }
    }

    /// Sends the flood for a minute.
    async fn flood(&self) {
        let (started, count) =
            (Instant::now(), FLOOD * u32::try_from(SHORT_MINUTE.as_secs()).unwrap());
        let deliveries = (0..count).map(|number| async move {
            tokio::time::sleep_until((started + SHORT_MINUTE * number / count).into()).await;
            let reply = self.tracker.deliver_to(&self.tracker.project, &self.event()).await;
            match reply.status {
                200 => self.accepted.fetch_add(1, Ordering::Relaxed),
                429 => self.rejected.fetch_add(1, Ordering::Relaxed),
                other => panic!("{other} {}", reply.text),
            }
        });
        join_all(deliveries).await;
    }

    /// Delivers and counts events of the other project at a modest rate, until `is_over`.
    async fn work(&self, is_over: &AtomicBool) -> Latencies {
        let mut latencies = Latencies::default();
        while !is_over.load(Ordering::Relaxed) {
            let started = Instant::now();
            let reply = self.tracker.deliver_to(&self.other, &self.event()).await;
            assert_eq!(reply.status, 200, "{}", reply.text);
            latencies.deliveries.push(started.elapsed());
            let started = Instant::now();
            let query = json!({"projectIds": [self.other.id]});
            let query = Call::of(QUERY).key(&self.tracker.test.key).json(&query);
            let reply = query.send(&self.tracker.test.app).await;
            assert_eq!(reply.status, 200, "{}", reply.text);
            latencies.queries.push(started.elapsed());
            tokio::time::sleep(3 * CALL).await;
        }
        latencies
    }

    /// Runs the other project's clients for a minute, with or without the flood.
    async fn minute(&self, is_flooded: bool, all: &mut Latencies) {
        let is_over = AtomicBool::new(false);
        let clients = join_all((0..CLIENTS).map(|_| self.work(&is_over)));
        let time = async {
            let flood = async {
                if is_flooded {
                    self.flood().await;
                }
            };
            tokio::join!(self.pass_minute(), flood);
            is_over.store(true, Ordering::Relaxed);
        };
        for mut of_client in tokio::join!(clients, time).0 {
            all.deliveries.append(&mut of_client.deliveries);
            all.queries.append(&mut of_client.queries);
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn projects_over_quota_slow_no_other_project() {
    let minutes = std::env::var("NEIGHBOUR_MINUTES").map_or(2, |number| number.parse().unwrap());
    let neighbours = Neighbours::start().await;
    // The first minute fills the caches.
    neighbours.minute(true, &mut Latencies::default()).await;
    let (mut alone, mut flooded) = (Latencies::default(), Latencies::default());
    neighbours.accepted.store(0, Ordering::Relaxed);
    neighbours.rejected.store(0, Ordering::Relaxed);
    for _ in 0..minutes {
        neighbours.minute(false, &mut alone).await;
        neighbours.minute(true, &mut flooded).await;
    }
    let [accepted, rejected] =
        [&neighbours.accepted, &neighbours.rejected].map(|it| it.load(Ordering::Relaxed));
    println!(
        "{minutes} minutes: {accepted} events of the flood accepted, {rejected} rejected, {} throttled",
        neighbours.partitions.take_refused()
    );
    // Events at the end of a minute can count toward the next one.
    let at_most = (minutes + 1) * (QUOTA + ADDED_AT_ONCE) as usize;
    assert!((1..=at_most).contains(&accepted) && rejected > accepted, "{accepted} {rejected}");
    for (requests, alone, flooded) in [
        ("deliveries", &mut alone.deliveries, &mut flooded.deliveries),
        ("queries", &mut alone.queries, &mut flooded.queries),
    ] {
        let [count_alone, count_flooded] = [alone.len(), flooded.len()];
        let [alone, flooded] = [alone, flooded].map(|latencies| percentiles(latencies, [50, 95]));
        println!(
            "{requests}, p50 and p95: {alone:?} of {count_alone} alone, \
             {flooded:?} of {count_flooded} with the flood"
        );
        for (flooded, alone) in flooded.into_iter().zip(alone) {
            assert!(
                flooded <= FACTOR * alone,
                "{requests}: {alone:?} alone, {flooded:?} with the flood"
            );
        }
    }
}
