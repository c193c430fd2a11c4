//! What is damaged keeps nobody else from being told, and is told of once it is mended.

use std::time::Duration;

use aws_sdk_dynamodb::types::AttributeValue;
use send_notifications::{Outcome, send};
use shared::app::Deadline;
use shared::dynamodb::StoreError;
use shared::projects::api_key::{ApiKeyRecord, UserId};
use tests::app::TestApp;
use tests::notifications::{SentMessages, give_address, user};

use super::actions::{make_errors, nowhere, start, subjects};

const MINUTE: Duration = Duration::from_mins(1);

fn nonsense() -> AttributeValue {
    AttributeValue::S("nonsense".to_owned())
}

/// A part of a key.
fn written(value: &AttributeValue) -> String {
    value.as_s().unwrap().clone()
}

/// A run that may fail.
async fn try_run(test: &TestApp, post: &SentMessages) -> Outcome {
    send(&test.app, &post.senders, Duration::ZERO, Deadline::after(MINUTE)).await.unwrap()
}

/// Three users who are told of errors: `ada`, `mira` and the tests' own, `owner`.
async fn start_with_three() -> (TestApp, SentMessages) {
    let (test, post) = start().await;
    for name in ["ada", "mira"] {
        let user_id = UserId::parse(name).unwrap();
        test.key_with(|key| ApiKeyRecord { user: user_id, ..key }).await;
        post.run(&test.app).await;
        give_address(&test.app, &user(name), &format!("{name}@example.com")).await;
    }
    (test, post)
}

/// Where a user's part of a feed is.
async fn mailbox_of(test: &TestApp, name: &str) -> (String, String) {
    let items = test.items("notifications").await;
    let mut places = items.iter().map(|item| (written(&item["pk"]), written(&item["sk"])));
    places.find(|(_, sk)| *sk == format!("feed#default#user#{name}")).unwrap()
}

#[tokio::test]
async fn who_has_a_damaged_mailbox_gets_nothing_until_it_is_mended_and_then_all() {
    let (test, post) = start_with_three().await;
    make_errors(&test, 0, 1).await;
    post.run(&test.app).await;
    assert_eq!(post.mails().await.len(), 3);
    let (pk, sk) = mailbox_of(&test, "ada").await;
    let place = [("pk", pk.as_str()), ("sk", sk.as_str())];
    test.tamper("notifications", place, "sent", nonsense()).await;

    for number in 1..=5 {
        test.pass(11 * MINUTE);
        make_errors(&test, number, 1).await;
        let outcome = try_run(&test, &post).await;
        assert!(outcome.failure.is_none(), "a damaged item is reported, and no failure");
        let waits = 11 * MINUTE * u32::try_from(number - 1).unwrap();
        assert_eq!(outcome.oldest_waiting, waits, "what is kept for them waits");
    }
    assert_eq!(post.mails_to("ada@example.com").await.len(), 1, "the same must not go out again");
    for other in ["mira@example.com", "owner@example.com"] {
        assert_eq!(post.mails_to(other).await.len(), 6);
    }
    // The windows of the others end, and so would the feed.
    test.pass(2 * 60 * MINUTE);
    for _ in 0..2 {
        post.run(&test.app).await;
    }
    test.tamper("notifications", place, "sent", AttributeValue::S(String::new())).await;
    post.run(&test.app).await;
    let mails = post.mails().await;
    assert_eq!((mails.len(), subjects(&mails)[0]), (14, "5 new errors in Shop"));
    assert_eq!(mails[0]["to"], "ada@example.com");
}

/// In a user's way, something damaged: the others are told, and the user once it is mended.
async fn others_are_told(
    table: &str,
    key: [(&str, &str); 2],
    attribute: &str,
    right: AttributeValue,
) {
    let (test, post) = start_with_three().await;
    // A table has a key of one attribute or of two.
    let damage = async |value: AttributeValue| match key {
        [one, ("", "")] => test.tamper(table, [one], attribute, value).await,
        both => test.tamper(table, both, attribute, value).await,
    };
    damage(nonsense()).await;
    make_errors(&test, 0, 1).await;
    for _ in 0..2 {
        test.pass(MINUTE);
        let outcome = try_run(&test, &post).await;
        let failure = outcome.failure;
        assert!(matches!(failure, None | Some(StoreError::Damaged { .. })), "{failure:?}");
        assert!(outcome.oldest_waiting >= MINUTE);
        let mut told: Vec<String> =
            post.mails().await.iter().map(|mail| mail["to"].as_str().unwrap().to_owned()).collect();
        told.sort();
        assert_eq!(told, ["mira@example.com", "owner@example.com"]);
    }
    damage(right).await;
    post.run(&test.app).await;
    let mails = post.mails().await;
    assert_eq!((mails.len(), &mails[0]["to"]), (3, &"ada@example.com".into()));
}

