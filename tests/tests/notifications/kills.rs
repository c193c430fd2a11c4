//! send-notifications and announce-trends as processes that are killed repeatedly.

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
use notifications::store::EVENT_BATCH_SIZE;
use shared::app::{App, Clock};
use tests::app::{TestApp, clock_at};
use tests::call::Call;
use tests::notifications::{SentMessages, give_address, user};
use tests::process::Process;
use tests::proxy::{self, Slow};

use super::actions::{create_trend, deliver, event, event_count, outbox_titles};

const SENDER: &str = "send-notifications";
/// Number of projects, each with a flag that is turned on and off.
const PROJECTS: usize = 4;
/// The recipients of all emails.
const USERS: [&str; 3] = ["ada", "mira", "noor"];

/// The size of the test. `TRANSITIONS` enlarges it.
struct TestSize {
    transitions: usize,
    kills: usize,
    /// Time between a kill and the next process. Notifications accumulate, so that the process is
    /// killed while it sends, and not in its own pause.
    pause: std::ops::Range<Duration>,
}

/// Time from a process's first progress to its kill: shorter than it sends, however fast the machine is.
const UNTIL_KILL: std::ops::Range<Duration> = Duration::ZERO..Duration::from_millis(15);
/// Maximum lifetime of a process.
const MAX_LIFE: Duration = Duration::from_secs(2);

impl TestSize {
    fn get() -> Self {
        let transitions = std::env::var("TRANSITIONS").ok().and_then(|number| number.parse().ok());
        if let Some(transitions) = transitions {
            // One to three seconds from kill to kill.
            let pause = Duration::from_millis(950)..Duration::from_millis(2_400);
            return Self { transitions, kills: 20, pause };
        }
        let pause = Duration::from_millis(100)..Duration::from_millis(600);
        Self { transitions: 1_000, kills: 8, pause }
    }
}

