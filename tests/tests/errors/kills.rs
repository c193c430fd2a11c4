//! Repeated kills of ingest-error-events and pack-error-log processes.

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
use tests::errors::{SentEvent, delivery, project};
use tests::process::Process;
use tests::seed;

const INGEST: &str = "ingest-error-events";
const PACK_ERROR_LOG: &str = "pack-error-log";
/// The number of kills of each function during its work.
const KILLS: usize = 12;
/// The error types of the events.
const ERRORS: [&str; 4] = ["TypeError", "ValueError", "KeyError", "TimeoutError"];
/// The maximum lifetime of a process after its work begins.
const LONGEST_WORK: Duration = Duration::from_millis(120);
/// The age of the oldest events, in days.
const DAYS: u64 = 6;

const QUERY: &Operation = &query_error_timeseries::OPERATION;
const LIST: &Operation = &list_errors::OPERATION;
const LIST_EVENTS: &Operation = &list_error_events::OPERATION;

/// The number of due projects per wave.
const PROJECTS: u64 = 12;
/// The number of events of a due project.
const EVENTS: u64 = 4;

/// Creates projects whose events were received 25 hours ago, so that packing is due.
async fn create_due_projects(test: &TestApp, wave: u64) -> Vec<ProjectId> {
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
            let call = delivery(&project, &event);
            assert_eq!(call.send(&app).await.status, 200);
        }
        projects.push(id);
    }
    projects
}

/// Returns the total number of events of these projects.
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

/// Sent events, and their outcomes.
struct Deliveries {
    project: Project,
    random: ChaCha8Rng,
    sent: BTreeMap<String, SentEvent>,
    acknowledged: BTreeSet<String>,
    /// Events without acknowledgment, since their processes were killed.
    unacknowledged: Vec<SentEvent>,
}

