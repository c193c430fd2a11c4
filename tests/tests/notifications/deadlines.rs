//! Runs whose time is up, and what they tell of what they left.

use std::time::{Duration, Instant};

use aws_sdk_dynamodb::types::AttributeValue;
use send_notifications::senders::Senders;
use send_notifications::{LEAST_PAUSE, Outcome, send};
use serde_json::json;
use shared::app::Deadline;
use tests::app::TestApp;
use tests::call::Call;

use super::actions::{create_insight, make_errors, nowhere, start, subjects};

const MINUTE: Duration = Duration::from_mins(1);

/// A run that has so much time.
async fn run_for(test: &TestApp, senders: &Senders, time: Duration) -> Outcome {
    send(&test.app, senders, Duration::ZERO, Deadline::after(time)).await.unwrap()
}

#[tokio::test]
async fn a_run_whose_time_is_up_sends_nothing_and_the_next_one_all() {
    let (test, post) = start().await;
    make_errors(&test, 0, 1).await;
    // Some of it is in feeds and batches of events, some is not.
    run_for(&test, &nowhere(), MINUTE).await;
    create_insight(&test, 1, "Checkout").await;
    test.pass(MINUTE);
    let outcome = run_for(&test, &post.senders, Duration::ZERO).await;
    assert!(outcome.failure.is_none(), "{:?}", outcome.failure);
    assert_eq!(outcome.oldest_waiting, MINUTE);
    let sent = (post.mails().await.len(), post.events().await.len());
    assert_eq!(sent, (0, 1), "nothing but the event of the tests' key, which came first");
    post.run(&test.app).await;
    let mails = post.mails().await;
    let mut told = subjects(&mails);
    told.sort_unstable();
    let expected =
        ["New error in Shop: Errora: cart is undefined", "New insight in Shop: Checkout"];
    assert_eq!(told, expected);
    assert_eq!(post.events().await.len(), 3);
}

#[tokio::test]
async fn a_run_does_not_pause_until_its_time_is_up() {
    let (test, post) = start().await;
    make_errors(&test, 0, 1).await;
    let begun = Instant::now();
    let deadline = Deadline::after(LEAST_PAUSE.saturating_sub(Duration::from_millis(200)));
    let outcome = send(&test.app, &post.senders, LEAST_PAUSE, deadline).await.unwrap();
    assert!(begun.elapsed() < LEAST_PAUSE, "{:?}", begun.elapsed());
    assert!(outcome.failure.is_none());
    assert_eq!(post.mails().await.len(), 1);
}

#[tokio::test]
async fn what_waits_in_the_outbox_waits_since_the_first_of_it_happened() {
    let (test, post) = start().await;
    // By its key, an error comes before an insight.
    create_insight(&test, 1, "Checkout").await;
    test.pass(5 * MINUTE);
    make_errors(&test, 0, 1).await;
    test.pass(MINUTE);
    let outcome = run_for(&test, &post.senders, Duration::ZERO).await;
    assert_eq!(outcome.oldest_waiting, 6 * MINUTE);
}

#[tokio::test]
async fn what_was_gathered_waits_since_the_end_of_its_window() {
    let (test, post) = start().await;
    make_errors(&test, 0, 1).await;
    post.run(&test.app).await;
    test.pass(3 * MINUTE);
    make_errors(&test, 1, 2).await;
    let gathered = run_for(&test, &post.senders, MINUTE).await;
    assert_eq!(gathered.oldest_waiting, Duration::ZERO, "it could not be sent before");
    test.pass(20 * MINUTE);
    let outcome = run_for(&test, &nowhere(), MINUTE).await;
    assert!(outcome.failure.is_some());
    assert_eq!(outcome.oldest_waiting, 13 * MINUTE);
    let sent = run_for(&test, &post.senders, MINUTE).await;
    assert_eq!(sent.oldest_waiting, Duration::ZERO);
    assert_eq!(subjects(&post.mails().await)[0], "2 new errors in Shop");
}

#[tokio::test]
async fn who_is_to_be_asked_waits_since_the_address_was_set() {
    let (test, post) = start().await;
    let set = Call::of(&set_email_address::OPERATION).key(&test.key);
    let set = set.json(&json!({"email": "new@example.com"}));
    assert_eq!(set.send(&test.app).await.status, 200);
    test.pass(16 * MINUTE);
    let failed = run_for(&test, &nowhere(), MINUTE).await;
    assert!(failed.failure.is_some());
    assert_eq!(failed.oldest_waiting, 16 * MINUTE);
    let late = run_for(&test, &post.senders, Duration::ZERO).await;
    assert_eq!(late.oldest_waiting, 16 * MINUTE);
    post.run(&test.app).await;
    assert_eq!(post.mails_to("new@example.com").await.len(), 1);
}

/// An outbox that cannot be emptied waits, too.
#[tokio::test]
async fn what_is_kept_back_by_a_damaged_project_waits() {
    let (test, post) = start().await;
    make_errors(&test, 0, 1).await;
    let project = test.project_id.to_string();
    let nonsense = AttributeValue::S("nonsense".to_owned());
    test.tamper("projects", [("idOrSlug", project.as_str())], "createdAt", nonsense).await;
    test.pass(16 * MINUTE);
    let outcome = run_for(&test, &post.senders, MINUTE).await;
    assert!(outcome.failure.is_some());
    assert_eq!(outcome.oldest_waiting, 16 * MINUTE);
}
