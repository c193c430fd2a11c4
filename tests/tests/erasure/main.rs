//! Erasing projects and users: nothing of them is left in any table, wherever it was cut short, and
//! nothing of others is missing.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod projects;
mod users;

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::time::Duration;

use aws_sdk_dynamodb::types::AttributeValue;
use serde_json::json;
use shared::app::{App, Deadline, Operation};
use shared::projects::project::{Project, ProjectId};
use tests::app::TestApp;
use tests::call::Call;
use tests::error_tracking::SentEvent;

const MINUTE: Duration = Duration::from_mins(1);
/// The tables, without the prefix of their names.
const TABLES: [&str; 11] = [
    "projects",
    "api-keys",
    "feature-flags",
    "flag-changes",
    "email-preferences",
    "replay-insights",
    "event-markers",
    "errors",
    "idempotency",
    "notifications",
    "quotas",
];

type Item = HashMap<String, AttributeValue>;

#[test]
fn every_table_is_looked_into() {
    let tables = tests::tables();
    let names: BTreeSet<&str> =
        tables.iter().map(|table| table.name.strip_prefix("waymark-").unwrap()).collect();
    assert_eq!(names, BTreeSet::from(TABLES));
}

/// Lets the erasing function run once.
async fn erase(app: &App) {
    (erase_data::JOB.run)(app, Deadline::after(MINUTE)).await.unwrap();
}

/// Lets the jobs run each minute, until nothing is left to erase. Panics after two days.
async fn until_erased(test: &TestApp) {
    for minutes in [1, 3, 3, 3, 3, 3, 24 * 60, 60, 60, 12 * 60] {
        test.pass(MINUTE * minutes);
        erase(&test.app).await;
        (purge_event_markers::JOB.run)(&test.app, Deadline::after(MINUTE)).await.unwrap();
        if test.app.store.list_erasures().await.unwrap().is_empty() {
            return;
        }
    }
    panic!("{:?}", test.app.store.list_erasures().await);
}

/// All items of all tables, but for what lives for a day at most, by their keys.
async fn everything(test: &TestApp) -> BTreeMap<String, Item> {
    let mut all = BTreeMap::new();
    for table in TABLES.iter().filter(|table| !["idempotency", "quotas"].contains(table)) {
        for item in test.items(table).await {
            let names = [
                "idOrSlug",
                "keyId",
                "projectId",
                "key",
                "userId",
                "flagId",
                "version",
                "pk",
                "sk",
            ];
            let key: Vec<_> = names.iter().filter_map(|name| item.get(*name)).collect();
            all.insert(format!("{table} {key:?}"), item);
        }
    }
    all
}

/// The items that have a text anywhere, the stored answers included.
async fn items_with(test: &TestApp, wanted: &str) -> Vec<String> {
    let mut found = Vec::new();
    for table in TABLES {
        let items = test.items(table).await;
        let shown = items.iter().map(|item| format!("{table}: {item:?}"));
        found.extend(shown.filter(|item| item.contains(wanted)));
    }
    found
}

/// Fills a project with something of every kind.
async fn fill(test: &TestApp, project: &Project, numbers: u64) {
    let (app, store) = (&test.app, &test.app.store);
    let call = |operation: &'static Operation| {
        Call::of(operation).parameter("idOrSlug", project.id).key(&test.key)
    };
    let create = |name: &str, operation, body: &serde_json::Value| {
        call(operation).header("idempotency-key", &format!("{name}-{}", project.id)).json(body)
    };
    let segment = json!({"key": "staff", "name": "Staff", "conditions": [
        {"attribute": "email", "operator": "ends_with", "values": ["@example.com"]}]});
    let segment = create("segment", &create_segment::OPERATION, &segment);
    let flag = json!({"key": "checkout", "name": "Checkout", "type": "string", "rules": [
        {"conditions": [{"operator": "in_segment", "values": ["staff"]}], "serve": {"variant": "on"}}],
        "variants": [{"key": "on", "value": "on"}, {"key": "off", "value": "off"}],
        "offVariant": "off", "fallthrough": {"variant": "off"}});
    let flag = create("flag", &create_feature_flag::OPERATION, &flag);
    for call in [segment, flag] {
        let reply = call.send(app).await;
        assert_eq!(reply.status, 201, "{}", reply.body);
    }

    let insight = tests::insights::filled(store, project.id, 450, 500).await;
    let points: Vec<String> = (400..440).map(tests::insights::id).collect();
    let split = call(&split_insight::OPERATION).parameter("insightId", insight);
    let reply = split.json(&json!({"painPointIds": points})).send(app).await;
    assert_eq!(reply.status, 201, "{}", reply.body);
    // A pain point that another insight has: the request gives up its batch.
    let taken = create("again", &create_insight::OPERATION, &{
        let mut body = tests::insights::upload(0..2);
        body["title"] = json!("Again");
        body
    });
    assert_eq!(taken.send(app).await.status, 409);

    tests::markers::filled(store, project.id, 130).await;

    for number in 0..12_u64 {
        let kind = ["TypeError", "KeyError", "IoError"][usize::try_from(number % 3).unwrap()];
        let event = SentEvent::new(numbers + number, app.clock.now(), kind, "x");
        let reply = Call::of(&ingest_error_events::OPERATION)
            .parameter("ingestId", project.ingest_id)
            .query("sentry_key", project.public_key)
            .bytes(event.envelope())
            .send(app)
            .await;
        assert_eq!(reply.status, 200, "{}", reply.body);
        if number == 8 {
            test.pass(Duration::from_hours(25));
            (pack_error_log::JOB.run)(app, Deadline::after(MINUTE)).await.unwrap();
        }
    }
    let listed = call(&list_errors::OPERATION).send(app).await;
    let deleted = listed.body["items"][0]["errorId"].as_str().unwrap();
    let delete = call(&delete_error::OPERATION).parameter("errorId", deleted);
    assert_eq!(delete.send(app).await.status, 204);
}

async fn project(test: &TestApp, id: ProjectId) -> Project {
    tests::error_tracking::project(&test.app.store, id).await
}
