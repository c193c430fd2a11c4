//! send-notifications: emails, events and their schedule.

use serde_json::json;
use std::collections::BTreeMap;
use std::time::Duration;

use notifications::store::NotificationStore;
use tests::app::{PROJECT, app_over};
use tests::notifications::user;

use super::actions::{create_errors, create_insight, deliver_many, start, subjects};

#[tokio::test]
async fn later_events_are_batched_for_ten_minutes() {
    let (test, outbound) = start().await;
    create_errors(&test, 0, 1).await;
    outbound.run(&test.app).await;
    let emails = outbound.emails().await;
    assert_eq!(subjects(&emails), ["[Shop] New error: Errora: cart is undefined"]);
    let first = emails[0]["text"].as_str().unwrap();
    assert!(first.contains("▁▁▁█\nErrora: cart is undefined · 1 event in"), "{first}");
    assert!(first.contains(&format!("/console/error?project={PROJECT}&id=")), "{first}");

    create_errors(&test, 1, 12).await;
    for _ in 0..9 {
        outbound.run(&test.app).await;
        test.pass(Duration::from_mins(1));
    }
    assert_eq!(outbound.emails().await.len(), 1, "the window is open");
    create_insight(&test, 1, "Checkout").await;
    test.pass(Duration::from_mins(1));
    outbound.run(&test.app).await;
    let emails = outbound.emails().await;
    let mut latest = subjects(&emails[..2]);
    latest.sort_unstable();
    assert_eq!(latest, ["[Shop] 12 new errors", "[Shop] New insight: Checkout"]);
    assert_eq!(emails.len(), 3);
    let batch = emails.iter().find(|mail| mail["subject"] == "[Shop] 12 new errors").unwrap();
    let text = batch["text"].as_str().unwrap();
    assert!(text.contains("\nand 2 more\n"), "{text}");
    assert_eq!(text.matches("/console/error?").count(), 10, "{text}");

    // Without new events, outbox and feed become empty.
    for _ in 0..8 {
        test.pass(Duration::from_mins(10));
        outbound.run(&test.app).await;
    }
    assert_eq!(outbound.emails().await.len(), 3);
    let keys = test.items("notifications").await;
    let is_pending = |sk: &str| sk.starts_with("outbox") || sk.starts_with("feed");
    let keys = keys.iter().map(|item| item["sk"].as_s().unwrap());
    assert_eq!(keys.filter(|sk| is_pending(sk)).count(), 0);
}

#[tokio::test]
async fn emails_list_the_most_frequent_errors() {
    let (test, outbound) = start().await;
    create_errors(&test, 0, 1).await;
    outbound.run(&test.app).await;
    // One error with many events, then errors with one event each, in two dispatches.
    deliver_many(&test, 1_000, 30, "Frequent").await;
    create_errors(&test, 1, 9).await;
    outbound.run(&test.app).await;
    create_errors(&test, 10, 9).await;
    deliver_many(&test, 2_000, 3, "ErrorbRare").await;
    outbound.run(&test.app).await;
    deliver_many(&test, 3_000, 12, "Frequent").await;
    test.pass(Duration::from_mins(10));
    outbound.run(&test.app).await;
    let emails = outbound.emails().await;
    assert_eq!((emails.len(), &emails[0]["subject"]), (2, &json!("[Shop] 20 new errors")));
    let mail = emails[0]["text"].as_str().unwrap();
    assert!(mail.contains("\nFrequent: cart is undefined · 42 events in"), "{mail}");
    let [first, second] = ["Frequent: cart is undefined\n", "ErrorbRare: cart is undefined\n"]
        .map(|title| mail.find(title).unwrap_or_else(|| panic!("{title} {mail}")));
    assert!(first < second && mail[first..].contains("42 events"), "{mail}");
    assert!(mail.contains("\nand 10 more\n"), "{mail}");
}

#[tokio::test]
async fn every_domain_event_is_published() {
    let (test, outbound) = start().await;
    create_errors(&test, 0, 23).await;
    create_insight(&test, 1, "Checkout").await;
    outbound.run(&test.app).await;
    let mut counts: BTreeMap<String, usize> = BTreeMap::new();
    let events = outbound.events().await;
    for event in &events {
        assert_eq!((&event["source"], &event["bus"]), (&json!("waymark"), &json!("default")));
        *counts.entry(event["detailType"].as_str().unwrap().to_owned()).or_default() += 1;
    }
    let expected = [("api-key.created", 1), ("error.created", 23), ("insight.created", 1)];
    assert_eq!(counts, expected.map(|(name, count)| (name.to_owned(), count)).into());
    let error = events.iter().find(|it| it["detailType"] == "error.created").unwrap();
    assert_eq!(error["detail"]["project"]["slug"], PROJECT);
    assert_eq!(error["detail"]["organization"], "default");
    outbound.run(&test.app).await;
    assert_eq!(outbound.events().await.len(), 25);
}

#[tokio::test]
async fn repeatedly_deferred_emails_count_once() {
    let (test, mut outbound) = start().await;
    outbound.senders.mailer.as_mut().unwrap().emails_per_hour = 1;
    create_errors(&test, 0, 1).await;
    outbound.run(&test.app).await;
    // An insight and another error wait. The hourly limit allows one email.
    create_insight(&test, 1, "Checkout").await;
    create_errors(&test, 1, 1).await;
    let delayed_emails = async || {
        NotificationStore::new(&test.app.store)
            .find_address(&user("owner"))
            .await
            .unwrap()
            .delayed_emails
    };
    for emails in [1, 2, 3] {
        for _ in 0..6 {
            test.pass(Duration::from_mins(10));
            outbound.run(&test.app).await;
            assert!(delayed_emails().await <= 2, "{} delayed emails", delayed_emails().await);
        }
        assert_eq!(outbound.emails().await.len(), emails + usize::from(emails < 3));
    }
    assert_eq!(delayed_emails().await, 2);
}

#[tokio::test]
async fn concurrent_runs_send_each_message_once() {
    let (test, outbound) = start().await;
    create_errors(&test, 0, 40).await;
    let (other, _) = app_over(&test.engine.endpoint());
    tokio::join!(outbound.run(&test.app), outbound.run(&other));
    outbound.run(&test.app).await;
    assert_eq!(outbound.emails().await.len(), 1);
    assert_eq!(outbound.events().await.len(), 41);
}
