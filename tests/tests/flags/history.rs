//! Flag histories, and restoration of versions.

use std::collections::BTreeMap;
use std::sync::Mutex;
use std::time::Duration;

use futures_util::future::join_all;
use rand::rngs::ChaCha8Rng;
use rand::{RngExt, SeedableRng};
use serde_json::{Value, json};
use tests::app::{PROJECT, TestApp, key_id};
use tests::call::Call;

use super::{
    CHANGES, DELETE, UPDATE, archive, call_for, change, create, create_dependent, delete, get, on,
    stored, update,
};

const CHANGES_TABLE: &str = "flag-changes";
/// In milliseconds.
const DAY: u64 = 24 * 3_600_000;

/// Returns the changes of a flag, latest first.
async fn history(test: &TestApp, key: &str) -> Vec<Value> {
    test.pages(&call_for(test, CHANGES, key), 100).await.concat()
}

async fn restore(test: &TestApp, key: &str, version: u64) -> tests::call::Reply {
    update(test, key, json!({"restoreVersion": version})).await
}

/// Returns a field of each change.
fn each<'c>(changes: &'c [Value], member: &str) -> Vec<&'c Value> {
    changes.iter().map(|change| &change[member]).collect()
}

/// Returns the restorable fields of a flag.
fn state(flag: &Value) -> Value {
    let mut state = flag.clone();
    for member in ["version", "updatedAt", "archivedAt"] {
        state.as_object_mut().unwrap().remove(member);
    }
    state
}

#[tokio::test]
async fn changes_have_author_and_both_values() {
    let test = TestApp::start().await;
    let ada = test.key_of("ada@example.com").await;
    create(&test, "f", &json!({"description": "d"})).await;
    test.pass(Duration::from_secs(1));
    let patch = json!({"enabled": false, "offVariant": null, "name": "f"});
    let by_ada = Call::of(UPDATE).parameter("idOrSlug", PROJECT).parameter("key", "f").key(&ada);
    let by_ada = by_ada.json(&patch);
    assert_eq!(by_ada.send(&test.app).await.status, 200);
    change(&test, "f", json!({"name": "f"})).await;
    change(&test, "f", json!({"archived": true})).await;
    change(&test, "f", json!({"archived": false, "description": ""})).await;
    assert_eq!(restore(&test, "f", 2).await.status, 200);

    let changes = history(&test, "f").await;
    assert_eq!(each(&changes, "version"), [5, 4, 3, 2, 1], "an equal patch is not recorded");
    let kinds = ["restored", "unarchived", "archived", "updated", "created"];
    assert_eq!(each(&changes, "kind"), kinds);
    assert_eq!(changes[3]["user"], "ada@example.com");
    assert_eq!(changes[3]["keyId"], key_id(&ada).as_str());
    assert_eq!(changes[4]["keyId"], key_id(&test.key).as_str());
    assert_eq!(changes[4]["at"], "2026-11-21T04:16:00.000Z");
    assert_eq!(changes[3]["at"], "2026-11-21T04:16:01.000Z");
    let member =
        |member: &str, from: Value, to: Value| json!({"member": member, "from": from, "to": to});
    let at = json!("2026-11-21T04:16:01.000Z");
    let expected = [
        json!([member("description", json!(""), json!("d"))]),
        json!([
            member("description", json!("d"), json!("")),
            member("archivedAt", at.clone(), json!(null))
        ]),
        json!([member("archivedAt", json!(null), at)]),
        json!([
            member("enabled", json!(true), json!(false)),
            member("offVariant", json!("off"), json!(null))
        ]),
    ];
    assert_eq!(each(&changes[..4], "changes"), expected.iter().collect::<Vec<_>>());
    let created = changes[4]["changes"].as_array().unwrap();
    assert!(created.contains(&member("offVariant", json!(null), json!("off"))), "{created:?}");
    assert!(created.iter().all(|it| it["from"].is_null()), "{created:?}");

    for limit in [1, 2, 5] {
        let pages = test.pages(&call_for(&test, CHANGES, "f"), limit).await;
        assert_eq!(pages.concat(), changes, "{limit}");
    }
}

