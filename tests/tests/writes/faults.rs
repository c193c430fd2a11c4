//! Work of all feature areas during failures of DynamoDB. A client that repeats a request until it
//! gets a response causes one execution. Each response is described in openapi.yaml and arrives in
//! time, and the final counts are correct.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::{Duration, Instant};

use futures_util::future::join_all;
use serde_json::{Value, json};

use shared::app::{App, Deadline, Operation};
use shared::projects::project::Project;
use tests::app::{PROJECT, TestApp, app_over, pass};
use tests::call::{Call, Reply};
use tests::errors::{SentEvent, project};
use tests::insights::{id, upload};
use tests::preferences::TYPES;
use tests::proxy::{self, Faults, InjectedFault};
use tests::seed;

/// Number of items that each worker creates.
const ITEMS: usize = 12;
/// Maximum attempts per request.
const ATTEMPTS: usize = 60;
/// Pause between attempts.
const PAUSE: Duration = Duration::from_millis(20);
/// Maximum duration of a response.
const MAX_DURATION: Duration = Duration::from_secs(10);

/// A client on the bad network.
struct Client<'t> {
    app: App,
    key: &'t str,
    project: &'t Project,
}

impl Client<'_> {
    fn call(&self, operation: &'static Operation) -> Call {
        Call::of(operation).key(self.key).parameter("idOrSlug", PROJECT)
    }

    /// Sends a request until it has a final response. Repeats it if the response allows.
    async fn done(&self, call: Call) -> Reply {
        for _ in 0..ATTEMPTS {
            let began = Instant::now();
            let reply = call.clone().send(&self.app).await;
            let took = began.elapsed();
            assert!(took < MAX_DURATION, "{} took {took:?}", call.id());
            let is_retryable = match reply.status {
                429 | 500.. => true,
                409 => ["idempotency_in_progress", "conflict"].contains(&reply.code()),
                _ => false,
            };
            if !is_retryable {
                return reply;
            }
            tokio::time::sleep(PAUSE).await;
            // Claims of failed requests expire after five seconds.
            pass(&self.app, 10 * PAUSE);
        }
        panic!("{} got no response", call.id());
    }

    /// Sends a creation with an idempotency key until it succeeds.
    async fn created(&self, call: Call, key: &str) -> Value {
        let reply = self.done(call.header("idempotency-key", key)).await;
        assert!(matches!(reply.status, 200 | 201), "{}", reply.text);
        reply.body
    }

    async fn flags(&self) {
        for number in 0..ITEMS {
            let key = format!("flag-{number}");
            let body = json!({"key": key, "name": "n", "type": "boolean"});
            let created = self.call(&create_feature_flag::OPERATION).json(&body);
            assert_eq!(self.created(created, &format!("create-{key}")).await["version"], 1);
            for change in ["one", "other"] {
                let call = self.call(&update_feature_flag::OPERATION).parameter("key", &key);
                let changed = self.done(call.json(&json!({"description": change}))).await;
                assert_eq!((changed.status, &changed.body["description"]), (200, &json!(change)));
            }
            let evaluated = self.call(&evaluate_feature_flag::OPERATION).parameter("key", &key);
            assert_eq!(self.done(evaluated).await.status, 200);
        }
    }

    /// Creates segments, and deletes every other one.
    async fn segments(&self) {
        for number in 0..ITEMS {
            let key = format!("segment-{number}");
            let conditions = json!([{"attribute": "plan", "operator": "in", "values": ["gold"]}]);
            let body = json!({"key": key, "name": "n", "conditions": conditions});
            let created = self.call(&create_segment::OPERATION).json(&body);
            assert_eq!(self.created(created, &format!("create-{key}")).await["version"], 1);
            let change = self.call(&update_segment::OPERATION).parameter("key", &key);
            let changed = self.done(change.json(&json!({"name": "other"}))).await;
            assert_eq!((changed.status, &changed.body["version"]), (200, &json!(2)));
            if number.is_multiple_of(2) {
                let delete = self.call(&delete_segment::OPERATION).parameter("key", &key);
                assert_deleted(&self.done(delete).await);
            }
        }
    }

    async fn markers(&self) {
        let create = self.call(&create_event_marker_collection::OPERATION);
        let collection =
            self.created(create.json(&json!({"name": "Releases"})), "collection").await;
        for number in 0..ITEMS {
            let events = ["a", "b", "c"].map(|letter| {
                json!({"name": format!("{number}{letter}"), "occurredAt": "2026-11-21T04:16:00Z"})
            });
            let add = self.call(&add_event_markers::OPERATION);
            let add = add.parameter("collectionId", collection["id"].as_str().unwrap());
            self.created(add.json(&json!({ "events": events })), &format!("markers-{number}"))
                .await;
        }
    }

    /// Creates an insight, adds pain points and splits some off.
    async fn insights(&self) {
        let mut body = upload(0..10);
        body["title"] = json!("Checkout");
        let created =
            self.created(self.call(&create_insight::OPERATION).json(&body), "insight").await;
        let of = |operation| {
            self.call(operation).parameter("insightId", created["id"].as_str().unwrap())
        };
        for number in 1..ITEMS {
            let body = upload(number * 10..number * 10 + 10);
            let add = of(&add_pain_points::OPERATION).json(&body);
            self.created(add, &format!("pain-points-{number}")).await;
            if number.is_multiple_of(4) {
                let parts: Vec<String> = (number * 10..number * 10 + 5).map(id).collect();
                let split = of(&split_insight::OPERATION).json(&json!({ "painPointIds": parts }));
                self.created(split, &format!("split-{number}")).await;
            }
        }
    }

    async fn events(&self) {
        for number in 0..2 * ITEMS {
            let now = self.app.clock.now();
            let kind = format!("Error{}", char::from(b'A' + u8::try_from(number % 3).unwrap()));
            let event = SentEvent::new(u64::try_from(number).unwrap(), now, &kind, "x");
            let call = Call::of(&ingest_error_events::OPERATION)
                .path("/api/{ingestId}/envelope/")
                .parameter("ingestId", self.project.ingest_id)
                .query("sentry_key", self.project.public_key);
            assert_eq!(self.done(call.bytes(event.envelope())).await.status, 200);
        }
        let deadline = || Deadline::after(Duration::from_mins(1));
        for _ in 0..3 {
            // A run can fail; the next one continues.
            let _ = (pack_error_log::JOB.run)(&self.app, deadline()).await;
        }
        let errors = self.done(self.call(&list_errors::OPERATION)).await;
        let of = |operation, at: usize| {
            let id = errors.body["items"][at]["errorId"].as_str().unwrap();
            self.call(operation).parameter("errorId", id)
        };
        let resolve = of(&update_error::OPERATION, 0).json(&json!({"status": "resolved"}));
        let resolved = self.done(resolve).await;
        assert_eq!((resolved.status, &resolved.body["status"]), (200, &json!("resolved")));
        assert_deleted(&self.done(of(&delete_error::OPERATION, 1)).await);
    }

    async fn preferences(&self) {
        for number in 0..ITEMS {
            let update = json!([{"type": TYPES[2], "emailEnabled": number % 2 == 0}]);
            let call = Call::of(&update_email_preferences::OPERATION).key(self.key);
            let reply = self.done(call.json(&json!({ "preferences": update }))).await;
            assert_eq!(reply.status, 200, "{}", reply.text);
        }
    }

    /// Reads while others write.
    async fn reads(&self) {
        for operation in [
            &list_feature_flags::OPERATION,
            &list_insights::OPERATION,
            &list_event_marker_collections::OPERATION,
            &list_errors::OPERATION,
            &list_error_categories::OPERATION,
            &evaluate_feature_flags::OPERATION,
            &get_flagd_configuration::OPERATION,
        ] {
            for _ in 0..3 {
                assert_eq!(self.done(self.call(operation)).await.status, 200);
            }
        }
    }
}

