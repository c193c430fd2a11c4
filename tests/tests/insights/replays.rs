//! Pain points that ingest-error-events derives from session replays and feedback.

#![allow(clippy::print_stdout)]

use std::collections::BTreeMap;
use std::fs;
use std::thread;
use std::time::Duration;

use futures_util::future::join_all;
use rand::rngs::ChaCha8Rng;
use rand::seq::SliceRandom;
use rand::{RngExt, SeedableRng};
use serde_json::{Value, json};

use insights::MAX_PAIN_POINTS;
use insights::store::InsightStore;
use local::demo;
use shared::app::App;
use shared::projects::limits::{Limit, Limits};
use shared::projects::project::{Project, ProjectPatch};
use shared::timestamp::Timestamp;
use tests::app::{TestApp, app_over};
use tests::call::{Call, Reply};
use tests::errors::{envelope, project};
use tests::insights::filled;
use tests::notifications::announce_trends;
use tests::process::Process;
use tests::replays::{Session, zlib};
use tests::seed;

use super::{GET, LIST, LIST_PAIN_POINTS, SPLIT, call_for, get, merge, update};

const INGEST: &shared::app::Operation = &::ingest_error_events::OPERATION;
const DAY: Duration = Duration::from_hours(24);

pub(super) struct Shop {
    pub(super) test: TestApp,
    pub(super) project: Project,
}

impl Shop {
    pub(super) async fn start() -> Self {
        let test = TestApp::start().await;
        let project = project(&test.patient_store(), test.project_id).await;
        Self { test, project }
    }

    async fn deliver(&self, body: Vec<u8>) -> Reply {
        let reply = delivery(&self.project, body).send(&self.test.app).await;
        assert_eq!(reply.status, 200, "{}", reply.body);
        reply
    }

    pub(super) async fn insights(&self) -> Vec<Value> {
        self.test.pages(&self.test.call(LIST), 100).await.concat()
    }

    pub(super) async fn pain_points(&self, insight: &str) -> Vec<Value> {
        let listed = call_for(&self.test, LIST_PAIN_POINTS, insight);
        self.test.pages(&listed, 100).await.concat()
    }

    /// Delivers everything twice to another project, in random order. Many deliveries are killed.
    /// Returns the insights of the project.
    pub(super) async fn redeliver(
        &self,
        app: &App,
        deliveries: &[Vec<u8>],
        random: &mut ChaCha8Rng,
    ) -> Vec<Value> {
        let store = self.test.patient_store();
        let other = demo::ensure_project(&store, "other", "Other").await.unwrap();
        let other = project(&store, other).await;
        let mut twice = [deliveries, deliveries].concat();
        twice.shuffle(random);
        for some in twice.chunks(4) {
            let mut kills = Vec::new();
            for _ in some {
                let count = random.random_range(0..3);
                kills.push((0..count).map(|_| random.random_range(1..40)).collect::<Vec<u64>>());
            }
            let sent =
                some.iter().zip(&kills).map(|(it, kills)| deliver_killed(app, &other, it, kills));
            join_all(sent).await;
        }
        let listed = Call::of(LIST).parameter("idOrSlug", "other").key(&self.test.key);
        self.test.pages(&listed, 100).await.concat()
    }

    /// Delivers a session with one dead click.
    async fn dead_click(&self, number: u64, node: i64) {
        let session = self.session(number);
        self.deliver(session.segment(0, &[session.dead(0, node)])).await;
    }

    fn session(&self, number: u64) -> Session {
        Session::new(number, self.test.app.clock.now().minus(Duration::from_mins(5)))
    }

    fn only(insights: &[Value]) -> String {
        let [insight] = insights else { panic!("{insights:?}") };
        insight["id"].as_str().unwrap().to_owned()
    }
}

pub(super) fn delivery(project: &Project, body: Vec<u8>) -> Call {
    Call::of(INGEST)
        .path("/api/{ingestId}/envelope/")
        .parameter("ingestId", project.ingest_id)
        .query("sentry_key", project.public_key)
        .bytes(body)
        .base64()
}

