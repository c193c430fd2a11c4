//! Two releases on the same tables: what an earlier one wrote is read as it was meant, and what a later one
//! adds is in nobody's way (`docs/data-model.md`, "Two releases at a time").
//!
//! `recorded/` has the items of all tables as the release wrote them that recorded them, of every kind, and what
//! it answered about them. Where an item's form is changed on purpose, the old form must go on being read: so
//! the recording stays, and a new kind is added to it by recording again:
//!
//! ```text
//! RECORD_ITEMS=1 cargo nextest run --workspace --locked --test versions
//! ```

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod answers;
mod golden;
mod poison;

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use aws_sdk_dynamodb::types::AttributeValue;
use send_notifications::senders::Senders;
use shared::app::{Deadline, Ids};
use tests::app::{PROJECT, pass};
use tests::call::Call;

use answers::ask;
use golden::{Golden, Item, kind_of};

const MINUTE: Duration = Duration::from_mins(1);

/// What a later release adds to an item.
const ADDED: &str = "addedLater";

fn added() -> AttributeValue {
    let inner = [("since".to_owned(), AttributeValue::S("2.0.0".to_owned()))];
    AttributeValue::M(inner.into())
}

/// Every kind of item, by its table and how its key begins: `docs/data-model.md`.
const KINDS: [(&str, &str); 46] = [
    ("api-keys", ""),
    ("email-preferences", ""),
    ("errors", "bundle#"),
    ("errors", "columns#"),
    ("errors", "error-count#"),
    ("errors", "error-events#"),
    ("errors", "errors#"),
    ("errors", "event# claim"),
    ("errors", "event# payload"),
    ("errors", "fingerprints#"),
    ("errors", "log#"),
    ("errors", "log-head#"),
    ("errors", "manifest#"),
    ("errors", "packing-queue#"),
    ("event-markers", "events#"),
    ("event-markers", "project#"),
    ("event-markers", "purge-jobs"),
    ("feature-flags", ""),
    ("feature-flags", "!"),
    ("feature-flags", "#"),
    ("feature-flags", "/"),
    ("flag-changes", ""),
    ("idempotency", ""),
    ("notifications", "addresses#"),
    ("notifications", "announced#"),
    ("notifications", "asked#"),
    ("notifications", "leases"),
    ("notifications", "passes"),
    ("notifications", "shard# confirm#"),
    ("notifications", "shard# events#"),
    ("notifications", "shard# feed# #head"),
    ("notifications", "shard# feed# #step"),
    ("notifications", "shard# feed# #user"),
    ("notifications", "shard# outbox#"),
    ("notifications", "token-key"),
    ("projects", ""),
    ("projects", "erasure#"),
    ("projects", "erasures#"),
    ("projects", "ingest#"),
    ("quotas", "events#"),
    ("quotas", "requests#"),
    ("replay-insights", "batch#"),
    ("replay-insights", "chunk#"),
    ("replay-insights", "pain-point#"),
    ("replay-insights", "project#"),
    ("replay-insights", "split#"),
];

/// Kinds of which an item is written whole where it changes: what a later release added is gone then.
const WRITTEN_WHOLE: [(&str, &str); 4] = [
    ("errors", "errors#"),
    ("feature-flags", ""),
    ("replay-insights", "chunk#"),
    ("replay-insights", "project#"),
];

#[tokio::test]
async fn what_an_earlier_release_wrote_is_read_as_it_was_meant() {
    if std::env::var_os("RECORD_ITEMS").is_some() {
        golden::record().await;
    }
    let golden = Golden::read();
    let kinds: BTreeSet<(&str, String)> = golden.kinds();
    let expected: BTreeSet<(&str, String)> =
        KINDS.iter().map(|(table, kind)| (*table, (*kind).to_owned())).collect();
    assert_eq!(kinds, expected, "every kind is recorded");
    let (app, _engine, _client) = golden.start(|_, item| item).await;
    answers::compare(&golden.answers, &ask(&app, &golden.key).await);
}

