//! ingest-error-events and pack-error-log as processes that are killed again and again.

#![allow(clippy::print_stdout)]

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::time::{Duration, Instant};

use rand::rngs::ChaCha8Rng;
use rand::seq::IndexedRandom;
use rand::{RngExt, SeedableRng};
use serde_json::{Value, json};

use errors::store::ErrorStore;
use shared::app::{App, Clock, Operation};
use shared::projects::project::{Project, ProjectId};
use tests::app::{PROJECT, TestApp, clock_at};
use tests::call::Call;
use tests::errors::{SentEvent, project};
use tests::process::Process;
use tests::seed;

const INGEST: &str = "ingest-error-events";
const PACK_ERROR_LOG: &str = "pack-error-log";
/// How often a process of each function is killed amid its work.
const KILLS: usize = 18;
/// The errors that the events are of.
const ERRORS: [&str; 4] = ["TypeError", "ValueError", "KeyError", "TimeoutError"];
/// The longest time that a process lives once it is at work.
const LONGEST_WORK: Duration = Duration::from_millis(120);
/// Over how many days before now the events are spread.
const DAYS: u64 = 6;

const DELIVER: &Operation = &ingest_error_events::OPERATION;
const QUERY: &Operation = &query_error_timeseries::OPERATION;
const LIST: &Operation = &list_errors::OPERATION;
const LIST_EVENTS: &Operation = &list_error_events::OPERATION;

/// How many projects have rows of the day before that a packer finds.
const PROJECTS: u64 = 12;
/// How many events each of them has.
const EVENTS: u64 = 4;

/// Makes projects with events that were received the day before, so that they are due.
async fn leave_to_packers(test: &TestApp, wave: u64) -> Vec<ProjectId> {
    let yesterday = Clock::System.now().minus(Duration::from_hours(25));
    let app = test.app_at(clock_at(yesterday));
    let mut projects = Vec::new();
    for number in 0..PROJECTS {
        let slug = format!("wave-{wave}-{number}");
        let id = local::demo::ensure_project(&app.store, &slug, &slug).await.unwrap();
        let project = project(&app.store, id).await;
        for event in 0..EVENTS {
            let at = yesterday.minus(Duration::from_hours(20 * event));
            let event = SentEvent::new(event, at, ERRORS[0], "waits");
            let call = Call::of(DELIVER).parameter("ingestId", project.ingest_id);
            let call = call.query("sentry_key", project.public_key).bytes(event.envelope());
            assert_eq!(call.send(&app).await.status, 200);
        }
        projects.push(id);
    }
    projects
}

/// How many events these projects have.
async fn count(app: &App, key: &str, projects: &[ProjectId]) -> u64 {
    let from = app.clock.now().minus(Duration::from_hours(24 * 200));
    let mut events = 0;
    for projects in projects.chunks(50) {
        let names: Vec<String> = projects.iter().map(ToString::to_string).collect();
        let body = json!({"projectIds": names, "from": from.as_millis()});
        let buckets = reply(app, key, Call::of(QUERY).json(&body)).await;
        events += buckets
            .as_array()
            .unwrap()
            .iter()
            .map(|it| it["errors"].as_u64().unwrap())
            .sum::<u64>();
    }
    events
}

/// What was sent, and what became of it.
struct Deliveries {
    project: Project,
    random: ChaCha8Rng,
    sent: BTreeMap<String, SentEvent>,
    acknowledged: BTreeSet<String>,
    /// Sent, but not acknowledged: their processes were killed.
    open: Vec<SentEvent>,
}

impl Deliveries {
    /// An event that was not acknowledged, or a new one, or one that was acknowledged before.
    fn next(&mut self) -> SentEvent {
        if !self.open.is_empty() && self.random.random_ratio(1, 3) {
            let index = self.random.random_range(0..self.open.len());
            return self.open.swap_remove(index);
        }
        if !self.acknowledged.is_empty() && self.random.random_ratio(1, 8) {
            let index = self.random.random_range(0..self.acknowledged.len());
            return self.sent[self.acknowledged.iter().nth(index).unwrap()].clone();
        }
        let age = self.random.random_range(Duration::ZERO..Duration::from_hours(24 * DAYS));
        let at = Clock::System.now().minus(age);
        let event = SentEvent::new(
            self.random.random(),
            at,
            ERRORS.choose(&mut self.random).unwrap(),
            "killed",
        );
        self.sent.insert(event.id.clone(), event.clone());
        event
    }

