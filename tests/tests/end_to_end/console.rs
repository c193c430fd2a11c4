//! The console, in a browser.

use std::process::Stdio;
use std::time::Duration;

use tokio::process::Command;

use local::demo;
use shared::app::Clock;
use shared::projects::api_key::{ApiKey, ApiKeyRecord, Scope, UserId};
use shared::projects::console_code::ConsoleCode;
use shared::projects::project::{Organization, Project};
use tests::app::PROJECT;
use tests::errors::project;
use tests::stack::Stack;
use tests::{browser, workspace};

/// A second project of the same people. Of two, the first by its slug is shown first.
const OTHER: &str = "warehouse";

const HOUR: Duration = Duration::from_hours(1);

/// Where a project's events are sent.
fn store_of(project: &Project) -> String {
    format!("/api/{}/store/?sentry_key={}", project.ingest_id, project.public_key)
}

#[tokio::test]
async fn people_do_in_the_console_what_the_api_then_tells() {
    println!("{}", run_cases(None).await);
}

#[tokio::test]
async fn the_console_opens_within_a_second() {
    println!("{}", run_cases(Some(("MEASURE", "1"))).await);
}

/// Runs the cases of `tests/console/run.mjs` that the `environment` selects. Returns their output.
async fn run_cases(environment: Option<(&str, &str)>) -> String {
    let browser = browser().expect("Chromium is on the PATH (Debian: apt install chromium)");
    let stack = Stack::start().await;
    let reads = |scope: &Scope| scope.as_str().ends_with(":read");
    let read_only = stack.key_with(|key| ApiKeyRecord {
        scopes: Scope::ALL.into_iter().filter(reads).collect(),
        ..key
    });
    let read_only = read_only.await;
    let foreign = stack.key_with(|key| ApiKeyRecord {
        organization: Organization::parse("elsewhere").expect("it is an organization"),
        user: UserId::parse("eve").expect("it is a user"),
        ..key
    });
    let foreign = foreign.await;
    let shop = project(&stack.store, stack.project_id).await;
    let other_id =
        demo::ensure_project(&stack.store, OTHER, "Warehouse").await.expect("it is made");
    let other = project(&stack.store, other_id).await;
    // A link of an hour: the test of it comes late, and what ends after a minute is tested elsewhere.
    let (code, expires_at) = (ConsoleCode::generate().unwrap(), Clock::System.now().plus(HOUR));
    let linked = ApiKey::parse(&read_only).unwrap();
    stack.store.put_console_code(&code, &linked, expires_at).await.unwrap();
    let output = Command::new("node")
        .arg(workspace().join("tests/console/run.mjs"))
        .args([&stack.base_url, &browser, PROJECT, &stack.key, &read_only, &foreign])
        .args([&store_of(&shop), OTHER, &store_of(&other), &code.reveal()])
        .envs(environment)
        .stdin(Stdio::null())
        .output()
        .await
        .expect("Node.js is there");
    let said = String::from_utf8_lossy(&output.stdout);
    let wrong = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "is the console built (make console)? {said}\n{wrong}");
    said.into_owned()
}