/// After an unknown outcome, a repeated deletion can return 404.
fn assert_deleted(reply: &Reply) {
    assert!([204, 404].contains(&reply.status), "{}", reply.text);
}

/// Returns the sum of a field over all items.
fn sum(items: &[Value], field: &str) -> u64 {
    items.iter().map(|item| item[field].as_u64().unwrap()).sum()
}

/// Compares the stored items, read over a good network, with the responses.
async fn check(test: &TestApp) {
    let list = async |operation| {
        let call = test.call(operation);
        test.pages(&call, 100).await.concat()
    };
    let flags = list(&list_feature_flags::OPERATION).await;
    assert_eq!(flags.len(), ITEMS);
    for flag in flags {
        assert_eq!((&flag["description"], &flag["version"]), (&json!("other"), &json!(3)));
        let call = Call::of(&list_flag_changes::OPERATION).key(&test.key);
        let call =
            call.parameter("idOrSlug", PROJECT).parameter("key", flag["key"].as_str().unwrap());
        let history = test.pages(&call, 100).await.concat();
        let versions: Vec<&Value> = history.iter().map(|change| &change["version"]).collect();
        assert_eq!(versions, [3, 2, 1], "{}", flag["key"]);
    }
    let segments = list(&list_segments::OPERATION).await;
    assert_eq!(segments.len(), ITEMS / 2);
    assert!(segments.iter().all(|segment| segment["name"] == "other"));

    let collections = list(&list_event_marker_collections::OPERATION).await;
    assert_eq!(collections.len(), 1);
    assert_eq!(sum(&collections, "eventCount"), 3 * ITEMS as u64);
    let call = test.call(&list_event_markers::OPERATION);
    let call = call.parameter("collectionId", collections[0]["id"].as_str().unwrap());
    let markers = test.pages(&call, 100).await.concat();
    let names: BTreeSet<&str> = markers.iter().filter_map(|it| it["name"].as_str()).collect();
    assert_eq!((markers.len(), names.len()), (3 * ITEMS, 3 * ITEMS));

    let insights = list(&list_insights::OPERATION).await;
    let mut pain_points = Vec::new();
    for insight in &insights {
        let call = test.call(&list_pain_points::OPERATION);
        let call = call.parameter("insightId", insight["id"].as_str().unwrap());
        pain_points.extend(test.pages(&call, 100).await.concat());
    }
    let ids: BTreeSet<&str> = pain_points.iter().filter_map(|it| it["id"].as_str()).collect();
    assert_eq!((pain_points.len(), ids.len()), (10 * ITEMS, 10 * ITEMS));
    assert_eq!(insights.len(), 1 + (ITEMS - 1) / 4);

    let errors = list(&list_errors::OPERATION).await;
    assert_eq!((errors.len(), sum(&errors, "count")), (2, 2 * ITEMS as u64 / 3 * 2));
    let resolved = errors.iter().filter(|error| error["status"] == "resolved");
    assert_eq!(resolved.count(), 1);

    let preferences = Call::of(&get_email_preferences::OPERATION).key(&test.key);
    let preferences = preferences.send(&test.app).await;
    let all = preferences.body.as_array().unwrap();
    let preference = all.iter().find(|it| it["type"] == TYPES[2]).unwrap();
    assert_eq!(preference["emailEnabled"], json!((ITEMS - 1).is_multiple_of(2)));
}

