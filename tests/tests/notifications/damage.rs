//! Unreadable items delay only the users or subjects that they concern, until they are fixed.

use std::time::Duration;

use aws_sdk_dynamodb::types::AttributeValue;
use send_notifications::{Outcome, send};
use shared::app::Deadline;
use shared::dynamodb::StoreError;
use tests::app::TestApp;
use tests::notifications::{SentMessages, give_address, user};

use super::actions::{create_errors, start, subjects, unreachable_senders};

const MINUTE: Duration = Duration::from_mins(1);

fn nonsense() -> AttributeValue {
    AttributeValue::S("nonsense".to_owned())
}

fn text(value: &AttributeValue) -> String {
    value.as_s().unwrap().clone()
}

/// Runs the sender once, and returns its outcome.
async fn try_run(test: &TestApp, outbound: &SentMessages) -> Outcome {
    send(&test.app, &outbound.senders, Duration::ZERO, Deadline::after(MINUTE)).await.unwrap()
}

/// Starts with three recipients: `ada`, `mira` and the test user `owner`.
async fn start_with_three_users() -> (TestApp, SentMessages) {
    let (test, outbound) = start().await;
    for name in ["ada", "mira"] {
        test.key_of(name).await;
        outbound.run(&test.app).await;
        give_address(&test.app, &user(name), &format!("{name}@example.com")).await;
    }
    (test, outbound)
}

/// Returns the key of a user's delivery state.
async fn delivery_state_key(test: &TestApp, name: &str) -> (String, String) {
    let items = test.items("notifications").await;
    let mut keys = items.iter().map(|item| (text(&item["pk"]), text(&item["sk"])));
    keys.find(|(_, sk)| *sk == format!("feed#default#user#{name}")).unwrap()
}

#[tokio::test]
async fn unreadable_delivery_states_delay_their_user_only() {
    let (test, outbound) = start_with_three_users().await;
    create_errors(&test, 0, 1).await;
    outbound.run(&test.app).await;
    assert_eq!(outbound.emails().await.len(), 3);
    let (pk, sk) = delivery_state_key(&test, "ada").await;
    let key = [("pk", pk.as_str()), ("sk", sk.as_str())];
    test.tamper("notifications", key, "sent", nonsense()).await;

    for number in 1..=5 {
        test.pass(11 * MINUTE);
        create_errors(&test, number, 1).await;
        let outcome = try_run(&test, &outbound).await;
        assert!(outcome.failure.is_none(), "an unreadable item is not a failure");
        let age = 11 * MINUTE * u32::try_from(number - 1).unwrap();
        assert_eq!(outcome.oldest_waiting, age, "ada's entries wait");
    }
    assert_eq!(outbound.emails_to("ada@example.com").await.len(), 1, "no duplicates");
    for other in ["mira@example.com", "owner@example.com"] {
        assert_eq!(outbound.emails_to(other).await.len(), 6);
    }
    // The windows of the others end. The feed stays.
    test.pass(2 * 60 * MINUTE);
    for _ in 0..2 {
        outbound.run(&test.app).await;
    }
    test.tamper("notifications", key, "sent", AttributeValue::S(String::new())).await;
    outbound.run(&test.app).await;
    let emails = outbound.emails().await;
    assert_eq!((emails.len(), subjects(&emails)[0]), (14, "[Shop] 5 new errors"));
    assert_eq!(emails[0]["to"], "ada@example.com");
}

/// Checks that only ada's email waits while an attribute of hers is unreadable.
async fn assert_others_get_emails(
    table: &str,
    key: [(&str, &str); 2],
    attribute: &str,
    valid: AttributeValue,
) {
    let (test, outbound) = start_with_three_users().await;
    // A table's key has one attribute or two.
    let damage = async |value: AttributeValue| match key {
        [one, ("", "")] => test.tamper(table, [one], attribute, value).await,
        both => test.tamper(table, both, attribute, value).await,
    };
    damage(nonsense()).await;
    create_errors(&test, 0, 1).await;
    for _ in 0..2 {
        test.pass(MINUTE);
        let outcome = try_run(&test, &outbound).await;
        let failure = outcome.failure;
        assert!(matches!(failure, None | Some(StoreError::Damaged { .. })), "{failure:?}");
        assert!(outcome.oldest_waiting >= MINUTE);
        let mut recipients: Vec<String> = outbound
            .emails()
            .await
            .iter()
            .map(|mail| mail["to"].as_str().unwrap().to_owned())
            .collect();
        recipients.sort();
        assert_eq!(recipients, ["mira@example.com", "owner@example.com"]);
    }
    damage(valid).await;
    outbound.run(&test.app).await;
    let emails = outbound.emails().await;
    assert_eq!((emails.len(), &emails[0]["to"]), (3, &"ada@example.com".into()));
}