impl Deliveries {
    /// Returns an unacknowledged, an acknowledged or a new event.
    fn next(&mut self) -> SentEvent {
        if !self.unacknowledged.is_empty() && self.random.random_ratio(1, 3) {
            let index = self.random.random_range(0..self.unacknowledged.len());
            return self.unacknowledged.swap_remove(index);
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

    /// Delivers an event, and records it as unacknowledged until its response arrives.
    async fn deliver_next(&mut self, process: &Process) {
        let event = self.next();
        let is_new = !self.acknowledged.contains(&event.id);
        if is_new {
            self.unacknowledged.push(event.clone());
        }
        let call = delivery(&self.project, &event);
        let response = process.invoke(call.event().to_string()).await;
        assert_eq!(response["statusCode"], 200, "{response}");
        if is_new {
            self.unacknowledged.pop();
            self.acknowledged.insert(event.id);
        }
    }

    /// Delivers events sequentially to a process, and kills it after a random time.
    async fn deliver_until_killed(&mut self, endpoint: &str, log: &Path) {
        let process = Process::start(INGEST, endpoint, &[], log).await;
        // The start of the process is complete with the first response.
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

/// Packs the queue once. Returns the duration, including the start of the process.
async fn pack(endpoint: &str, log: &Path) -> Duration {
    let started = Instant::now();
    let process = Process::start(PACK_ERROR_LOG, endpoint, &[], log).await;
    process.invoke("{}".to_owned()).await;
    let duration = started.elapsed();
    process.kill().await;
    duration
}

/// Kills a packer after `life`. Returns `false` if it finished before.
async fn pack_until_killed(life: Duration, endpoint: &str, log: &Path) -> bool {
    let process = Process::start(PACK_ERROR_LOG, endpoint, &[], log).await;
    let killed = tokio::select! {
        _ = process.invoke("{}".to_owned()) => false,
        () = tokio::time::sleep(life) => true,
    };
    process.kill().await;
    println!("a packer {}", if killed { "was killed" } else { "finished before its kill" });
    killed
}

/// The state of the project, as operations report it.
struct ReportedState {
    /// The id, error type and time of every listed event, with repetitions.
    listed: Vec<(String, String, String)>,
    /// The sum of the counts of all errors.
    counts: u64,
    /// Event counts by hour.
    hours: BTreeMap<String, u64>,
}

async fn reply(app: &App, key: &str, call: Call) -> Value {
    let reply = call.key(key).send(app).await;
    assert_eq!(reply.status, 200, "{}", reply.body);
    reply.body
}

async fn reported_state(app: &App, key: &str) -> ReportedState {
    let errors = reply(app, key, Call::of(LIST).parameter("idOrSlug", PROJECT)).await;
    let mut state = ReportedState { listed: Vec::new(), counts: 0, hours: BTreeMap::new() };
    for error in errors["items"].as_array().unwrap() {
        state.counts += error["count"].as_u64().unwrap();
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
                state.listed.push((
                    text(&event["eventId"]),
                    text(&error["type"]),
                    text(&event["occurredAt"]),
                ));
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
            state.hours.insert(start[..13].to_owned(), events);
        }
    }
    state
}

fn assert_exact(state: &ReportedState, deliveries: &Deliveries) {
    let ids: BTreeSet<&String> = state.listed.iter().map(|(id, ..)| id).collect();
    assert_eq!(ids.len(), state.listed.len(), "an event is listed twice");
    for id in &deliveries.acknowledged {
        assert!(ids.contains(id), "acknowledged event {id} is not listed");
    }
    let mut hours: BTreeMap<String, u64> = BTreeMap::new();
    for (id, error_type, occurred_at) in &state.listed {
        let sent = &deliveries.sent[id];
        assert_eq!((&sent.error_type, &sent.at.to_string()), (error_type, occurred_at));
        *hours.entry(occurred_at[..13].to_owned()).or_default() += 1;
    }
    assert_eq!(state.hours, hours, "counted and listed events differ");
    assert_eq!(state.counts, state.listed.len() as u64);
}

#[tokio::test]
async fn kills_lose_and_double_no_acknowledged_event() {
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
        unacknowledged: Vec::new(),
    };

    // Without work, an invocation takes little longer than the start.
    let start = pack(&endpoint, &log).await;
    deliveries.deliver_until_killed(&endpoint, &log).await;
    let mut work = LONGEST_WORK;
    let mut ingesters = 0;
    let mut packers = 0;
    let mut due_projects = Vec::new();
    while packers < KILLS || ingesters < KILLS {
        due_projects.extend(create_due_projects(&test, due_projects.len() as u64).await);
        let life = start.mul_f32(0.8) + deliveries.random.random_range(Duration::ZERO..work);
        let (killed, ()) = tokio::join!(
            pack_until_killed(life, &endpoint, &log),
            deliveries.deliver_until_killed(&endpoint, &log)
        );
        ingesters += 1;
        packers += usize::from(killed);
        // Adapts to the speed of the machine, so that most packers are killed during their work.
        work = if killed { work.mul_f32(1.2) } else { work.mul_f32(0.6) };
        assert_eq!(count(&app, &test.key, &due_projects).await, EVENTS * due_projects.len() as u64);
        assert!(ingesters < 5 * KILLS, "packers finish too early: {packers} were killed");
    }
    println!(
        "{} of {} events were acknowledged",
        deliveries.acknowledged.len(),
        deliveries.sent.len()
    );
    assert!(deliveries.acknowledged.len() > KILLS);
    // Before packing is complete, while two packers run, and afterwards.
    assert_exact(&reported_state(&app, &test.key).await, &deliveries);
    let (state, ..) =
        tokio::join!(reported_state(&app, &test.key), pack(&endpoint, &log), pack(&endpoint, &log));
    assert_exact(&state, &deliveries);
    assert_exact(&reported_state(&app, &test.key).await, &deliveries);
    assert_eq!(count(&app, &test.key, &due_projects).await, EVENTS * due_projects.len() as u64);
    let mut left = ErrorStore::new(&app.store).list_packing_queue().await.unwrap();
    left.retain(|entry| entry.due <= app.clock.now());
    assert_eq!(left, [], "due projects are not packed");
    // The rows have expired by then.
    let later = app.clock.now().plus(Duration::from_hours(24 * 100));
    let later = test.app_at(clock_at(later));
    assert_eq!(count(&later, &test.key, &due_projects).await, EVENTS * due_projects.len() as u64);
}