pub(super) fn titles(insights: &[Value]) -> BTreeMap<String, (u64, u64)> {
    let counted = |insight: &Value| {
        let number = |name: &str| insight[name].as_u64().unwrap();
        let title = insight["title"].as_str().unwrap().to_owned();
        (title, (number("affectedSessions"), number("occurrences")))
    };
    let titles: BTreeMap<_, _> = insights.iter().map(counted).collect();
    assert_eq!(titles.len(), insights.len(), "each signature has one insight");
    titles
}

#[tokio::test]
async fn segments_become_pain_points_with_evidence() {
    let shop = Shop::start().await;
    let session = shop.session(1);
    shop.deliver(session.segment(0, &[session.click(0, 4), session.click(20_000, 5)])).await;
    shop.deliver(session.error(1, 20_400)).await;
    shop.deliver(session.segment(1, &[session.dead(0, 4), session.rage(9_000, 6)])).await;
    let expected = [
        ("Dead clicks on “b4” at /orders/:id", (1, 1)),
        ("Errors after clicks on “b5” at /orders/:id", (1, 1)),
        ("Rage clicks on “b6” at /cart", (1, 1)),
    ];
    let insights = shop.insights().await;
    let expected = expected.map(|(title, counts)| (title.to_owned(), counts));
    assert_eq!(titles(&insights), BTreeMap::from(expected));

    let errors = insights.iter().find(|it| it["title"].as_str().unwrap().starts_with("Errors"));
    let points = shop.pain_points(errors.unwrap()["id"].as_str().unwrap()).await;
    let [point] = points.as_slice() else { panic!("{points:?}") };
    let evidence = &point["evidence"];
    assert!(evidence["errorId"].is_string(), "{point}");
    let mut others = evidence.clone();
    others.as_object_mut().unwrap().remove("errorId");
    let expected = json!({"kind": "error_click", "route": "/orders/:id", "selector": "button#b5",
        "element": "b5", "browser": "Chrome 140.0.0.0", "release": "shop@1"});
    assert_eq!(others, expected);
    assert_eq!((&point["sessionId"], &point["userId"]), (&json!(session.replay), &json!("u-1")));
}

#[tokio::test]
async fn verdicts_replace_error_clicks() {
    let shop = Shop::start().await;
    let session = shop.session(1);
    shop.deliver(session.error(1, 100)).await;
    shop.deliver(session.segment(0, &[session.click(0, 4)])).await;
    let before = shop.insights().await;
    assert!(before[0]["title"].as_str().unwrap().starts_with("Errors after"), "{before:?}");
    shop.deliver(session.segment(1, &[session.dead(0, 4)])).await;
    let after = shop.insights().await;
    let points = shop.pain_points(&Shop::only(&after)).await;
    assert_eq!(points[0]["evidence"]["kind"], "dead_click");
    assert!(points[0]["evidence"]["errorId"].is_string(), "{points:?}");
    let gone = Shop::only(&before);
    assert_eq!(call_for(&shop.test, GET, &gone).send(&shop.test.app).await.status, 404);
}

#[tokio::test]
async fn errors_after_their_segment_are_linked() {
    let shop = Shop::start().await;
    let session = shop.session(1);
    shop.deliver(session.segment(0, &[session.dead(0, 4)])).await;
    let id = Shop::only(&shop.insights().await);
    assert_eq!(shop.pain_points(&id).await[0]["evidence"]["errorId"], Value::Null);
    shop.deliver(session.error(1, 1_000)).await;
    let points = shop.pain_points(&id).await;
    assert!(points[0]["evidence"]["errorId"].is_string(), "{points:?}");
}

