//! A project that sends far more than its quota, beside another one that does not.
//!
//! Partitions take a share of what DynamoDB's take, the quota is the same share of the usual one, and a minute of
//! the quota is over in seconds. Minutes with the flood and without it take turns, so that what else the machine
//! does slows both alike. `NEIGHBOUR_MINUTES` has more of them.

#![allow(clippy::print_stdout)]

use std::num::NonZeroU32;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use futures_util::future::join_all;
use serde_json::json;

use shared::app::Clock;
use shared::projects::project::Project;
use shared::quotas::{ADDED_AT_ONCE, Limits};
use tests::app::app_over;
use tests::call::Call;
use tests::errors::SentEvent;
use tests::latency::percentiles;
use tests::proxy::{self, PartitionLimits};

use super::{MINUTE, QUERY, Tracker};

/// Which part of DynamoDB's limits partitions have.
const SHARE: f64 = 0.05;
/// How long a call of DynamoDB takes: so much longer than anything that is done here that a busy computer
/// hardly changes how long requests take.
const CALL: Duration = Duration::from_millis(80);
/// The same share of `EventsPerMinute`, of a minute that is over so soon: five a second.
const QUOTA: NonZeroU32 = NonZeroU32::new(15).unwrap();
const SHORT_MINUTE: Duration = Duration::from_secs(3);
/// How many events a second are sent: four times as many as are taken, which are those at the start of a minute.
const FLOOD: u32 = 20;
/// How many clients the other project has.
const CLIENTS: usize = 3;
/// How much longer its requests may take.
const FACTOR: u32 = 2;

/// How long requests of the other project took.
#[derive(Default)]
struct Latencies {
    deliveries: Vec<Duration>,
    queries: Vec<Duration>,
}

/// Two projects.
struct Neighbours {
    tracker: Tracker,
    other: Project,
    next: AtomicU64,
    taken: AtomicUsize,
    refused: AtomicUsize,
    partitions: Arc<PartitionLimits>,
}

impl Neighbours {
    async fn start() -> Self {
        let mut tracker = Tracker::start().await;
        let other = tracker.other_project("other").await;
        let partitions = PartitionLimits::before(&tracker.test.engine.endpoint(), SHARE, CALL);
        let partitions = Arc::new(partitions);
        let endpoint = proxy::serve(Arc::clone(&partitions)).await;
        let limits = Limits { events_per_minute: Some(QUOTA), ..Limits::default() };
        tracker.test.app = app_over(&endpoint).0.with_limits(limits);
        let (taken, refused) = Default::default();
        Self { tracker, other, next: AtomicU64::new(1), taken, refused, partitions }
    }

    /// The next event, of one of three errors.
    fn event(&self) -> SentEvent {
        let number = self.next.fetch_add(1, Ordering::Relaxed);
        let kind = ["TypeError", "ValueError", "RangeError"][usize::try_from(number % 3).unwrap()];
        SentEvent::new(number, self.tracker.now(), kind, "too many")
    }

    /// Has a minute of the clock pass.
    async fn pass_minute(&self) {
        const STEPS: u32 = 60;
        let Clock::Fixed(millis) = &self.tracker.test.app.clock else {
            unreachable!("it is fixed")
        };
        let (from, started) = (millis.load(Ordering::Relaxed), Instant::now());
        for step in 1..=STEPS {
            tokio::time::sleep_until((started + SHORT_MINUTE * step / STEPS).into()).await;
            let passed = u64::try_from((MINUTE * step / STEPS).as_millis()).unwrap();
            millis.store(from + passed, Ordering::Relaxed);
        }
    }

    /// Sends far too many events for a minute.
    async fn flood(&self) {
        let (started, count) =
            (Instant::now(), FLOOD * u32::try_from(SHORT_MINUTE.as_secs()).unwrap());
        let deliveries = (0..count).map(|number| async move {
            tokio::time::sleep_until((started + SHORT_MINUTE * number / count).into()).await;
            let reply = self.tracker.deliver_to(&self.tracker.project, &self.event()).await;
            match reply.status {
                200 => self.taken.fetch_add(1, Ordering::Relaxed),
                429 => self.refused.fetch_add(1, Ordering::Relaxed),
                other => panic!("{other} {}", reply.text),
            }
        });
        join_all(deliveries).await;
    }

    /// Delivers and counts events of the other project until `is_over`, at a modest rate.
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

    /// A minute of the other project's work, beside a flood or alone.
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
async fn a_project_beyond_its_quota_slows_no_other() {
    let minutes = std::env::var("NEIGHBOUR_MINUTES").map_or(2, |number| number.parse().unwrap());
    let neighbours = Neighbours::start().await;
    // What is remembered is read for the first time.
    neighbours.minute(true, &mut Latencies::default()).await;
    let (mut alone, mut beside) = (Latencies::default(), Latencies::default());
    neighbours.taken.store(0, Ordering::Relaxed);
    neighbours.refused.store(0, Ordering::Relaxed);
    for _ in 0..minutes {
        neighbours.minute(false, &mut alone).await;
        neighbours.minute(true, &mut beside).await;
    }
    let [taken, refused] =
        [&neighbours.taken, &neighbours.refused].map(|it| it.load(Ordering::Relaxed));
    println!(
        "{minutes} minutes: {taken} events of the flood were taken, {refused} refused; {} at partitions",
        neighbours.partitions.take_refused()
    );
    // What was sent at the end of a minute may count for the next one.
    let at_most = (minutes + 1) * (QUOTA.get() + ADDED_AT_ONCE) as usize;
    assert!((1..=at_most).contains(&taken) && refused > taken, "{taken} {refused}");
    for (what, alone, beside) in [
        ("deliveries", &mut alone.deliveries, &mut beside.deliveries),
        ("queries", &mut alone.queries, &mut beside.queries),
    ] {
        let [count_alone, count_beside] = [alone.len(), beside.len()];
        let [alone, beside] = [alone, beside].map(|latencies| percentiles(latencies, [50, 95]));
        println!(
            "{what}: {alone:?} for half and 95 % of {count_alone} alone, {beside:?} of {count_beside} beside"
        );
        for (beside, alone) in beside.into_iter().zip(alone) {
            assert!(beside <= FACTOR * alone, "{what}: {alone:?} alone, and {beside:?} beside");
        }
    }
}