#[tokio::test]
async fn unreadable_preferences_delay_their_user_only() {
    let key = [("userId", "default/ada"), ("", "")];
    assert_others_get_emails("email-preferences", key, "error_new", AttributeValue::Bool(true))
        .await;
}

#[tokio::test]
async fn unreadable_addresses_delay_their_user_only() {
    let key = [("pk", "addresses#default"), ("sk", "ada")];
    let valid = AttributeValue::S("ada@example.com".to_owned());
    assert_others_get_emails("notifications", key, "email", valid).await;
}

#[tokio::test]
async fn emails_about_unreadable_errors_have_no_plot() {
    let (test, outbound) = start_with_three_users().await;
    create_errors(&test, 0, 1).await;
    let errors = test.items("errors").await;
    let mut keys = errors.iter().map(|item| (text(&item["pk"]), text(&item["sk"])));
    let (pk, sk) = keys.find(|(pk, _)| pk.starts_with("errors#")).unwrap();
    let key = [("pk", pk.as_str()), ("sk", sk.as_str())];
    test.tamper("errors", key, "status", nonsense()).await;
    // Reading the error reports the damage, and the run continues.
    let failure = try_run(&test, &outbound).await.failure;
    assert!(failure.is_none(), "{failure:?}");
    let emails = outbound.emails().await;
    assert_eq!(emails.len(), 3);
    assert!(emails.iter().all(|mail| !mail["text"].as_str().unwrap().contains('▁')));
}

#[tokio::test]
async fn unreadable_projects_are_sent_without_name() {
    let (test, outbound) = start().await;
    create_errors(&test, 0, 1).await;
    let senders = unreachable_senders();
    let outcome = send(&test.app, &senders, Duration::ZERO, Deadline::after(MINUTE)).await.unwrap();
    assert!(outcome.failure.is_some());
    let project = test.project_id.to_string();
    let key = [("idOrSlug", project.as_str())];
    test.tamper("projects", key, "createdAt", nonsense()).await;
    let failure = try_run(&test, &outbound).await.failure;
    assert!(matches!(failure, Some(StoreError::Damaged { .. })), "{failure:?}");
    assert_eq!(subjects(&outbound.emails().await), ["New error: Errora: cart is undefined"]);
    let events = outbound.events().await;
    let error = events.iter().find(|event| event["detailType"] == "error.created").unwrap();
    assert_eq!(error["detail"]["project"], serde_json::json!({ "id": project }));
}

#[tokio::test]
async fn unreadable_outbox_items_do_not_block_others() {
    const ERRORS: u64 = 200;
    let (test, outbound) = start().await;
    create_errors(&test, 0, ERRORS).await;
    let outbox = async || {
        let items = test.items("notifications").await;
        let keys = items.iter().map(|item| (text(&item["pk"]), text(&item["sk"])));
        let mut keys: Vec<_> = keys.filter(|(_, sk)| sk.starts_with("outbox#")).collect();
        keys.sort();
        keys
    };
    // The first items, more than one page.
    let unreadable: Vec<_> = outbox().await.into_iter().take(90).collect();
    for (pk, sk) in &unreadable {
        let key = [("pk", pk.as_str()), ("sk", sk.as_str())];
        test.tamper("notifications", key, "kind", nonsense()).await;
    }
    let failure = try_run(&test, &outbound).await.failure;
    assert!(failure.is_none(), "{failure:?}");
    assert_eq!(outbox().await, unreadable);
    assert_eq!(subjects(&outbound.emails().await), ["[Shop] 110 new errors"]);
}
