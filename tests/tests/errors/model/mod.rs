//! Random histories. After each step, the results of random queries are compared with a recount.

#![allow(clippy::print_stdout)]

mod questions;
mod recount;

use std::collections::BTreeMap;
use std::time::Duration;

use futures_util::future::join_all;
use questions::Query;
use rand::rngs::ChaCha8Rng;
use rand::seq::IndexedRandom;
use rand::{RngExt, SeedableRng};
use serde_json::{Value, json};

use errors::ErrorId;
use errors::log::manifest::CompactionLimits;
use errors::store::{ErrorStore, PackingLimits};
use ingest_error_events::delivery::add_log_shards;
use shared::app::{Deadline, Operation};
use shared::dynamodb::StoreError;
use shared::projects::project::{Project, ProjectId};
use shared::timestamp::Timestamp;
use tests::app::StoreTimeouts;
use tests::call::Call;
use tests::errors::SentEvent;
use tests::proxy::ItemByItem;
use tests::seed;

use super::{
    BREAKDOWN, CATEGORIES, DAY, EVERYTHING, HOUR, LIST, LIST_EVENTS, MINUTE, QUERY_ERRORS, Tracker,
    UPDATE, column, envelope,
};

/// The number of histories per test.
const HISTORIES: u64 = 6;
/// The number of histories with partially visible transactions.
const HISTORIES_ITEM_BY_ITEM: u64 = 3;
const STEPS: usize = 9;
/// The maximum duration of a history, by the test clock.
const LONGEST: Duration = Duration::from_hours(40 * 24);

/// Error types and messages, one for each fingerprint.
const KINDS: [(&str, &str); 5] = [
    ("TypeError", "Cannot read property of undefined"),
    ("ValueError", "bad card"),
    ("PaymentDeclined", "the card was declined"),
    ("TimeoutError", "upstream is gone"),
    ("KeyError", "name"),
];
const ATTRIBUTES: [(&str, &[&str]); 11] = [
    ("browser", &["Chrome", "Chrome Mobile", "Firefox"]),
    ("os", &["Android", "Debian"]),
    ("environment", &["production", "staging"]),
    ("release", &["shop@2.0.0", "shop@2.0.1"]),
    ("level", &["error", "warning"]),
    ("country", &["DE", "FR"]),
    ("device", &["Pixel", "iPhone"]),
    ("transaction", &["GET /cart", "POST /pay"]),
    ("user", &["ada", "bob", "eve"]),
    ("tags.tenant", &["acme", "acme inc", "umbrella"]),
    ("tags.plan", &["free", "pro"]),
];
const STATUSES: [&str; 3] = ["open", "resolved", "ignored"];

/// An acknowledged event and the index of its project.
#[derive(Debug, Clone)]
struct Acknowledged {
    project: usize,
    event: SentEvent,
}

/// The expected status of an error.
#[derive(Debug, Clone, Copy)]
struct Status {
    name: &'static str,
    resolved_at: Option<Timestamp>,
}

/// Pack steps and compactions of a project.
struct Work {
    project: ProjectId,
    steps: u32,
    limits: PackingLimits,
    now: Timestamp,
}

impl Work {
    async fn execute(&self, tracker: &Tracker) {
        let app = &tracker.test.app;
        let new_id = || ErrorId::new(app.ids.new_uuid(app.clock.now()));
        for _ in 0..self.steps {
            expect_done(
                ErrorStore::new(&app.store)
                    .pack_step(self.project, &self.limits, &new_id, self.now)
                    .await,
            );
            let limits = &self.limits.compaction;
            expect_done(
                ErrorStore::new(&app.store).compact_step(self.project, limits, self.now).await,
            );
        }
    }
}

/// Expects success or [`StoreError::Unavailable`], which leaves a step applied or not applied.
fn expect_done<T>(outcome: Result<T, StoreError>) {
    if let Err(error) = outcome {
        assert!(matches!(error, StoreError::Unavailable(_)), "{error}");
    }
}

/// The visibility of a running transaction to readers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Engine {
    /// All writes become visible together.
    Atomic,
    /// The writes become visible one by one.
    ItemByItem,
}