/// Returns the deliveries of random sessions.
fn random_deliveries(random: &mut ChaCha8Rng, start: Timestamp) -> Vec<Vec<u8>> {
    let mut deliveries = Vec::new();
    let mut errors = 0;
    for number in 0..12 {
        let session = Session::new(number, start);
        for segment in 0..3 {
            let mut events = Vec::new();
            for _ in 0..random.random_range(0..4) {
                let at = random.random_range(0..30) * 500;
                let node = random.random_range(1..4);
                events.push(match random.random_range(0..4) {
                    0 => session.dead(at, node),
                    1 => session.rage(at, node),
                    _ => session.click(at, node),
                });
            }
            deliveries.push(session.segment(segment, &events));
        }
        for _ in 0..random.random_range(0..3) {
            errors += 1;
            deliveries.push(session.error(errors, random.random_range(0..16_000)));
        }
    }
    deliveries
}

/// Delivers until a delivery gets its response. Many are killed before.
async fn deliver_killed(app: &App, project: &Project, body: &[u8], kills: &[u64]) {
    for millis in kills {
        let sent = delivery(project, body.to_vec());
        let _ = tokio::time::timeout(Duration::from_millis(*millis), sent.send(app)).await;
    }
    loop {
        let reply = delivery(project, body.to_vec()).send(app).await;
        if reply.status == 200 {
            return;
        }
        assert_eq!(reply.status, 503, "{}", reply.body);
    }
}

#[tokio::test]
async fn counts_do_not_depend_on_duplicates_order_and_kills() {
    let mut random = ChaCha8Rng::seed_from_u64(seed());
    let shop = Shop::start().await;
    let start = shop.test.app.clock.now().minus(Duration::from_mins(30));
    let deliveries = random_deliveries(&mut random, start);
    for body in &deliveries {
        shop.deliver(body.clone()).await;
    }
    let expected = shop.insights().await;
    assert!(expected.len() > 3, "{expected:?}");

    let found = shop.redeliver(&shop.test.app, &deliveries, &mut random).await;
    assert_eq!(titles(&found), titles(&expected));
    // Each pain point is in one insight, and the same ones exist.
    let mut ids = Vec::new();
    for insight in &found {
        let listed = Call::of(LIST_PAIN_POINTS)
            .parameter("idOrSlug", "other")
            .parameter("insightId", insight["id"].as_str().unwrap())
            .key(&shop.test.key);
        ids.extend(super::ids(&shop.test.pages(&listed, 100).await.concat()));
    }
    let mut expected_ids = Vec::new();
    for insight in &expected {
        let points = shop.pain_points(insight["id"].as_str().unwrap()).await;
        expected_ids.extend(super::ids(&points));
    }
    ids.sort();
    expected_ids.sort();
    assert_eq!(ids, expected_ids);
}

#[tokio::test]
async fn later_pain_points_follow_splits_and_merges() {
    let shop = Shop::start().await;
    shop.dead_click(1, 4).await;
    shop.dead_click(2, 4).await;
    let first = Shop::only(&shop.insights().await);
    // A partial split: later pain points stay.
    let points = super::ids(&shop.pain_points(&first).await);
    let split = |id: String, points: Vec<String>| {
        let shop = &shop;
        async move {
            let body = json!({ "painPointIds": points });
            let reply = call_for(&shop.test, SPLIT, &id).json(&body).send(&shop.test.app).await;
            assert_eq!(reply.status, 201, "{}", reply.body);
            super::id_of(&reply)
        }
    };
    let second = split(first.clone(), vec![points[0].clone()]).await;
    shop.dead_click(3, 4).await;
    let sizes = |ids: Vec<String>| {
        let shop = &shop;
        async move {
            let mut sizes = Vec::new();
            for id in ids {
                sizes.push(shop.pain_points(&id).await.len());
            }
            sizes
        }
    };
    assert_eq!(sizes(vec![first.clone(), second.clone()]).await, [2, 1]);
    // Two signatures in one insight; a split moves one of them completely.
    shop.dead_click(4, 5).await;
    let others: Vec<Value> = shop.insights().await;
    let other = others.iter().find(|it| it["title"].as_str().unwrap().contains("b5")).unwrap();
    let other = other["id"].as_str().unwrap().to_owned();
    assert_eq!(merge(&shop.test, &other, &first).await.status, 200);
    shop.dead_click(5, 5).await;
    assert_eq!(sizes(vec![first.clone(), second.clone()]).await, [4, 1]);
    let moved = shop.pain_points(&first).await;
    let moved = moved.iter().filter(|it| it["evidence"]["element"] == "b5");
    let moved = moved.map(|it| it["id"].as_str().unwrap().to_owned()).collect();
    let third = split(first.clone(), moved).await;
    shop.dead_click(6, 5).await;
    shop.dead_click(7, 4).await;
    assert_eq!(sizes(vec![first.clone(), second.clone(), third.clone()]).await, [3, 1, 3]);
    // The merge back returns the signature.
    assert_eq!(merge(&shop.test, &third, &first).await.status, 200);
    shop.dead_click(8, 5).await;
    assert_eq!(sizes(vec![first.clone(), second.clone()]).await, [7, 1]);
    // A merge of everything elsewhere takes both along.
    assert_eq!(merge(&shop.test, &first, &second).await.status, 200);
    shop.dead_click(9, 4).await;
    shop.dead_click(10, 5).await;
    assert_eq!(sizes(vec![second]).await, [10]);
}

