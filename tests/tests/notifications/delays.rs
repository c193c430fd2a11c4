//! Delays of emails and events, under a steady load in all projects.
//!
//! Minutes pass in seconds: between two invocations, the test clock jumps from event to event.
//! During an invocation, it runs in real time while events occur. So delays include the real time
//! of all work.

#![allow(clippy::print_stdout)]
// Message counts are far below 2^52.
#![allow(clippy::cast_precision_loss)]

use std::cell::Cell;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use rand::rngs::ChaCha8Rng;
use rand::{RngExt, SeedableRng};
use serde_json::{Value, json};

use notifications::domain_event::{DomainEvent, DomainEventKind, Visibility};
use notifications::store::{NotificationStore, UserName};
use send_notifications::MIN_PAUSE;
use shared::app::{Clock, Operation};
use shared::projects::api_key::{ApiKeyRecord, UserId};
use shared::projects::project::{Organization, Project, ProjectId, ProjectName, Slug};
use shared::timestamp::Timestamp;
use tests::app::TestApp;
use tests::call::{Call, Reply};
use tests::errors::SentEvent;
use tests::insights::upload;
use tests::latency::percentiles;
use tests::notifications::{SentMessages, give_address};

use super::actions::{deliver, event_count, store_errors};

/// Maximum delay of due notifications.
const MAX_DELAY: Duration = Duration::from_mins(1);
/// Duration of a batch window.
const WINDOW: Duration = Duration::from_mins(10);
/// Duration of the load: longer than a window.
const MINUTES: u64 = 12;
/// Default events per minute. `DELAYS` overrides it.
const EVENTS_PER_MINUTE: u64 = 60;
/// Number of projects with most of the events.
const BUSY_PROJECTS: usize = 2;
/// Number of projects with one event of each kind.
const QUIET_PROJECTS: usize = 4;
/// Requests per minute that cause events, at least. The test puts all other events into the outbox.
const REQUESTS_PER_MINUTE: u64 = 6;
/// Maximum events that the test puts into the outbox at a time.
const MAX_BATCH: u64 = 80;
/// Number of resolved errors of each busy project, which regress during the load.
const RESOLVED: usize = 4;

/// Parts of email footers by kind.
const FOOTERS: [(&str, DomainEventKind); 4] = [
    ("because new error emails ", DomainEventKind::ErrorCreated),
    ("because regression emails ", DomainEventKind::ErrorReopened),
    ("because new insight emails ", DomainEventKind::InsightCreated),
    ("because flag change emails ", DomainEventKind::FlagChanged),
];

/// A project with one user who gets its emails, and the key of another user who changes it.
struct TestProject {
    id: ProjectId,
    email: String,
    key: String,
    resolved: Vec<String>,
}

/// An action in a project at a time.
#[derive(Clone, Copy)]
struct PlannedEvent {
    at: Timestamp,
    project: usize,
    action: Action,
}

#[derive(Clone, Copy)]
enum Action {
    /// Puts a number of new errors into the outbox.
    Announce(u64),
    CreateError,
    RegressError(usize),
    CreateInsight,
    CreateFlag,
}

/// An email or event, with the time of the test clock when it was sent.
struct Sent {
    at: Timestamp,
    message: Value,
}

/// The duration of an invocation, and the number of messages that it sent.
struct RunStats {
    took: Duration,
    messages: usize,
}

struct Scenario {
    test: TestApp,
    outbound: SentMessages,
    projects: Vec<TestProject>,
    next: Cell<u64>,
    runs: Vec<RunStats>,
    emails: Vec<Sent>,
    events: Vec<Sent>,
}

impl Scenario {
    async fn start() -> Self {
        let (test, outbound) = (TestApp::start().await, SentMessages::open());
        let mut projects = Vec::new();
        for number in 0..BUSY_PROJECTS + QUIET_PROJECTS {
            projects.push(create_project(&test, number).await);
        }
        let (runs, emails, events) = (Vec::new(), Vec::new(), Vec::new());
        let mut scenario =
            Self { test, outbound, projects, next: Cell::new(1), runs, emails, events };
        for project in 0..BUSY_PROJECTS {
            scenario.create_resolved_errors(project).await;
        }
        // Sends everything from the setup, and closes all windows.
        for _ in 0..3 {
            scenario.outbound.run(&scenario.test.app).await;
            scenario.test.pass(Duration::from_hours(1));
        }
        scenario
    }

