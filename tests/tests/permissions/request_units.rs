//! Request units of typical requests, compared with the table in docs/capacity.md.

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

/// Number of events per day, and number of distinct errors.
const EVENTS: u64 = 300;
const ERRORS: u64 = 20;

/// A project whose request units are measured, and the table rows so far.
struct UnitTable {
    test: TestApp,
    app: App,
    rows: Vec<String>,
}

impl UnitTable {
    async fn start() -> Self {
        let test = TestApp::start().await;
        let (mut app, _) = app_over(&test.engine.endpoint());
        app.store = app.store.remembering(0);
        Self { test, app, rows: Vec::new() }
    }

    fn call(&self, operation: &'static Operation) -> Call {
        self.test.call(operation)
    }

    async fn send(&self, call: Call) -> Reply {
        let reply = call.send(&self.app).await;
        assert!(reply.status < 300, "{}", reply.body);
        reply
    }

    /// Adds a row with the consumed units.
    fn add_row(&mut self, what: &str, usage: &Usage) {
        let Usage { read_units, write_units, .. } = usage;
        self.rows.push(format!("| {what} | {read_units} | {write_units} |"));
    }

    /// Sends a call to a warm function, and adds a row with its consumption.
    async fn measure(&mut self, what: &str, call: Call) -> Reply {
        let (reply, usage) = counted(self.send(call)).await;
        self.add_row(what, &usage);
        reply
    }
}

/// Returns an event as SDKs send it: with a stack of 20 frames, tags and contexts. It has about 5
/// kB, a fifth when compressed.
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

async fn flags_and_preferences(table: &mut UnitTable) {
    let flag = |key: &str| {
        json!({"key": key, "name": "New checkout", "type": "boolean", "enabled": true,
            "rules": [{"name": "Staff first", "serve": {"variant": "on"}, "conditions": [
                {"attribute": "email", "operator": "ends_with", "values": ["@example.com"]}]}]})
    };
    let create = table.call(&create_feature_flag::OPERATION);
    table.send(create.clone().json(&flag("first"))).await;
    table.measure("create-feature-flag", create.clone().json(&flag("second"))).await;
    let once = create.header("idempotency-key", "k").json(&flag("third"));
    table.measure("create-feature-flag, with an idempotency key", once).await;
    let update = table.call(&update_feature_flag::OPERATION).parameter("key", "first");
    let switch = update.clone().json(&json!({"enabled": false}));
    table.measure("update-feature-flag, disabled", switch).await;
    table.measure("update-feature-flag, archived", update.json(&json!({"archived": true}))).await;
    let delete = table.call(&delete_feature_flag::OPERATION).parameter("key", "first");
    table.measure("delete-feature-flag", delete).await;

    let conditions = json!([{"attribute": "plan", "operator": "equals", "values": ["beta"]}]);
    let segment = json!({"key": "beta", "name": "Beta", "conditions": conditions});
    let create = table.call(&create_segment::OPERATION).json(&segment);
    table.measure("create-segment", create).await;
    let of_segment = |table: &UnitTable, operation| table.call(operation).parameter("key", "beta");
    let rename = of_segment(table, &update_segment::OPERATION).json(&json!({"name": "Testers"}));
    table.measure("update-segment", rename).await;
    let delete = of_segment(table, &delete_segment::OPERATION);
    table.measure("delete-segment", delete).await;

    let key = table.test.key.clone();
    let get = Call::of(&get_email_preferences::OPERATION).key(&key);
    table.measure("get-email-preferences", get).await;
    let update = Call::of(&update_email_preferences::OPERATION).key(&key);
    let update = update.json(&json!({"preferences": [{"type": "billing", "emailEnabled": false}]}));
    table.measure("update-email-preferences", update).await;
}

async fn insights(table: &mut UnitTable) {
    let mut body = upload(0..10);
    body["title"] = json!("Checkout");
    let create = table.call(&create_insight::OPERATION).json(&body);
    let insight = id(&table.measure("create-insight, 10 pain points", create).await);
    let of = |table: &UnitTable, operation| table.call(operation).parameter("insightId", &insight);
    let add = of(table, &add_pain_points::OPERATION).json(&upload(10..11));
    table.measure("add-pain-points, 1 pain point", add).await;
    let get = of(table, &get_insight::OPERATION);
    table.measure("get-insight", get).await;
    let split = json!({"painPointIds": [tests::insights::id(0)], "title": "Part"});
    let split = of(table, &split_insight::OPERATION).json(&split);
    table.measure("split-insight", split).await;
}

async fn markers(table: &mut UnitTable) {
    let create = table.call(&create_event_marker_collection::OPERATION);
    let create = create.json(&json!({"name": "Releases"}));
    let collection = id(&table.measure("create-event-marker-collection", create).await);
    let of =
        |table: &UnitTable, operation| table.call(operation).parameter("collectionId", &collection);
    let events = |count| {
        let event = json!({"name": "v1.2.3", "occurredAt": "2026-11-21T04:16:00Z"});
        json!({ "events": vec![event; count] })
    };
    let add = of(table, &add_event_markers::OPERATION);
    table.measure("add-event-markers, 1 event", add.clone().json(&events(1))).await;
    table.send(add.json(&events(99))).await;
    let list = of(table, &list_event_markers::OPERATION).query("limit", 100);
    table.measure("list-event-markers, 100 events", list).await;
    let delete = of(table, &delete_event_marker_collection::OPERATION);
    table.measure("delete-event-marker-collection", delete).await;
    let purge = Box::pin((purge_event_markers::JOB.run)(&table.app, deadline()));
    let ((), usage) = counted(scheduled(purge_event_markers::JOB.name, purge)).await;
    table.add_row("purge of its 100 events", &usage);
}

