//! Deadlines of runs, and the reported age of unsent notifications.

use std::time::{Duration, Instant};

use aws_sdk_dynamodb::types::AttributeValue;
use send_notifications::senders::Senders;
use send_notifications::{MIN_PAUSE, Outcome, send};
use serde_json::json;
use shared::app::Deadline;
use tests::app::TestApp;
use tests::call::Call;

use super::actions::{create_errors, create_insight, start, subjects, unreachable_senders};

const MINUTE: Duration = Duration::from_mins(1);

/// Runs the sender with a deadline.
async fn run_for(test: &TestApp, senders: &Senders, time: Duration) -> Outcome {
    send(&test.app, senders, Duration::ZERO, Deadline::after(time)).await.unwrap()
}

#[tokio::test]
async fn runs_after_their_deadline_send_nothing() {
    let (test, outbound) = start().await;
    create_errors(&test, 0, 1).await;
    // The error is in a feed and a batch, the insight in the outbox.
    run_for(&test, &unreachable_senders(), MINUTE).await;
    create_insight(&test, 1, "Checkout").await;
    test.pass(MINUTE);
    let outcome = run_for(&test, &outbound.senders, Duration::ZERO).await;
    assert!(outcome.failure.is_none(), "{:?}", outcome.failure);
    assert_eq!(outcome.oldest_waiting, MINUTE);
    let sent = (outbound.emails().await.len(), outbound.events().await.len());
    assert_eq!(sent, (0, 1), "only the earlier event of the test key");
    outbound.run(&test.app).await;
    let emails = outbound.emails().await;
    let mut sorted = subjects(&emails);
    sorted.sort_unstable();
    let expected = ["[Shop] New error: Errora: cart is undefined", "[Shop] New insight: Checkout"];
    assert_eq!(sorted, expected);
    assert_eq!(outbound.events().await.len(), 3);
}

#[tokio::test]
async fn runs_do_not_pause_until_their_deadline() {
    let (test, outbound) = start().await;
    create_errors(&test, 0, 1).await;
    let started = Instant::now();
    let deadline = Deadline::after(MIN_PAUSE.saturating_sub(Duration::from_millis(200)));
    let outcome = send(&test.app, &outbound.senders, MIN_PAUSE, deadline).await.unwrap();
    assert!(started.elapsed() < MIN_PAUSE, "{:?}", started.elapsed());
    assert!(outcome.failure.is_none());
    assert_eq!(outbound.emails().await.len(), 1);
}

#[tokio::test]
async fn outbox_age_is_that_of_the_earliest_event() {
    let (test, outbound) = start().await;
    // The error's key sorts before the insight's.
    create_insight(&test, 1, "Checkout").await;
    test.pass(5 * MINUTE);
    create_errors(&test, 0, 1).await;
    test.pass(MINUTE);
    let outcome = run_for(&test, &outbound.senders, Duration::ZERO).await;
    assert_eq!(outcome.oldest_waiting, 6 * MINUTE);
}

#[tokio::test]
async fn batched_events_age_from_their_windows_end() {
    let (test, outbound) = start().await;
    create_errors(&test, 0, 1).await;
    outbound.run(&test.app).await;
    test.pass(3 * MINUTE);
    create_errors(&test, 1, 2).await;
    let batched = run_for(&test, &outbound.senders, MINUTE).await;
    assert_eq!(batched.oldest_waiting, Duration::ZERO, "the window is open");
    test.pass(20 * MINUTE);
    let outcome = run_for(&test, &unreachable_senders(), MINUTE).await;
    assert!(outcome.failure.is_some());
    assert_eq!(outcome.oldest_waiting, 13 * MINUTE);
    let sent = run_for(&test, &outbound.senders, MINUTE).await;
    assert_eq!(sent.oldest_waiting, Duration::ZERO);
    assert_eq!(subjects(&outbound.emails().await)[0], "[Shop] 2 new errors");
}

#[tokio::test]
async fn confirmations_age_from_the_address_change() {
    let (test, outbound) = start().await;
    let set = Call::of(&set_email_address::OPERATION).key(&test.key);
    let set = set.json(&json!({"email": "new@example.com"}));
    assert_eq!(set.send(&test.app).await.status, 200);
    test.pass(16 * MINUTE);
    let failed = run_for(&test, &unreachable_senders(), MINUTE).await;
    assert!(failed.failure.is_some());
    assert_eq!(failed.oldest_waiting, 16 * MINUTE);
    let without_time = run_for(&test, &outbound.senders, Duration::ZERO).await;
    assert_eq!(without_time.oldest_waiting, 16 * MINUTE);
    outbound.run(&test.app).await;
    assert_eq!(outbound.emails_to("new@example.com").await.len(), 1);
}

#[tokio::test]
async fn outbox_items_of_unreadable_projects_age() {
    let (test, outbound) = start().await;
    create_errors(&test, 0, 1).await;
    let project = test.project_id.to_string();
    let nonsense = AttributeValue::S("nonsense".to_owned());
    test.tamper("projects", [("idOrSlug", project.as_str())], "createdAt", nonsense).await;
    test.pass(16 * MINUTE);
    let outcome = run_for(&test, &outbound.senders, MINUTE).await;
    assert!(outcome.failure.is_some());
    assert_eq!(outcome.oldest_waiting, 16 * MINUTE);
}