    fn now(&self) -> Timestamp {
        self.test.app.clock.now()
    }

    /// Sets the clock, unless it is later.
    fn set_clock(&self, at: Timestamp) {
        let Clock::Fixed(millis) = &self.test.app.clock else { unreachable!("a fixed clock") };
        millis.fetch_max(u64::try_from(at.as_millis()).unwrap(), Ordering::Relaxed);
    }

    fn next_number(&self) -> u64 {
        self.next.replace(self.next.get() + 1)
    }

    async fn send(
        &self,
        project: usize,
        operation: &'static Operation,
        status: u16,
        call: Edit<'_>,
    ) -> Reply {
        let project = &self.projects[project];
        let project_call = Call::of(operation).parameter("idOrSlug", project.id).key(&project.key);
        let reply = call(project_call).send(&self.test.app).await;
        assert_eq!(reply.status, status, "{}", reply.body);
        reply
    }

    /// Delivers an event of an error.
    async fn deliver(&self, project: usize, error: &str) {
        let event = SentEvent::new(self.next_number(), self.now(), error, "cart is undefined");
        deliver(&self.test, self.projects[project].id, &event).await;
    }

    /// Creates errors and resolves them.
    async fn create_resolved_errors(&mut self, project: usize) {
        for number in 0..RESOLVED {
            self.deliver(project, &error_type(number as u64)).await;
        }
        let list = self.send(project, &list_errors::OPERATION, 200, &|call| call).await;
        for error in list.body["items"].as_array().unwrap() {
            let id = error["errorId"].as_str().unwrap().to_owned();
            let resolve =
                |call: Call| call.parameter("errorId", &id).json(&json!({"status": "resolved"}));
            self.send(project, &update_error::OPERATION, 200, &resolve).await;
            self.projects[project].resolved.push(error["type"].as_str().unwrap().to_owned());
        }
        assert_eq!(self.projects[project].resolved.len(), RESOLVED);
    }

    /// Executes a planned event now.
    async fn execute(&self, planned: PlannedEvent) {
        let number = self.next_number();
        match planned.action {
            Action::Announce(count) => {
                let visibility = Visibility::Project(self.projects[planned.project].id);
                let errors: Vec<String> = (0..count).map(|at| format!("{number}-{at}")).collect();
                store_errors(&self.test, self.projects[planned.project].id, &errors).await;
                let domain_event = |subject: String| {
                    let (kind, now) = (DomainEventKind::ErrorCreated, self.now());
                    DomainEvent::new(kind, visibility.clone(), subject, "One of many", now)
                };
                let domain_events: Vec<DomainEvent> =
                    errors.into_iter().map(domain_event).collect();
                assert!(
                    NotificationStore::new(&self.test.app.store)
                        .announce_once(&domain_events, 1)
                        .await
                        .unwrap()
                );
            }
            Action::CreateError => self.deliver(planned.project, &error_type(1_000 + number)).await,
            Action::RegressError(at) => {
                let kind = self.projects[planned.project].resolved[at].clone();
                self.deliver(planned.project, &kind).await;
            }
            Action::CreateInsight => {
                let mut body = upload([usize::try_from(number).unwrap()]);
                body["title"] = json!("Checkout");
                self.send(planned.project, &create_insight::OPERATION, 201, &|call| {
                    call.json(&body)
                })
                .await;
            }
            Action::CreateFlag => {
                let key = format!("flag-{number}");
                let body = json!({"key": key, "name": "A flag", "type": "boolean"});
                self.send(planned.project, &create_feature_flag::OPERATION, 201, &|call| {
                    call.json(&body)
                })
                .await;
            }
        }
    }