#[tokio::test]
async fn changes_are_recorded_in_their_transaction() {
    let test = TestApp::start().await;
    test.round_trips();
    create(&test, "f", &json!({})).await;
    test.round_trips();
    change(&test, "f", json!({"enabled": false})).await;
    assert_eq!(test.round_trips(), 2, "the flag and one transaction");
    assert_eq!(restore(&test, "f", 1).await.body["enabled"], true);
    assert_eq!(test.round_trips(), 3, "also the version");
    assert_eq!(history(&test, "f").await.len(), 3);
    // Rejected updates are not recorded.
    assert_eq!(update(&test, "f", on(&["missing"])).await.status, 400);
    let taken = test.call(super::CREATE).json(&super::creation("f", &json!({})));
    assert_eq!(taken.send(&test.app).await.status, 409);
    assert_eq!(history(&test, "f").await.len(), 3);
    assert_eq!(test.items(CHANGES_TABLE).await.len(), 3);
}

#[tokio::test]
async fn earlier_versions_can_be_restored() {
    let test = TestApp::start().await;
    create(&test, "base", &json!({})).await;
    let rules = json!([{"id": "r", "name": "R", "serve": {"rollout": [
        {"variant": "b", "weight": 33.333}, {"variant": "a", "weight": 66.667}]},
        "conditions": [{"attribute": "n", "operator": "greater_than", "values": ["1e3"]}]}]);
    let full = json!({
        "type": "json", "description": "é\u{1}", "offVariant": null, "rules": rules,
        "variants": [{"key": "b", "value": "{\"z\": 1.0, \"a\": [1e2]}"}, {"key": "a", "value": "[]"}],
        "targets": [{"kind": "identifier", "value": "u", "variant": "a"}],
        "prerequisites": on(&["base"])["prerequisites"],
    });
    let first = create(&test, "f", &full).await.body;
    let reset = json!({
        "name": "other", "description": null, "enabled": false, "rules": null, "targets": null,
        "prerequisites": null, "offVariant": "z", "fallthrough": {"variant": "z"},
        "variants": [{"key": "z", "value": "{}"}],
    });
    let second = change(&test, "f", reset).await.body;
    let third = restore(&test, "f", 1).await;
    assert_eq!((third.status, &third.body["version"]), (200, &json!(3)), "{}", third.body);
    assert_eq!(third.headers["etag"], "\"3\"");
    assert_eq!(state(&third.body), state(&first));
    assert_eq!(get(&test, "f").await.body, third.body);
    assert_eq!(state(&restore(&test, "f", 2).await.body), state(&second));
    // Restoring an equal version changes nothing.
    for version in [2, 4] {
        assert_eq!(restore(&test, "f", version).await.body["version"], 4);
    }
    assert_eq!(history(&test, "f").await.len(), 4);
    let stale = call_for(&test, UPDATE, "f").header("if-match", "\"3\"");
    let reply = stale.json(&json!({"restoreVersion": 1})).send(&test.app).await;
    assert_eq!(reply.problem(), (412, "version_mismatch"));
}

