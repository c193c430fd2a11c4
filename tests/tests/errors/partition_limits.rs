//! What becomes of deliveries where DynamoDB's partitions take no more: as many are taken as before, and
//! others do not notice.
//!
//! Partitions have a share of DynamoDB's limits, and loads the same share of what they would be.
//! `PARTITION_LIMITS=long` takes a larger share, for longer, and lets 10,000 projects in. As much as DynamoDB takes
//! in a second, the embedded engine does not take.

#![allow(clippy::print_stdout)]
// Counts of events, which are far below 2^32.
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

/// How long a call of DynamoDB takes: so much longer than anything that is done here that a busy computer
/// hardly changes how long requests take.
const CALL: Duration = Duration::from_millis(80);
/// How many events of a project are taken in a second when its log is spread: each has its error read
/// from one partition.
const SUSTAINABLE: f64 = 2_500.0;
/// How many events of one error are taken in a second: each has its place in one partition.
const SUSTAINABLE_OF_ONE_ERROR: f64 = 450.0;

/// Which part of DynamoDB's limits partitions have, and how long loads last.
#[derive(Debug, Clone, Copy)]
struct Scale {
    share: f64,
    lasting: Duration,
}

fn scale() -> Scale {
    match std::env::var("PARTITION_LIMITS").as_deref() {
        Ok("long") => Scale { share: 0.03, lasting: Duration::from_secs(40) },
        _ => Scale { share: 0.01, lasting: Duration::from_secs(4) },
    }
}

/// A project under load, beside another one.
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

    /// The next event, of one of so many errors.
    fn event(&self, errors: u64) -> SentEvent {
        let number = self.next.fetch_add(1, Ordering::Relaxed);
        let error_type =
            format!("Error{}", char::from(b'A' + u8::try_from(number % errors).unwrap()));
        SentEvent::new(number, self.tracker.now(), &error_type, "too many")
    }

    /// Delivers so many events a second of the project, whatever becomes of them, and answers how many a
    /// second are taken once that goes on for some time.
    async fn load(&self, events_a_second: f64, errors: u64) -> f64 {
        let lasting = self.scale.lasting;
        let (settled, rest) = (lasting / 4, lasting * 3 / 4);
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
        let taken = join_all(deliveries).await.into_iter().flatten();
        let taken = taken.filter(|at| (settled..lasting).contains(at)).count();
        taken as f64 / rest.as_secs_f64()
    }

    /// How long requests of the other project take until `done`: deliveries, and queries of what they
    /// counted.
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

    /// Loads the project as long as it takes everything, and twice as much.
    async fn compare(&self, sustainable: f64, errors: u64) {
        let sustainable = sustainable * self.scale.share;
        // The other one alone.
        let done = AtomicBool::new(false);
        let wait = async {
            tokio::time::sleep(self.scale.lasting / 4).await;
            done.store(true, Ordering::Relaxed);
        };
        let (alone, ()) = tokio::join!(self.latencies_of_other(&done), wait);
        // The log is spread meanwhile.
        self.load(2.0 * sustainable, errors).await;
        let once = self.load(sustainable, errors).await;
        let done = AtomicBool::new(false);
        let load = async {
            let taken = self.load(2.0 * sustainable, errors).await;
            done.store(true, Ordering::Relaxed);
            taken
        };
        let (twice, beside) = tokio::join!(load, self.latencies_of_other(&done));
        println!(
            "{errors} errors: of {sustainable:.0} events a second {once:.1} are taken, of twice as \
             many {twice:.1}; another project's requests take {alone:?} alone and {beside:?} beside"
        );
        assert!(twice >= 0.9 * once, "{once} were taken before, and {twice} of more");
        for (beside, alone) in beside.iter().zip(&alone) {
            assert!(*beside <= 2 * *alone, "{alone:?} alone, and {beside:?} beside");
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_project_that_sends_twice_what_is_taken_has_as_much_taken_and_slows_no_other() {
    let loaded = Loaded::start(scale()).await;
    loaded.compare(SUSTAINABLE, 20).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_error_that_happens_twice_as_often_as_is_taken_is_counted_as_often_as_before() {
    let loaded = Loaded::start(scale()).await;
    loaded.compare(SUSTAINABLE_OF_ONE_ERROR, 1).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn projects_that_enter_the_queue_all_at_once_are_all_let_in() {
    // As 10,000 projects at midnight, within a second: a share of them, or all in as much more time as partitions
    // take less.
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