    /// Executes all planned events that are due.
    async fn execute_due(
        &self,
        planned_events: &mut impl Iterator<Item = PlannedEvent>,
        next: &mut Option<PlannedEvent>,
    ) {
        while let Some(planned) = next.filter(|planned| planned.at <= self.now()) {
            self.execute(planned).await;
            *next = planned_events.next();
        }
    }

    /// Invokes the sender, while the clock runs and planned events occur.
    async fn run(
        &mut self,
        planned_events: &mut impl Iterator<Item = PlannedEvent>,
        next: &mut Option<PlannedEvent>,
        min_pause: Duration,
    ) {
        let (began, began_wall, started) = (self.now(), Clock::System.now(), Instant::now());
        let is_done = AtomicBool::new(false);
        let run = async {
            tests::notifications::run(&self.test.app, &self.outbound.senders, min_pause).await;
            is_done.store(true, Ordering::Relaxed);
            started.elapsed()
        };
        let time = async {
            while !is_done.load(Ordering::Relaxed) {
                self.set_clock(began.plus(started.elapsed()));
                tokio::time::sleep(Duration::from_millis(1)).await;
            }
        };
        let others = async {
            while !is_done.load(Ordering::Relaxed) {
                self.execute_due(planned_events, next).await;
                tokio::time::sleep(Duration::from_millis(2)).await;
            }
        };
        let (took, (), ()) = tokio::join!(run, time, others);
        // Nothing is sent between two invocations.
        let sent = |messages: Vec<Value>| {
            let at = |message: &Value| time_of(&message["at"]);
            let of_pass = messages.into_iter().filter(move |it| at(it) >= began_wall);
            of_pass.map(move |message| Sent {
                at: began.plus(began_wall.until(at(&message))),
                message,
            })
        };
        let emails: Vec<Sent> = sent(self.outbound.emails().await).collect();
        let events: Vec<Sent> = sent(self.outbound.events().await).collect();
        let messages = emails.len() + events.len();
        self.runs.push(RunStats { took, messages });
        self.emails.extend(emails);
        self.events.extend(events);
    }

    /// Executes all planned events, with one invocation of the sender per minute, until the last
    /// windows have ended.
    async fn pass(&mut self, planned_events: Vec<PlannedEvent>) {
        let begin = self.now();
        let mut planned_events = planned_events.into_iter();
        let mut next = planned_events.next();
        // Only the first invocation, which finds nothing, needs the minimum pause.
        self.run(&mut planned_events, &mut next, MIN_PAUSE).await;
        for minute in 1..=MINUTES + 11 {
            let tick = begin.plus(Duration::from_mins(minute));
            while let Some(planned) = next.filter(|planned| planned.at <= tick) {
                self.set_clock(planned.at);
                self.execute_due(&mut planned_events, &mut next).await;
            }
            self.set_clock(tick);
            self.run(&mut planned_events, &mut next, Duration::ZERO).await;
        }
        assert!(next.is_none());
    }

    /// Returns the times of published events by project and kind, and checks that none is published
    /// twice.
    fn event_times(&self) -> BTreeMap<(usize, DomainEventKind), Vec<Timestamp>> {
        let mut ids = BTreeSet::new();
        let mut event_times: BTreeMap<_, Vec<Timestamp>> = BTreeMap::new();
        for event in &self.events {
            let detail = &event.message["detail"];
            assert!(ids.insert(detail["id"].to_string()), "published twice: {detail}");
            let kind = DomainEventKind::ALL
                .into_iter()
                .find(|kind| kind.detail_type() == event.message["detailType"].as_str());
            let id = detail["project"]["id"].as_str().unwrap();
            let project =
                self.projects.iter().position(|project| project.id.to_string() == id).unwrap();
            event_times.entry((project, kind.unwrap())).or_default().push(time_of(&detail["at"]));
        }
        for times in event_times.values_mut() {
            times.sort_unstable();
        }
        event_times
    }

