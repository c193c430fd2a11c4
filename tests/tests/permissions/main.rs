//! The role of every function allows what the function does, and nothing else. That it allows enough
//! is checked by every test that calls an operation (`tests::permissions::checked`); here each
//! function is brought to do all that it ever does. [`request_units`] tells what that costs.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod api_keys;
mod callers;
mod erasure;
mod errors;
mod flags;
mod insights;
mod markers;
mod notifications;
mod request_units;

use std::collections::{BTreeMap, BTreeSet};
use std::num::NonZeroU32;
use std::time::Duration;

use serde_json::Value;

use shared::app::{Access, Deadline, Operation, warm_up};
use shared::dynamodb::StoreError;
use shared::quotas::Limits;
use tests::app::{PROJECT, TestApp, app_over};
use tests::call::{Call, Reply};
use tests::operations::OPERATIONS;
use tests::permissions::{ALLOWED, Permission, checked, used_during};

/// The functions of each scenario. Whoever adds a function adds it here, and to the scenario
/// something that uses its every permission.
const SCENARIOS: [&[&str]; 8] = [
    &callers::FUNCTIONS,
    &erasure::FUNCTIONS,
    &errors::FUNCTIONS,
    &flags::FUNCTIONS,
    &insights::FUNCTIONS,
    &markers::FUNCTIONS,
    &notifications::FUNCTIONS,
    &notifications::preferences::FUNCTIONS,
];

/// Permissions that no scenario uses, by function: those for large logs, crashes and undone changes of addresses.
const RARE: [(&str, &str); 2] =
    [("confirm-email-address", "Write on notifications/shard#*"), ("pack-error-log", COLUMNS)];
const COLUMNS: &str = "Write on errors/columns#*";

/// A call in the tests' project, by a key that may do everything.
fn call(test: &TestApp, operation: &'static Operation) -> Call {
    Call::of(operation).parameter("idOrSlug", PROJECT).key(&test.key)
}

/// Sends a call that is answered with a status, when nothing is remembered of calls before it.
async fn answered(test: &TestApp, call: Call, status: u16) -> Reply {
    test.pass(Duration::from_mins(2));
    let reply = call.send(&test.app).await;
    assert_eq!(reply.status, status, "{}", reply.body);
    reply
}

/// A member of an answer that is text.
fn text<'r>(reply: &'r Reply, member: &str) -> &'r str {
    reply.body[member].as_str().unwrap()
}

/// Lets a job of a schedule run.
async fn scheduled(function: &str, run: impl Future<Output = Result<(), StoreError>>) {
    checked(function, run).await.unwrap();
}

/// Enough time for a job.
fn deadline() -> Deadline {
    Deadline::after(Duration::from_mins(1))
}

/// Panics unless the functions use exactly what `template.yaml` allows them.
async fn assert_uses_all(functions: &[&str], scenario: impl Future<Output = ()>) {
    let used = used_during(scenario).await;
    let mut unused = BTreeMap::new();
    for function in functions {
        let used = used.get(*function).cloned().unwrap_or_default();
        let never = ALLOWED[*function].difference(&used);
        // `every_operation_counts_its_requests_where_there_is_a_limit` uses it.
        let never = never.filter(|permission| !permission.resource.starts_with("quotas"));
        let never: Vec<String> = never.map(ToString::to_string).collect();
        // erase-data deletes items of any kind, and no scenario has all kinds.
        let erases = *function == erase_data::JOB.name;
        let is_rare = |it: &String| {
            RARE.contains(&(*function, it.as_str())) || (erases && it.starts_with("Write on "))
        };
        let never: Vec<String> = never.into_iter().filter(|it| !is_rare(it)).collect();
        if !never.is_empty() {
            unused.insert(*function, never);
        }
    }
    assert!(unused.is_empty(), "template.yaml allows more than is used: {unused:#?}");
}

#[test]
fn every_function_has_its_place_in_a_scenario() {
    let listed: Vec<&str> = SCENARIOS.concat();
    let names: BTreeSet<&str> = listed.iter().copied().collect();
    assert_eq!(names.len(), listed.len(), "no function is in two scenarios");
    assert_eq!(names, ALLOWED.keys().map(String::as_str).collect());
}

#[tokio::test]
async fn every_operation_counts_its_requests_where_there_is_a_limit() {
    let test = TestApp::start().await;
    let project = tests::errors::project(&test.app.store, test.project_id).await;
    let limit = NonZeroU32::new(1_000_000);
    let limits =
        Limits { events_per_minute: limit, requests_per_minute: limit, ..Limits::default() };
    let used = used_during(async {
        for operation in callable() {
            let app = app_over(&test.engine.endpoint()).0.with_limits(limits);
            for _ in 0..10 {
                let mut call = Call::of(operation).key(&test.key);
                if operation.path.contains("{idOrSlug}") {
                    call = call.parameter("idOrSlug", PROJECT);
                }
                let call = call.query("sentry_key", project.public_key);
                call.parameter("ingestId", project.ingest_id).send(&app).await;
            }
        }
    });
    let used = used.await;
    for operation in callable() {
        let counted = used[operation.name].iter().any(|permission| permission.resource == "quotas");
        assert!(counted, "{}", operation.name);
    }
}

#[tokio::test]
async fn every_function_may_make_the_call_that_opens_its_connection() {
    let test = TestApp::start().await;
    let (app, _) = app_over(&test.engine.endpoint());
    for operation in callable() {
        let opening = checked(operation.name, Box::pin(warm_up(&app.store, operation)));
        let used = used_during(opening).await;
        assert_eq!(used[operation.name].len(), 1, "{}", operation.name);
    }
}

/// The operations whose callers are known. What is public uses no table, or asks for a token.
fn callable() -> impl Iterator<Item = &'static Operation> {
    OPERATIONS.into_iter().filter(|operation| !matches!(operation.access, Access::Public(_)))
}

/// The id of an answer's resource.
fn id(reply: &Reply) -> String {
    text(reply, "id").to_owned()
}

/// An answer's list.
fn items(reply: &Reply) -> &Vec<Value> {
    reply.body["items"].as_array().unwrap()
}

#[test]
fn reads_have_no_permission_to_write() {
    let is_read = |operation: &&&Operation| {
        let Access::ApiKey(scope, _) = operation.access else { return false };
        let scope = scope.to_string();
        scope.ends_with(":read") || scope.ends_with(":evaluate")
    };
    let mut reads = 0;
    for operation in OPERATIONS.iter().filter(is_read) {
        let is_write = |it: &&Permission| {
            let is_quota = it.resource.starts_with("quotas");
            !is_quota && !["GetItem", "BatchGetItem", "Query"].contains(&it.action.as_str())
        };
        let writes: Vec<_> = ALLOWED[operation.name].iter().filter(is_write).collect();
        assert!(writes.is_empty(), "{}: {writes:?}", operation.name);
        reads += 1;
    }
    assert!(reads > 15, "{reads}");
}
