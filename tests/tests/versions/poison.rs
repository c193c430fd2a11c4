//! One damaged item of any kind: whatever does not ask for that very item is answered, all jobs go on, and the
//! item is reported (`docs/data-model.md`, "What is damaged").

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
use super::{KINDS, MINUTE, answers};

/// What refuses to work while an item of a kind is damaged, since it asks for that item: questions, changes and
/// jobs. A job that cannot do all of its work does the rest, and says that it failed.
const REFUSED: [(&str, &str, &[&str]); 11] = [
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
    // Whether its owner is still to be asked for a confirmation stands in it.
    ("notifications", "addresses#", &["send-notifications"]),
    // The slug by which all of these name the project.
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
    // Whatever is erased next stands in it.
    ("projects", "erasures#", &["erase-data"]),
    ("replay-insights", "chunk#", &["insight 500", "pain points 500"]),
    ("replay-insights", "project#", &["insight 500", "pain points 500"]),
];

/// The item with nothing left of it but what the keys of its table and of indexes need, and its end.
fn damaged(table: &str, mut item: Item) -> Item {
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

/// What refuses to work for a moment: questions, changes and jobs.
async fn refused(app: &App, golden: &Golden) -> BTreeSet<String> {
    let mut refused = BTreeSet::new();
    let changes = answers::changes(&golden.answers, &golden.key);
    let evaluate = Call::of(&evaluate_feature_flags::OPERATION).parameter("idOrSlug", PROJECT);
    let evaluate =
        ("evaluation", evaluate.key(&golden.key).json(&json!({"context": {"targetingKey": "u"}})));
    let questions = answers::questions(&golden.key).into_iter().chain([evaluate]);
    for (name, call) in questions.chain(changes) {
        let reply = call.send(app).await;
        if reply.status >= 300 {
            refused.insert(format!("{name} {}", reply.status));
        }
    }
    refused.extend(run_jobs(app).await);
    refused
}

/// Lets all jobs run; answers those that fail.
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
async fn one_damaged_item_of_any_kind_is_in_nobodys_way() {
    let golden = Golden::read();
    let (_, engine, client) = golden.start(|_, item| item).await;
    let mut wrong = Vec::new();
    for (at, (table, kind)) in KINDS.into_iter().enumerate() {
        let item = golden.last(table, kind);
        // As it is by now, unless it is gone.
        let now = tests::app::items(&client, table).await.into_iter();
        let item = now.filter(|it| key_of(it) == key_of(&item)).last().unwrap_or(item);
        put(&client, table, damaged(table, item.clone())).await;
        // One that remembers nothing, and for whom all is due.
        let mut app = golden.app(&engine);
        app.ids = Ids::Random;
        pass(&app, 2 * MINUTE * u32::try_from(at + 1).unwrap());
        let refused = refused(&app, &golden).await;
        put(&client, table, item).await;
        let expected = REFUSED.iter().find(|(of, it, _)| (*of, *it) == (table, kind));
        let expected = expected.map_or(&[][..], |(_, _, refused)| refused);
        if !refused.iter().eq(expected) {
            wrong.push(format!("{table} {kind}: {refused:?}"));
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}
