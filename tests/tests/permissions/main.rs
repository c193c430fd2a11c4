//! The role of each function allows exactly what the function does. Each test that calls an
//! operation checks that the role allows enough (`tests::permissions::checked`). Here each function
//! uses all its permissions. [`request_units`] measures the consumed units.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod api_keys;
mod callers;
mod erasure;
mod errors;
mod flags;
mod insights;
mod markers;
mod notifications;
mod people;
mod request_units;
mod sign_in;
mod source_maps;

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use serde_json::Value;

use shared::app::{Access, Deadline, Operation, warm_up};
use shared::dynamodb::StoreError;
use shared::projects::limits::{Limit, Limits};
use shared::projects::role::Role;
use tests::app::{PROJECT, TestApp, app_over};
use tests::call::{Call, Reply};
use tests::operations::OPERATIONS;
use tests::people::signed_in;
use tests::permissions::{ALLOWED, Permission, checked, used_during};

/// The functions of each scenario. A new function must be added here, with a scenario that uses all
/// its permissions.
const SCENARIOS: [&[&str]; 11] = [
    &callers::FUNCTIONS,
    &erasure::FUNCTIONS,
    &errors::FUNCTIONS,
    &flags::FUNCTIONS,
    &insights::FUNCTIONS,
    &markers::FUNCTIONS,
    &notifications::FUNCTIONS,
    &notifications::preferences::FUNCTIONS,
    &people::FUNCTIONS,
    &sign_in::FUNCTIONS,
    &source_maps::FUNCTIONS,
];

/// Permissions that no scenario uses, by function: those for large logs, crashes, undone address
/// changes and insights without a pain point for 30 days.
const RARE: [(&str, &str); 6] = [
    ("announce-trends", "PutItem on replay-insights"),
    ("announce-trends", "Write on replay-insights/project#*"),
    ("confirm-email-address", "Write on notifications/shard#*"),
    ("pack-error-log", COLUMNS),
    // The scenario of source maps shows them for list-error-events.
    ("query-error-events", "BatchGetItem on source-maps"),
    ("query-error-events", "Query on source-maps"),
];
const COLUMNS: &str = "Write on errors/columns#*";

/// Permissions to read keys, sessions and members, and to record uses.
const AUTHENTICATION: [&str; 5] = [
    "BatchGetItem on api-keys",
    "BatchGetItem on people",
    "BatchGetItem on projects",
    "PutItem on people",
    "Write on people/use#*",
];

/// Sends a call without cached data, and expects a status.
async fn send(test: &TestApp, call: Call, status: u16) -> Reply {
    test.pass(Duration::from_mins(2));
    let reply = call.send(&test.app).await;
    assert_eq!(reply.status, status, "{}", reply.body);
    reply
}

/// Returns a text field of a response.
fn text<'r>(reply: &'r Reply, field: &str) -> &'r str {
    reply.body[field].as_str().unwrap()
}

/// Runs a scheduled job.
async fn scheduled(function: &str, run: impl Future<Output = Result<(), StoreError>>) {
    checked(function, run).await.unwrap();
}

/// Returns a deadline that is sufficient for a job.
fn deadline() -> Deadline {
    Deadline::after(Duration::from_mins(1))
}

/// Panics unless the functions use exactly the permissions in `template.yaml`.
async fn assert_uses_all(functions: &[&str], scenario: impl Future<Output = ()>) {
    let used = used_during(scenario).await;
    let mut unused = BTreeMap::new();
    for function in functions {
        let used = used.get(*function).cloned().unwrap_or_default();
        let never = ALLOWED[*function].difference(&used);
        // `limited_operations_count_their_requests` uses them.
        let never = never.filter(|permission| !permission.resource.starts_with("quotas"));
        let never = never.filter(|permission| !AUTHENTICATION.contains(&&*permission.to_string()));
        let never: Vec<String> = never.map(ToString::to_string).collect();
        // erase-data deletes items of all types, and no scenario has all types.
        let erases = *function == erase_data::JOB.name;
        let is_rare = |it: &String| {
            RARE.contains(&(*function, it.as_str())) || (erases && it.starts_with("Write on "))
        };
        let never: Vec<String> = never.into_iter().filter(|it| !is_rare(it)).collect();
        if !never.is_empty() {
            unused.insert(*function, never);
        }
    }
    assert!(unused.is_empty(), "template.yaml allows unused permissions: {unused:#?}");
}