    /// Delivers an event, which stays open until it is acknowledged.
    async fn deliver_next(&mut self, process: &Process) {
        let event = self.next();
        let is_new = !self.acknowledged.contains(&event.id);
        if is_new {
            self.open.push(event.clone());
        }
        let call = Call::of(DELIVER).parameter("ingestId", self.project.ingest_id);
        let call = call.query("sentry_key", self.project.public_key).bytes(event.envelope());
        let response = process.invoke(call.event().to_string()).await;
        assert_eq!(response["statusCode"], 200, "{response}");
        if is_new {
            self.open.pop();
            self.acknowledged.insert(event.id);
        }
    }

    /// Delivers events one after the other to a process that is killed meanwhile.
    async fn deliver_until_killed(&mut self, endpoint: &str, log: &Path) {
        let process = Process::start(INGEST, endpoint, &[], log).await;
        // Its start is no work: the first answer tells that it is over.
        self.deliver_next(&process).await;
        let before = self.acknowledged.len();
        let life = self.random.random_range(Duration::ZERO..LONGEST_WORK);
        let deliver = async {
            loop {
                self.deliver_next(&process).await;
            }
        };
        tokio::select! {
            () = deliver => {}
            () = tokio::time::sleep(life) => {}
        }
        process.kill().await;
        println!("an ingester was killed after {} events", self.acknowledged.len() - before);
    }
}

/// Packs what is in the queue, and answers how long that took, the process's start included.
async fn pack(endpoint: &str, log: &Path) -> Duration {
    let started = Instant::now();
    let process = Process::start(PACK_ERROR_LOG, endpoint, &[], log).await;
    process.invoke("{}".to_owned()).await;
    let took = started.elapsed();
    process.kill().await;
    took
}

/// Kills a packer after some time; false if it was done before.
async fn pack_until_killed(life: Duration, endpoint: &str, log: &Path) -> bool {
    let process = Process::start(PACK_ERROR_LOG, endpoint, &[], log).await;
    let killed = tokio::select! {
        _ = process.invoke("{}".to_owned()) => false,
        () = tokio::time::sleep(life) => true,
    };
    process.kill().await;
    println!(
        "a packer {}",
        if killed { "was killed" } else { "was done before it could be killed" }
    );
    killed
}

/// What the operations tell of the project.
struct Told {
    /// The ids of all events, each with its error's type and when it happened, as often as listed.
    listed: Vec<(String, String, String)>,
    /// The sum of the counts of all errors.
    counts: u64,
    /// Hours and their events.
    hours: BTreeMap<String, u64>,
}

async fn reply(app: &App, key: &str, call: Call) -> Value {
    let reply = call.key(key).send(app).await;
    assert_eq!(reply.status, 200, "{}", reply.body);
    reply.body
}

async fn ask(app: &App, key: &str) -> Told {
    let errors = reply(app, key, Call::of(LIST).parameter("idOrSlug", PROJECT)).await;
    let mut told = Told { listed: Vec::new(), counts: 0, hours: BTreeMap::new() };
    for error in errors["items"].as_array().unwrap() {
        told.counts += error["count"].as_u64().unwrap();
        let mut cursor = None;
        loop {
            let call = Call::of(LIST_EVENTS).parameter("idOrSlug", PROJECT).query("limit", 100);
            let mut call = call.parameter("errorId", error["errorId"].as_str().unwrap());
            if let Some(cursor) = &cursor {
                call = call.query("cursor", cursor);
            }
            let page = reply(app, key, call).await;
            for event in page["items"].as_array().unwrap() {
                let text = |value: &Value| value.as_str().unwrap().to_owned();
                let told_of =
                    (text(&event["eventId"]), text(&error["type"]), text(&event["occurredAt"]));
                told.listed.push(told_of);
            }
            cursor = page["nextCursor"].as_str().map(str::to_owned);
            if cursor.is_none() {
                break;
            }
        }
    }
    let from = app.clock.now().minus(Duration::from_hours(24 * (DAYS + 1)));
    let body = json!({"projectIds": [PROJECT], "from": from.as_millis()});
    let buckets = reply(app, key, Call::of(QUERY).json(&body)).await;
    for bucket in buckets.as_array().unwrap() {
        let events = bucket["errors"].as_u64().unwrap();
        if events > 0 {
            let start = bucket["bucketStart"].as_str().unwrap();
            told.hours.insert(start[..13].to_owned(), events);
        }
    }
    told
}

