//! Erasure of projects and users: no table keeps their items, even after interruptions, and other
//! items stay.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod kills;
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
use tests::filling::{TABLES, fill};

const MINUTE: Duration = Duration::from_mins(1);
type Item = HashMap<String, AttributeValue>;

#[test]
fn erasure_tests_cover_every_table() {
    let tables = tests::tables();
    let names: BTreeSet<&str> =
        tables.iter().map(|table| table.name.strip_prefix("waymark-").unwrap()).collect();
    assert_eq!(names, BTreeSet::from(TABLES));
}

/// Runs erase-data once.
async fn erase(app: &App) {
    (erase_data::JOB.run)(app, Deadline::after(MINUTE)).await.unwrap();
}

/// Runs the jobs at intervals until no erasure is pending. Panics after two days.
async fn run_until_erased(test: &TestApp) {
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

/// Returns all items by key, except those that expire within a day.
async fn everything(test: &TestApp) -> BTreeMap<String, Item> {
    let mut all = BTreeMap::new();
    // Audit entries stay.
    let skipped = ["audit", "idempotency", "quotas"];
    for table in TABLES.iter().filter(|table| !skipped.contains(table)) {
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

/// Returns all items that contain a text, including stored responses.
async fn items_with(test: &TestApp, wanted: &str) -> Vec<String> {
    let mut found = Vec::new();
    for table in TABLES {
        let items = test.items(table).await;
        let shown = items.iter().map(|item| format!("{table}: {item:?}"));
        found.extend(shown.filter(|item| item.contains(wanted)));
    }
    found
}

async fn project(test: &TestApp, id: ProjectId) -> Project {
    tests::errors::project(&test.app.store, id).await
}