async fn work_with(percent: u32, kinds: &'static [InjectedFault]) {
    let (test, seed) = (TestApp::start().await, seed());
    println!("SEED={seed} {kinds:?}");
    let project = project(&test.app.store, test.project_id).await;
    let faults = Arc::new(Faults::before(&test.engine.endpoint(), percent, kinds, seed));
    let endpoint = proxy::serve(Arc::clone(&faults)).await;
    let client = || {
        let (app, _) = app_over(&endpoint);
        Client { app, key: &test.key, project: &project }
    };
    let workers = [(); 7].map(|()| client());
    let [flags, segments, markers, insights, events, preferences, reads] = &workers;
    tokio::join!(
        flags.flags(),
        segments.segments(),
        markers.markers(),
        insights.insights(),
        events.events(),
        preferences.preferences(),
        reads.reads(),
    );
    assert!(faults.met() > 0, "no fault was injected");
    check(&test).await;
    // Partial work of failed requests does not block others.
    let again = join_all([client(), client()].map(async |client| client.reads().await));
    again.await;
}

#[tokio::test(flavor = "multi_thread")]
async fn one_request_in_a_hundred_fails() {
    Box::pin(work_with(1, &InjectedFault::ALL)).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn one_request_in_ten_fails() {
    Box::pin(work_with(10, &InjectedFault::ALL)).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn three_requests_in_ten_fail() {
    Box::pin(work_with(30, &InjectedFault::ALL)).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn one_request_in_ten_fails_in_one_way() {
    // In this variant, late responses mostly arrive within the timeout.
    join_all(InjectedFault::ALL.chunks(1).map(|alone| Box::pin(work_with(10, alone)))).await;
}
