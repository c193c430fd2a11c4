//! The drills of `docs/operations.md`: restored tables replace others during requests, and a stack
//! continues with tables that were copied one after another.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::time::Duration;

use futures_util::future::join_all;
use serde_json::{Value, json};
use tokio::sync::RwLock;

use local::environment::table_prefix;
use shared::app::{App, Clock, Deadline, Ids, Operation};
use shared::dynamodb::{Store, TableNames};
use shared::http::CursorKey;
use shared::projects::project::Project;
use tests::app::{PROJECT, START, TestApp, pages};
use tests::call::{Call, Reply};
use tests::errors::{SentEvent, delivery};

const RESTORED: &str = "restored-20261121T041600Z";
/// Restored tables, grouped by tables that are written together.
const FLAGS: [&str; 2] = ["feature-flags", "flag-changes"];
const OTHERS: [&str; 4] = ["replay-insights", "event-markers", "errors", "email-preferences"];

/// Operations in use, in the order of their switch to restored tables.
const OPERATIONS: [&Operation; 9] = [
    &query_error_timeseries::OPERATION,
    &create_feature_flag::OPERATION,
    &list_flag_changes::OPERATION,
    &update_feature_flag::OPERATION,
    &ingest_error_events::OPERATION,
    &list_feature_flags::OPERATION,
    &create_insight::OPERATION,
    &get_feature_flag::OPERATION,
    &evaluate_feature_flags::OPERATION,
];

/// A stack with its own and restored tables.
struct Drill {
    /// App with the stack's own tables.
    test: TestApp,
    /// App with the restored tables.
    after: App,
    project: Project,
}

impl Drill {
    async fn start(restored: &[&str]) -> Self {
        let mut tables = tests::tables();
        let copies: Vec<_> = tables
            .iter()
            .filter_map(|table| {
                let name = table.name.strip_prefix(&table_prefix())?;
                let mut table = restored.contains(&name).then(|| table.clone())?;
                table.name = format!("{}-{RESTORED}", table.name);
                table.create["TableName"] = json!(table.name);
                Some(table)
            })
            .collect();
        assert_eq!(copies.len(), restored.len());
        tables.extend(copies);
        let test = TestApp::start_with(&tables).await;
        let list: Vec<String> = restored.iter().map(|it| format!("{it}:{RESTORED}")).collect();
        let names = TableNames::new(table_prefix()).with_restored(&list.join(",")).unwrap();
        let clock = Clock::Fixed(AtomicU64::new(START));
        let after = App::new(Store::new(test.client.clone(), names), clock, Ids::Random)
            .with_cursor_key(Some(CursorKey::new("key of the drill for cursors")));
        let project = tests::errors::project(&test.app.store, test.project_id).await;
        Self { test, after, project }
    }

    /// Copies a table's items to a restored table, like a restore in AWS.
    async fn copy(&self, table: &str) {
        let name = format!("{}{table}-{RESTORED}", table_prefix());
        for item in self.test.items(table).await {
            let put = self.test.client.put_item().table_name(&name).set_item(Some(item));
            put.send().await.unwrap();
        }
    }

    fn call(&self, operation: &'static Operation) -> Call {
        self.test.call(operation)
    }

    fn creation_of_flag(&self, key: &str) -> Call {
        let body = json!({"key": key, "name": key, "type": "boolean", "enabled": true});
        self.call(&create_feature_flag::OPERATION).json(&body)
    }

    fn change_of_flag(&self, key: &str, name: &str) -> Call {
        let call = self.call(&update_feature_flag::OPERATION).parameter("key", key);
        call.json(&json!({ "name": name }))
    }

    fn creation_of_insight(&self, number: usize) -> Call {
        let mut body = tests::insights::upload(number * 10..number * 10 + 3);
        body["title"] = json!(format!("Insight {number}"));
        self.call(&create_insight::OPERATION).json(&body)
    }

    fn delivery(&self, number: usize) -> Call {
        let number = u64::try_from(number).unwrap();
        let kind = ["TypeError", "KeyError", "IoError"][usize::try_from(number % 3).unwrap()];
        let event = SentEvent::new(number, self.test.app.clock.now(), kind, "x");
        delivery(&self.project, &event)
    }

    fn evaluation(&self) -> Call {
        let call = self.call(&evaluate_feature_flags::OPERATION);
        call.json(&json!({"context": {"targetingKey": "u"}}))
    }

    fn timeseries(&self) -> Call {
        let now = self.test.app.clock.now().as_millis();
        let body = json!({"projectIds": [PROJECT], "from": now - 7_200_000, "to": now + 7_200_000});
        Call::of(&query_error_timeseries::OPERATION).key(&self.test.key).json(&body)
    }