struct History {
    engine: Engine,
    tracker: Tracker,
    projects: Vec<Project>,
    random: ChaCha8Rng,
    events: Vec<Acknowledged>,
    /// Events that were deleted with their error.
    deleted: Vec<Acknowledged>,
    /// Statuses by project and error type.
    statuses: BTreeMap<(usize, String), Status>,
    /// The elapsed time, by the test clock.
    passed: Duration,
    /// `true` if a flood can still occur. More floods would make the test too slow.
    can_flood: bool,
}

impl History {
    async fn start(seed: u64, engine: Engine) -> Self {
        let mut tracker = Tracker::start().await;
        let projects = vec![
            tracker.project.clone(),
            tracker.other_project("one").await,
            tracker.other_project("two").await,
        ];
        if engine == Engine::ItemByItem {
            let proxy = ItemByItem::before(&tracker.test.engine.endpoint(), seed);
            tracker.test.put_behind_waiting(proxy, StoreTimeouts::Long).await;
        }
        let random = ChaCha8Rng::seed_from_u64(seed);
        let (events, deleted, statuses) = (Vec::new(), Vec::new(), BTreeMap::new());
        let passed = Duration::ZERO;
        let can_flood = engine == Engine::Atomic;
        Self { engine, tracker, projects, random, events, deleted, statuses, passed, can_flood }
    }

    async fn step(&mut self) {
        if self.can_flood && self.random.random_ratio(1, 48) {
            self.can_flood = false;
            return Box::pin(self.flood()).await;
        }
        // Partially visible transactions matter for queries during packing, so these are more
        // frequent.
        let kinds = if self.engine == Engine::ItemByItem { 25 } else { 16 };
        match self.random.random_range(0..kinds) {
            0..4 => self.deliver().await,
            4 | 5 => self.pass(),
            6..9 => Box::pin(self.pack()).await,
            9 => self.set_status().await,
            10 => self.add_shards().await,
            11 => Box::pin(self.kill()).await,
            12 => self.delete_error().await,
            13 => Box::pin(self.deliver_and_pack()).await,
            _ => Box::pin(self.query_while_packing()).await,
        }
    }

    /// Returns a possible time of an event that is delivered now.
    fn time(&mut self) -> Timestamp {
        let longest = *[30 * MINUTE, 2 * HOUR, 20 * HOUR, 3 * DAY, 29 * DAY, 30 * DAY]
            .choose(&mut self.random)
            .unwrap();
        let exact = self.random.random_range(Duration::ZERO..longest);
        let age = match self.random.random_range(0..3) {
            // A whole number of hours ago.
            0 => HOUR * u32::try_from(exact.as_secs() / 3_600).unwrap(),
            1 => {
                return self
                    .tracker
                    .ago(exact)
                    .plus(self.random.random_range(Duration::ZERO..MINUTE));
            }
            _ => exact,
        };
        let at = self.tracker.ago(age);
        if self.random.random_ratio(1, 4) {
            let hour = at.as_millis().div_euclid(3_600_000) * 3_600_000;
            let moved = hour - self.random.random_range(0..2);
            let oldest = self.tracker.ago(30 * DAY).as_millis();
            return Timestamp::from_millis(moved.max(oldest));
        }
        at
    }

    fn new_event(&mut self) -> SentEvent {
        let (error_type, message) = *KINDS.choose(&mut self.random).unwrap();
        let number = self.random.random();
        let mut event = SentEvent::new(number, self.time(), error_type, message);
        for (name, values) in ATTRIBUTES {
            if self.random.random_ratio(2, 3) {
                event = event.with(name, values.choose(&mut self.random).unwrap());
            }
        }
        event
    }

