//! Setup of notification tests.

use std::collections::HashMap;
use std::net::TcpListener;
use std::time::Duration;

use aws_sdk_dynamodb::types::AttributeValue;
use serde_json::{Value, json};

use send_notifications::senders::Senders;
use shared::projects::project::ProjectId;
use tests::app::{TestApp, texts};
use tests::call::Call;
use tests::errors::SentEvent;
pub(super) use tests::errors::deliver;
use tests::insights::upload;
use tests::notifications::{SentMessages, give_address, senders, user};

/// Starts an app whose test user has an address and no emails yet.
pub(super) async fn start() -> (TestApp, SentMessages) {
    let (test, outbound) = (TestApp::start().await, SentMessages::open());
    // The test key is announced while the user has no address.
    outbound.run(&test.app).await;
    give_address(&test.app, &user("owner"), "owner@example.com").await;
    (test, outbound)
}

/// Returns senders with unreachable SES and EventBridge.
pub(super) fn unreachable_senders() -> Senders {
    let closed = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    senders(&format!("http://{closed}"), &format!("http://{closed}"))
}

/// Returns an error event at the current time.
pub(super) fn event(test: &TestApp, number: u64, kind: &str) -> SentEvent {
    SentEvent::new(number, test.app.clock.now(), kind, "cart is undefined")
}

/// Delivers `count` events of one error, numbered from `from`.
pub(super) async fn deliver_many(test: &TestApp, from: u64, count: u64, kind: &str) {
    for number in from..from + count {
        deliver(test, test.project_id, &event(test, number, kind)).await;
    }
}

/// Creates `count` errors whose types differ by a letter.
pub(super) async fn create_errors(test: &TestApp, from: u64, count: u64) {
    for number in from..from + count {
        let letters: String =
            format!("{number}").chars().map(|it| char::from(it as u8 + 49)).collect();
        let error = event(test, number, &format!("Error{letters}"));
        deliver(test, test.project_id, &error).await;
    }
}

pub(super) fn subjects(emails: &[Value]) -> Vec<&str> {
    emails.iter().map(|mail| mail["subject"].as_str().unwrap()).collect()
}

/// Returns the number of events in an email with a subject such as `[Shop] 1,000 new errors`.
pub(super) fn event_count(subject: &str) -> u64 {
    let text = subject.split_once("] ").map_or(subject, |(_, text)| text);
    let first_word = text.split(' ').next().unwrap().replace(',', "");
    first_word.parse().unwrap_or(1)
}

pub(super) async fn create_insight(test: &TestApp, number: usize, title: &str) {
    let mut body = upload([number]);
    body["title"] = json!(title);
    let call = test.call(&create_insight::OPERATION);
    assert_eq!(call.json(&body).send(&test.app).await.status, 201);
}

/// Turns types on or off for the user of a key.
pub(super) async fn set_preferences(test: &TestApp, key: &str, types: &[&str], enabled: bool) {
    let all: Vec<Value> =
        types.iter().map(|name| json!({"type": name, "emailEnabled": enabled})).collect();
    let body = json!({ "preferences": all });
    let call = Call::of(&update_email_preferences::OPERATION).key(key).json(&body);
    assert_eq!(call.send(&test.app).await.status, 200);
}

/// Sets the status of the latest seen error.
pub(super) async fn set_status(test: &TestApp, status: &str) {
    let list = test.call(&list_errors::OPERATION);
    let errors = list.send(&test.app).await.body;
    let update = test.call(&update_error::OPERATION);
    let update = update.parameter("errorId", errors["items"][0]["errorId"].as_str().unwrap());
    assert_eq!(update.json(&json!({ "status": status })).send(&test.app).await.status, 200);
}

/// Creates a flag in a project.
pub(super) async fn create_flag(test: &TestApp, project: &str, key: &str) {
    let body = json!({"key": key, "name": format!("The {key}"), "type": "boolean"});
    let call = Call::of(&create_feature_flag::OPERATION).parameter("idOrSlug", project);
    let reply = call.key(&test.key).json(&body).send(&test.app).await;
    assert_eq!(reply.status, 201, "{}", reply.body);
}

/// Creates an insight. Its `sessions` were affected a day ago and 40 days ago. Its pain points are
/// numbered from `from`.
pub(super) async fn create_trend(test: &TestApp, from: usize, title: &str, sessions: [usize; 2]) {
    let [current, previous] = sessions;
    let yesterday = test.app.clock.now().minus(Duration::from_hours(24));
    let points: Vec<Value> = (0..current + previous)
        .map(|number| {
            let age = if number < current { Duration::ZERO } else { Duration::from_hours(39 * 24) };
            json!({"id": tests::insights::id(from + number), "sessionId": format!("{title}-{number}"),
                "occurredAt": yesterday.minus(age), "title": "Rage click"})
        })
        .collect();
    let call = test.call(&create_insight::OPERATION);
    let reply = call.json(&json!({"title": title, "painPoints": points})).send(&test.app).await;
    assert_eq!(reply.status, 201, "{}", reply.body);
}

/// Returns the titles of one kind of outbox items.
pub(super) async fn outbox_titles(test: &TestApp, kind: &str) -> Vec<String> {
    let items = test.items("notifications").await;
    let text = |item: &HashMap<String, AttributeValue>, name: &str| {
        item.get(name).and_then(|value| value.as_s().ok()).cloned().unwrap_or_default()
    };
    let outbox = items.iter().filter(|item| text(item, "sk").starts_with("outbox#"));
    let mut titles: Vec<String> =
        outbox.filter(|item| text(item, "kind") == kind).map(|item| text(item, "title")).collect();
    titles.sort();
    titles
}

/// Stores error items that have only a key. Emails omit errors that do not exist.
pub(super) async fn store_errors(test: &TestApp, project: ProjectId, ids: &[String]) {
    let pk = format!("errors#{project}");
    test.put("errors", ids.iter().map(|id| texts([("pk", &*pk), ("sk", id)]))).await;
}