#[tokio::test]
async fn invalid_versions_cannot_be_restored() {
    let test = TestApp::start().await;
    create(&test, "f", &json!({})).await;
    for version in [2, 9_007_199_254_740_991] {
        let reply = restore(&test, "f", version).await;
        assert_eq!(reply.violations(), [("/restoreVersion", "unknown_version")]);
    }
    let reply = update(&test, "f", json!({"restoreVersion": 1, "enabled": true})).await;
    assert_eq!(reply.violations(), [("/enabled", "unknown_field")]);

    archive(&test, "f").await;
    assert_eq!(restore(&test, "f", 1).await.problem(), (409, "flag_archived"));
    change(&test, "f", json!({"archived": false})).await;
    let of_an_archived_one = restore(&test, "f", 2).await;
    assert_eq!(of_an_archived_one.body["archivedAt"], Value::Null);
    assert_eq!(of_an_archived_one.body["version"], 3, "the restoration changes nothing");

    // A missing prerequisite, and a missing segment.
    create(&test, "base", &json!({})).await;
    create_dependent(&test, "g", &["base"]).await;
    change(&test, "g", json!({"prerequisites": null})).await;
    archive(&test, "base").await;
    let reply = restore(&test, "g", 1).await;
    assert_eq!(reply.violations(), [("/restoreVersion", "flag_archived")]);
    assert!(reply.text.contains("/prerequisites/0/flagKey in that version"), "{}", reply.text);
    delete(&test, "base").await;
    let reply = restore(&test, "g", 1).await;
    assert_eq!(reply.violations(), [("/restoreVersion", "unknown_flag")]);
    let conditions = json!([{"attribute": "plan", "operator": "exists"}]);
    let segment = json!({"key": "s", "name": "S", "conditions": conditions});
    let created = test.call(&create_segment::OPERATION).json(&segment).send(&test.app).await;
    assert_eq!(created.status, 201);
    let uses = json!([{"operator": "in_segment", "values": ["s"]}]);
    change(&test, "g", json!({"rules": [{"conditions": uses, "serve": {"variant": "on"}}]})).await;
    change(&test, "g", json!({"rules": null})).await;
    assert_eq!(restore(&test, "g", 3).await.status, 200);
    change(&test, "g", json!({"rules": null})).await;
    let gone = call_for(&test, &delete_segment::OPERATION, "s").send(&test.app).await;
    assert_eq!(gone.status, 204);
    let reply = restore(&test, "g", 3).await;
    assert_eq!(reply.violations(), [("/restoreVersion", "unknown_segment")]);

    // A variant that another flag now requires.
    let new = json!({"variants": [{"key": "on", "value": "true"}, {"key": "new", "value": "true"}],
        "offVariant": "on"});
    change(&test, "f", new).await;
    create(&test, "h", &json!({"prerequisites": [{"flagKey": "f", "variant": "new"}]})).await;
    let before = stored(&test).await;
    assert_eq!(restore(&test, "f", 1).await.problem(), (409, "flag_in_use"));
    assert_eq!(stored(&test).await, before);
}

#[tokio::test]
async fn changes_are_kept_for_400_days() {
    let test = TestApp::start().await;
    create(&test, "f", &json!({})).await;
    test.pass(Duration::from_millis(DAY));
    change(&test, "f", json!({"enabled": false})).await;
    test.pass(Duration::from_millis(399 * DAY - 1));
    assert_eq!(history(&test, "f").await.len(), 2);
    test.pass(Duration::from_millis(1));
    let changes = history(&test, "f").await;
    assert_eq!(each(&changes, "version"), [2]);
    assert_eq!(changes[0]["changes"], json!([{"member": "enabled", "from": true, "to": false}]));
    assert_eq!(restore(&test, "f", 1).await.violations(), [("/restoreVersion", "unknown_version")]);
    test.pass(Duration::from_millis(DAY));
    for limit in [1, 100] {
        let pages = test.pages(&call_for(&test, CHANGES, "f"), limit).await;
        assert_eq!(pages, [Vec::<Value>::new()]);
    }
}

#[tokio::test]
async fn reused_keys_have_separate_histories() {
    let test = TestApp::start().await;
    test.other_project().await;
    create(&test, "f", &json!({"description": "old"})).await;
    archive(&test, "f").await;
    assert_eq!(call_for(&test, DELETE, "f").send(&test.app).await.status, 204);
    let gone = call_for(&test, CHANGES, "f").send(&test.app).await;
    assert_eq!(gone.problem(), (404, "flag_not_found"));
    create(&test, "f", &json!({"description": "new"})).await;
    assert_eq!(each(&history(&test, "f").await, "kind"), ["created"]);
    assert_eq!(restore(&test, "f", 2).await.violations(), [("/restoreVersion", "unknown_version")]);
    let elsewhere = Call::of(CHANGES).parameter("idOrSlug", "other").parameter("key", "f");
    let reply = elsewhere.key(&test.key).send(&test.app).await;
    assert_eq!(reply.problem(), (404, "flag_not_found"));
}