fn assert_exact(told: &Told, deliveries: &Deliveries) {
    let ids: BTreeSet<&String> = told.listed.iter().map(|(id, ..)| id).collect();
    assert_eq!(ids.len(), told.listed.len(), "no event is listed twice");
    for id in &deliveries.acknowledged {
        assert!(ids.contains(id), "{id} was acknowledged, and is not listed");
    }
    let mut hours: BTreeMap<String, u64> = BTreeMap::new();
    for (id, error_type, occurred_at) in &told.listed {
        let sent = &deliveries.sent[id];
        assert_eq!((&sent.error_type, &sent.at.to_string()), (error_type, occurred_at));
        *hours.entry(occurred_at[..13].to_owned()).or_default() += 1;
    }
    assert_eq!(told.hours, hours, "what is counted is what is listed");
    assert_eq!(told.counts, told.listed.len() as u64);
}

#[tokio::test]
async fn whatever_is_killed_each_acknowledged_event_is_counted_once() {
    let seed = seed();
    println!("SEED={seed}");
    let folder = tempfile::tempdir().unwrap();
    let log = folder.path().join("log");
    let test = TestApp::start().await;
    let endpoint = test.engine.endpoint();
    let app = test.app_at(Clock::System);
    let mut deliveries = Deliveries {
        project: project(&app.store, test.project_id).await,
        random: ChaCha8Rng::seed_from_u64(seed),
        sent: BTreeMap::new(),
        acknowledged: BTreeSet::new(),
        open: Vec::new(),
    };

    // With nothing to pack, a run is little more than a start.
    let start = pack(&endpoint, &log).await;
    deliveries.deliver_until_killed(&endpoint, &log).await;
    let mut work = LONGEST_WORK;
    let mut ingesters = 0;
    let mut packers = 0;
    let mut waiting = Vec::new();
    while packers < KILLS || ingesters < KILLS {
        waiting.extend(leave_to_packers(&test, waiting.len() as u64).await);
        let life = start.mul_f32(0.8) + deliveries.random.random_range(Duration::ZERO..work);
        let (killed, ()) = tokio::join!(
            pack_until_killed(life, &endpoint, &log),
            deliveries.deliver_until_killed(&endpoint, &log)
        );
        ingesters += 1;
        packers += usize::from(killed);
        // Machines differ, but on all of them most packers should be killed amid their work.
        work = if killed { work.mul_f32(1.2) } else { work.mul_f32(0.6) };
        assert_eq!(count(&app, &test.key, &waiting).await, EVENTS * waiting.len() as u64);
        assert!(ingesters < 5 * KILLS, "packers are done too early: {packers} were killed");
    }
    println!(
        "{} of {} events were acknowledged",
        deliveries.acknowledged.len(),
        deliveries.sent.len()
    );
    assert!(deliveries.acknowledged.len() > KILLS);
    // Before all is packed, while two pack at once, and after that.
    assert_exact(&ask(&app, &test.key).await, &deliveries);
    let (told, ..) =
        tokio::join!(ask(&app, &test.key), pack(&endpoint, &log), pack(&endpoint, &log));
    assert_exact(&told, &deliveries);
    assert_exact(&ask(&app, &test.key).await, &deliveries);
    assert_eq!(count(&app, &test.key, &waiting).await, EVENTS * waiting.len() as u64);
    let mut left = ErrorStore::new(&app.store).list_packing_queue().await.unwrap();
    left.retain(|entry| entry.due <= app.clock.now());
    assert_eq!(left, [], "what was due is packed");
    // The rows are gone then.
    let later = app.clock.now().plus(Duration::from_hours(24 * 100));
    let later = test.app_at(clock_at(later));
    assert_eq!(count(&later, &test.key, &waiting).await, EVENTS * waiting.len() as u64);
}
