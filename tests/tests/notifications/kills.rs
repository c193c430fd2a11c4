//! send-notifications and announce-trends as processes that are killed again and again.

#![allow(clippy::print_stdout)]

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use aws_sdk_dynamodb::types::AttributeValue;
use futures_util::future::join_all;
use rand::rngs::ChaCha8Rng;
use rand::{RngExt, SeedableRng};
use serde_json::json;

use local::environment;
use notifications::store::EVENTS_AT_ONCE;
use shared::app::{App, Clock};
use shared::projects::api_key::{ApiKeyRecord, UserId};
use tests::app::{TestApp, clock_at};
use tests::call::Call;
use tests::notifications::{SentMessages, give_address, user};
use tests::process::Process;
use tests::proxy::{self, Slow};

use super::actions::{create_trend, deliver, event, subjects, waiting};

const SENDER: &str = "send-notifications";
/// Over how many projects the transitions are spread, each a flag that is switched on and off.
const PROJECTS: usize = 4;
/// The users who are told of each.
const USERS: [&str; 3] = ["ada", "mira", "noor"];

/// How much is tried: more with the variable `TRANSITIONS`.
struct Extent {
    transitions: usize,
    kills: usize,
    /// How long no process sends before the next one starts: what it is to send gathers meanwhile, so that it
    /// is killed while it sends, and not in the pause after that.
    rest: std::ops::Range<Duration>,
}

/// For how long a process lives.
const LIFE: std::ops::Range<Duration> = Duration::from_millis(50)..Duration::from_millis(600);

impl Extent {
    fn get() -> Self {
        let transitions = std::env::var("TRANSITIONS").ok().and_then(|number| number.parse().ok());
        if let Some(transitions) = transitions {
            // With a life, one to three seconds from kill to kill.
            let rest = Duration::from_millis(950)..Duration::from_millis(2_400);
            return Self { transitions, kills: 20, rest };
        }
        let rest = Duration::from_millis(100)..Duration::from_millis(600);
        Self { transitions: 1_000, kills: 8, rest }
    }
}

/// Switches a flag of a project on and off.
async fn switch(app: &App, key: &str, project: usize, transitions: usize) {
    let slug = format!("p-{project}");
    let of = |operation| Call::of(operation).parameter("idOrSlug", &slug).key(key);
    let body = json!({"key": "beta", "name": "Beta", "type": "boolean"});
    assert_eq!(of(&create_feature_flag::OPERATION).json(&body).send(app).await.status, 201);
    for transition in 1..transitions {
        let update = of(&update_feature_flag::OPERATION).parameter("key", "beta");
        let body = json!({"enabled": transition % 2 == 1});
        assert_eq!(update.json(&body).send(app).await.status, 200);
    }
}

/// Ends the leases that a killed process has left, as twenty seconds would.
async fn end_leases(test: &TestApp) {
    for shard in 0..4 {
        let delete =
            test.client.delete_item().table_name(environment::table_prefix() + "notifications");
        let key = [("pk", "leases".to_owned()), ("sk", shard.to_string())];
        let key = key.map(|(name, value)| (name.to_owned(), AttributeValue::S(value)));
        delete.set_key(Some(key.into())).send().await.unwrap();
    }
}

/// How far the sender is.
#[derive(Debug, Default, PartialEq)]
struct Progress {
    /// How far the feed goes, and how far it was told.
    feed: Option<(String, String)>,
    /// Whether there are batches that EventBridge is not told of yet.
    has_batches: bool,
}

