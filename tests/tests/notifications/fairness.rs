//! What an organization with many users costs others, and itself.

use std::time::{Duration, Instant};

use aws_sdk_dynamodb::types::AttributeValue;

use notifications::store::UserName;
use send_notifications::send;
use shared::app::Deadline;
use shared::projects::api_key::{ApiKeyRecord, UserId};
use shared::projects::project::{Organization, Project, ProjectId, ProjectName, Slug};
use tests::app::TestApp;
use tests::notifications::{SentMessages, give_address};

use super::actions::{deliver, event, make_errors, start};

/// How many users there are who see nothing.
const BLIND: usize = 80;
/// A brief run has this part of the time of a complete run, which depends on the machine.
const SHARE: u32 = 8;

fn user(name: &str) -> UserName {
    let organization = Organization::parse("large").unwrap();
    UserName { organization, user: UserId::parse(name).unwrap() }
}

/// An organization with a project, many users who see nothing of it, and one who does, by name the last.
async fn make_large_organization(test: &TestApp) -> ProjectId {
    let (now, organization) = (test.app.clock.now(), Organization::parse("large").unwrap());
    let id = ProjectId::new(test.app.ids.new_uuid(now));
    let (slug, name) = (Slug::parse("large").unwrap(), ProjectName::parse("Large").unwrap());
    let project = Project::new(id, slug, name, organization.clone(), now).unwrap();
    test.app.store.create_project(&project).await.unwrap();
    for number in 0..BLIND {
        let address = format!("blind-{number}@example.com");
        give_address(&test.app, &user(&format!("blind-{number:03}")), &address).await;
    }
    let last = user("last").user;
    test.key_with(|key| ApiKeyRecord { user: last, organization, ..key }).await;
    give_address(&test.app, &user("last"), "last@example.com").await;
    id
}

async fn run_briefly(test: &TestApp, post: &SentMessages, time: Duration) {
    let outcome = send(&test.app, &post.senders, Duration::ZERO, Deadline::after(time)).await;
    let failure = outcome.unwrap().failure;
    assert!(failure.is_none(), "{failure:?}");
    // The lease of a run that had no time to give it up ends.
    test.pass(Duration::from_mins(1));
}

#[tokio::test]
async fn users_who_see_nothing_hold_up_nobody() {
    let (test, post) = start().await;
    let large = make_large_organization(&test).await;
    post.run(&test.app).await;
    test.pass(Duration::from_hours(2));
    deliver(&test, large, &event(&test, 999, "FirstError")).await;
    let started = Instant::now();
    post.run(&test.app).await;
    let time = started.elapsed() / SHARE;
    for _ in 0..2 {
        test.pass(Duration::from_hours(2));
        post.run(&test.app).await;
    }
    let of_last = post.mails_to("last@example.com").await.len();
    let before = post.mails().await.len();
    deliver(&test, large, &event(&test, 1_000, "LargeError")).await;
    make_errors(&test, 0, 1).await;
    let mut runs = 0;
    let mut told_of_small = 0;
    while post.mails_to("last@example.com").await.len() == of_last {
        assert!(runs < 200, "no run comes to the last user");
        run_briefly(&test, &post, time).await;
        runs += 1;
        if told_of_small == 0 && !post.mails_to("owner@example.com").await.is_empty() {
            told_of_small = runs;
        }
    }
    println!("after {told_of_small} and {runs} runs of {time:?}");
    assert!(runs > 2, "a run has no time for all: make it more users");
    assert!(told_of_small <= 1 + runs / 2, "{told_of_small} of {runs} runs");

    // What came meanwhile is told after that, and nothing is left.
    deliver(&test, large, &event(&test, 1_001, "LaterError")).await;
    for _ in 0..3 {
        test.pass(Duration::from_mins(11));
        post.run(&test.app).await;
    }
    test.pass(Duration::from_hours(2));
    for _ in 0..2 {
        post.run(&test.app).await;
    }
    assert_eq!(post.mails_to("last@example.com").await.len(), of_last + 2);
    assert_eq!(post.mails().await.len(), before + 3);
    let left = test.items("notifications").await;
    let written = |value: &AttributeValue| value.as_s().unwrap().clone();
    let left: Vec<String> = left.iter().map(|item| written(&item["sk"])).collect();
    assert!(left.iter().all(|sk| !sk.starts_with("feed")), "{left:?}");
}
