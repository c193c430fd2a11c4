//! Fairness between a large organization and others.

use std::time::{Duration, Instant};

use aws_sdk_dynamodb::types::AttributeValue;

use notifications::store::UserName;
use send_notifications::send;
use shared::app::Deadline;
use shared::projects::api_key::{ApiKeyRecord, UserId};
use shared::projects::project::{Organization, Project, ProjectId, ProjectName, Slug};
use tests::app::TestApp;
use tests::notifications::{SentMessages, give_address};

use super::actions::{create_errors, deliver, event, start};

/// Number of users with an address and without access to the project.
const USERS_WITHOUT_ACCESS: usize = 80;
/// Ratio of a complete run's time, which depends on the machine, to a short run's deadline.
const TIME_DIVISOR: u32 = 8;

fn user(name: &str) -> UserName {
    let organization = Organization::parse("large").unwrap();
    UserName { organization, user: UserId::parse(name).unwrap() }
}

/// Creates an organization with a project, many users without access, and one user with access,
/// whose name is the last.
async fn create_large_organization(test: &TestApp) -> ProjectId {
    let (now, organization) = (test.app.clock.now(), Organization::parse("large").unwrap());
    let id = ProjectId::new(test.app.ids.new_uuid(now));
    let (slug, name) = (Slug::parse("large").unwrap(), ProjectName::parse("Large").unwrap());
    let project = Project::new(id, slug, name, organization.clone(), now).unwrap();
    test.app.store.create_project(&project).await.unwrap();
    for number in 0..USERS_WITHOUT_ACCESS {
        let address = format!("blind-{number}@example.com");
        give_address(&test.app, &user(&format!("blind-{number:03}")), &address).await;
    }
    let last = user("last").user;
    test.key_with(|key| ApiKeyRecord { user: last, organization, ..key }).await;
    give_address(&test.app, &user("last"), "last@example.com").await;
    id
}

async fn run_for(test: &TestApp, outbound: &SentMessages, time: Duration) {
    let outcome = send(&test.app, &outbound.senders, Duration::ZERO, Deadline::after(time)).await;
    let failure = outcome.unwrap().failure;
    assert!(failure.is_none(), "{failure:?}");
    // The run's lease expires if it was not released.
    test.pass(Duration::from_mins(1));
}

#[tokio::test]
async fn users_without_access_do_not_delay_others() {
    let (test, outbound) = start().await;
    let large = create_large_organization(&test).await;
    outbound.run(&test.app).await;
    test.pass(Duration::from_hours(2));
    deliver(&test, large, &event(&test, 999, "FirstError")).await;
    let started = Instant::now();
    outbound.run(&test.app).await;
    let time = started.elapsed() / TIME_DIVISOR;
    for _ in 0..2 {
        test.pass(Duration::from_hours(2));
        outbound.run(&test.app).await;
    }
    let emails_to_last = outbound.emails_to("last@example.com").await.len();
    let emails_before = outbound.emails().await.len();
    deliver(&test, large, &event(&test, 1_000, "LargeError")).await;
    create_errors(&test, 0, 1).await;
    let mut runs = 0;
    let mut runs_of_small = 0;
    while outbound.emails_to("last@example.com").await.len() == emails_to_last {
        assert!(runs < 200, "no run reaches the last user");
        run_for(&test, &outbound, time).await;
        runs += 1;
        if runs_of_small == 0 && !outbound.emails_to("owner@example.com").await.is_empty() {
            runs_of_small = runs;
        }
    }
    println!("after {runs_of_small} and {runs} runs of {time:?}");
    assert!(runs > 2, "too few users for several runs");
    assert!(runs_of_small <= 1 + runs / 2, "{runs_of_small} of {runs} runs");

    // Later events are also sent, and the feed is deleted.
    deliver(&test, large, &event(&test, 1_001, "LaterError")).await;
    for _ in 0..3 {
        test.pass(Duration::from_mins(11));
        outbound.run(&test.app).await;
    }
    test.pass(Duration::from_hours(2));
    for _ in 0..2 {
        outbound.run(&test.app).await;
    }
    assert_eq!(outbound.emails_to("last@example.com").await.len(), emails_to_last + 2);
    assert_eq!(outbound.emails().await.len(), emails_before + 3);
    let keys = test.items("notifications").await;
    let text = |value: &AttributeValue| value.as_s().unwrap().clone();
    let keys: Vec<String> = keys.iter().map(|item| text(&item["sk"])).collect();
    assert!(keys.iter().all(|sk| !sk.starts_with("feed")), "{keys:?}");
}