/// Creates a flag and turns it on and off.
async fn toggle_flag(app: &App, key: &str, project: usize, transitions: usize) {
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

/// Deletes the leases of a killed process instead of waiting twenty seconds.
async fn end_leases(test: &TestApp) {
    for shard in 0..4 {
        test.remove("notifications", [("pk", "leases"), ("sk", &shard.to_string())]).await;
    }
}

/// The progress of the sender.
#[derive(Debug, Default, PartialEq)]
struct Progress {
    /// The numbers of the feed's last entry and last delivered entry.
    feed: Option<(String, String)>,
    /// `true` if there are unpublished event batches.
    has_batches: bool,
}

impl Progress {
    /// Reads the progress with a few small reads: the table can have thousands of items.
    async fn find(test: &TestApp) -> Self {
        let table = environment::table_prefix() + "notifications";
        let first_item = async |shard: u32, prefix: &str| {
            let query = test.client.query().table_name(&table).consistent_read(true).limit(1);
            let query = query.key_condition_expression("pk = :pk AND begins_with(sk, :begin)");
            let query = query
                .expression_attribute_values(":pk", AttributeValue::S(format!("shard#{shard}")));
            let prefix = AttributeValue::S(prefix.to_owned());
            let response =
                query.expression_attribute_values(":begin", prefix).send().await.unwrap();
            response.items.unwrap_or_default().pop()
        };
        let mut found = Self::default();
        for shard in 0..4 {
            if let Some(head) = first_item(shard, "feed#default#head").await {
                let number = |name: &str| head[name].as_n().unwrap().clone();
                found.feed = Some((number("last"), number("delivered")));
            }
            found.has_batches |= first_item(shard, "events#").await.is_some();
        }
        found
    }

    /// Returns `true` if the process was killed while it sent: it extended the feed, and did not
    /// deliver everything.
    fn was_interrupted_since(&self, earlier: &Self) -> bool {
        let is_delivered = self.feed.as_ref().is_none_or(|(last, delivered)| last == delivered);
        self.feed != earlier.feed && (self.has_batches || !is_delivered)
    }
}

/// Starts a process, invokes it repeatedly, and kills it some time after its first progress.
async fn send_until_killed(
    test: &TestApp,
    outbound: &SentMessages,
    earlier: &Progress,
    until_kill: Duration,
    log: &Path,
) {
    let process = Process::start(SENDER, &test.engine.endpoint(), &outbound.variables(), log).await;
    let send = async {
        loop {
            process.invoke("{}".to_owned()).await;
        }
    };
    let begin = async {
        while Progress::find(test).await.feed == earlier.feed {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
        tokio::time::sleep(until_kill).await;
    };
    let life = async {
        tokio::select! {
            () = send => {}
            () = begin => {}
        }
    };
    let _ = tokio::time::timeout(MAX_LIFE, life).await;
    process.kill().await;
    end_leases(test).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn killed_senders_lose_no_message() {
    let seed = tests::seed();
    println!("SEED={seed}");
    let mut random = ChaCha8Rng::seed_from_u64(seed);
    let TestSize { transitions, kills: min_kills, pause } = TestSize::get();
    let folder = tempfile::tempdir().unwrap();
    let log = folder.path().join("log");
    let (test, outbound) = (TestApp::start().await, SentMessages::open());
    let app = test.app_at(Clock::System);
    outbound.run(&app).await;
    for name in USERS {
        test.key_of(name).await;
        outbound.run(&app).await;
        give_address(&app, &user(name), &format!("{name}@example.com")).await;
    }
    for project in 0..PROJECTS {
        let slug = format!("p-{project}");
        local::demo::ensure_project(&app.store, &slug, &slug).await.unwrap();
    }

    let is_done = AtomicBool::new(false);
    let produce = async {
        let each = transitions / PROJECTS;
        join_all((0..PROJECTS).map(|project| toggle_flag(&app, &test.key, project, each))).await;
        is_done.store(true, Ordering::Relaxed);
    };
    let kill = async {
        let (mut kills, mut interruptions) = (0, 0);
        while !is_done.load(Ordering::Relaxed) || kills < min_kills {
            tokio::time::sleep(random.random_range(pause.clone())).await;
            let earlier = Progress::find(&test).await;
            let until_kill = random.random_range(UNTIL_KILL);
            send_until_killed(&test, &outbound, &earlier, until_kill, &log).await;
            kills += 1;
            interruptions +=
                usize::from(Progress::find(&test).await.was_interrupted_since(&earlier));
        }
        (kills, interruptions)
    };
    let started = Instant::now();
    let ((), (kills, interruptions)) = tokio::join!(produce, kill);
    let took = started.elapsed();
    println!(
        "{transitions} transitions and {kills} kills in {took:?}; {interruptions} while it sent"
    );

    assert!(
        4 * interruptions >= kills,
        "only {interruptions} of {kills} kills interrupted the sender"
    );

    // The rest is sent immediately, batched events after their windows have ended.
    outbound.run(&app).await;
    for minutes in [11, 22, 33] {
        let later = app.clock.now().plus(Duration::from_mins(minutes));
        outbound.run(&test.app_at(clock_at(later))).await;
    }
    let events = outbound.events().await;
    let ids = events.iter().map(|event| event["detail"]["id"].as_str().unwrap());
    let ids: Vec<&str> = ids.filter(|id| id.contains("#flag_changed#")).collect();
    let distinct: BTreeSet<&str> = ids.iter().copied().collect();
    assert_eq!(distinct.len(), transitions, "an event is missing");
    let duplicates = ids.len() - distinct.len();
    assert!(
        duplicates <= EVENT_BATCH_SIZE * kills,
        "{duplicates} events twice after {kills} kills"
    );

    let emails = outbound.emails().await;
    let mut counts: BTreeMap<&str, u64> = BTreeMap::new();
    for mail in &emails {
        let count = event_count(mail["subject"].as_str().unwrap());
        *counts.entry(mail["to"].as_str().unwrap()).or_default() += count;
    }
    assert_eq!(counts.len(), USERS.len());
    assert!(counts.values().all(|count| *count >= transitions as u64), "{counts:?}");
    let texts: BTreeSet<(&str, &str)> = emails
        .iter()
        .map(|mail| (mail["to"].as_str().unwrap(), mail["text"].as_str().unwrap()))
        .collect();
    let duplicate_mails = emails.len() - texts.len();
    assert!(duplicate_mails <= kills, "{duplicate_mails} emails twice after {kills} kills");
    println!("{duplicates} events and {duplicate_mails} emails twice");
}

/// Maximum number of killed processes of announce-trends.
const MAX_ANNOUNCERS: u32 = 60;
/// Increment of a process's minimum lifetime. The maximum is twice the minimum.
const LIFE_STEP: Duration = Duration::from_millis(50);
/// Delay of the engine's responses, so that processes spend most of their time waiting for them.
const DELAY: Duration = Duration::from_millis(20);
/// Number of projects with a spike, more than are checked concurrently, and of trending insights.
const SPIKES: usize = 12;
const TRENDS: usize = 6;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn killed_announcers_announce_everything_once() {
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

    let endpoint = proxy::serve(Arc::new(Slow::before(&test.engine.endpoint(), DELAY))).await;
    let start = || Process::start(announce_trends::JOB.name, &endpoint, &[], &log);
    let announced = async || {
        let spikes = outbox_titles(&test, "error_spike").await.len();
        (spikes, outbox_titles(&test, "insight_trending").await)
    };
    let mut halfway = 0;
    for number in 1..=MAX_ANNOUNCERS {
        let life = random.random_range(number * LIFE_STEP..=2 * number * LIFE_STEP);
        start().await.kill_after(life, "{}".to_owned()).await;
        let (spikes, trends) = announced().await;
        println!("killed after {life:?}; {spikes} spikes and {} trends announced", trends.len());
        let all = spikes + trends.len();
        if all == SPIKES + TRENDS {
            break;
        }
        halfway += u32::from(all > 0);
    }
    assert!(halfway > 0, "no process was killed between two announcements");
    let process = start().await;
    for _ in 0..2 {
        process.invoke("{}".to_owned()).await;
    }
    let trends = (0..TRENDS).map(|number| format!("Trend {number}")).collect();
    assert_eq!(announced().await, (SPIKES, trends));
}
