//! Function processes that are killed during a write, until one is left to respond. Each request is
//! then executed once.

use std::path::PathBuf;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use rand::rngs::ChaCha8Rng;
use rand::{RngExt, SeedableRng};
use serde_json::{Value, json};

use notifications::TokenKeyCache;
use notifications::notification_type::NotificationType;
use notifications::store::UserName;
use notifications::token::Token;
use shared::app::{Clock, Operation};
use tests::app::TestApp;
use tests::call::Call;
use tests::errors::{SentEvent, project};
use tests::insights::{id, upload};
use tests::notifications::{SentMessages, token_in, user};
use tests::preferences::TYPES;
use tests::process::Process;
use tests::seed;

/// Number of killed processes per write.
const KILLS: usize = 5;
/// Maximum life of the first process after it got the request, in milliseconds. It halves with each process
/// that responds before its end, so that kills interrupt writes on machines of any speed.
const MAX_LIFE: u64 = 100;
/// Wait while a killed request still holds its claims.
const PAUSE: Duration = Duration::from_millis(500);
const ATTEMPTS: usize = 40;

struct Killer<'t> {
    test: &'t TestApp,
    endpoint: String,
    log: PathBuf,
    seed: u64,
    /// Number of killed processes, and the number of them that had not responded.
    killed: AtomicUsize,
    during: AtomicUsize,
}

