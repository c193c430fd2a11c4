//! How long happenings wait until they are told, while many happen in all projects at a steady rate.
//!
//! Minutes pass in seconds: between two runs the clock goes from happening to happening, and while a run works
//! it goes as fast as time does, and happenings come all the while. So a delay is what the clock of the test
//! says, with all the time that work really takes.

#![allow(clippy::print_stdout)]
// Counts of messages, which are far below 2^52.
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
use send_notifications::LEAST_PAUSE;
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

use super::actions::{deliver, store_errors};

/// The longest that anything waits which is due.
const MOST: Duration = Duration::from_mins(1);
/// For how long what follows a mail is gathered.
const WINDOW: Duration = Duration::from_mins(10);
/// How long happenings come: longer than a window, so that it is seen to end.
const MINUTES: u64 = 12;
/// How many happen in a minute, unless `DELAYS` says it.
const A_MINUTE: u64 = 60;
/// In how many projects most of them do, and in how many one of each kind.
const LOUD: usize = 2;
const QUIET: usize = 4;
/// How many times in a minute something comes about by a request, at least; the others are put into the outbox
/// as they would be, beside it.
const REQUESTS_A_MINUTE: u64 = 6;
/// How many may be put there at once.
const AT_ONCE: u64 = 80;
/// How many errors of each loud project are resolved before, and back again.
const RESOLVED: usize = 4;

/// What mails say that they are about.
const ABOUT: [(&str, DomainEventKind); 4] = [
    ("mails about new errors ", DomainEventKind::ErrorCreated),
    ("mails about errors that are back ", DomainEventKind::ErrorReopened),
    ("mails about new insights ", DomainEventKind::InsightCreated),
    ("mails about changes of feature flags ", DomainEventKind::FlagChanged),
];

/// A project of an organization, with a user who gets its mails and a key of another one who changes it.
struct TestProject {
    id: ProjectId,
    email: String,
    key: String,
    resolved: Vec<String>,
}

/// What happens at a time, in one of the places.
#[derive(Clone, Copy)]
struct Due {
    at: Timestamp,
    place: usize,
    what: What,
}

#[derive(Clone, Copy)]
enum What {
    /// Errors as they are put into the outbox.
    Announced(u64),
    NewError,
    ErrorBack(usize),
    NewInsight,
    NewFlag,
}

/// A mail or an event, and when it was sent by the clock of the test.
struct Sent {
    at: Timestamp,
    message: Value,
}

/// A run of the sender: how long it took, and how many messages it sent.
struct RunOfSender {
    took: Duration,
    messages: usize,
}

struct Scenario {
    test: TestApp,
    post: SentMessages,
    places: Vec<TestProject>,
    next: Cell<u64>,
    runs: Vec<RunOfSender>,
    mails: Vec<Sent>,
    events: Vec<Sent>,
}

impl Scenario {
    async fn start() -> Self {
        let (test, post) = (TestApp::start().await, SentMessages::open());
        let mut places = Vec::new();
        for number in 0..LOUD + QUIET {
            places.push(make_place(&test, number).await);
        }
        let (runs, mails, events) = (Vec::new(), Vec::new(), Vec::new());
        let mut scenario = Self { test, post, places, next: Cell::new(1), runs, mails, events };
        for place in 0..LOUD {
            scenario.resolve_some(place).await;
        }
        // Of what came before nothing is left, and no window is open.
        for _ in 0..3 {
            scenario.post.run(&scenario.test.app).await;
            scenario.test.pass(Duration::from_hours(1));
        }
        scenario
    }

    fn now(&self) -> Timestamp {
        self.test.app.clock.now()
    }

    /// Sets the clock, which never goes back.
    fn set_clock(&self, at: Timestamp) {
        let Clock::Fixed(millis) = &self.test.app.clock else { unreachable!("it is fixed") };
        millis.fetch_max(u64::try_from(at.as_millis()).unwrap(), Ordering::Relaxed);
    }

    fn next_number(&self) -> u64 {
        self.next.replace(self.next.get() + 1)
    }

    async fn send(
        &self,
        place: usize,
        operation: &'static Operation,
        status: u16,
        call: Edit<'_>,
    ) -> Reply {
        let place = &self.places[place];
        let of_place = Call::of(operation).parameter("idOrSlug", place.id).key(&place.key);
        let reply = call(of_place).send(&self.test.app).await;
        assert_eq!(reply.status, status, "{}", reply.body);
        reply
    }

