//! One unreadable item of any kind: requests for other items succeed, all jobs continue, and the
//! item is reported (`docs/data-model.md`, "Unreadable items").

use std::collections::BTreeSet;
use std::time::Duration;

use aws_sdk_dynamodb::primitives::Blob;
use aws_sdk_dynamodb::types::AttributeValue;
use send_notifications::senders::Senders;
use serde_json::json;
use shared::app::{App, Deadline, Ids};
use tests::app::{PROJECT, pass};
use tests::call::Call;

use super::golden::{Golden, Item, key_of, put};
use super::{KINDS, MINUTE, responses};

/// Reads, changes and jobs that fail while an item of a kind is unreadable, because they need that
/// item. Jobs do their other work and then report a failure.
const FAILING: [(&str, &str, &[&str]); 13] = [
    ("email-preferences", "", &["preferences 500"]),
    ("errors", "errors#", &["error 500"]),
    (
        "errors",
        "log-head#",
        &["announce-trends", "error 500", "list-error-categories 500", "list-errors 500"],
    ),
    ("event-markers", "project#", &["markers 500"]),
    ("feature-flags", "", &["flag 500"]),
    ("feature-flags", "/", &["segment 500"]),
    // The item records whether the user still gets a confirmation email.
    ("notifications", "addresses#", &["send-notifications"]),
    ("people", "session#", &["session 500"]),
    ("people", "user# member#", &["session 500"]),
    // The slug with which these requests name the project.
    (
        "projects",
        "",
        &[
            "error 500",
            "evaluation 500",
            "flag 500",
            "get-flagd-configuration 500",
            "insight 500",
            "list-error-categories 500",
            "list-errors 500",
            "list-event-marker-collections 500",
            "list-feature-flags 500",
            "list-insights 500",
            "list-segments 500",
            "markers 500",
            "pain points 500",
            "segment 500",
        ],
    ),
    // The item names the next erasure.
    ("projects", "erasures#", &["erase-data"]),
    ("replay-insights", "chunk#", &["insight 500", "pain points 500"]),
    ("replay-insights", "project#", &["insight 500", "pain points 500"]),
];

/// Removes everything from an item except keys and expiry.
fn unreadable(table: &str, mut item: Item) -> Item {
    let tables = tests::tables();
    let table = tables.iter().find(|it| it.name.ends_with(&format!("-{table}"))).unwrap();
    let attributes = table.create["AttributeDefinitions"].as_array().unwrap();
    let mut kept: Vec<&str> =
        attributes.iter().map(|it| it["AttributeName"].as_str().unwrap()).collect();
    kept.extend(table.time_to_live_attribute.as_deref());
    for (name, value) in &mut item {
        if !kept.contains(&name.as_str()) {
            *value = AttributeValue::B(Blob::new([0xff; 9]));
        }
    }
    item
}

/// Returns the reads, changes and jobs that currently fail.
async fn failing(app: &App, golden: &Golden) -> BTreeSet<String> {
    let mut failing = BTreeSet::new();
    let changes = responses::changes(&golden.responses, &golden.key);
    let evaluate = Call::of(&evaluate_feature_flags::OPERATION).parameter("idOrSlug", PROJECT);
    let evaluate =
        ("evaluation", evaluate.key(&golden.key).json(&json!({"context": {"targetingKey": "u"}})));
    let reads =
        responses::read_requests(&golden.key, &golden.session).into_iter().chain([evaluate]);
    for (name, call) in reads.chain(changes) {
        let reply = call.send(app).await;
        if reply.status >= 300 {
            failing.insert(format!("{name} {}", reply.status));
        }
    }
    failing.extend(run_jobs(app).await);
    failing
}

/// Runs all jobs and returns those that fail.
async fn run_jobs(app: &App) -> BTreeSet<String> {
    let mut failed = BTreeSet::new();
    let deadline = || Deadline::after(MINUTE);
    for job in
        [pack_error_log::JOB, purge_event_markers::JOB, announce_trends::JOB, erase_data::JOB]
    {
        if (job.run)(app, deadline()).await.is_err() {
            failed.insert(job.name.to_owned());
        }
    }
    let nowhere = Senders::default();
    if send_notifications::run(app, &nowhere, Duration::ZERO, deadline()).await.is_err() {
        failed.insert(send_notifications::JOB.name.to_owned());
    }
    failed
}

#[tokio::test]
async fn one_unreadable_item_affects_only_itself() {
    let golden = Golden::read();
    let (_, engine, client) = golden.start(|_, item| item).await;
    let mut wrong = Vec::new();
    for (at, (table, kind)) in KINDS.into_iter().enumerate() {
        let item = golden.last(table, kind);
        // The current item, unless it is gone.
        let now = tests::app::items(&client, table).await.into_iter();
        let item = now.filter(|it| key_of(it) == key_of(&item)).last().unwrap_or(item);
        put(&client, table, unreadable(table, item.clone())).await;
        // Without cached data, and with all jobs due.
        let mut app = golden.app(&engine);
        app.ids = Ids::Random;
        pass(&app, 2 * MINUTE * u32::try_from(at + 1).unwrap());
        let failing = failing(&app, &golden).await;
        put(&client, table, item).await;
        let expected = FAILING.iter().find(|(of, it, _)| (*of, *it) == (table, kind));
        let expected = expected.map_or(&[][..], |(_, _, failing)| failing);
        if !failing.iter().eq(expected) {
            wrong.push(format!("{table} {kind}: {failing:?}"));
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}