    async fn events(&self, app: &App) -> u64 {
        let reply = succeeded(self.timeseries().send(app).await);
        reply.body.as_array().unwrap().iter().map(|it| it["errors"].as_u64().unwrap()).sum()
    }

    /// Returns the keys of all flags.
    async fn flags(&self, app: &App) -> BTreeSet<String> {
        self.all(app, &self.call(&list_feature_flags::OPERATION), "key").await.into_iter().collect()
    }

    /// Returns a field of each item of a list.
    async fn all(&self, app: &App, list: &Call, field: &str) -> Vec<String> {
        let found = pages(app, list, 100).await.concat();
        let shown = |item: &Value| match &item[field] {
            Value::String(text) => text.clone(),
            other => other.to_string(),
        };
        found.iter().map(shown).collect()
    }

    /// Checks that each flag's history has each version once, down to the first.
    async fn assert_histories_are_whole(&self, app: &App) {
        for key in self.flags(app).await {
            let get = self.call(&get_feature_flag::OPERATION).parameter("key", &key);
            let version = succeeded(get.send(app).await).body["version"].as_u64().unwrap();
            let list = self.call(&list_flag_changes::OPERATION).parameter("key", &key);
            let expected: Vec<String> = (1..=version).rev().map(|it| it.to_string()).collect();
            assert_eq!(self.all(app, &list, "version").await, expected, "{key}");
        }
    }
}

fn succeeded(reply: Reply) -> Reply {
    assert!((200..300).contains(&reply.status), "{} {}", reply.status, reply.body);
    reply
}

