//! What typical requests consume, as docs/operations.md says it in its cost model.

use std::sync::atomic::Ordering;
use std::time::Duration;

use rand::rngs::ChaCha8Rng;
use rand::{RngExt, SeedableRng};
use serde_json::{Value, json};

use shared::app::{App, Clock, Operation};
use shared::usage::{Usage, counted};
use tests::app::{PROJECT, TestApp, app_over};
use tests::call::{Call, Reply};
use tests::errors::{SentEvent, envelope, project};
use tests::insights::upload;

use super::{deadline, id, scheduled};

/// How many events a day has here, and of how many errors.
const EVENTS: u64 = 300;
const KINDS: u64 = 20;

/// A project whose requests are counted, and the lines of the table so far.
struct Bill {
    test: TestApp,
    app: App,
    lines: Vec<String>,
}

impl Bill {
    async fn start() -> Self {
        let test = TestApp::start().await;
        let (mut app, _) = app_over(&test.engine.endpoint());
        app.store = app.store.remembering(0);
        Self { test, app, lines: Vec::new() }
    }

    fn call(&self, operation: &'static Operation) -> Call {
        Call::of(operation).parameter("idOrSlug", PROJECT).key(&self.test.key)
    }

    async fn send(&self, call: Call) -> Reply {
        let reply = call.send(&self.app).await;
        assert!(reply.status < 300, "{}", reply.body);
        reply
    }

    /// Notes what something consumed.
    fn note(&mut self, what: &str, usage: &Usage) {
        let Usage { read_units, write_units, .. } = usage;
        self.lines.push(format!("| {what} | {read_units} | {write_units} |"));
    }

    /// Sends a call to a warm function and notes what it consumes.
    async fn enter(&mut self, what: &str, call: Call) -> Reply {
        let (reply, usage) = counted(self.send(call)).await;
        self.note(what, &usage);
        reply
    }
}

/// An event of one of several kinds as SDKs send it: with a stack of 20 frames, tags and contexts,
/// about 5 kB, of which compression leaves a fifth.
fn typical_event(sent: &SentEvent, kind: u64) -> String {
    let mut payload = sent.payload();
    let mut random = ChaCha8Rng::seed_from_u64(u64::from_str_radix(&sent.id[16..], 16).unwrap());
    let frames: Vec<Value> = (0..20)
        .map(|line| {
            json!({
                "filename": format!("webpack:///./src/checkout/step-{line}.ts"),
                "function": format!("handleStep{line}Of{kind}"), "lineno": 100 + line, "colno": 17,
                "in_app": line % 2 == 0, "context_line": "    const total = cart.items.sum();",
                "vars": {"order": format!("{:016x}{:08x}", random.random::<u64>(), random.random::<u32>())},
            })
        })
        .collect();
    payload["exception"]["values"][0]["stacktrace"] = json!({ "frames": frames });
    payload["user"] = json!({"id": "42", "geo": {"country_code": "DE"}});
    payload["contexts"] = json!({"browser": {"name": "Firefox"}, "os": {"name": "Windows"}});
    for (name, value) in
        [("environment", "production"), ("release", "shop@2.4.1"), ("transaction", "/checkout")]
    {
        payload[name] = json!(value);
    }
    envelope(&json!({ "event_id": sent.id }), &[("event", payload.to_string())])
}

async fn flags_and_preferences(bill: &mut Bill) {
    let flag = |key: &str| {
        json!({"key": key, "name": "New checkout", "type": "boolean", "enabled": true,
            "rules": [{"name": "Staff first", "serve": {"variant": "on"}, "conditions": [
                {"attribute": "email", "operator": "ends_with", "values": ["@example.com"]}]}]})
    };
    let create = bill.call(&create_feature_flag::OPERATION);
    bill.send(create.clone().json(&flag("first"))).await;
    bill.enter("create-feature-flag", create.clone().json(&flag("second"))).await;
    let once = create.header("idempotency-key", "k").json(&flag("third"));
    bill.enter("create-feature-flag, with an idempotency key", once).await;
    let update = bill.call(&update_feature_flag::OPERATION).parameter("key", "first");
    let switch = update.clone().json(&json!({"enabled": false}));
    bill.enter("update-feature-flag, switched off", switch).await;
    bill.enter("update-feature-flag, archived", update.json(&json!({"archived": true}))).await;
    let delete = bill.call(&delete_feature_flag::OPERATION).parameter("key", "first");
    bill.enter("delete-feature-flag", delete).await;

    let conditions = json!([{"attribute": "plan", "operator": "equals", "values": ["beta"]}]);
    let segment = json!({"key": "beta", "name": "Beta", "conditions": conditions});
    let create = bill.call(&create_segment::OPERATION).json(&segment);
    bill.enter("create-segment", create).await;
    let of_segment = |bill: &Bill, operation| bill.call(operation).parameter("key", "beta");
    let rename = of_segment(bill, &update_segment::OPERATION).json(&json!({"name": "Testers"}));
    bill.enter("update-segment", rename).await;
    let delete = of_segment(bill, &delete_segment::OPERATION);
    bill.enter("delete-segment", delete).await;

    let key = bill.test.key.clone();
    let get = Call::of(&get_email_preferences::OPERATION).key(&key);
    bill.enter("get-email-preferences", get).await;
    let update = Call::of(&update_email_preferences::OPERATION).key(&key);
    let update = update.json(&json!({"preferences": [{"type": "billing", "emailEnabled": false}]}));
    bill.enter("update-email-preferences", update).await;
}