#[tokio::test]
async fn full_insights_count_their_oldest_pain_points() {
    let shop = Shop::start().await;
    shop.dead_click(1, 4).await;
    let signed = Shop::only(&shop.insights().await);
    let store = &shop.test.app.store;
    let full = filled(store, shop.test.project_id, MAX_PAIN_POINTS - 1, 1_000).await.to_string();
    assert_eq!(merge(&shop.test, &signed, &full).await.status, 200);
    shop.dead_click(2, 4).await;
    shop.dead_click(3, 4).await;
    let reply = get(&shop.test, &full).await;
    assert_eq!(reply.body["occurrences"], json!(MAX_PAIN_POINTS + 2));
    let store = InsightStore::new(&shop.test.app.store);
    let id = insights::InsightId::parse(&full).unwrap();
    let stored = store.find_insight(shop.test.project_id, id).await.unwrap().unwrap();
    assert_eq!(stored.members.len(), MAX_PAIN_POINTS);
    let first_seen = tests::insights::pain_point(0).occurred_at.to_string();
    assert_eq!(reply.body["firstSeen"], json!(first_seen));
}

#[tokio::test]
async fn unseen_insights_are_resolved_and_reopen() {
    let shop = Shop::start().await;
    shop.dead_click(1, 4).await;
    shop.dead_click(2, 5).await;
    let insights = shop.insights().await;
    let id = insights[0]["id"].as_str().unwrap().to_owned();
    let ignored = insights[1]["id"].as_str().unwrap().to_owned();
    assert_eq!(update(&shop.test, &ignored, json!({"status": "ignored"})).await.status, 200);
    shop.test.pass(DAY * 29);
    announce_trends(&shop.test.app).await;
    assert_eq!(get(&shop.test, &id).await.body["status"], "open");
    shop.test.pass(DAY * 2);
    announce_trends(&shop.test.app).await;
    assert_eq!(get(&shop.test, &id).await.body["status"], "resolved");
    let node = if insights[0]["title"].as_str().unwrap().contains("b4") { 4 } else { 5 };
    shop.dead_click(3, node).await;
    shop.dead_click(3, 9 - node).await;
    assert_eq!(get(&shop.test, &id).await.body["status"], "open");
    let reply = get(&shop.test, &ignored).await;
    assert_eq!(
        (&reply.body["status"], &reply.body["affectedSessions"]),
        (&json!("ignored"), &json!(1))
    );
}