#[tokio::test(flavor = "multi_thread")]
async fn restored_tables_take_over_during_requests() {
    let tables: Vec<&str> = FLAGS.into_iter().chain(OTHERS).collect();
    let drill = Drill::start(&tables).await;
    for number in 0..6 {
        succeeded(drill.creation_of_flag(&format!("kept-{number}")).send(&drill.test.app).await);
        succeeded(drill.change_of_flag(&format!("kept-{number}"), "x").send(&drill.test.app).await);
        succeeded(drill.creation_of_insight(number).send(&drill.test.app).await);
        succeeded(drill.delivery(number).send(&drill.test.app).await);
    }
    // The restored time.
    for table in &tables {
        drill.copy(table).await;
    }
    // Changes by a faulty release after the restored time.
    let delete = drill.call(&delete_feature_flag::OPERATION).parameter("key", "kept-0");
    let breaking_change = drill.change_of_flag("kept-1", "broken");
    let archive = drill.call(&update_feature_flag::OPERATION).parameter("key", "kept-0");
    succeeded(archive.json(&json!({"archived": true})).send(&drill.test.app).await);
    succeeded(delete.send(&drill.test.app).await);
    succeeded(breaking_change.send(&drill.test.app).await);

    // The functions switch to the restored tables one by one, under constant requests.
    let (switched, rounds) = (AtomicUsize::new(0), AtomicUsize::new(0));
    let is_over = AtomicBool::new(false);
    let send = async |call: Call| {
        let place = OPERATIONS.iter().position(|it| it.name == call.id()).unwrap();
        let is_after = place < switched.load(Ordering::SeqCst);
        (call.send(if is_after { &drill.after } else { &drill.test.app }).await, is_after)
    };
    let worker = async |worker: usize| {
        let mut written = (BTreeSet::new(), 0);
        for round in 0.. {
            if is_over.load(Ordering::SeqCst) {
                break;
            }
            let number = 100 + worker + 10 * round;
            let key = format!("new-{number}");
            let (created, is_after) = send(drill.creation_of_flag(&key)).await;
            succeeded(created);
            if is_after {
                written.0.insert(key.clone());
            }
            // A flag can be in tables that the other function uses only later, or no longer.
            for key in [key.as_str(), "kept-2"] {
                let (changed, _) = send(drill.change_of_flag(key, &format!("{number}"))).await;
                assert!([200, 404, 409].contains(&changed.status), "{}", changed.body);
                let get = drill.call(&get_feature_flag::OPERATION).parameter("key", key);
                let history = drill.call(&list_flag_changes::OPERATION).parameter("key", key);
                for call in [get, history] {
                    let (read, _) = send(call).await;
                    assert!([200, 404].contains(&read.status), "{}", read.body);
                }
            }
            let (delivered, is_after) = send(drill.delivery(number)).await;
            succeeded(delivered);
            written.1 += u64::from(is_after);
            let list = drill.call(&list_feature_flags::OPERATION);
            let calls =
                [drill.evaluation(), list, drill.timeseries(), drill.creation_of_insight(number)];
            for call in calls {
                succeeded(send(call).await.0);
            }
            rounds.fetch_add(1, Ordering::SeqCst);
        }
        written
    };
    let switch = async {
        for place in 1..=OPERATIONS.len() {
            let until = rounds.load(Ordering::SeqCst) + 3;
            while rounds.load(Ordering::SeqCst) < until {
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
            switched.store(place, Ordering::SeqCst);
        }
        let until = rounds.load(Ordering::SeqCst) + 6;
        while rounds.load(Ordering::SeqCst) < until {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        is_over.store(true, Ordering::SeqCst);
    };
    let (written, ()) = tokio::join!(join_all((0..3).map(worker)), switch);

    let kept: BTreeSet<String> = (0..6).map(|number| format!("kept-{number}")).collect();
    let new: BTreeSet<String> = written.iter().flat_map(|(flags, _)| flags.clone()).collect();
    assert!(!new.is_empty());
    let expected: BTreeSet<String> = kept.union(&new).cloned().collect();
    assert_eq!(drill.flags(&drill.after).await, expected, "the restored flags and later ones");
    let get = drill.call(&get_feature_flag::OPERATION).parameter("key", "kept-1");
    assert_eq!(succeeded(get.send(&drill.after).await).body["name"], "x");
    drill.assert_histories_are_whole(&drill.after).await;
    let delivered: u64 = written.iter().map(|(_, events)| events).sum();
    assert!(delivered > 0);
    assert_eq!(drill.events(&drill.after).await, 6 + delivered);

    // Jobs continue, too.
    tests::app::pass(&drill.after, Duration::from_hours(1));
    (pack_error_log::JOB.run)(&drill.after, Deadline::after(Duration::from_mins(1))).await.unwrap();
    assert_eq!(drill.events(&drill.after).await, 6 + delivered);

    // Rolling back: the previous tables are unchanged, and lack later writes.
    let left = drill.flags(&drill.test.app).await;
    assert!(
        !left.contains("kept-0") && left.contains("kept-1") && left.is_disjoint(&new),
        "{left:?}"
    );
    drill.assert_histories_are_whole(&drill.test.app).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn stack_continues_with_tables_copied_at_different_times() {
    let tables: Vec<&str> = OTHERS.into_iter().rev().chain(FLAGS).collect();
    let drill = Drill::start(&tables).await;
    let (pause, is_over) = (RwLock::new(()), AtomicBool::new(false));
    let rounds = AtomicUsize::new(0);
    // Each table's copy is consistent, so writes pause during a copy and happen between copies.
    let worker = async {
        for number in 0.. {
            if is_over.load(Ordering::SeqCst) {
                break;
            }
            let flag = format!("flag-{number}");
            for call in [
                drill.creation_of_flag(&flag),
                drill.change_of_flag(&flag, "x"),
                drill.creation_of_insight(number),
                drill.delivery(number),
            ] {
                let _unpaused = pause.read().await;
                succeeded(call.send(&drill.test.app).await);
            }
            rounds.fetch_add(1, Ordering::SeqCst);
        }
    };
    let copy = async {
        for table in &tables {
            let until = rounds.load(Ordering::SeqCst) + 4;
            while rounds.load(Ordering::SeqCst) < until {
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
            let _paused = pause.write().await;
            drill.copy(table).await;
        }
        is_over.store(true, Ordering::SeqCst);
    };
    tokio::join!(worker, copy);

    let app = &drill.after;
    let flags = drill.flags(app).await;
    assert!(!flags.is_empty());
    for key in &flags {
        let get = drill.call(&get_feature_flag::OPERATION).parameter("key", key);
        succeeded(get.send(app).await);
        let changed = succeeded(drill.change_of_flag(key, "after").send(app).await);
        assert_eq!(changed.body["name"], "after");
    }
    succeeded(drill.creation_of_flag("after").send(app).await);
    succeeded(drill.evaluation().send(app).await);
    let insights = drill.call(&list_insights::OPERATION);
    let insights = drill.all(app, &insights, "id").await;
    assert!(!insights.is_empty());
    for id in insights {
        let get = drill.call(&get_insight::OPERATION).parameter("insightId", id);
        succeeded(get.send(app).await);
    }
    succeeded(drill.creation_of_insight(90_000).send(app).await);
    let events = drill.events(app).await;
    assert!(events > 0);
    succeeded(drill.delivery(90_000).send(app).await);
    assert_eq!(drill.events(app).await, events + 1);
    (pack_error_log::JOB.run)(app, Deadline::after(Duration::from_mins(1))).await.unwrap();
    assert_eq!(drill.events(app).await, events + 1);
}