    /// Returns the times and event counts of emails with a footer to the user of a project.
    fn emails_with(&self, project: usize, footer: &str) -> Vec<(Timestamp, u64)> {
        let to = &self.projects[project].email;
        let matching = self.emails.iter().filter(|mail| {
            let text = mail.message["text"].as_str().unwrap();
            mail.message["to"] == json!(to) && text.contains(footer)
        });
        let mut emails: Vec<(Timestamp, u64)> = matching
            .map(|mail| (mail.at, event_count(mail.message["subject"].as_str().unwrap())))
            .collect();
        emails.sort_unstable();
        emails
    }
}

/// A function that completes a call with a project and key.
type Edit<'e> = &'e dyn Fn(Call) -> Call;

/// Returns an error type. Types differ by letters.
fn error_type(number: u64) -> String {
    let letters =
        number.to_string().bytes().map(|digit| char::from(digit + 49)).collect::<String>();
    format!("Error{letters}")
}

fn time_of(text: &Value) -> Timestamp {
    Timestamp::parse_rfc3339(text.as_str().unwrap()).unwrap()
}

/// Creates a project. The busy ones are in two organizations, each quiet one in its own.
async fn create_project(test: &TestApp, number: usize) -> TestProject {
    let organization = if number < BUSY_PROJECTS { number % 2 } else { number };
    let organization = Organization::parse(&format!("organization-{organization}")).unwrap();
    let (id, slug) =
        (ProjectId::new(test.app.ids.new_uuid(test.app.clock.now())), format!("p-{number}"));
    let (slug, name) = (Slug::parse(&slug).unwrap(), ProjectName::parse("Shop").unwrap());
    let project = Project::new(id, slug, name, organization.clone(), test.app.clock.now()).unwrap();
    test.app.store.create_project(&project).await.unwrap();
    let (reader, writer) = (format!("reader-{number}"), format!("writer-{number}"));
    let mut key = String::new();
    for user in [&reader, &writer] {
        let (user, organization) = (UserId::parse(user).unwrap(), organization.clone());
        let projects = Some([id].into());
        key = test.key_with(|key| ApiKeyRecord { user, organization, projects, ..key }).await;
    }
    let name = UserName { organization, user: UserId::parse(&reader).unwrap() };
    let email = format!("{reader}@example.com");
    give_address(&test.app, &name, &email).await;
    TestProject { id, email, key, resolved: Vec::new() }
}

/// Returns the load from a time on. Busy projects have evenly distributed events. Each quiet
/// project has three events of different kinds at random times.
fn plan(begin: Timestamp, events_per_minute: u64, random: &mut ChaCha8Rng) -> Vec<PlannedEvent> {
    let batch = (events_per_minute / REQUESTS_PER_MINUTE).clamp(2, MAX_BATCH);
    let requests = MINUTES * events_per_minute / batch;
    let length = Duration::from_mins(MINUTES);
    let mut planned_events = Vec::new();
    let mut regressed = [0; BUSY_PROJECTS];
    for request in 0..requests {
        let at =
            begin.plus(length * u32::try_from(request).unwrap() / u32::try_from(requests).unwrap());
        let project = usize::try_from(request).unwrap() % BUSY_PROJECTS;
        let action = match request / BUSY_PROJECTS as u64 % 4 {
            0 if regressed[project] < RESOLVED && request > requests / 4 => {
                regressed[project] += 1;
                Action::RegressError(regressed[project] - 1)
            }
            1 => Action::CreateInsight,
            2 => Action::CreateFlag,
            _ => Action::CreateError,
        };
        planned_events.push(PlannedEvent { at, project, action });
        planned_events.push(PlannedEvent { at, project, action: Action::Announce(batch - 1) });
    }
    for project in BUSY_PROJECTS..BUSY_PROJECTS + QUIET_PROJECTS {
        for action in [Action::CreateError, Action::CreateInsight, Action::CreateFlag] {
            let after = Duration::from_millis(random.random_range(0..MINUTES * 60_000));
            planned_events.push(PlannedEvent { at: begin.plus(after), project, action });
        }
    }
    planned_events.sort_by_key(|planned| planned.at);
    planned_events
}