#[tokio::test]
async fn feedback_is_counted_once() {
    let shop = Shop::start().await;
    let id = "ac012cadf588491bb76da90129e33c41";
    let item = json!({"event_id": id, "contexts": {"feedback": {"message": "It hangs",
        "url": "http://shop.example.com/cart/7", "contact_email": "ada@example.com"}}});
    let body = envelope(&json!({ "event_id": id }), &[("feedback", item.to_string())]);
    for _ in 0..2 {
        shop.deliver(body.clone().into_bytes()).await;
    }
    let report = json!({"event_id": id, "comments": "Help", "email": ""});
    let body = envelope(&json!({ "event_id": id }), &[("user_report", report.to_string())]);
    shop.deliver(body.into_bytes()).await;
    let expected = [("Feedback".to_owned(), (1, 1)), ("Feedback at /cart/:id".to_owned(), (1, 1))];
    let insights = shop.insights().await;
    assert_eq!(titles(&insights), BTreeMap::from(expected));
    assert!(insights.iter().any(|insight| insight["excerpt"] == "It hangs"), "{insights:?}");
}

#[tokio::test]
async fn malformed_recordings_are_dropped() {
    let shop = Shop::start().await;
    let session = shop.session(1);
    let whole = session.segment(1, &[session.dead(0, 4)]);
    let text = String::from_utf8(whole).unwrap();
    let broken = [
        text.replace("\"replay_id\"", "\"replayed\""),
        text.replace("{\"segment_id\":1}\n", "{\"segment_id\":1} "),
        text.replace("[{\"data\"", "?{\"data\""),
    ];
    for body in broken {
        shop.deliver(body.into_bytes()).await;
    }
    // More than 20 MiB after decompression.
    let huge = session.segment(2, &[json!("x".repeat(21 << 20))]);
    assert_eq!(delivery(&shop.project, huge).send(&shop.test.app).await.status, 413);
    assert_eq!(shop.insights().await, Vec::<Value>::new());
}

/// Malformed items have no other trace: the SDK gets 200.
#[tokio::test]
async fn malformed_items_are_counted_in_a_metric() {
    let shop = Shop::start().await;
    let folder = tempfile::tempdir().unwrap();
    let log = folder.path().join("log");
    let stack = [("WAYMARK_STACK", "the stack".to_owned())];
    let endpoint = shop.test.engine.endpoint();
    let process = Process::start(INGEST.name, &endpoint, &stack, &log).await;
    let session = shop.session(1);
    let text = String::from_utf8(session.segment(1, &[session.dead(0, 4)])).unwrap();
    let header = json!({"event_id": session.replay});
    let items = [
        text.clone(),
        text.replace("[{\"data\"", "?{\"data\""),
        envelope(&header, &[("feedback", "{}".to_owned())]),
        envelope(&header, &[("user_report", "{}".to_owned())]),
    ];
    for item in items {
        let event = delivery(&shop.project, item.into_bytes()).event().to_string();
        assert_eq!(process.invoke(event).await["statusCode"], 200);
    }
    process.kill().await;
    let log = fs::read_to_string(&log).unwrap();
    let lines = log.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
    let counted: Vec<Value> = lines.filter(|line| line["MalformedRecordings"] == 1).collect();
    let reasons: Vec<&Value> = counted.iter().map(|line| &line["message"]).collect();
    assert_eq!(reasons, ["malformed recording", "malformed feedback", "malformed feedback"]);
    for line in &counted {
        assert_eq!(line["by"], format!("replays#{}", shop.test.project_id));
        assert_eq!(line["stack"], "the stack");
        let described = &line["_aws"]["CloudWatchMetrics"][0];
        assert_eq!(described["Dimensions"], json!([["stack"]]));
        let metrics = json!([{"Name": "MalformedRecordings", "Unit": "Count"}]);
        assert_eq!(described["Metrics"], metrics);
    }
}

