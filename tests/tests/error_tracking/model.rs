//! Random histories, and after each step random questions whose answers are counted by hand.

#![allow(clippy::print_stdout)]

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;
use tests::call::Call;

use futures_util::future::join_all;
use rand::rngs::ChaCha8Rng;
use rand::seq::IndexedRandom;
use rand::{RngExt, SeedableRng};
use serde_json::{Value, json};
use shared::error_tracking::log::manifest::MergeLimits;
use shared::error_tracking::store::PackingLimits;
use shared::error_tracking::{ErrorId, add_log_shards};
use shared::projects::project::{Project, ProjectId};
use shared::timestamp::Timestamp;
use tests::error_tracking::SentEvent;
use tests::seed;

use super::{DAY, EVERYTHING, HOUR, LIST, LIST_EVENTS, MINUTE, Tracker, UPDATE, column};

/// How many histories each test goes through.
const HISTORIES: u64 = 20;
const STEPS: usize = 9;
/// How long a history may last.
const LONGEST: Duration = Duration::from_hours(40 * 24);

/// Type and message of errors, each the only one of its fingerprint.
const KINDS: [(&str, &str); 5] = [
    ("TypeError", "Cannot read property of undefined"),
    ("ValueError", "bad card"),
    ("PaymentDeclined", "the card was declined"),
    ("TimeoutError", "upstream is gone"),
    ("KeyError", "name"),
];
const ATTRIBUTES: [(&str, &[&str]); 5] = [
    ("browser", &["Chrome", "Chrome Mobile", "Firefox"]),
    ("os", &["Android", "Debian"]),
    ("environment", &["production", "staging"]),
    ("release", &["shop@2.0.0", "shop@2.0.1"]),
    ("level", &["error", "warning"]),
];
const STATUSES: [&str; 3] = ["open", "resolved", "ignored"];
const OPERATORS: [&str; 6] = ["is", "is_not", "contains", "not_contains", "is_set", "is_not_set"];

type Passes = fn(&SentEvent) -> bool;

/// Searches, and what passes them.
const SEARCHES: [(&str, Passes); 8] = [
    ("card", |event| event.message.contains("card")),
    ("CARD -bad", |event| event.message == "the card was declined"),
    ("-error", |event| event.error_type == "PaymentDeclined"),
    ("\"property of\"", |event| event.error_type == "TypeError"),
    ("nothing-like-it", |_| false),
    ("!os:Debian", |event| value_of(event, "os") != Some("Debian")),
    ("browser:[Chrome,Firefox]", |event| {
        matches!(value_of(event, "browser"), Some("Chrome" | "Firefox"))
    }),
    ("TypeError: level:warning", |event| {
        event.error_type == "TypeError" && value_of(event, "level") == Some("warning")
    }),
];

/// The value of an attribute that filters see.
fn value_of<'e>(event: &'e SentEvent, name: &str) -> Option<&'e str> {
    let sent = event.attributes.get(name).map(String::as_str);
    if name == "level" { sent.or(Some("error")) } else { sent }
}

/// An event that was acknowledged, and its project.
#[derive(Debug, Clone)]
struct Acknowledged {
    project: usize,
    event: SentEvent,
}

/// What an error's status ought to be.
#[derive(Debug, Clone, Copy)]
struct Status {
    name: &'static str,
    resolved_at: Option<Timestamp>,
}

/// A question.
#[derive(Debug, Clone)]
struct Query {
    projects: Vec<usize>,
    from: Option<i64>,
    to: Option<i64>,
    limit: Option<usize>,
    status: Option<&'static str>,
    search: Option<usize>,
    filters: Vec<[&'static str; 3]>,
}

/// Some steps of packing and merging.
struct Work {
    project: ProjectId,
    steps: u32,
    limits: PackingLimits,
    now: Timestamp,
}

impl Work {
    async fn carry_out(&self, tracker: &Tracker) {
        let app = &tracker.test.app;
        let new_id = || ErrorId::new(app.ids.new_uuid(app.clock.now()));
        for _ in 0..self.steps {
            app.store.pack_step(self.project, &self.limits, &new_id, self.now).await.unwrap();
            app.store.merge_step(self.project, &self.limits.merging, self.now).await.unwrap();
        }
    }
}

struct History {
    tracker: Tracker,
    projects: Vec<Project>,
    random: ChaCha8Rng,
    events: Vec<Acknowledged>,
    statuses: BTreeMap<(usize, String), Status>,
    passed: Duration,
}

impl History {
    async fn start(seed: u64) -> Self {
        let tracker = Tracker::start().await;
        let projects = vec![
            tracker.project.clone(),
            tracker.other_project("one").await,
            tracker.other_project("two").await,
        ];
        let random = ChaCha8Rng::seed_from_u64(seed);
        let (events, statuses) = (Vec::new(), BTreeMap::new());
        Self { tracker, projects, random, events, statuses, passed: Duration::ZERO }
    }

