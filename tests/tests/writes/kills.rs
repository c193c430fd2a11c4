//! Functions as processes that are killed amid a write, again and again, until one is left to answer: then what
//! was asked for is done once.

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
use tests::app::{PROJECT, TestApp};
use tests::call::Call;
use tests::errors::{SentEvent, project};
use tests::insights::{id, upload};
use tests::notifications::{SentMessages, token_in, user};
use tests::preferences::TYPES;
use tests::process::Process;
use tests::seed;

/// How many processes are killed for each write.
const KILLS: usize = 5;
/// How long a process may live once it has the request: about as long as it takes to start and to write.
const LIFE: std::ops::Range<u64> = 1..100;
/// How long is waited where the request that was killed still holds what it claimed.
const PAUSE: Duration = Duration::from_millis(500);
const ATTEMPTS: usize = 40;

struct Killer<'t> {
    test: &'t TestApp,
    endpoint: String,
    log: PathBuf,
    seed: u64,
    /// How many processes were killed, and how many of them before they had answered.
    killed: AtomicUsize,
    amid: AtomicUsize,
}

impl Killer<'_> {
    fn call(&self, operation: &'static Operation) -> Call {
        Call::of(operation).key(&self.test.key).parameter("idOrSlug", PROJECT)
    }

    /// Has one process after another carry out a call, and answers what the last of them says, which lives.
    async fn insist(&self, call: Call) -> (u64, Value) {
        let event = call.event().to_string();
        let of_call =
            event.bytes().fold(self.seed, |seed, byte| seed.rotate_left(5) ^ u64::from(byte));
        let mut random = ChaCha8Rng::seed_from_u64(of_call);
        let start = || Process::start(call.id(), &self.endpoint, &[], &self.log);
        for _ in 0..KILLS {
            let process = start().await;
            let life = Duration::from_millis(random.random_range(LIFE));
            let is_amid = process.kill_after(life, event.clone()).await;
            self.amid.fetch_add(usize::from(is_amid), Ordering::Relaxed);
            self.killed.fetch_add(1, Ordering::Relaxed);
        }
        let process = start().await;
        for _ in 0..ATTEMPTS {
            let answer = process.invoke(event.clone()).await;
            let text = answer["body"].as_str().unwrap_or("null");
            // Whoever follows a link is answered with a page.
            let body: Value = serde_json::from_str(text).unwrap_or_else(|_| text.into());
            let status = answer["statusCode"].as_u64().unwrap();
            let Value::String(code) = &body["code"] else { return (status, body) };
            if status < 500 && !["idempotency_in_progress", "conflict"].contains(&code.as_str()) {
                return (status, body);
            }
            tokio::time::sleep(PAUSE).await;
        }
        panic!("{} was not answered", call.id());
    }

    async fn made(&self, call: Call) -> Value {
        let (status, body) = self.insist(call.header("idempotency-key", "one")).await;
        assert!(matches!(status, 200 | 201), "{body}");
        body
    }

    async fn deleted(&self, call: Call) {
        let (status, body) = self.insist(call).await;
        // That it is gone already is what a process may have died of having done.
        assert!([204, 404].contains(&status), "{body}");
    }

    async fn got(&self, call: Call) -> Value {
        let reply = call.send(&self.test.app).await;
        assert_eq!(reply.status, 200, "{}", reply.text);
        reply.body
    }

    async fn flag(&self) {
        let body = json!({"key": "f", "name": "n", "type": "boolean"});
        self.made(self.call(&create_feature_flag::OPERATION).json(&body)).await;
        let change = self.call(&update_feature_flag::OPERATION).parameter("key", "f");
        let (status, changed) = self.insist(change.json(&json!({"archived": true}))).await;
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
        self.made(self.call(&create_segment::OPERATION).json(&body)).await;
        let change = self.call(&update_segment::OPERATION).parameter("key", "s");
        let (status, changed) = self.insist(change.json(&json!({"name": "other"}))).await;
        assert_eq!((status, &changed["version"]), (200, &json!(2)));
        self.deleted(self.call(&delete_segment::OPERATION).parameter("key", "s")).await;
        assert_eq!(self.list(&list_segments::OPERATION).await.len(), 0);
    }

    async fn markers(&self) {
        let create = self.call(&create_event_marker_collection::OPERATION);
        let made = self.made(create.json(&json!({"name": "Releases"}))).await;
        let events: Vec<Value> = (0..100)
            .map(|number| json!({"name": number.to_string(), "occurredAt": "2026-11-21T04:16:00Z"}))
            .collect();
        let add = self.call(&add_event_markers::OPERATION);
        let add = add.parameter("collectionId", made["id"].as_str().unwrap());
        self.made(add.json(&json!({ "events": events }))).await;
        let collections = self.list(&list_event_marker_collections::OPERATION).await;
        assert_eq!((collections.len(), &collections[0]["eventCount"]), (1, &json!(100)));
        let call = self.call(&list_event_markers::OPERATION);
        let call = call.parameter("collectionId", made["id"].as_str().unwrap());
        assert_eq!(self.test.pages(&call, 100).await.concat().len(), 100);
        let delete = self.call(&delete_event_marker_collection::OPERATION);
        self.deleted(delete.parameter("collectionId", made["id"].as_str().unwrap())).await;
        assert_eq!(self.list(&list_event_marker_collections::OPERATION).await.len(), 0);
    }

    async fn insight(&self) {
        let mut body = upload(0..20);
        body["title"] = json!("Checkout");
        let created = self.made(self.call(&create_insight::OPERATION).json(&body)).await;
        let of = |operation| {
            self.call(operation).parameter("insightId", created["id"].as_str().unwrap())
        };
        self.made(of(&add_pain_points::OPERATION).json(&upload(20..200))).await;
        let parts: Vec<String> = (0..50).map(id).collect();
        let split = of(&split_insight::OPERATION).json(&json!({ "painPointIds": parts }));
        let split_off = self.made(split).await;
        assert_eq!(self.occurrences().await, [50, 150]);
        let change = of(&update_insight::OPERATION).json(&json!({"status": "resolved"}));
        let (status, changed) = self.insist(change).await;
        assert_eq!((status, &changed["status"]), (200, &json!("resolved")));
        let merge = self.call(&merge_insights::OPERATION);
        let merge = merge.parameter("insightId", split_off["id"].as_str().unwrap());
        let (status, body) = self.insist(merge.json(&json!({"into": created["id"]}))).await;
        assert_eq!(status, 200, "{body}");
        assert_eq!(self.occurrences().await, [0, 200], "one was merged into the other");
    }

    /// How many pain points each insight has.
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
        let (status, changed) = self.insist(change).await;
        assert_eq!((status, &changed["status"]), (200, &json!("resolved")));
        let seen = self.got(of(&get_error::OPERATION)).await;
        assert_eq!(seen["status"], "resolved");
        self.deleted(of(&delete_error::OPERATION)).await;
        assert_eq!(self.list(&list_errors::OPERATION).await.len(), 0);
    }

    /// An address, by the link in the mail, and the end of what it was for, by that in another.
    async fn address(&self) {
        let (post, email) = (SentMessages::open(), "mira@example.com");
        let app = self.test.app_at(Clock::System);
        let set = Call::of(&set_email_address::OPERATION).key(&self.test.key);
        let (status, set) = self.insist(set.json(&json!({ "email": email }))).await;
        assert_eq!((status, &set["pendingEmail"]), (200, &json!(email)));
        post.run(&app).await;
        let asked = post.mails_to(email).await;
        let token = token_in(&asked[0], "/v0/notifications/confirm");
        assert_eq!(asked.len(), 1, "it is asked for once");
        let confirm = Call::of(&confirm_email_address::OPERATION).query("token", token);
        let (status, page) = self.insist(confirm).await;
        // The link is used up by a process that was killed before it said so.
        assert!([200, 400].contains(&status), "{page}");
        let get = Call::of(&get_email_address::OPERATION).key(&self.test.key);
        assert_eq!(self.got(get).await, json!({"email": email, "pendingEmail": null}));

        let UserName { organization, user } = user("owner");
        let notification_type = NotificationType::Billing;
        let token = Token::Unsubscribe { organization, user, notification_type };
        let token = token.seal(&app.cache::<TokenKeyCache>().get(&app.store).await.unwrap());
        let (status, page) =
            self.insist(Call::of(&unsubscribe::OPERATION).query("token", token)).await;
        assert_eq!(status, 200, "{page}");
        let get = Call::of(&get_email_preferences::OPERATION).key(&self.test.key);
        let told = self.got(get).await;
        let told = told.as_array().unwrap().iter().find(|it| it["type"] == "billing").unwrap();
        assert_eq!(told["emailEnabled"], false);
    }

    async fn preferences(&self) {
        let update = json!({"preferences": [{"type": TYPES[0], "emailEnabled": false}]});
        let update =
            Call::of(&update_email_preferences::OPERATION).key(&self.test.key).json(&update);
        let (status, body) = self.insist(update).await;
        assert_eq!((status, &body[0]["emailEnabled"]), (200, &json!(false)));
    }

    async fn list(&self, operation: &'static Operation) -> Vec<Value> {
        self.test.pages(&self.call(operation), 100).await.concat()
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_killed_amid_a_write_is_done_once_when_it_is_sent_again() {
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
        amid: AtomicUsize::new(0),
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
    let (amid, processes) = (killer.amid.into_inner(), killer.killed.into_inner());
    println!("{amid} of {processes} processes were killed before they had answered");
    assert!(amid * 4 > processes, "most had answered before");
}