/// The function with an OpenID provider: `tests/tests/people/oidc.rs` has its scenario.
const ELSEWHERE: &str = complete_oidc_sign_in::OPERATION.name;

#[test]
fn every_function_is_in_one_scenario() {
    let mut listed: Vec<&str> = SCENARIOS.concat();
    listed.push(ELSEWHERE);
    let names: BTreeSet<&str> = listed.iter().copied().collect();
    assert_eq!(names.len(), listed.len(), "every function is in one scenario");
    assert_eq!(names, ALLOWED.keys().map(String::as_str).collect());
}

#[tokio::test]
async fn limited_operations_count_their_requests() {
    let test = TestApp::start().await;
    let project = tests::errors::project(&test.app.store, test.project_id).await;
    let (_, session) = signed_in(&test, "owner@example.com", Role::Owner).await;
    let limits = [Limit::EventsPerMinute, Limit::RequestsPerMinute];
    let limits = limits.into_iter();
    let limits = limits.fold(Limits::default(), |all, limit| all.with(limit, Some(1_000_000)));
    let used = used_during(async {
        for operation in callable() {
            let app = app_over(&test.engine.endpoint()).0.with_limits(limits).recording_uses();
            for _ in 0..10 {
                let mut call = Call::of(operation).key(&test.key);
                if operation.path.contains("{idOrSlug}") {
                    call = call.parameter("idOrSlug", PROJECT);
                }
                let call = call.query("sentry_key", project.public_key);
                call.parameter("ingestId", project.ingest_id).send(&app).await;
            }
            let call = Call::of(operation).session(&session);
            let in_project = operation.path.contains("{idOrSlug}");
            let call = if in_project { call.parameter("idOrSlug", PROJECT) } else { call };
            call.parameter("ingestId", project.ingest_id).send(&app).await;
        }
    });
    let used = used.await;
    for operation in callable() {
        let used = &used[operation.name];
        assert!(used.iter().any(|it| it.resource == "quotas"), "{}", operation.name);
        let used: Vec<String> = used.iter().map(Permission::to_string).collect();
        let authenticates = AUTHENTICATION.iter().all(|it| used.iter().any(|used| used == it));
        let takes_dsn = matches!(operation.access, Access::Dsn(_));
        assert!(authenticates != takes_dsn, "{}", operation.name);
    }
}

#[tokio::test]
async fn every_function_can_open_its_connection() {
    let test = TestApp::start().await;
    let (app, _) = app_over(&test.engine.endpoint());
    for operation in callable() {
        let opening = checked(operation.name, Box::pin(warm_up(&app.store, operation)));
        let used = used_during(opening).await;
        assert_eq!(used[operation.name].len(), 1, "{}", operation.name);
    }
}

/// Returns the operations with known callers. Public operations use no table, or require a token.
fn callable() -> impl Iterator<Item = &'static Operation> {
    OPERATIONS.into_iter().filter(|operation| !matches!(operation.access, Access::Public(_)))
}

/// Returns the ID of the resource in a response.
fn id(reply: &Reply) -> String {
    text(reply, "id").to_owned()
}

/// Returns the list in a response.
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
            let is_own = is_quota || AUTHENTICATION.contains(&&*it.to_string());
            !is_own && !["GetItem", "BatchGetItem", "Query"].contains(&it.action.as_str())
        };
        let writes: Vec<_> = ALLOWED[operation.name].iter().filter(is_write).collect();
        assert!(writes.is_empty(), "{}: {writes:?}", operation.name);
        reads += 1;
    }
    assert!(reads > 15, "{reads}");
}
