//! Deliveries beyond the throughput of DynamoDB's partitions: the accepted rate stays constant, and
//! other projects are not affected.
//!
//! Partitions have a share of DynamoDB's limits, since the embedded engine is slower than DynamoDB.
//! Loads have the same share. `PARTITION_LIMITS=long` uses a larger share for longer, and 10,000
//! projects.

#![allow(clippy::print_stdout)]
// Event counts are far below 2^32.
#![allow(clippy::cast_possible_truncation, clippy::cast_precision_loss, clippy::cast_sign_loss)]

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use futures_util::future::join_all;
use serde_json::json;

use errors::store::ErrorStore;
use shared::projects::project::{Project, ProjectId};
use tests::call::Call;
use tests::errors::SentEvent;
use tests::proxy::PartitionLimits;

use super::{MINUTE, QUERY, Tracker};

/// The latency of a DynamoDB call. It dominates all other work, so that a busy machine hardly
/// changes the latency of requests.
const CALL: Duration = Duration::from_millis(80);
/// The sustainable events per second of a project with a sharded log. Each event reads its error
/// from one partition.
const SUSTAINABLE: f64 = 2_500.0;
/// The sustainable events per second of one error.
const SUSTAINABLE_OF_ONE_ERROR: f64 = 450.0;

/// The scale of a test.
#[derive(Debug, Clone, Copy)]
struct Scale {
    /// The partitions' share of DynamoDB's limits.
    share: f64,
    /// The duration of a load.
    lasting: Duration,
}

fn scale() -> Scale {
    match std::env::var("PARTITION_LIMITS").as_deref() {
        Ok("long") => Scale { share: 0.03, lasting: Duration::from_secs(40) },
        _ => Scale { share: 0.01, lasting: Duration::from_secs(4) },
    }
}

/// A project under load, and another project.
struct Loaded {
    tracker: Tracker,
    other: Project,
    scale: Scale,
    next: AtomicU64,
}

impl Loaded {
    async fn start(scale: Scale) -> Self {
        let mut tracker = Tracker::start().await;
        let other = tracker.other_project("other").await;
        let engine = tracker.test.engine.endpoint();
        tracker.test.put_behind(PartitionLimits::before(&engine, scale.share, CALL)).await;
        Self { tracker, other, scale, next: AtomicU64::new(1) }
    }

    /// Returns a new event of one of `errors` errors.
    fn event(&self, errors: u64) -> SentEvent {
        let number = self.next.fetch_add(1, Ordering::Relaxed);
        let error_type =
            format!("Error{}", char::from(b'A' + u8::try_from(number % errors).unwrap()));
        SentEvent::new(number, self.tracker.now(), &error_type, "too many")
    }

    /// Delivers events of the project at a constant rate. Returns the accepted events per second,
    /// after the first quarter of the load.
    async fn load(&self, events_a_second: f64, errors: u64) -> f64 {
        let lasting = self.scale.lasting;
        let (warm_up, rest) = (lasting / 4, lasting * 3 / 4);
        let count = (lasting.as_secs_f64() * events_a_second) as u32;
        let started = Instant::now();
        let deliveries = (0..count).map(|number| async move {
            let start = started + lasting * number / count;
            tokio::time::sleep_until(start.into()).await;
            let event = self.event(errors);
            let reply = self.tracker.deliver_to(&self.tracker.project, &event).await;
            assert!(matches!(reply.status, 200 | 429 | 503), "{}", reply.text);
            (reply.status == 200).then(|| started.elapsed())
        });
        let accepted = join_all(deliveries).await.into_iter().flatten();
        let accepted = accepted.filter(|at| (warm_up..lasting).contains(at)).count();
        accepted as f64 / rest.as_secs_f64()
    }