    /// Returns events, some of them with ids of acknowledged events, repeated or with other
    /// content.
    fn batch(&mut self) -> Vec<Acknowledged> {
        let mut batch = Vec::new();
        for _ in 0..=self.random.random_range(0..7) {
            let project = self.random.random_range(0..self.projects.len());
            let mut event = self.new_event();
            let mut sent = Acknowledged { project, event: event.clone() };
            if !self.events.is_empty() && self.random.random_ratio(1, 5) {
                let all: Vec<&Acknowledged> = self.events.iter().chain(&self.deleted).collect();
                let earlier = (*all.choose(&mut self.random).unwrap()).clone();
                if self.random.random_ratio(1, 2) {
                    event.id.clone_from(&earlier.event.id);
                    // An acknowledged id with other content. In another project it is another
                    // event.
                    sent.event = event;
                } else {
                    sent = earlier;
                }
            }
            if !batch.iter().any(|other: &Acknowledged| other.event.id == sent.event.id) {
                batch.push(sent);
            }
        }
        batch
    }

    async fn deliver(&mut self) {
        let batch = self.batch();
        self.send(&batch).await;
        self.acknowledge(batch);
    }

    /// Sends many events to one project, each with a unique release and transaction.
    async fn flood(&mut self) {
        let project = self.random.random_range(0..self.projects.len());
        for _ in 0..self.random.random_range(6..9) {
            let mut batch = Vec::new();
            for _ in 0..16 {
                let [release, transaction]: [u64; 2] = self.random.random();
                let event = self.new_event();
                let event = event.with("release", &format!("{release:016x}"));
                let event = event.with("transaction", &format!("/{transaction:016x}"));
                batch.push(Acknowledged { project, event });
            }
            self.send(&batch).await;
            self.acknowledge(batch);
        }
    }

    async fn send(&self, batch: &[Acknowledged]) {
        let sends = batch.iter().map(async |sent| {
            let project = &self.projects[sent.project];
            // An event counts once, even if a 503 response hid a successful delivery.
            let call = envelope(project, &sent.event);
            let reply = call.send_until_response(&self.tracker.test.app).await;
            assert_eq!((reply.status, &reply.body), (200, &json!({ "id": sent.event.id })));
        });
        join_all(sends).await;
    }

    fn acknowledge(&mut self, batch: Vec<Acknowledged>) {
        for sent in batch {
            let is_there =
                |it: &Acknowledged| it.project == sent.project && it.event.id == sent.event.id;
            if self.events.iter().chain(&self.deleted).any(is_there) {
                continue;
            }
            let key = (sent.project, sent.event.error_type.clone());
            let open = Status { name: "open", resolved_at: None };
            let status = self.statuses.entry(key).or_insert(open);
            if status.resolved_at.is_some_and(|resolved_at| sent.event.at > resolved_at) {
                *status = open;
            }
            self.events.push(sent);
        }
    }

    fn pass(&mut self) {
        let longest =
            *[10 * MINUTE, HOUR, 10 * HOUR, 2 * DAY, 12 * DAY].choose(&mut self.random).unwrap();
        let time = self
            .random
            .random_range(Duration::ZERO..longest)
            .min(LONGEST.saturating_sub(self.passed));
        self.tracker.test.pass(time);
        self.passed += time;
    }

    /// Packs and compacts, by several concurrent workers with different clocks.
    async fn pack(&mut self) {
        if self.random.random_ratio(1, 4) {
            tokio::join!(self.run_schedule(), self.run_schedule());
            return;
        }
        let works: Vec<Work> = (0..3).map(|_| self.work()).collect();
        join_all(works.iter().map(|work| work.execute(&self.tracker))).await;
    }

    /// Packs new events in small steps and compacts, with concurrent queries until that is
    /// complete.
    async fn query_while_packing(&mut self) {
        for _ in 0..3 {
            self.deliver().await;
        }
        self.tracker.test.pass(2 * MINUTE);
        self.passed += 2 * MINUTE;
        let (few, now) = (PackingLimits { rows: 2, ..EVERYTHING }, self.tracker.now());
        let random = self.work();
        let questions: Vec<(Query, Value)> = (0..4).map(|_| self.question()).collect();
        let works: Vec<Work> = self
            .projects
            .iter()
            .map(|project| Work { project: project.id, steps: 4, limits: few, now })
            .chain([random])
            .collect();
        let everything = Query {
            projects: (0..self.projects.len()).collect(),
            from: Some(now.minus(LONGEST).as_millis()),
            to: None,
            limit: None,
            status: None,
            search: None,
            filters: Vec::new(),
        };
        let body = self.body(&everything);
        let count = async {
            loop {
                self.check(&everything, &body).await;
            }
        };
        let queries = async {
            loop {
                for (query, body) in &questions {
                    self.check(query, body).await;
                }
                self.check_lists().await;
            }
        };
        tokio::select! {
            _ = join_all(works.iter().map(|work| work.execute(&self.tracker))) => {}
            () = count => {}
            () = queries => {}
        }
    }