    async fn step(&mut self) {
        match self.random.random_range(0..13) {
            0..4 => self.deliver().await,
            4 | 5 => self.pass(),
            6..9 => Box::pin(self.pack()).await,
            9 => self.set_status().await,
            10 => self.add_shards().await,
            11 => Box::pin(self.kill()).await,
            _ => Box::pin(self.deliver_and_pack()).await,
        }
    }

    /// A time at which an event may have happened that is delivered now.
    fn time(&mut self) -> Timestamp {
        let longest = *[30 * MINUTE, 2 * HOUR, 20 * HOUR, 3 * DAY, 29 * DAY, 30 * DAY]
            .choose(&mut self.random)
            .unwrap();
        let exact = self.random.random_range(Duration::ZERO..longest);
        let age = match self.random.random_range(0..3) {
            // The moments at which hours and days begin and end.
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

    /// Some events, of which some were acknowledged before, as they were or otherwise.
    fn batch(&mut self) -> Vec<Acknowledged> {
        let mut batch = Vec::new();
        for _ in 0..=self.random.random_range(0..7) {
            let project = self.random.random_range(0..self.projects.len());
            let mut event = self.new_event();
            let mut sent = Acknowledged { project, event: event.clone() };
            if !self.events.is_empty() && self.random.random_ratio(1, 5) {
                let index = self.random.random_range(0..self.events.len());
                let earlier = self.events[index].clone();
                if self.random.random_ratio(1, 2) {
                    event.id.clone_from(&earlier.event.id);
                    // With another content; in another project, it is another event.
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

    async fn send(&self, batch: &[Acknowledged]) {
        let sends = batch.iter().map(async |sent| {
            let project = &self.projects[sent.project];
            let reply = self.tracker.deliver_to(project, &sent.event).await;
            assert_eq!((reply.status, &reply.body), (200, &json!({ "id": sent.event.id })));
        });
        join_all(sends).await;
    }

    fn acknowledge(&mut self, batch: Vec<Acknowledged>) {
        for sent in batch {
            let is_there =
                |it: &Acknowledged| it.project == sent.project && it.event.id == sent.event.id;
            if self.events.iter().any(is_there) {
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

    /// Packs and merges, by several at once whose clocks differ.
    async fn pack(&mut self) {
        if self.random.random_ratio(1, 4) {
            tokio::join!(self.tracker.run_schedule(), self.tracker.run_schedule());
            return;
        }
        let works: Vec<Work> = (0..3).map(|_| self.work()).collect();
        join_all(works.iter().map(|work| work.carry_out(&self.tracker))).await;
    }

    fn work(&mut self) -> Work {
        let merging = MergeLimits {
            events: *[4, 20, 1_000_000].choose(&mut self.random).unwrap(),
            fan_in: self.random.random_range(2..5),
            ..MergeLimits::default()
        };
        let rows = *[1, 3, 10, EVERYTHING.rows].choose(&mut self.random).unwrap();
        let clock = self.random.random_range(0..20_000);
        Work {
            project: self.projects[self.random.random_range(0..self.projects.len())].id,
            steps: self.random.random_range(1..6),
            limits: PackingLimits { rows, merging, ..EVERYTHING },
            now: Timestamp::from_millis(self.tracker.now().as_millis() + clock - 10_000),
        }
    }

    /// Ends deliveries, packers and mergers amid their work. The deliveries are sent again.
    async fn kill(&mut self) {
        let batch = self.batch();
        let works: Vec<Work> = (0..3).map(|_| self.work()).collect();
        let life = Duration::from_micros(self.random.random_range(0..30_000));
        let all = async {
            let works = join_all(works.iter().map(|work| work.carry_out(&self.tracker)));
            tokio::join!(works, self.send(&batch));
        };
        let _ = tokio::time::timeout(life, all).await;
        self.send(&batch).await;
        self.acknowledge(batch);
    }

    async fn deliver_and_pack(&mut self) {
        let batch = self.batch();
        let works: Vec<Work> = (0..2).map(|_| self.work()).collect();
        let works = join_all(works.iter().map(|work| work.carry_out(&self.tracker)));
        tokio::join!(self.send(&batch), self.tracker.run_schedule(), works);
        self.acknowledge(batch);
    }

    async fn add_shards(&mut self) {
        let shards = *[1, 2, 3].choose(&mut self.random).unwrap();
        let project = self.projects[self.random.random_range(0..self.projects.len())].id;
        add_log_shards(&self.tracker.test.app, project, shards).await.unwrap();
    }

    async fn set_status(&mut self) {
        if self.statuses.is_empty() {
            return;
        }
        let index = self.random.random_range(0..self.statuses.len());
        let (project, error_type) = self.statuses.keys().nth(index).unwrap().clone();
        let name = *STATUSES.choose(&mut self.random).unwrap();
        let errors = self.errors_of(project).await;
        let error = errors.iter().find(|error| error["type"] == error_type).unwrap();
        let call = Call::of(UPDATE).parameter("idOrSlug", self.projects[project].id);
        let call = call.parameter("errorId", error["errorId"].as_str().unwrap());
        let call = call.key(&self.tracker.test.key).json(&json!({ "status": name }));
        assert_eq!(call.send(&self.tracker.test.app).await.status, 200);
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

    fn query(&mut self) -> Query {
        let mut projects: Vec<usize> = (0..self.projects.len()).collect();
        if self.random.random_ratio(1, 2) {
            projects = vec![self.random.random_range(0..self.projects.len())];
        }
        let (from, to) = self.range();
        let mut filters = Vec::new();
        if self.random.random_ratio(1, 2) {
            for _ in 0..=self.random.random_range(0..3) {
                let (name, values) = *ATTRIBUTES.choose(&mut self.random).unwrap();
                let operator = *OPERATORS.choose(&mut self.random).unwrap();
                let value = match operator {
                    "is_set" | "is_not_set" => "",
                    "contains" | "not_contains" => {
                        *["chrome", "2.0", "ION"].choose(&mut self.random).unwrap()
                    }
                    _ => *values.choose(&mut self.random).unwrap(),
                };
                filters.push([name, operator, value]);
            }
        }
        let limit = self.random.random_ratio(1, 4).then(|| 1 + self.random.random_range(0..60));
        let status =
            self.random.random_ratio(1, 3).then(|| *STATUSES.choose(&mut self.random).unwrap());
        let search =
            self.random.random_ratio(1, 3).then(|| self.random.random_range(0..SEARCHES.len()));
        Query { projects, from, to, limit, status, search, filters }
    }

    /// A range with ends of all kinds: at any millisecond, at minutes, hours and days, at an event.
    fn range(&mut self) -> (Option<i64>, Option<i64>) {
        let now = self.tracker.now().as_millis();
        let end = |history: &mut Self, at: i64| match history.random.random_range(0..4) {
            0 => at.div_euclid(60_000) * 60_000,
            1 => at.div_euclid(3_600_000) * 3_600_000,
            2 => at.div_euclid(86_400_000) * 86_400_000,
            _ => at,
        };
        let ahead = self.random.random_range(Duration::ZERO..2 * HOUR);
        let back = self.random.random_range(Duration::ZERO..30 * DAY);
        let to = match self.random.random_range(0..4) {
            0 => None,
            1 => Some(now + i64::try_from(ahead.as_millis()).unwrap()),
            2 if !self.events.is_empty() => Some(
                self.events[self.random.random_range(0..self.events.len())].event.at.as_millis()
                    + 1,
            ),
            _ => Some(end(self, now - i64::try_from(back.as_millis()).unwrap())),
        };
        let longest =
            *[2 * HOUR, 12 * HOUR, 48 * HOUR, 14 * DAY, 60 * DAY].choose(&mut self.random).unwrap();
        let length = if self.random.random_ratio(1, 4) {
            longest
        } else {
            self.random.random_range(Duration::ZERO..longest)
        };
        let from = to.unwrap_or(now) - i64::try_from(length.as_millis()).unwrap().max(60_000);
        let from = if self.random.random_ratio(1, 6) { None } else { Some(end(self, from)) };
        (from, to.map(|to| to.max(from.map_or(to, |from| from + 1))))
    }

    fn body(&mut self, query: &Query) -> Value {
        let mut names = Vec::new();
        for project in &query.projects {
            let project = &self.projects[*project];
            names.push(if self.random.random_ratio(1, 2) {
                project.id.to_string()
            } else {
                project.slug.to_string()
            });
        }
        let filter = |[name, operator, value]: &[&str; 3]| json!({"categoryId": name, "operator": operator, "value": value});
        json!({
            "projectIds": names,
            "from": query.from,
            "to": query.to,
            "limit": query.limit,
            "status": query.status,
            "searchQuery": query.search.map(|search| SEARCHES[search].0),
            "filters": query.filters.iter().map(filter).collect::<Vec<_>>(),
        })
    }

    /// The answer, counted event by event.
    fn expected(&self, query: &Query) -> Vec<(String, u64, u64)> {
        const MINUTE: i64 = 60_000;
        let now = self.tracker.now().as_millis();
        let to = query.to.unwrap_or(now);
        let from = query.from.unwrap_or(to - 7 * 24 * 60 * MINUTE);
        let from = from.div_euclid(MINUTE) * MINUTE;
        let to = (to + MINUTE - 1).div_euclid(MINUTE) * MINUTE;
        let size = match (to - from) / MINUTE {
            ..=120 => 1,
            121..=720 => 5,
            721..=2_880 => 30,
            2_881..=20_160 => 60,
            _ => 1_440,
        };
        let size = size * MINUTE;
        let mut buckets = Vec::new();
        let mut start = from.div_euclid(size) * size;
        while start < to && start <= now {
            let counted = self.events.iter().filter(|sent| {
                let at = sent.event.at.as_millis();
                at >= from.max(start) && at < to.min(start + size) && self.passes(query, sent)
            });
            let counted: Vec<(usize, &str)> =
                counted.map(|sent| (sent.project, sent.event.error_type.as_str())).collect();
            let distinct: BTreeSet<&(usize, &str)> = counted.iter().collect();
            let shown = Timestamp::from_millis(start).to_string();
            buckets.push((shown, counted.len() as u64, distinct.len() as u64));
            start += size;
        }
        let kept = query.limit.unwrap_or(usize::MAX).min(buckets.len());
        buckets.split_off(buckets.len() - kept)
    }

    fn passes(&self, query: &Query, sent: &Acknowledged) -> bool {
        let Acknowledged { project, event } = sent;
        let status = self.statuses[&(*project, event.error_type.clone())].name;
        let holds = |[name, operator, wanted]: &[&str; 3]| {
            let value = value_of(event, name);
            let contains =
                || value.is_some_and(|it| it.to_lowercase().contains(&wanted.to_lowercase()));
            match *operator {
                "is" => value == Some(wanted),
                "is_not" => value != Some(wanted),
                "contains" => contains(),
                "not_contains" => !contains(),
                "is_set" => value.is_some(),
                _ => value.is_none(),
            }
        };
        let is_alternative = |filter: &&[&str; 3]| matches!(filter[1], "is" | "contains");
        query.projects.contains(project)
            && query.status.is_none_or(|wanted| wanted == status)
            && query.search.is_none_or(|search| SEARCHES[search].1(event))
            && query.filters.iter().all(|filter| {
                if is_alternative(&filter) {
                    let alternatives = query.filters.iter().filter(is_alternative);
                    alternatives.filter(|other| other[0] == filter[0]).any(holds)
                } else {
                    holds(filter)
                }
            })
    }

    async fn ask(&mut self) {
        let query = self.query();
        let body = self.body(&query);
        let answer = self.tracker.buckets(&body).await;
        let expected = self.expected(&query);
        let differs = answer.iter().zip(&expected).find(|(one, other)| one != other);
        assert!(answer == expected, "{body}: {differs:?}, {} {}", answer.len(), expected.len());
    }

    /// Lists tell the same as all events by hand.
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

async fn go_through(histories: std::ops::Range<u64>) {
    let seed = seed();
    for number in histories {
        let seed = seed.wrapping_add(number);
        // A failure is repeated by this seed, as the first history of the first test.
        println!("SEED={seed}");
        let mut history = History::start(seed).await;
        for _ in 0..STEPS {
            Box::pin(history.step()).await;
            for _ in 0..3 {
                history.ask().await;
            }
        }
        history.check_lists().await;
    }
}

#[tokio::test]
async fn whatever_happens_every_question_is_answered_exactly() {
    Box::pin(go_through(0..HISTORIES)).await;
}

#[tokio::test]
async fn whatever_happens_every_other_question_is_answered_exactly_too() {
    Box::pin(go_through(HISTORIES..2 * HISTORIES)).await;
}