impl Killer<'_> {
    fn call(&self, operation: &'static Operation) -> Call {
        self.test.call(operation)
    }

    /// Sends a call to one process after another, and returns the response of the last one, which
    /// is not killed.
    async fn send_until_done(&self, call: Call) -> (u64, Value) {
        let event = call.event().to_string();
        let of_call =
            event.bytes().fold(self.seed, |seed, byte| seed.rotate_left(5) ^ u64::from(byte));
        let mut random = ChaCha8Rng::seed_from_u64(of_call);
        let start = || Process::start(call.id(), &self.endpoint, &[], &self.log);
        let mut max_life = MAX_LIFE;
        for _ in 0..KILLS {
            let process = start().await;
            let life = Duration::from_millis(random.random_range(1..=max_life));
            let was_killed = process.kill_after(life, event.clone()).await;
            if !was_killed {
                max_life = (max_life / 2).max(1);
            }
            self.during.fetch_add(usize::from(was_killed), Ordering::Relaxed);
            self.killed.fetch_add(1, Ordering::Relaxed);
        }
        let process = start().await;
        for _ in 0..ATTEMPTS {
            let response = process.invoke(event.clone()).await;
            let text = response["body"].as_str().unwrap_or("null");
            // The response to a link in an email is a page.
            let body: Value = serde_json::from_str(text).unwrap_or_else(|_| text.into());
            let status = response["statusCode"].as_u64().unwrap();
            let Value::String(code) = &body["code"] else { return (status, body) };
            if status < 500 && !["idempotency_in_progress", "conflict"].contains(&code.as_str()) {
                return (status, body);
            }
            tokio::time::sleep(PAUSE).await;
        }
        panic!("{} got no response", call.id());
    }

    async fn created(&self, call: Call) -> Value {
        let (status, body) = self.send_until_done(call.header("idempotency-key", "one")).await;
        assert!(matches!(status, 200 | 201), "{body}");
        body
    }

    async fn deleted(&self, call: Call) {
        let (status, body) = self.send_until_done(call).await;
        // A killed process may already have deleted the resource.
        assert!([204, 404].contains(&status), "{body}");
    }

    async fn got(&self, call: Call) -> Value {
        let reply = call.send(&self.test.app).await;
        assert_eq!(reply.status, 200, "{}", reply.text);
        reply.body
    }

    async fn flag(&self) {
        let body = json!({"key": "f", "name": "n", "type": "boolean"});
        self.created(self.call(&create_feature_flag::OPERATION).json(&body)).await;
        let change = self.call(&update_feature_flag::OPERATION).parameter("key", "f");
        let (status, changed) = self.send_until_done(change.json(&json!({"archived": true}))).await;
        assert_eq!((status, &changed["version"]), (200, &json!(2)));
        let history = self.call(&list_flag_changes::OPERATION).parameter("key", "f");
        let history = self.test.pages(&history, 100).await.concat();
        let versions: Vec<&Value> = history.iter().map(|change| &change["version"]).collect();
        assert_eq!(versions, [2, 1]);
        self.deleted(self.call(&delete_feature_flag::OPERATION).parameter("key", "f")).await;
        assert_eq!(self.list(&list_feature_flags::OPERATION).await.len(), 0);
    }

    async fn segment(&self) {
        let conditions = json!([{"attribute": "plan", "operator": "in", "values": ["gold"]}]);
        let body = json!({"key": "s", "name": "n", "conditions": conditions});
        self.created(self.call(&create_segment::OPERATION).json(&body)).await;
        let change = self.call(&update_segment::OPERATION).parameter("key", "s");
        let (status, changed) = self.send_until_done(change.json(&json!({"name": "other"}))).await;
        assert_eq!((status, &changed["version"]), (200, &json!(2)));
        self.deleted(self.call(&delete_segment::OPERATION).parameter("key", "s")).await;
        assert_eq!(self.list(&list_segments::OPERATION).await.len(), 0);
    }

    async fn markers(&self) {
        let create = self.call(&create_event_marker_collection::OPERATION);
        let created = self.created(create.json(&json!({"name": "Releases"}))).await;
        let events: Vec<Value> = (0..100)
            .map(|number| json!({"name": number.to_string(), "occurredAt": "2026-11-21T04:16:00Z"}))
            .collect();
        let add = self.call(&add_event_markers::OPERATION);
        let add = add.parameter("collectionId", created["id"].as_str().unwrap());
        self.created(add.json(&json!({ "events": events }))).await;
        let collections = self.list(&list_event_marker_collections::OPERATION).await;
        assert_eq!((collections.len(), &collections[0]["eventCount"]), (1, &json!(100)));
        let call = self.call(&list_event_markers::OPERATION);
        let call = call.parameter("collectionId", created["id"].as_str().unwrap());
        assert_eq!(self.test.pages(&call, 100).await.concat().len(), 100);
        let delete = self.call(&delete_event_marker_collection::OPERATION);
        self.deleted(delete.parameter("collectionId", created["id"].as_str().unwrap())).await;
        assert_eq!(self.list(&list_event_marker_collections::OPERATION).await.len(), 0);
    }

    async fn insight(&self) {
        let mut body = upload(0..20);
        body["title"] = json!("Checkout");
        let created = self.created(self.call(&create_insight::OPERATION).json(&body)).await;
        let of = |operation| {
            self.call(operation).parameter("insightId", created["id"].as_str().unwrap())
        };
        self.created(of(&add_pain_points::OPERATION).json(&upload(20..200))).await;
        let parts: Vec<String> = (0..50).map(id).collect();
        let split = of(&split_insight::OPERATION).json(&json!({ "painPointIds": parts }));
        let split_off = self.created(split).await;
        assert_eq!(self.occurrences().await, [50, 150]);
        let change = of(&update_insight::OPERATION).json(&json!({"status": "resolved"}));
        let (status, changed) = self.send_until_done(change).await;
        assert_eq!((status, &changed["status"]), (200, &json!("resolved")));
        let merge = self.call(&merge_insights::OPERATION);
        let merge = merge.parameter("insightId", split_off["id"].as_str().unwrap());
        let (status, body) =
            self.send_until_done(merge.json(&json!({"into": created["id"]}))).await;
        assert_eq!(status, 200, "{body}");
        assert_eq!(self.occurrences().await, [0, 200], "one insight was merged into the other");
    }

    /// Returns the number of pain points of each insight, sorted.
    async fn occurrences(&self) -> Vec<u64> {
        let insights = self.list(&list_insights::OPERATION).await;
        let mut counts: Vec<u64> =
            insights.iter().map(|it| it["occurrences"].as_u64().unwrap()).collect();
        counts.sort_unstable();
        counts
    }

    async fn error(&self) {
        let project = project(&self.test.app.store, self.test.project_id).await;
        let deliver = Call::of(&ingest_error_events::OPERATION);
        let deliver = deliver.parameter("ingestId", project.ingest_id);
        let event = SentEvent::new(0, self.test.app.clock.now(), "TypeError", "x");
        let deliver = deliver.query("sentry_key", project.public_key).bytes(event.envelope());
        self.got(deliver).await;
        let error = self.list(&list_errors::OPERATION).await.remove(0);
        let of = |operation| {
            self.call(operation).parameter("errorId", error["errorId"].as_str().unwrap())
        };
        let change = of(&update_error::OPERATION).json(&json!({"status": "resolved"}));
        let (status, changed) = self.send_until_done(change).await;
        assert_eq!((status, &changed["status"]), (200, &json!("resolved")));
        let found = self.got(of(&get_error::OPERATION)).await;
        assert_eq!(found["status"], "resolved");
        self.deleted(of(&delete_error::OPERATION)).await;
        assert_eq!(self.list(&list_errors::OPERATION).await.len(), 0);
    }

    /// Confirms an address through the link in its email, and unsubscribes through the link in
    /// another one.
    async fn address(&self) {
        let (messages, email) = (SentMessages::open(), "mira@example.com");
        let app = self.test.app_at(Clock::System);
        let set = Call::of(&set_email_address::OPERATION).key(&self.test.key);
        let (status, set) = self.send_until_done(set.json(&json!({ "email": email }))).await;
        assert_eq!((status, &set["pendingEmail"]), (200, &json!(email)));
        messages.run(&app).await;
        let sent = messages.emails_to(email).await;
        let token = token_in(&sent[0], "/v0/notifications/confirm");
        assert_eq!(sent.len(), 1, "one confirmation is requested");
        let confirm = Call::of(&confirm_email_address::OPERATION).query("token", token);
        let (status, page) = self.send_until_done(confirm).await;
        // A killed process may already have used the link.
        assert!([200, 400].contains(&status), "{page}");
        let get = Call::of(&get_email_address::OPERATION).key(&self.test.key);
        assert_eq!(self.got(get).await, json!({"email": email, "pendingEmail": null}));

        let UserName { organization, user } = user("owner");
        let notification_type = NotificationType::Billing;
        let token = Token::Unsubscribe { organization, user, notification_type };
        let token = token.seal(&app.cache::<TokenKeyCache>().get(&app.store).await.unwrap());
        let (status, page) =
            self.send_until_done(Call::of(&unsubscribe::OPERATION).query("token", token)).await;
        assert_eq!(status, 200, "{page}");
        let get = Call::of(&get_email_preferences::OPERATION).key(&self.test.key);
        let preferences = self.got(get).await;
        let preferences =
            preferences.as_array().unwrap().iter().find(|it| it["type"] == "billing").unwrap();
        assert_eq!(preferences["emailEnabled"], false);
    }

    async fn preferences(&self) {
        let update = json!({"preferences": [{"type": TYPES[0], "emailEnabled": false}]});
        let update =
            Call::of(&update_email_preferences::OPERATION).key(&self.test.key).json(&update);
        let (status, body) = self.send_until_done(update).await;
        assert_eq!((status, &body[0]["emailEnabled"]), (200, &json!(false)));
    }

    async fn list(&self, operation: &'static Operation) -> Vec<Value> {
        self.test.pages(&self.call(operation), 100).await.concat()
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn killed_writes_are_executed_once_when_repeated() {
    let (test, seed) = (TestApp::start().await, seed());
    println!("SEED={seed}");
    let folder = tempfile::tempdir().unwrap();
    let (endpoint, log) = (test.engine.endpoint(), folder.path().join("log"));
    let killer = Killer {
        test: &test,
        endpoint,
        log,
        seed,
        killed: AtomicUsize::new(0),
        during: AtomicUsize::new(0),
    };
    tokio::join!(
        killer.flag(),
        killer.segment(),
        killer.markers(),
        killer.insight(),
        killer.preferences(),
        killer.error(),
        killer.address(),
    );
    let (during, processes) = (killer.during.into_inner(), killer.killed.into_inner());
    println!("{during} of {processes} processes were killed before their response");
    assert!(during * 4 > processes, "most processes had responded");
}