#[tokio::test]
async fn notifications_are_sent_within_a_minute_under_load() {
    let seed = tests::seed();
    println!("SEED={seed}");
    let events_per_minute =
        std::env::var("DELAYS").map_or(EVENTS_PER_MINUTE, |number| number.parse().unwrap());
    let mut scenario = Scenario::start().await;
    let begin = scenario.now();
    let planned_events = plan(begin, events_per_minute, &mut ChaCha8Rng::seed_from_u64(seed));
    let count_of = |planned: &PlannedEvent| match planned.action {
        Action::Announce(count) => count,
        _ => 1,
    };
    let planned: u64 = planned_events.iter().map(count_of).sum();
    scenario.pass(planned_events).await;

    let event_times = scenario.event_times();
    let published: usize = event_times.values().map(Vec::len).sum();
    assert_eq!(published as u64, planned, "an event is missing");
    // The previous invocation found almost nothing, and made only the minimum pause. Events before
    // this invocation are later by the time that it takes beyond that pause.
    let first_run = scenario.runs[1].took;
    let settled = begin.plus(Duration::from_mins(1) + first_run);
    let beyond_pause = first_run.saturating_sub(MIN_PAUSE);
    let max_delay = |at: Timestamp| if at < settled { MAX_DELAY + beyond_pause } else { MAX_DELAY };
    let delay_of = |at: Timestamp, sent: Timestamp| {
        let delay = at.until(sent);
        assert!(delay <= max_delay(at), "{delay:?} after {at}, {settled}");
        (at, delay)
    };
    let at = |event: &Sent| time_of(&event.message["detail"]["at"]);
    let event_delays = scenario.events.iter().map(|event| delay_of(at(event), event.at)).collect();

    let (mut first, mut batched) = (Vec::new(), Vec::new());
    for ((project, kind), times) in &event_times {
        let (footer, _) = FOOTERS.iter().find(|(_, other)| other == kind).unwrap();
        let emails = scenario.emails_with(*project, footer);
        let mailed: u64 = emails.iter().map(|(_, count)| count).sum();
        assert_eq!(mailed, times.len() as u64, "{kind:?} in {project}: {emails:?}");
        first.push(delay_of(times[0], emails[0].0));
        for pair in emails.windows(2) {
            let [(previous, _), (at, _)] = pair else { unreachable!("a window of two") };
            let end = previous.plus(WINDOW);
            // Events that arrive while the previous email is written are due at its window's end.
            let next =
                times.iter().find(|time| *time > previous).map_or(end, |time| end.max(*time));
            batched.push(delay_of(next, *at));
        }
    }
    assert!(batched.len() >= BUSY_PROJECTS * 3, "{}", batched.len());
    let took: Duration = scenario.runs.iter().map(|run| run.took).sum();
    let messages: usize = scenario.runs.iter().map(|run| run.messages).sum();
    let longest = scenario.runs.iter().map(|run| run.took).max().unwrap();
    println!("{planned} events, {events_per_minute} per minute; the first run took {first_run:?}");
    print("events", settled, event_delays);
    print("first emails", settled, first);
    print("batch emails, after their windows", settled, batched);
    println!(
        "{} runs, at most {longest:?} each, {:.0} messages per second",
        scenario.runs.len(),
        messages as f64 / took.as_secs_f64()
    );
}

/// Prints the longest of some delays, and the longest and 95th percentile of those after `settled`.
fn print(name: &str, settled: Timestamp, delays: Vec<(Timestamp, Duration)>) {
    let count = delays.len();
    let longest = delays.iter().map(|(_, delay)| *delay).max().unwrap();
    let later = delays.into_iter().filter(|(at, _)| *at >= settled);
    let mut later: Vec<Duration> = later.map(|(_, delay)| delay).collect();
    let [longest_later, p95] = percentiles(&mut later, [100, 95]);
    println!(
        "{count} {name}: at most {longest:?}; after the first minute {longest_later:?}, p95 {p95:?}"
    );
}