    /// Runs pack-error-log once, as the schedule does.
    async fn run_schedule(&self) {
        let deadline = Deadline::after(Duration::from_mins(1));
        expect_done((pack_error_log::JOB.run)(&self.tracker.test.app, deadline).await);
    }

    fn work(&mut self) -> Work {
        let compaction = CompactionLimits {
            events: *[4, 20, 1_000_000].choose(&mut self.random).unwrap(),
            fan_in: self.random.random_range(2..5),
            ..CompactionLimits::default()
        };
        let rows = *[1, 3, 10, EVERYTHING.rows].choose(&mut self.random).unwrap();
        let clock = self.random.random_range(0..20_000);
        Work {
            project: self.projects[self.random.random_range(0..self.projects.len())].id,
            steps: self.random.random_range(1..6),
            limits: PackingLimits { rows, compaction, ..EVERYTHING },
            now: Timestamp::from_millis(self.tracker.now().as_millis() + clock - 10_000),
        }
    }

    /// Cancels deliveries, packing and compaction at a random time, then sends the deliveries
    /// again.
    async fn kill(&mut self) {
        let batch = self.batch();
        let works: Vec<Work> = (0..3).map(|_| self.work()).collect();
        let life = Duration::from_micros(self.random.random_range(0..30_000));
        let all = async {
            let works = join_all(works.iter().map(|work| work.execute(&self.tracker)));
            tokio::join!(works, self.send(&batch));
        };
        let _ = tokio::time::timeout(life, all).await;
        self.send(&batch).await;
        self.acknowledge(batch);
    }

    async fn deliver_and_pack(&mut self) {
        let batch = self.batch();
        let works: Vec<Work> = (0..2).map(|_| self.work()).collect();
        let works = join_all(works.iter().map(|work| work.execute(&self.tracker)));
        tokio::join!(self.send(&batch), self.run_schedule(), works);
        self.acknowledge(batch);
    }

    async fn add_shards(&mut self) {
        let shards = *[1, 2, 3].choose(&mut self.random).unwrap();
        let project = self.projects[self.random.random_range(0..self.projects.len())].id;
        expect_done(add_log_shards(&self.tracker.test.app, project, shards).await);
    }

    /// Returns the project, type and id of a random error.
    async fn some_error(&mut self) -> Option<(usize, String, ErrorId)> {
        let keys: Vec<_> = self.statuses.keys().cloned().collect();
        let (project, error_type) = keys.choose(&mut self.random)?.clone();
        let errors = self.errors_of(project).await;
        let error = errors.iter().find(|error| error["type"] == error_type).unwrap();
        let id = ErrorId::parse(error["errorId"].as_str().unwrap()).unwrap();
        Some((project, error_type, id))
    }

    fn call_for(&self, operation: &'static Operation, project: usize, id: ErrorId) -> Call {
        let call = Call::of(operation).parameter("idOrSlug", self.projects[project].id);
        call.parameter("errorId", id).key(&self.tracker.test.key)
    }

    async fn delete_error(&mut self) {
        let Some((project, error_type, id)) = self.some_error().await else { return };
        let call = self.call_for(&delete_error::OPERATION, project, id);
        // 404 if an earlier attempt timed out but deleted the error.
        let status = call.send_until_response(&self.tracker.test.app).await.status;
        assert!(matches!(status, 204 | 404), "{status}");
        let is_its =
            |it: &mut Acknowledged| it.project == project && it.event.error_type == error_type;
        self.deleted.extend(self.events.extract_if(.., is_its));
        self.statuses.remove(&(project, error_type));
        // Events of the same millisecond would also be deleted.
        self.tracker.test.pass(Duration::from_millis(2));
    }