#[tokio::test]
async fn what_a_later_release_adds_to_items_is_in_nobodys_way() {
    let golden = Golden::read();
    let with_more = |_: &str, mut item: Item| {
        item.insert(ADDED.to_owned(), added());
        item
    };
    let (app, _engine, client) = golden.start(with_more).await;
    answers::compare(&golden.answers, &ask(&app, &golden.key).await);

    // All that changes items by itself or for a caller, and then what is left of it.
    let mut app = app;
    app.ids = Ids::Random;
    change(&app, &golden).await;
    for _ in 0..4 {
        pass(&app, MINUTE * 11);
        let deadline = Deadline::after(MINUTE);
        for job in [pack_error_log::JOB, purge_event_markers::JOB, announce_trends::JOB] {
            (job.run)(&app, deadline).await.unwrap_or_else(|error| panic!("{}: {error}", job.name));
        }
        tests::notifications::run(&app, &Senders::default(), Duration::ZERO).await;
    }
    let mut without: BTreeMap<(&str, String), usize> = BTreeMap::new();
    for table in tests::filling::TABLES {
        let old = golden.keys(table);
        for item in tests::app::items(&client, table).await {
            if old.contains(&golden::key_of(&item)) && !item.contains_key(ADDED) {
                *without.entry((table, kind_of(table, &item))).or_default() += 1;
            }
        }
    }
    let without: BTreeSet<(&str, String)> = without.into_keys().collect();
    let expected: BTreeSet<(&str, String)> =
        WRITTEN_WHOLE.iter().map(|(table, kind)| (*table, (*kind).to_owned())).collect();
    assert_eq!(without, expected, "docs/data-model.md, \"Two releases at a time\"");
}

/// Changes something of every resource, each of which succeeds.
async fn change(app: &shared::app::App, golden: &Golden) {
    for (what, call) in answers::changes(&golden.answers, &golden.key) {
        let call: Call = call;
        let reply = call.send(app).await;
        assert!(reply.status < 300, "{what}: {}", reply.text);
    }
}

#[tokio::test]
async fn kinds_that_a_later_release_adds_are_in_nobodys_way() {
    let golden = Golden::read();
    let (app, _engine, client) = golden.start(|_, item| item).await;
    for table in ["errors", "event-markers", "notifications", "replay-insights"] {
        for (pk, sk) in [("later#1", "one"), ("later", "later")] {
            let item = [("pk", pk), ("sk", sk)];
            let item =
                item.map(|(name, value)| (name.to_owned(), AttributeValue::S(value.to_owned())));
            golden::put(&client, table, item.into()).await;
        }
    }
    answers::compare(&golden.answers, &ask(&app, &golden.key).await);
    let deadline = Deadline::after(MINUTE);
    for job in [pack_error_log::JOB, purge_event_markers::JOB, announce_trends::JOB] {
        (job.run)(&app, deadline).await.unwrap_or_else(|error| panic!("{}: {error}", job.name));
    }
}

#[tokio::test]
async fn what_a_later_release_says_within_a_definition_is_refused_and_kept() {
    let golden = Golden::read();
    let (flag, member) = ("checkout", "\"conditions\":[{\"negated\":true,");
    let with_more = |_: &str, mut item: Item| {
        let is_flag = item.get("key").is_some_and(|key| key.as_s().is_ok_and(|it| it == flag));
        if let Some(AttributeValue::S(text)) = item.get_mut("definition").filter(|_| is_flag) {
            *text = text.replacen("\"conditions\":[{", member, 1);
            assert!(text.contains(member), "{text}");
        }
        item
    };
    let (app, _engine, client) = golden.start(with_more).await;
    let call = |operation| {
        Call::of(operation).parameter("idOrSlug", PROJECT).parameter("key", flag).key(&golden.key)
    };
    // Serving it as if the member were not there might let in whom it was to keep out.
    let evaluated = call(&evaluate_feature_flag::OPERATION).send(&app).await;
    assert_eq!((evaluated.status, &evaluated.body["errorCode"]), (400, &"PARSE_ERROR".into()));
    let change = serde_json::json!({"name": "Changed"});
    let changed = call(&update_feature_flag::OPERATION).json(&change).send(&app).await;
    assert_eq!(changed.status, 500, "{}", changed.text);
    let items = tests::app::items(&client, "feature-flags").await;
    let definitions = items.iter().filter_map(|item| item.get("definition")?.as_s().ok());
    assert!(definitions.into_iter().any(|text| text.contains(member)), "it is as it was");
}