    /// An event of a kind of error.
    async fn deliver(&self, place: usize, kind: &str) {
        let event = SentEvent::new(self.next_number(), self.now(), kind, "cart is undefined");
        deliver(&self.test, self.places[place].id, &event).await;
    }

    /// Makes errors and resolves them.
    async fn resolve_some(&mut self, place: usize) {
        for number in 0..RESOLVED {
            self.deliver(place, &kind_of(number as u64)).await;
        }
        let list = self.send(place, &list_errors::OPERATION, 200, &|call| call).await;
        for error in list.body["items"].as_array().unwrap() {
            let id = error["errorId"].as_str().unwrap().to_owned();
            let resolve =
                |call: Call| call.parameter("errorId", &id).json(&json!({"status": "resolved"}));
            self.send(place, &update_error::OPERATION, 200, &resolve).await;
            self.places[place].resolved.push(error["type"].as_str().unwrap().to_owned());
        }
        assert_eq!(self.places[place].resolved.len(), RESOLVED);
    }

    /// Has something happen now.
    async fn make(&self, due: Due) {
        let number = self.next_number();
        match due.what {
            What::Announced(count) => {
                let scene = Visibility::Project(self.places[due.place].id);
                let errors: Vec<String> = (0..count).map(|at| format!("{number}-{at}")).collect();
                store_errors(&self.test, self.places[due.place].id, &errors).await;
                let domain_event = |subject: String| {
                    let (kind, now) = (DomainEventKind::ErrorCreated, self.now());
                    DomainEvent::new(kind, scene.clone(), subject, "One of many", now)
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
            What::NewError => self.deliver(due.place, &kind_of(1_000 + number)).await,
            What::ErrorBack(at) => {
                let kind = self.places[due.place].resolved[at].clone();
                self.deliver(due.place, &kind).await;
            }
            What::NewInsight => {
                let mut body = upload([usize::try_from(number).unwrap()]);
                body["title"] = json!("Checkout");
                self.send(due.place, &create_insight::OPERATION, 201, &|call| call.json(&body))
                    .await;
            }
            What::NewFlag => {
                let key = format!("flag-{number}");
                let body = json!({"key": key, "name": "A flag", "type": "boolean"});
                self.send(due.place, &create_feature_flag::OPERATION, 201, &|call| {
                    call.json(&body)
                })
                .await;
            }
        }
    }

    /// Has all happen that is due by the clock.
    async fn make_due(&self, dues: &mut impl Iterator<Item = Due>, next: &mut Option<Due>) {
        while let Some(due) = next.filter(|due| due.at <= self.now()) {
            self.make(due).await;
            *next = dues.next();
        }
    }

    /// Lets the sender run, while time goes by and what is due happens.
    async fn run(
        &mut self,
        dues: &mut impl Iterator<Item = Due>,
        next: &mut Option<Due>,
        least_pause: Duration,
    ) {
        let (began, really_began, started) = (self.now(), Clock::System.now(), Instant::now());
        let is_over = AtomicBool::new(false);
        let run = async {
            tests::notifications::run(&self.test.app, &self.post.senders, least_pause).await;
            is_over.store(true, Ordering::Relaxed);
            started.elapsed()
        };
        let time = async {
            while !is_over.load(Ordering::Relaxed) {
                self.set_clock(began.plus(started.elapsed()));
                tokio::time::sleep(Duration::from_millis(1)).await;
            }
        };
        let others = async {
            while !is_over.load(Ordering::Relaxed) {
                self.make_due(dues, next).await;
                tokio::time::sleep(Duration::from_millis(2)).await;
            }
        };
        let (took, (), ()) = tokio::join!(run, time, others);
        // Both clocks have milliseconds, and nothing is sent between two runs.
        let sent = |messages: Vec<Value>| {
            let at = |message: &Value| time_of(&message["at"]);
            let of_run = messages.into_iter().filter(move |it| at(it) >= really_began);
            of_run.map(move |message| Sent {
                at: began.plus(really_began.until(at(&message))),
                message,
            })
        };
        let mails: Vec<Sent> = sent(self.post.mails().await).collect();
        let events: Vec<Sent> = sent(self.post.events().await).collect();
        let messages = mails.len() + events.len();
        self.runs.push(RunOfSender { took, messages });
        self.mails.extend(mails);
        self.events.extend(events);
    }

    /// Lets happen what is due, with a run of the sender in each minute, until the last windows have ended.
    async fn pass(&mut self, dues: Vec<Due>) {
        let begin = self.now();
        let mut dues = dues.into_iter();
        let mut next = dues.next();
        // Nothing has happened before it. Of those after it each pauses for as long as it sent, and the pause of
        // all others would only be waited for.
        self.run(&mut dues, &mut next, LEAST_PAUSE).await;
        for minute in 1..=MINUTES + 11 {
            let tick = begin.plus(Duration::from_mins(minute));
            while let Some(due) = next.filter(|due| due.at <= tick) {
                self.set_clock(due.at);
                self.make_due(&mut dues, &mut next).await;
            }
            self.set_clock(tick);
            self.run(&mut dues, &mut next, Duration::ZERO).await;
        }
        assert!(next.is_none());
    }

    /// When something of each kind happened in each place, as the events say: each once.
    fn happened(&self) -> BTreeMap<(usize, DomainEventKind), Vec<Timestamp>> {
        let mut ids = BTreeSet::new();
        let mut happened: BTreeMap<_, Vec<Timestamp>> = BTreeMap::new();
        for event in &self.events {
            let detail = &event.message["detail"];
            assert!(ids.insert(detail["id"].to_string()), "told twice: {detail}");
            let kind = DomainEventKind::ALL
                .into_iter()
                .find(|kind| kind.detail_type() == event.message["detailType"].as_str());
            let project = detail["project"]["id"].as_str().unwrap();
            let place =
                self.places.iter().position(|place| place.id.to_string() == project).unwrap();
            happened.entry((place, kind.unwrap())).or_default().push(time_of(&detail["at"]));
        }
        for times in happened.values_mut() {
            times.sort_unstable();
        }
        happened
    }

    /// When mails of a kind went to the user of a place, and how many happenings they tell of.
    fn mails_of(&self, place: usize, about: &str) -> Vec<(Timestamp, usize)> {
        let to = &self.places[place].email;
        let of_kind = self.mails.iter().filter(|mail| {
            let text = mail.message["text"].as_str().unwrap().split_whitespace();
            let text = text.collect::<Vec<_>>().join(" ");
            mail.message["to"] == json!(to) && text.contains(about)
        });
        let mut mails: Vec<(Timestamp, usize)> = of_kind
            .map(|mail| {
                let subject = mail.message["subject"].as_str().unwrap().replace(',', "");
                (mail.at, subject.split(' ').next().unwrap().parse().unwrap_or(1))
            })
            .collect();
        mails.sort_unstable();
        mails
    }
}

/// What a call is given besides its project and key.
type Edit<'e> = &'e dyn Fn(Call) -> Call;

/// Kinds of errors differ by letters.
fn kind_of(number: u64) -> String {
    let letters =
        number.to_string().bytes().map(|digit| char::from(digit + 49)).collect::<String>();
    format!("Error{letters}")
}

fn time_of(text: &Value) -> Timestamp {
    Timestamp::parse_rfc3339(text.as_str().unwrap()).unwrap()
}

/// A place: the loud ones are of two organizations, the quiet ones of one each.
async fn make_place(test: &TestApp, number: usize) -> TestProject {
    let organization = if number < LOUD { number % 2 } else { number };
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

/// What happens from a time on: so much in each minute in the loud places, at even distances; in each of the
/// quiet ones three happenings of different kinds, at any time.
fn plan(begin: Timestamp, a_minute: u64, random: &mut ChaCha8Rng) -> Vec<Due> {
    let at_once = (a_minute / REQUESTS_A_MINUTE).clamp(2, AT_ONCE);
    let turns = MINUTES * a_minute / at_once;
    let length = Duration::from_mins(MINUTES);
    let mut dues = Vec::new();
    let mut back = [0; LOUD];
    for turn in 0..turns {
        let at = begin.plus(length * u32::try_from(turn).unwrap() / u32::try_from(turns).unwrap());
        let place = usize::try_from(turn).unwrap() % LOUD;
        let what = match turn / LOUD as u64 % 4 {
            0 if back[place] < RESOLVED && turn > turns / 4 => {
                back[place] += 1;
                What::ErrorBack(back[place] - 1)
            }
            1 => What::NewInsight,
            2 => What::NewFlag,
            _ => What::NewError,
        };
        dues.push(Due { at, place, what });
        dues.push(Due { at, place, what: What::Announced(at_once - 1) });
    }
    for place in LOUD..LOUD + QUIET {
        for what in [What::NewError, What::NewInsight, What::NewFlag] {
            let after = Duration::from_millis(random.random_range(0..MINUTES * 60_000));
            dues.push(Due { at: begin.plus(after), place, what });
        }
    }
    dues.sort_by_key(|due| due.at);
    dues
}

#[tokio::test]
async fn what_happens_is_told_within_a_minute_however_much_does() {
    let seed = tests::seed();
    println!("SEED={seed}");
    let a_minute = std::env::var("DELAYS").map_or(A_MINUTE, |number| number.parse().unwrap());
    let mut scenario = Scenario::start().await;
    let begin = scenario.now();
    let dues = plan(begin, a_minute, &mut ChaCha8Rng::seed_from_u64(seed));
    let planned: u64 =
        dues.iter().map(|due| if let What::Announced(count) = due.what { count } else { 1 }).sum();
    scenario.pass(dues).await;

    let happened = scenario.happened();
    let told: usize = happened.values().map(Vec::len).sum();
    assert_eq!(told as u64, planned, "an event is missing");
    // That run comes after one that found hardly anything, as in the minute in which a storm begins: what
    // happened until then may have to wait for all that it sends beyond the pause of the one before.
    let first_run = scenario.runs[1].took;
    let settled = begin.plus(Duration::from_mins(1) + first_run);
    let beyond_pause = first_run.saturating_sub(LEAST_PAUSE);
    let most = |happened: Timestamp| if happened < settled { MOST + beyond_pause } else { MOST };
    let waited = |happened: Timestamp, sent: Timestamp| {
        let delay = happened.until(sent);
        assert!(delay <= most(happened), "{delay:?} after {happened}, {settled}");
        (happened, delay)
    };
    let at = |event: &Sent| time_of(&event.message["detail"]["at"]);
    let of_events = scenario.events.iter().map(|event| waited(at(event), event.at)).collect();

    let (mut first, mut gathered) = (Vec::new(), Vec::new());
    for ((place, kind), times) in &happened {
        let (about, _) = ABOUT.iter().find(|(_, of)| of == kind).unwrap();
        let mails = scenario.mails_of(*place, about);
        let told: usize = mails.iter().map(|(_, count)| count).sum();
        assert_eq!(told, times.len(), "{about}of {place}: {mails:?}");
        first.push(waited(times[0], mails[0].0));
        for pair in mails.windows(2) {
            let [(before, _), (at, _)] = pair else { unreachable!("a window of two") };
            let end = before.plus(WINDOW);
            // What came while the one before was written may be all that this one tells.
            let next = times.iter().find(|time| *time > before).map_or(end, |time| end.max(*time));
            gathered.push(waited(next, *at));
        }
    }
    assert!(gathered.len() >= LOUD * 3, "{}", gathered.len());
    let took: Duration = scenario.runs.iter().map(|run| run.took).sum();
    let messages: usize = scenario.runs.iter().map(|run| run.messages).sum();
    let longest = scenario.runs.iter().map(|run| run.took).max().unwrap();
    println!("{planned} happenings, {a_minute} a minute; the first run took {first_run:?}");
    print("events", settled, of_events);
    print("first mails", settled, first);
    print("mails of a window, after its end", settled, gathered);
    println!(
        "{} runs of {longest:?} at most, {:.0} messages a second",
        scenario.runs.len(),
        messages as f64 / took.as_secs_f64()
    );
}

/// Prints some delays, each after something happened: the greatest of all, and of those that came later than
/// `settled` the greatest, and the one that 95 of a hundred do not exceed.
fn print(what: &str, settled: Timestamp, delays: Vec<(Timestamp, Duration)>) {
    let count = delays.len();
    let greatest = delays.iter().map(|(_, delay)| *delay).max().unwrap();
    let later = delays.into_iter().filter(|(happened, _)| *happened >= settled);
    let mut later: Vec<Duration> = later.map(|(_, delay)| delay).collect();
    let [last, p95] = percentiles(&mut later, [100, 95]);
    println!(
        "{count} {what}: {greatest:?} at most; after the first minute {last:?}, {p95:?} for 95 %"
    );
}