impl Progress {
    /// By what a few small reads tell: there may be thousands of happenings.
    async fn find(test: &TestApp) -> Self {
        let table = environment::table_prefix() + "notifications";
        let begins_with = async |shard: u32, begin: &str| {
            let query = test.client.query().table_name(&table).consistent_read(true).limit(1);
            let query = query.key_condition_expression("pk = :pk AND begins_with(sk, :begin)");
            let query = query
                .expression_attribute_values(":pk", AttributeValue::S(format!("shard#{shard}")));
            let begin = AttributeValue::S(begin.to_owned());
            let answer = query.expression_attribute_values(":begin", begin).send().await.unwrap();
            answer.items.unwrap_or_default().pop()
        };
        let mut found = Self::default();
        for shard in 0..4 {
            if let Some(head) = begins_with(shard, "feed#default#head").await {
                let number = |name: &str| head[name].as_n().unwrap().clone();
                found.feed = Some((number("last"), number("told")));
            }
            found.has_batches |= begins_with(shard, "events#").await.is_some();
        }
        found
    }

    /// Whether a process that found all as it was `before` was killed while it sent, and not as it started or
    /// in the pause after all is sent: what it took out of the outbox is not told to everybody.
    fn is_cut_short(&self, before: &Self) -> bool {
        let is_told = self.feed.as_ref().is_none_or(|(last, told)| last == told);
        self.feed != before.feed && (self.has_batches || !is_told)
    }
}

