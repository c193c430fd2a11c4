//! Functions for notifications.

pub(crate) mod preferences;

use std::time::Duration;

use serde_json::json;

use tests::app::{PROJECT, TestApp};
use tests::call::Call;
use tests::errors::{SentEvent, deliver, delivery, project};
use tests::insights::upload;
use tests::notifications::{SentMessages, announce_trends, token_in};

use super::insights::set_revision;
use super::sign_in::queue_emails;
use super::{assert_uses_all, send};

pub(super) const FUNCTIONS: [&str; 6] = [
    get_email_address::OPERATION.name,
    set_email_address::OPERATION.name,
    confirm_email_address::OPERATION.name,
    unsubscribe::OPERATION.name,
    send_notifications::JOB.name,
    announce_trends::JOB.name,
];

/// Creates a flag as a user other than the tests' own.
async fn create_flag_as_another(test: &TestApp) {
    let key = test.key_of("other").await;
    let body = json!({"key": "beta", "name": "Beta", "type": "boolean"});
    let create = Call::of(&create_feature_flag::OPERATION).parameter("idOrSlug", PROJECT);
    let create = create.key(&key).json(&body);
    send(test, create, 201).await;
}

/// Lets announce-trends find a spike and, on a Monday, an insight whose chunks are being changed.
async fn announce_all_trends(test: &TestApp) {
    let body = upload(0..1);
    let create = test
        .call(&create_insight::OPERATION)
        .json(&json!({"title": "Checkout", "painPoints": body["painPoints"]}));
    send(test, create, 201).await;
    set_revision(test, 99).await;
    test.pass(Duration::from_hours(50));
    for number in 100..120 {
        let event = SentEvent::new(number, test.app.clock.now(), "TypeError", "x");
        deliver(test, test.project_id, &event).await;
    }
    let start = test.app.clock.now();
    announce_trends(&test.app).await;
    while test.app.clock.now() < start.plus(Duration::from_hours(12)) {
        test.pass(Duration::from_hours(1));
        announce_trends(&test.app).await;
    }
}

#[tokio::test]
async fn notification_functions_use_exactly_their_permissions() {
    let (test, messages) = (TestApp::start().await, SentMessages::open());
    let project = project(&test.app.store, test.project_id).await;
    let scenario = Box::pin(async {
        // The first function that needs the token key creates it.
        for operation in [&confirm_email_address::OPERATION, &unsubscribe::OPERATION] {
            let other = TestApp::start().await;
            send(&other, Call::of(operation).query("token", "x"), 400).await;
        }
        let set = Call::of(&set_email_address::OPERATION).key(&test.key);
        let set = set.json(&json!({"email": "owner@example.com"}));
        send(&test, set, 200).await;
        send(&test, Call::of(&get_email_address::OPERATION).key(&test.key), 200).await;
        messages.run(&test.app).await;
        let token = token_in(&messages.emails().await[0], "/v0/notifications/confirm");
        let confirm = Call::of(&confirm_email_address::OPERATION).query("token", &token);
        send(&test, confirm, 200).await;
        // A new address is set, and replaced before its confirmation email is sent.
        for email in ["other@example.com", "owner@example.com"] {
            let set = Call::of(&set_email_address::OPERATION).key(&test.key);
            send(&test, set.json(&json!({ "email": email })), 200).await;
        }

        // The flag change is marked in a collection.
        let flags = json!({"name": "Flag changes", "source": "flags"});
        let create = test.call(&create_event_marker_collection::OPERATION).json(&flags);
        send(&test, create, 201).await;
        create_flag_as_another(&test).await;
        // Two errors in one email; the one with more events comes first.
        for (number, kind) in [(1, "TypeError"), (2, "RangeError")] {
            let event = SentEvent::new(number, test.app.clock.now(), kind, "x");
            send(&test, delivery(&project, &event), 200).await;
        }
        messages.run(&test.app).await;
        let token = token_in(&messages.emails().await[0], "/v0/notifications/unsubscribe");
        let unsubscribe = Call::of(&unsubscribe::OPERATION).query("token", &token);
        send(&test, unsubscribe, 200).await;
        for _ in 0..8 {
            test.pass(Duration::from_mins(10));
            messages.run(&test.app).await;
        }
        announce_all_trends(&test).await;
        queue_emails(&test).await;
        messages.run(&test.app).await;
    });
    assert_uses_all(&FUNCTIONS, scenario).await;
}