    /// Sends deliveries and queries of the other project until `done`. Returns the median latency
    /// of each.
    async fn latencies_of_other(&self, done: &AtomicBool) -> [Duration; 2] {
        let (mut deliveries, mut queries) = (Vec::new(), Vec::new());
        while !done.load(Ordering::Relaxed) {
            let started = Instant::now();
            let reply = self.tracker.deliver_to(&self.other, &self.event(1)).await;
            assert_eq!(reply.status, 200, "{}", reply.text);
            deliveries.push(started.elapsed());
            let started = Instant::now();
            let query = json!({"projectIds": [self.other.id]});
            let reply = Call::of(QUERY).key(&self.tracker.test.key).json(&query);
            let reply = reply.send(&self.tracker.test.app).await;
            assert_eq!(reply.status, 200, "{}", reply.text);
            queries.push(started.elapsed());
            tokio::time::sleep(CALL).await;
        }
        [deliveries, queries].map(|mut latencies| {
            latencies.sort_unstable();
            latencies[latencies.len() / 2]
        })
    }

    /// Loads the project with the sustainable rate, and with twice that rate. Checks that the
    /// accepted rate holds, and that the other project is not affected.
    async fn compare(&self, sustainable: f64, errors: u64) {
        let sustainable = sustainable * self.scale.share;
        // The latency of the other project alone.
        let done = AtomicBool::new(false);
        let wait = async {
            tokio::time::sleep(self.scale.lasting / 4).await;
            done.store(true, Ordering::Relaxed);
        };
        let (alone, ()) = tokio::join!(self.latencies_of_other(&done), wait);
        // During this load, the log gets more shards.
        self.load(2.0 * sustainable, errors).await;
        let once = self.load(sustainable, errors).await;
        let done = AtomicBool::new(false);
        let load = async {
            let accepted = self.load(2.0 * sustainable, errors).await;
            done.store(true, Ordering::Relaxed);
            accepted
        };
        let (twice, loaded) = tokio::join!(load, self.latencies_of_other(&done));
        println!(
            "{errors} errors: accepted {once:.1} of {sustainable:.0} events per second, {twice:.1} \
             of twice as many; the other project's requests take {alone:?} alone, {loaded:?} loaded"
        );
        assert!(twice >= 0.9 * once, "accepted {once} per second, {twice} at twice the load");
        for (loaded, alone) in loaded.iter().zip(&alone) {
            assert!(*loaded <= 2 * *alone, "{alone:?} alone, {loaded:?} loaded");
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn overloaded_project_keeps_its_throughput() {
    let loaded = Loaded::start(scale()).await;
    loaded.compare(SUSTAINABLE, 20).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn overloaded_error_keeps_its_throughput() {
    let loaded = Loaded::start(scale()).await;
    loaded.compare(SUSTAINABLE_OF_ONE_ERROR, 1).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn concurrent_projects_all_enter_the_queue() {
    // 10,000 projects at midnight enter within a second. Partitions have 2% of the throughput, so
    // either 2% of the projects enter, or all of them in 50 times the time.
    let (count, time) = match std::env::var("PARTITION_LIMITS") {
        Ok(_) => (10_000, Duration::from_secs(50)),
        Err(_) => (200, Duration::from_secs(1)),
    };
    let loaded = Loaded::start(Scale { share: 0.02, ..scale() }).await;
    let tracker = &loaded.tracker;
    let new_id = |_| ProjectId::new(tracker.test.app.ids.new_uuid(tracker.now()));
    let projects: Vec<ProjectId> = (0..count).map(new_id).collect();
    let started = Instant::now();
    let enter = projects.iter().zip(0_u32..).map(|(project, number)| async move {
        let start = started + time * number / count;
        tokio::time::sleep_until(start.into()).await;
        ErrorStore::new(&tracker.test.app.store)
            .enqueue_for_packing(*project, None, tracker.now())
            .await
            .unwrap();
    });
    join_all(enter).await;
    println!("{count} projects entered the queue in {:?}", started.elapsed());
    tracker.test.pass(6 * MINUTE);
    let (queue, ()) =
        tokio::join!(ErrorStore::new(&tracker.test.app.store).list_packing_queue(), async {
            tracker.run_schedule().await;
        });
    assert_eq!(queue.unwrap().len(), projects.len());
}