#[tokio::test]
async fn replays_have_a_limit_of_their_own() {
    let shop = Shop::start().await;
    let (app, _) = app_over(&shop.test.engine.endpoint());
    let limits_of_template = Limits::default().with(Limit::ReplaysPerMinute, Some(2));
    let app = app.with_limits(limits_of_template);
    let session = shop.session(1);
    let mut replies = Vec::new();
    for number in 0..3 {
        let body = session.segment(number, &[session.dead(0, 4)]);
        replies.push(delivery(&shop.project, body).send(&app).await);
    }
    assert_eq!(replies.iter().map(|it| it.status).collect::<Vec<_>>(), [200, 200, 429]);
    let limits = replies[2].headers["x-sentry-rate-limits"].to_str().unwrap();
    assert!(limits.ends_with(":replay:project:replays_per_minute"), "{limits}");
    // The project's own limit replaces that of the stack within a minute; 0 means no limit.
    let limits = [(Limit::ReplaysPerMinute, Some(0))].into();
    let own = ProjectPatch { limits, ..ProjectPatch::default() };
    let store = &shop.test.app.store;
    assert!(store.update_project(&shop.project, &own, vec![]).await.unwrap());
    let (fresh, _) = app_over(&shop.test.engine.endpoint());
    let fresh = fresh.with_limits(limits_of_template);
    for number in 3..7 {
        let body = session.segment(number, &[session.dead(0, 4)]);
        assert_eq!(delivery(&shop.project, body).send(&fresh).await.status, 200);
    }
    // Errors have another limit.
    assert_eq!(delivery(&shop.project, session.error(1, 0)).send(&app).await.status, 200);
}

/// Returns the events of a page whose segment has about 200 kB after compression.
fn events_of_a_large_page(session: &Session) -> Vec<Value> {
    let mut random = ChaCha8Rng::seed_from_u64(7);
    let mut text = |length: usize| -> String {
        (0..length).map(|_| char::from(random.random_range(b'a'..=b'z'))).collect()
    };
    let mut events = Vec::new();
    for at in 0..520 {
        let nodes: Vec<Value> = (0..12)
            .map(|node| {
                json!({"parentId": at, "nextId": null, "node": {"type": 2, "tagName": "div",
                    "attributes": {"class": "row app-bawkde e1md5v962", "style": "color: red"},
                    "childNodes": [{"type": 3, "textContent": text(40), "id": node}], "id": node}})
            })
            .collect();
        let data =
            json!({"source": 0, "texts": [], "attributes": [], "removes": [], "adds": nodes});
        events.push(json!({"type": 3, "data": data, "timestamp": at}));
        if at % 10 == 0 {
            events.push(session.click(at * 100, at));
        }
    }
    events
}

/// Run with `--release` to check the processor time.
#[test]
fn large_segments_need_little_cpu_and_memory() {
    let session = Session::new(1, Timestamp::from_millis(1_795_234_560_000));
    let json = serde_json::to_vec(&events_of_a_large_page(&session)).unwrap();
    let compressed = zlib(&json);
    let event = format!("{{\"replay_id\":\"{}\"}}", session.replay);
    let (memory, cpu) = (peak_kilobytes(), cpu_time());
    let events = ::errors::ingestion::inflate(&compressed, "deflate").unwrap();
    let segment = insights::recordings::Segment::read(event.as_bytes(), &events).unwrap();
    let (cpu, memory) = (cpu_time().saturating_sub(cpu), peak_kilobytes() - memory);
    let sizes = (compressed.len(), json.len());
    println!("{} B of {} B: {cpu:?} of CPU, {memory} kB", sizes.0, sizes.1);
    assert!((150_000..300_000).contains(&sizes.0), "{sizes:?}");
    assert!(!segment.is_empty());
    assert!(memory < 64_000, "{memory} kB");
    if !cfg!(debug_assertions) {
        assert!(cpu <= Duration::from_millis(40), "{cpu:?} of CPU");
    }
}

/// Returns the processor time of this thread so far.
fn cpu_time() -> Duration {
    // The kernel updates the exact time when the thread yields.
    thread::yield_now();
    let times = fs::read_to_string("/proc/thread-self/schedstat").unwrap();
    Duration::from_nanos(times.split(' ').next().unwrap().parse().unwrap())
}

/// Returns the largest resident memory of this process so far.
fn peak_kilobytes() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap();
    line.trim().trim_end_matches(" kB").parse().unwrap()
}