#[tokio::test]
async fn a_user_whose_preferences_are_damaged_holds_up_nobody() {
    let key = [("userId", "default/ada"), ("", "")];
    others_are_told("email-preferences", key, "error_new", AttributeValue::Bool(true)).await;
}

#[tokio::test]
async fn a_user_whose_address_is_damaged_holds_up_nobody() {
    let key = [("pk", "addresses#default"), ("sk", "ada")];
    let right = AttributeValue::S("ada@example.com".to_owned());
    others_are_told("notifications", key, "email", right).await;
}

#[tokio::test]
async fn of_an_error_that_is_damaged_mails_have_no_plot() {
    let (test, post) = start_with_three().await;
    make_errors(&test, 0, 1).await;
    let errors = test.items("errors").await;
    let mut places = errors.iter().map(|item| (written(&item["pk"]), written(&item["sk"])));
    let (pk, sk) = places.find(|(pk, _)| pk.starts_with("errors#")).unwrap();
    let place = [("pk", pk.as_str()), ("sk", sk.as_str())];
    test.tamper("errors", place, "status", nonsense()).await;
    let failure = try_run(&test, &post).await.failure;
    assert!(matches!(failure, Some(StoreError::Damaged { .. })), "{failure:?}");
    let mails = post.mails().await;
    assert_eq!(mails.len(), 3);
    assert!(mails.iter().all(|mail| !mail["text"].as_str().unwrap().contains('▁')));
}

#[tokio::test]
async fn of_a_project_that_is_damaged_mails_and_events_have_no_name() {
    let (test, post) = start().await;
    make_errors(&test, 0, 1).await;
    let senders = nowhere();
    let outcome = send(&test.app, &senders, Duration::ZERO, Deadline::after(MINUTE)).await.unwrap();
    assert!(outcome.failure.is_some(), "nothing can be sent there");
    let project = test.project_id.to_string();
    let key = [("idOrSlug", project.as_str())];
    test.tamper("projects", key, "createdAt", nonsense()).await;
    let failure = try_run(&test, &post).await.failure;
    assert!(matches!(failure, Some(StoreError::Damaged { .. })), "{failure:?}");
    assert_eq!(subjects(&post.mails().await), ["New error: Errora: cart is undefined"]);
    let events = post.events().await;
    let error = events.iter().find(|event| event["detailType"] == "error.created").unwrap();
    assert_eq!(error["detail"]["project"], serde_json::json!({ "id": project }));
}

#[tokio::test]
async fn what_is_damaged_in_the_outbox_leaves_nothing_else_there() {
    const ERRORS: u64 = 200;
    let (test, post) = start().await;
    make_errors(&test, 0, ERRORS).await;
    let outbox = async || {
        let items = test.items("notifications").await;
        let places = items.iter().map(|item| (written(&item["pk"]), written(&item["sk"])));
        let mut places: Vec<_> = places.filter(|(_, sk)| sk.starts_with("outbox#")).collect();
        places.sort();
        places
    };
    // The first, and more than are read at once.
    let damaged: Vec<_> = outbox().await.into_iter().take(90).collect();
    for (pk, sk) in &damaged {
        let place = [("pk", pk.as_str()), ("sk", sk.as_str())];
        test.tamper("notifications", place, "kind", nonsense()).await;
    }
    let failure = try_run(&test, &post).await.failure;
    assert!(failure.is_none(), "a damaged item is reported, and no failure: {failure:?}");
    assert_eq!(outbox().await, damaged);
    assert_eq!(subjects(&post.mails().await), ["110 new errors in Shop"]);
}
