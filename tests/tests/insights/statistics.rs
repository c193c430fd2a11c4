//! Statistics over time.

use std::time::Duration;

use serde_json::{Value, json};
use shared::timestamp::Timestamp;
use tests::app::{START, TestApp};
use tests::insights;

use super::{CREATE, call, get, id_of};

const DAY: Duration = Duration::from_hours(24);
const MILLISECOND: Duration = Duration::from_millis(1);

/// Returns a pain point with this number and age at the start of the test.
fn pain_point(number: usize, session: &str, user: Option<&str>, age: Duration) -> Value {
    let at = Timestamp::from_millis(i64::try_from(START).unwrap()).minus(age);
    json!({
        "id": insights::id(number),
        "sessionId": session,
        "userId": user,
        "occurredAt": at,
        "title": "Rage click",
    })
}

async fn create(test: &TestApp, pain_points: &[Value]) -> String {
    let body = json!({"title": "t", "painPoints": pain_points});
    let reply = call(test, CREATE).json(&body).send(&test.app).await;
    assert_eq!(reply.status, 201, "{}", reply.body);
    id_of(&reply)
}

/// Returns occurrences, sessions, users and previous sessions; and the trend.
async fn numbers(test: &TestApp, id: &str) -> ([u64; 4], Value) {
    let body = get(test, id).await.body;
    let fields = ["occurrences", "affectedSessions", "identifiedUsers", "previousAffectedSessions"];
    (fields.map(|field| body[field].as_u64().unwrap()), body["trendPercent"].clone())
}

#[tokio::test]
async fn pain_points_are_current_for_30_days() {
    let test = TestApp::start().await;
    let id = create(&test, &[pain_point(0, "s", Some("u"), Duration::ZERO)]).await;
    let before = get(&test, &id).await.body;
    let assert_current = async || assert_eq!(numbers(&test, &id).await, ([1, 1, 1, 0], json!(100)));
    let assert_previous =
        async || assert_eq!(numbers(&test, &id).await, ([0, 0, 0, 1], json!(-100)));
    assert_current().await;
    test.pass(30 * DAY);
    assert_current().await;
    test.pass(MILLISECOND);
    assert_previous().await;
    test.pass((30 * DAY).saturating_sub(MILLISECOND));
    assert_previous().await;
    test.pass(MILLISECOND);
    assert_eq!(numbers(&test, &id).await, ([0, 0, 0, 0], json!(0)));
    let after = get(&test, &id).await.body;
    for field in ["firstSeen", "lastSeen", "excerpt", "status"] {
        assert_eq!(after[field], before[field], "{field} does not depend on time");
    }
}