    async fn set_status(&mut self) {
        let Some((project, error_type, id)) = self.some_error().await else { return };
        let name = *STATUSES.choose(&mut self.random).unwrap();
        let call = self.call_for(UPDATE, project, id).json(&json!({ "status": name }));
        assert_eq!(call.send_until_response(&self.tracker.test.app).await.status, 200);
        let now = self.tracker.now();
        let status = self.statuses.get_mut(&(project, error_type)).unwrap();
        if status.name != name {
            *status = Status { name, resolved_at: (name == "resolved").then_some(now) };
        }
    }

    async fn errors_of(&self, project: usize) -> Vec<Value> {
        let call = Call::of(LIST).parameter("idOrSlug", self.projects[project].id);
        self.tracker.pages(&call.key(&self.tracker.test.key), 3).await.concat()
    }

    /// Checks that lists match a recount of all events.
    async fn check_lists(&self) {
        for project in 0..self.projects.len() {
            let mut listed = self.errors_of(project).await;
            listed.sort_by_key(|error| error["type"].to_string());
            let of_project = |sent: &&Acknowledged| sent.project == project;
            let mut by_type: BTreeMap<&str, Vec<&SentEvent>> = BTreeMap::new();
            for sent in self.events.iter().filter(of_project) {
                by_type.entry(&sent.event.error_type).or_default().push(&sent.event);
            }
            assert_eq!(column(&listed, "type"), by_type.keys().copied().collect::<Vec<_>>());
            for (error, (error_type, mut events)) in listed.iter().zip(by_type) {
                events.sort_by(|one, other| (other.at, &other.id).cmp(&(one.at, &one.id)));
                let status = self.statuses[&(project, error_type.to_owned())].name;
                let shown = ["status", "count", "firstSeen", "lastSeen"].map(|name| &error[name]);
                let (last, first) = (events[0].at, events[events.len() - 1].at);
                let expected = [
                    json!(status),
                    json!(events.len()),
                    json!(first.to_string()),
                    json!(last.to_string()),
                ];
                assert_eq!(shown.map(Value::clone), expected, "{error_type}");
                let call = Call::of(LIST_EVENTS).parameter("idOrSlug", self.projects[project].id);
                let call = call.parameter("errorId", error["errorId"].as_str().unwrap());
                let pages = self.tracker.pages(&call.key(&self.tracker.test.key), 7).await;
                let ids: Vec<&str> = events.iter().map(|event| event.id.as_str()).collect();
                assert_eq!(column(&pages.concat(), "eventId"), ids);
            }
        }
    }
}

async fn run_histories(histories: std::ops::Range<u64>, engine: Engine) {
    let seed = seed();
    for number in histories {
        let seed = seed.wrapping_add(number);
        // This seed reproduces a failure, as the first history of a test with the same engine.
        println!("SEED={seed} {engine:?}");
        let mut history = History::start(seed, engine).await;
        for _ in 0..STEPS {
            Box::pin(history.step()).await;
            for _ in 0..3 {
                let (query, body) = history.question();
                history.check(&query, &body).await;
            }
            history.check_errors().await;
            history.check_breakdown().await;
        }
        history.check_lists().await;
        history.check_categories().await;
    }
}

#[tokio::test]
async fn random_histories_give_exact_counts() {
    Box::pin(run_histories(0..HISTORIES, Engine::Atomic)).await;
}

#[tokio::test]
async fn more_random_histories_give_exact_counts() {
    Box::pin(run_histories(HISTORIES..2 * HISTORIES, Engine::Atomic)).await;
}

#[tokio::test]
async fn random_histories_of_partial_transactions_give_exact_counts() {
    Box::pin(run_histories(0..HISTORIES_ITEM_BY_ITEM, Engine::ItemByItem)).await;
}