async fn insights(bill: &mut Bill) {
    let mut body = upload(0..10);
    body["title"] = json!("Checkout");
    let create = bill.call(&create_insight::OPERATION).json(&body);
    let insight = id(&bill.enter("create-insight, of 10 pain points", create).await);
    let of = |bill: &Bill, operation| bill.call(operation).parameter("insightId", &insight);
    let add = of(bill, &add_pain_points::OPERATION).json(&upload(10..11));
    bill.enter("add-pain-points, of 1", add).await;
    let get = of(bill, &get_insight::OPERATION);
    bill.enter("get-insight", get).await;
    let split = json!({"painPointIds": [tests::insights::id(0)], "title": "Part"});
    let split = of(bill, &split_insight::OPERATION).json(&split);
    bill.enter("split-insight", split).await;
}

async fn markers(bill: &mut Bill) {
    let create = bill.call(&create_event_marker_collection::OPERATION);
    let create = create.json(&json!({"name": "Releases"}));
    let collection = id(&bill.enter("create-event-marker-collection", create).await);
    let of = |bill: &Bill, operation| bill.call(operation).parameter("collectionId", &collection);
    let events = |count| {
        let event = json!({"name": "v1.2.3", "occurredAt": "2026-11-21T04:16:00Z"});
        json!({ "events": vec![event; count] })
    };
    let add = of(bill, &add_event_markers::OPERATION);
    bill.enter("add-event-markers, of 1", add.clone().json(&events(1))).await;
    bill.send(add.json(&events(99))).await;
    let list = of(bill, &list_event_markers::OPERATION).query("limit", 100);
    bill.enter("list-event-markers, of 100", list).await;
    let delete = of(bill, &delete_event_marker_collection::OPERATION);
    bill.enter("delete-event-marker-collection", delete).await;
    let purge = Box::pin((purge_event_markers::JOB.run)(&bill.app, deadline()));
    let ((), usage) = counted(scheduled(purge_event_markers::JOB.name, purge)).await;
    bill.note("purging its 100 events", &usage);
}

async fn errors(bill: &mut Bill) {
    let project = project(&bill.test.app.store, bill.test.project_id).await;
    let delivery = |bill: &Bill, number: u64, ago: Duration| {
        let at = bill.app.clock.now().minus(ago);
        let sent = SentEvent::new(number, at, "PaymentDeclined", "bad card");
        let call =
            Call::of(&ingest_error_events::OPERATION).parameter("ingestId", project.ingest_id);
        call.query("sentry_key", project.public_key).bytes(typical_event(&sent, number % KINDS))
    };
    bill.send(delivery(bill, 1, Duration::ZERO)).await;
    let again = delivery(bill, 1 + KINDS, Duration::ZERO);
    bill.enter("ingest-error-events, an error of a minute before", again).await;
    let new = delivery(bill, 2, Duration::ZERO);
    bill.enter("ingest-error-events, an error that is new", new).await;
    let list = bill.send(bill.call(&list_errors::OPERATION)).await;
    let error = list.body["items"][0]["errorId"].as_str().unwrap();
    let update = bill.call(&update_error::OPERATION).parameter("errorId", error);
    bill.enter("update-error", update.json(&json!({"status": "resolved"}))).await;
    for number in 100..100 + EVENTS {
        bill.send(delivery(bill, number, Duration::from_secs(3 * number))).await;
    }
    let Clock::Fixed(now) = &bill.app.clock else { unreachable!("a test's clock is fixed") };
    now.fetch_add(2 * 24 * 60 * 60 * 1_000, Ordering::Relaxed);
    let pack = Box::pin((pack_error_log::JOB.run)(&bill.app, deadline()));
    let ((), usage) = counted(scheduled(pack_error_log::JOB.name, pack)).await;
    bill.note("packing a day of 300 events", &usage);

    let query = |body: Value| Call::of(&query_error_timeseries::OPERATION).json(&body);
    let key = bill.test.key.clone();
    let week = json!({ "projectIds": [PROJECT] });
    bill.send(query(week.clone()).key(&key)).await;
    bill.enter("query-error-timeseries, 7 days with 300 events", query(week).key(&key)).await;
    let filtered = json!({"projectIds": [PROJECT], "searchQuery": "card browser:Firefox"});
    bill.enter("the same with a search and a filter", query(filtered).key(&key)).await;
    let list = bill.call(&query_errors::OPERATION).json(&json!({}));
    bill.enter("query-errors, the same 7 days", list).await;
    let breakdown = json!({"projectIds": [PROJECT], "by": "browser"});
    let breakdown = Call::of(&breakdown_errors::OPERATION).json(&breakdown);
    bill.enter("breakdown-errors, the same", breakdown.key(&key)).await;
    let categories = bill.call(&list_error_categories::OPERATION);
    bill.enter("list-error-categories", categories).await;
    let delete = bill.call(&delete_error::OPERATION).parameter("errorId", error);
    bill.enter("delete-error", delete).await;
    bill.enter("get-caller", Call::of(&get_caller::OPERATION).key(&key)).await;
    bill.enter("list-projects, of 1", Call::of(&list_projects::OPERATION).key(&key)).await;
}

#[tokio::test]
async fn the_operations_guide_says_what_requests_consume() {
    let mut bill = Bill::start().await;
    flags_and_preferences(&mut bill).await;
    insights(&mut bill).await;
    markers(&mut bill).await;
    errors(&mut bill).await;
    let guide = tests::workspace().join("docs/operations.md");
    let guide = std::fs::read_to_string(guide).unwrap();
    let missing: Vec<&String> = bill.lines.iter().filter(|it| !guide.contains(*it)).collect();
    assert!(missing.is_empty(), "docs/operations.md lacks:\n{}", bill.lines.join("\n"));
}