#[tokio::test]
async fn largest_flags_have_a_history() {
    let test = TestApp::start().await;
    let mut random = ChaCha8Rng::seed_from_u64(7);
    let mut targets = || {
        // Texts that are hard to compress.
        let letter = |random: &mut ChaCha8Rng| char::from(random.random_range(b'('..b'['));
        let mut value = || (0..137).map(|_| letter(&mut random)).collect::<String>();
        let target = |_| json!({"kind": "identifier", "value": value(), "variant": "on"});
        json!((0..1_000).map(target).collect::<Vec<_>>())
    };
    let first = create(&test, "f", &json!({ "targets": targets() })).await.body;
    for _ in 0..14 {
        let patch = json!({ "targets": targets() });
        // A busy machine can time out on the largest requests.
        while update(&test, "f", patch.clone()).await.status == 503 {}
    }
    let pages = test.pages(&call_for(&test, CHANGES, "f"), 100).await;
    assert!(pages.len() > 1, "the changes do not fit one response");
    let changes = pages.concat();
    assert_eq!(changes.len(), 15);
    let first_changes = &changes[14]["changes"].as_array().unwrap();
    let targets = first_changes.iter().find(|it| it["member"] == "targets").unwrap();
    assert_eq!(targets["to"], first["targets"]);
    assert_eq!(state(&restore(&test, "f", 1).await.body), state(&first));
}

/// Number of writers, and number of changes per writer.
struct Extent {
    writers: u64,
    changes_per_writer: u64,
}

impl Extent {
    /// The variable `CHANGES` sets the total number of changes, for fifty writers.
    fn get() -> Self {
        let changes = std::env::var("CHANGES").map(|number| number.parse::<u64>().unwrap());
        changes.map_or(Self { writers: 20, changes_per_writer: 4 }, |changes| Self {
            writers: 50,
            changes_per_writer: changes.div_ceil(50),
        })
    }
}

#[tokio::test]
async fn many_writers_record_each_change_once() {
    let Extent { writers, changes_per_writer } = Extent::get();
    let test = TestApp::start().await;
    create(&test, "f", &json!({})).await;
    let replies = Mutex::new(BTreeMap::new());
    let write = async |writer: u64| {
        for number in 0..changes_per_writer {
            let patch = json!({"description": format!("{writer}/{number}")});
            loop {
                let reply = update(&test, "f", patch.clone()).await;
                // A busy machine can time out, although the change may have been stored.
                if reply.problem() == (409, "conflict") || reply.status == 503 {
                    continue;
                }
                assert_eq!(reply.status, 200, "{}", reply.body);
                let version = reply.body["version"].as_u64().unwrap();
                let before = replies.lock().unwrap().insert(version, reply.body.clone());
                assert!(before.is_none_or(|it| it == reply.body), "each version is created once");
                break;
            }
        }
    };
    join_all((0..writers).map(write)).await;

    let mut changes = history(&test, "f").await;
    changes.reverse();
    let versions: Vec<u64> = changes.iter().map(|it| it["version"].as_u64().unwrap()).collect();
    let last = get(&test, "f").await.body["version"].as_u64().unwrap();
    assert_eq!(versions, (1..=last).collect::<Vec<u64>>());
    assert!(last > writers * changes_per_writer);
    let replies = replies.into_inner().unwrap();
    let mut before = json!("");
    for change in &changes[1..] {
        let description = &change["changes"][0];
        assert_eq!((&change["changes"][1], &description["from"]), (&Value::Null, &before));
        if let Some(flag) = replies.get(&change["version"].as_u64().unwrap()) {
            assert_eq!(description["to"], flag["description"]);
        }
        before = description["to"].clone();
    }
    for (version, flag) in replies {
        assert_eq!(state(&restore(&test, "f", version).await.body), state(&flag), "{version}");
    }
}