/// Starts a process that sends run after run, and kills it after a time.
async fn send_until_killed(test: &TestApp, post: &SentMessages, life: Duration, log: &Path) {
    let process = Process::start(SENDER, &test.engine.endpoint(), &post.variables(), log).await;
    // A process's start is no work: its first run tells that it is over.
    let send = async {
        loop {
            process.invoke("{}".to_owned()).await;
        }
    };
    let _ = tokio::time::timeout(life, send).await;
    process.kill().await;
    end_leases(test).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn whenever_the_sender_is_killed_no_message_is_missing() {
    let seed = tests::seed();
    println!("SEED={seed}");
    let mut random = ChaCha8Rng::seed_from_u64(seed);
    let Extent { transitions, kills: least_kills, rest } = Extent::get();
    let folder = tempfile::tempdir().unwrap();
    let log = folder.path().join("log");
    let (test, post) = (TestApp::start().await, SentMessages::open());
    let app = test.app_at(Clock::System);
    post.run(&app).await;
    for name in USERS {
        let user_id = UserId::parse(name).unwrap();
        test.key_with(|key| ApiKeyRecord { user: user_id, ..key }).await;
        post.run(&app).await;
        give_address(&app, &user(name), &format!("{name}@example.com")).await;
    }
    for project in 0..PROJECTS {
        let slug = format!("p-{project}");
        local::demo::ensure_project(&app.store, &slug, &slug).await.unwrap();
    }

    let is_over = AtomicBool::new(false);
    let produce = async {
        let each = transitions / PROJECTS;
        join_all((0..PROJECTS).map(|project| switch(&app, &test.key, project, each))).await;
        is_over.store(true, Ordering::Relaxed);
    };
    let kill = async {
        let (mut kills, mut interrupting) = (0, 0);
        while !is_over.load(Ordering::Relaxed) || kills < least_kills {
            tokio::time::sleep(random.random_range(rest.clone())).await;
            let before = Progress::find(&test).await;
            send_until_killed(&test, &post, random.random_range(LIFE), &log).await;
            kills += 1;
            interrupting += usize::from(Progress::find(&test).await.is_cut_short(&before));
        }
        (kills, interrupting)
    };
    let begun = Instant::now();
    let ((), (kills, interrupting)) = tokio::join!(produce, kill);
    let took = begun.elapsed();
    println!(
        "{transitions} transitions and {kills} kills in {took:?}; {interrupting} while it sent"
    );

    assert!(
        4 * interrupting >= kills,
        "{interrupting} of {kills} kills: they must strike its work"
    );

    // What is left is sent, and once the windows have ended, what they gathered.
    post.run(&app).await;
    for minutes in [11, 22, 33] {
        let later = app.clock.now().plus(Duration::from_mins(minutes));
        post.run(&test.app_at(clock_at(later))).await;
    }
    let events = post.events().await;
    let ids = events.iter().map(|event| event["detail"]["id"].as_str().unwrap());
    let ids: Vec<&str> = ids.filter(|id| id.contains("#flag_changed#")).collect();
    let distinct: BTreeSet<&str> = ids.iter().copied().collect();
    assert_eq!(distinct.len(), transitions, "an event is missing");
    let twice = ids.len() - distinct.len();
    assert!(twice <= EVENTS_AT_ONCE * kills, "{twice} events twice after {kills} kills");

    let mails = post.mails().await;
    let mut told: BTreeMap<&str, usize> = BTreeMap::new();
    for mail in &mails {
        let subject = subjects(std::slice::from_ref(mail))[0].replace(',', "");
        let count = subject.split(' ').next().unwrap().parse().unwrap_or(1);
        *told.entry(mail["to"].as_str().unwrap()).or_default() += count;
    }
    assert_eq!(told.len(), USERS.len());
    assert!(told.values().all(|told| *told >= transitions), "{told:?}");
    let texts: BTreeSet<(&str, &str)> = mails
        .iter()
        .map(|mail| (mail["to"].as_str().unwrap(), mail["text"].as_str().unwrap()))
        .collect();
    let mails_twice = mails.len() - texts.len();
    assert!(mails_twice <= kills, "{mails_twice} mails twice after {kills} kills");
    println!("{twice} events and {mails_twice} mails twice");
}

/// How many processes of announce-trends are killed at most until all is announced, each of which lives for so
/// much longer than the one before, and up to twice as long.
const ANNOUNCERS: u32 = 60;
const LONGER: Duration = Duration::from_millis(50);
/// How much longer an answer of the engine takes: most of what a process does is to wait for it then.
const SLOWER: Duration = Duration::from_millis(20);
/// How many projects have a spike, more than are looked at together, and how many insights trend.
const SPIKES: usize = 12;
const TRENDS: usize = 6;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn whenever_an_announcer_is_killed_all_is_announced_once() {
    let seed = tests::seed();
    println!("SEED={seed}");
    let mut random = ChaCha8Rng::seed_from_u64(seed);
    let folder = tempfile::tempdir().unwrap();
    let log = folder.path().join("log");
    let test = TestApp::start().await;
    let two_hours = Duration::from_hours(2);
    test.set_time(Clock::System.now().minus(two_hours));
    let mut projects = Vec::new();
    for number in 0..SPIKES {
        let slug = format!("p-{number}");
        projects.push(local::demo::ensure_project(&test.app.store, &slug, &slug).await.unwrap());
    }
    let deliver_to_all = async |number: u64| {
        let event = event(&test, number, "TypeError");
        join_all(projects.iter().map(|project| deliver(&test, *project, &event))).await;
    };
    deliver_to_all(0).await;
    test.pass(two_hours);
    for number in 1..=20 {
        deliver_to_all(number).await;
    }
    for number in 0..TRENDS {
        create_trend(&test, 100 * number, &format!("Trend {number}"), [10, 4]).await;
    }

    let endpoint = proxy::serve(Arc::new(Slow::before(&test.engine.endpoint(), SLOWER))).await;
    let start = || Process::start(announce_trends::JOB.name, &endpoint, &[], &log);
    let announced = async || {
        let spikes = waiting(&test, "error_spike").await.len();
        (spikes, waiting(&test, "insight_trending").await)
    };
    let mut halfway = 0;
    for number in 1..=ANNOUNCERS {
        let life = random.random_range(number * LONGER..=2 * number * LONGER);
        start().await.kill_after(life, "{}".to_owned()).await;
        let (spikes, trends) = announced().await;
        println!("killed after {life:?}; {spikes} spikes and {} trends announced", trends.len());
        let all = spikes + trends.len();
        if all == SPIKES + TRENDS {
            break;
        }
        halfway += u32::from(all > 0);
    }
    assert!(halfway > 0, "no process was killed between two that it announced");
    let process = start().await;
    for _ in 0..2 {
        process.invoke("{}".to_owned()).await;
    }
    let trends = (0..TRENDS).map(|number| format!("Trend {number}")).collect();
    assert_eq!(announced().await, (SPIKES, trends));
}
