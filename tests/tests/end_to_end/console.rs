//! The console in a browser.

use std::process::Stdio;
use std::time::Duration;

use tokio::process::Command;

use local::demo;
use people::sign_in::PendingSignIn;
use people::store::PeopleStore;
use shared::app::{Clock, Ids};
use shared::projects::api_key::{ApiKey, ApiKeyRecord, Scope, UserId};
use shared::projects::console_code::ConsoleCode;
use shared::projects::member::{Member, MemberId};
use shared::projects::project::{Organization, Project};
use shared::projects::role::Role;
use tests::app::PROJECT;
use tests::errors::project;
use tests::stack::Stack;
use tests::{browser, workspace};

/// A second project in the same organization. The console first shows the project with the first
/// slug.
const OTHER: &str = "warehouse";

const HOUR: Duration = Duration::from_hours(1);

/// Returns the URL for a project's events.
fn store_of(project: &Project) -> String {
    format!("/api/{}/store/?sentry_key={}", project.ingest_id, project.public_key)
}

#[tokio::test]
async fn console_changes_reach_the_api() {
    println!("{}", run_cases(Stack::start().await, None).await);
}

#[tokio::test]
async fn console_opens_within_a_second() {
    println!("{}", run_cases(Stack::start().await, Some(("MEASURE", "1"))).await);
}

/// A deployment without `MailFrom` and without OpenID Connect.
#[tokio::test]
async fn console_without_sign_in_takes_keys() {
    let stack = Stack::start_without(&["WAYMARK_MAIL_FROM"]).await;
    println!("{}", run_cases(stack, Some(("KEYS_ONLY", "1"))).await);
}

/// Runs the cases of `tests/console/run.mjs` that the `environment` selects. Returns their output.
async fn run_cases(stack: Stack, environment: Option<(&str, &str)>) -> String {
    let browser = browser();
    let reads = |scope: &Scope| scope.as_str().ends_with(":read");
    let read_only = stack.key_with(|key| ApiKeyRecord {
        scopes: Scope::ALL.into_iter().filter(reads).collect(),
        ..key
    });
    let read_only = read_only.await;
    let foreign = stack.key_with(|key| ApiKeyRecord {
        organization: Organization::parse("elsewhere").expect("the name is valid"),
        user: UserId::parse("eve").expect("the name is valid"),
        scopes: Scope::ALL.into_iter().collect(),
        ..key
    });
    let foreign = foreign.await;
    let admin = stack.key_with(|key| ApiKeyRecord { scopes: Scope::ALL.into(), ..key }).await;
    let shop = project(&stack.store, stack.project_id).await;
    let other_id = demo::ensure_project(&stack.store, OTHER, "Warehouse")
        .await
        .expect("the project is created");
    let other = project(&stack.store, other_id).await;
    // Expires in an hour, because its test runs late. Another test covers expiry after a minute.
    let (code, expires_at) = (ConsoleCode::generate().unwrap(), Clock::System.now().plus(HOUR));
    let linked = ApiKey::parse(&read_only).unwrap();
    stack.store.put_console_code(&code, &linked, expires_at).await.unwrap();
    let owner = Member {
        id: MemberId::new(Ids::Random.new_uuid(Clock::System.now())),
        organization: shop.organization.clone(),
        user: UserId::parse("owner@example.com").unwrap(),
        role: Role::Owner,
        projects: None,
        joined_at: Clock::System.now(),
        version: 1,
    };
    let people = PeopleStore::new(&stack.store);
    people.add_member(&owner, Vec::new()).await.unwrap();
    let (pending, owner_token) =
        PendingSignIn::by_command(owner.user, owner.organization, Clock::System.now()).unwrap();
    people.put_sign_in(&pending).await.unwrap();
    let cases = Command::new("node")
        .arg(workspace().join("tests/console/run.mjs"))
        .args([&stack.base_url, &browser, PROJECT, &stack.key, &read_only, &foreign])
        .args([&store_of(&shop), OTHER, &store_of(&other), &code.reveal(), &owner_token.reveal()])
        .env("ADMIN_KEY", admin)
        .envs(environment)
        .stdin(Stdio::null())
        .output();
    // Emails with links arrive while the cases run.
    let output = tokio::select! {
        output = cases => output.expect("Node.js is installed"),
        () = stack.run_schedules() => unreachable!("schedules do not end"),
    };
    let printed = String::from_utf8_lossy(&output.stdout);
    let wrong = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "is the console built (make console)? {printed}\n{wrong}");
    printed.into_owned()
}
