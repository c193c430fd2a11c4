//! Two releases with the same tables: items of an earlier release are read correctly, and additions
//! of a later one cause no errors (`docs/data-model.md`, "Two releases at a time").
//!
//! `recorded/` has items of every kind as the recording release wrote them, and its responses. If
//! an item's format changes, the old format must remain readable. So the recording stays, and new
//! kinds are added by recording again:
//!
//! ```text
//! RECORD_ITEMS=1 cargo nextest run --workspace --locked --test versions
//! ```

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod golden;
mod poison;
mod responses;

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use aws_sdk_dynamodb::types::AttributeValue;
use send_notifications::senders::Senders;
use shared::app::{Deadline, Ids};
use tests::app::{PROJECT, pass};
use tests::call::Call;

use golden::{Golden, Item, kind_of};
use responses::read_all;

const MINUTE: Duration = Duration::from_mins(1);

/// An attribute that a later release adds.
const ADDED: &str = "addedLater";

fn added() -> AttributeValue {
    let inner = [("since".to_owned(), AttributeValue::S("2.0.0".to_owned()))];
    AttributeValue::M(inner.into())
}

/// Every kind of item by table, and the beginning of its key: `docs/data-model.md`.
const KINDS: [(&str, &str); 75] = [
    ("api-keys", ""),
    ("audit", ""),
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
    ("errors", "releases#"),
    ("errors", "tag-values#"),
    ("errors", "tags#"),
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
    ("notifications", "confirmations#"),
    ("notifications", "leases"),
    ("notifications", "passes"),
    ("notifications", "shard# confirm#"),
    ("notifications", "shard# events#"),
    ("notifications", "shard# feed# #head"),
    ("notifications", "shard# feed# #step"),
    ("notifications", "shard# feed# #user"),
    ("notifications", "shard# outbox#"),
    ("notifications", "token-key"),
    ("people", "email#"),
    ("people", "invitation#"),
    ("people", "invitations#"),
    ("people", "member#"),
    ("people", "oidc#"),
    ("people", "organization#"),
    ("people", "session#"),
    ("people", "sign-in#"),
    ("people", "use#"),
    ("people", "user# account"),
    ("people", "user# invitation#"),
    ("people", "user# member#"),
    ("projects", ""),
    ("projects", "erasure#"),
    ("projects", "erasures#"),
    ("projects", "ingest#"),
    ("projects", "stack#"),
    ("quotas", "events#"),
    ("quotas", "insights#"),
    ("quotas", "requests#"),
    ("quotas", "sign-in#"),
    ("replay-insights", "batch#"),
    ("replay-insights", "chunk#"),
    ("replay-insights", "pain-point#"),
    ("replay-insights", "project#"),
    ("replay-insights", "replay#"),
    ("replay-insights", "signature#"),
    ("replay-insights", "split#"),
    ("source-maps", "assembly-queue"),
    ("source-maps", "bundles#"),
    ("source-maps", "chunk#"),
    ("source-maps", "due"),
    ("source-maps", "failures#"),
    ("source-maps", "map#"),
    ("source-maps", "maps#"),
    ("source-maps", "piece#"),
];

/// Kinds that are rewritten completely on a change, so additions of a later release are lost.
const WRITTEN_WHOLE: [(&str, &str); 4] = [
    ("errors", "errors#"),
    ("feature-flags", ""),
    ("replay-insights", "chunk#"),
    ("replay-insights", "project#"),
];

#[tokio::test]
async fn items_of_an_earlier_release_are_read_correctly() {
    if std::env::var_os("RECORD_ITEMS").is_some() {
        golden::record().await;
    }
    let golden = Golden::read();
    let kinds: BTreeSet<(&str, String)> = golden.kinds();
    let expected: BTreeSet<(&str, String)> =
        KINDS.iter().map(|(table, kind)| (*table, (*kind).to_owned())).collect();
    assert_eq!(kinds, expected, "a kind is not recorded");
    let (app, _engine, _client) = golden.start(|_, item| item).await;
    responses::compare(&golden.responses, &read_all(&app, &golden.key, &golden.session).await);
}

#[tokio::test]
async fn added_attributes_of_a_later_release_are_ignored() {
    let golden = Golden::read();
    let with_more = |_: &str, mut item: Item| {
        item.insert(ADDED.to_owned(), added());
        item
    };
    let (app, _engine, client) = golden.start(with_more).await;
    responses::compare(&golden.responses, &read_all(&app, &golden.key, &golden.session).await);

    // Runs all changes by callers and jobs, and then checks the remaining items.
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

/// Changes each resource successfully.
async fn change(app: &shared::app::App, golden: &Golden) {
    for (what, call) in responses::changes(&golden.responses, &golden.key) {
        let call: Call = call;
        let reply = call.send(app).await;
        assert!(reply.status < 300, "{what}: {}", reply.text);
    }
}

#[tokio::test]
async fn new_kinds_of_a_later_release_are_ignored() {
    let golden = Golden::read();
    let (app, _engine, client) = golden.start(|_, item| item).await;
    for table in
        ["errors", "event-markers", "notifications", "people", "replay-insights", "source-maps"]
    {
        for (pk, sk) in [("later#1", "one"), ("later", "later")] {
            let item = [("pk", pk), ("sk", sk)];
            let item =
                item.map(|(name, value)| (name.to_owned(), AttributeValue::S(value.to_owned())));
            golden::put(&client, table, item.into()).await;
        }
    }
    responses::compare(&golden.responses, &read_all(&app, &golden.key, &golden.session).await);
    let deadline = Deadline::after(MINUTE);
    for job in [pack_error_log::JOB, purge_event_markers::JOB, announce_trends::JOB] {
        (job.run)(&app, deadline).await.unwrap_or_else(|error| panic!("{}: {error}", job.name));
    }
}

#[tokio::test]
async fn unknown_definition_fields_are_rejected_and_kept() {
    let golden = Golden::read();
    let (flag, field) = ("checkout", "\"conditions\":[{\"negated\":true,");
    let with_more = |_: &str, mut item: Item| {
        let is_flag = item.get("key").is_some_and(|key| key.as_s().is_ok_and(|it| it == flag));
        if let Some(AttributeValue::S(text)) = item.get_mut("definition").filter(|_| is_flag) {
            *text = text.replacen("\"conditions\":[{", field, 1);
            assert!(text.contains(field), "{text}");
        }
        item
    };
    let (app, _engine, client) = golden.start(with_more).await;
    let call = |operation| {
        Call::of(operation).parameter("idOrSlug", PROJECT).parameter("key", flag).key(&golden.key)
    };
    // Ignoring the unknown field could serve the flag to excluded users.
    let evaluated = call(&evaluate_feature_flag::OPERATION).send(&app).await;
    assert_eq!((evaluated.status, &evaluated.body["errorCode"]), (400, &"PARSE_ERROR".into()));
    let change = serde_json::json!({"name": "Changed"});
    let changed = call(&update_feature_flag::OPERATION).json(&change).send(&app).await;
    assert_eq!(changed.status, 500, "{}", changed.text);
    let items = tests::app::items(&client, "feature-flags").await;
    let definitions = items.iter().filter_map(|item| item.get("definition")?.as_s().ok());
    assert!(definitions.into_iter().any(|text| text.contains(field)), "the definition changed");
}