async fn errors(table: &mut UnitTable) {
    let project = project(&table.test.app.store, table.test.project_id).await;
    let delivery = |table: &UnitTable, number: u64, ago: Duration| {
        let at = table.app.clock.now().minus(ago);
        let sent = SentEvent::new(number, at, "PaymentDeclined", "bad card");
        let call =
            Call::of(&ingest_error_events::OPERATION).parameter("ingestId", project.ingest_id);
        call.query("sentry_key", project.public_key).bytes(typical_event(&sent, number % ERRORS))
    };
    table.send(delivery(table, 1, Duration::ZERO)).await;
    let again = delivery(table, 1 + ERRORS, Duration::ZERO);
    table.measure("ingest-error-events, a recently seen error", again).await;
    let sent = SentEvent::new(1 + 2 * ERRORS, table.app.clock.now(), "PaymentDeclined", "bad card");
    let released = Call::of(&ingest_error_events::OPERATION)
        .parameter("ingestId", project.ingest_id)
        .query("sentry_key", project.public_key)
        .bytes(typical_event(&sent, 1).replace("shop@2.4.1", "shop@2.4.2"));
    table.measure("ingest-error-events, a new release", released).await;
    let new = delivery(table, 2, Duration::ZERO);
    table.measure("ingest-error-events, a new error", new).await;
    let list = table.send(table.call(&list_errors::OPERATION)).await;
    let error = list.body["items"][0]["errorId"].as_str().unwrap();
    let update = table.call(&update_error::OPERATION).parameter("errorId", error);
    table.measure("update-error", update.json(&json!({"status": "resolved"}))).await;
    for number in 100..100 + EVENTS {
        table.send(delivery(table, number, Duration::from_secs(3 * number))).await;
    }
    let Clock::Fixed(now) = &table.app.clock else { unreachable!("a test's clock is fixed") };
    now.fetch_add(2 * 24 * 60 * 60 * 1_000, Ordering::Relaxed);
    let pack = Box::pin((pack_error_log::JOB.run)(&table.app, deadline()));
    let ((), usage) = counted(scheduled(pack_error_log::JOB.name, pack)).await;
    table.add_row("packing of a day with 300 events", &usage);

    let query = |body: Value| Call::of(&query_error_timeseries::OPERATION).json(&body);
    let key = table.test.key.clone();
    let week = json!({ "projectIds": [PROJECT] });
    table.send(query(week.clone()).key(&key)).await;
    table.measure("query-error-timeseries, 7 days with 300 events", query(week).key(&key)).await;
    let filtered = json!({"projectIds": [PROJECT], "searchQuery": "card browser:Firefox"});
    table
        .measure("query-error-timeseries, with a search and a filter", query(filtered).key(&key))
        .await;
    let list = table.call(&query_errors::OPERATION).json(&json!({}));
    table.measure("query-errors, these 7 days", list).await;
    let breakdown = json!({"projectIds": [PROJECT], "by": "browser"});
    let breakdown = Call::of(&breakdown_errors::OPERATION).json(&breakdown);
    table.measure("breakdown-errors, these 7 days", breakdown.key(&key)).await;
    let categories = table.call(&list_error_categories::OPERATION);
    table.measure("list-error-categories", categories).await;
    let of_error = |table: &UnitTable, operation| table.call(operation).parameter("errorId", error);
    let events = of_error(table, &query_error_events::OPERATION).json(&json!({}));
    table.measure("query-error-events, the newest", events).await;
    let by = json!({"by": ["release", "browser", "os", "environment"]});
    let summary = of_error(table, &summarize_error::OPERATION).json(&by);
    table.measure("summarize-error, 4 categories", summary).await;
    let delete = table.call(&delete_error::OPERATION).parameter("errorId", error);
    table.measure("delete-error", delete).await;
    let activity = table.call(&get_project_activity::OPERATION);
    table.measure("get-project-activity", activity).await;
    table.measure("get-caller", Call::of(&get_caller::OPERATION).key(&key)).await;
    table.measure("list-projects, 1 project", Call::of(&list_projects::OPERATION).key(&key)).await;
}

#[tokio::test]
async fn capacity_guide_lists_request_units() {
    let mut table = UnitTable::start().await;
    flags_and_preferences(&mut table).await;
    insights(&mut table).await;
    markers(&mut table).await;
    errors(&mut table).await;
    let guide = tests::workspace().join("docs/capacity.md");
    let guide = std::fs::read_to_string(guide).unwrap();
    let missing: Vec<&String> = table.rows.iter().filter(|it| !guide.contains(*it)).collect();
    assert!(missing.is_empty(), "docs/capacity.md lacks:\n{}", table.rows.join("\n"));
}
