//! Statistics over time.

use std::time::Duration;

use serde_json::{Value, json};
use shared::timestamp::Timestamp;
use tests::app::{START, TestApp};
use tests::insights;

use super::{CREATE, call, get, id_of, merge, split};

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

#[tokio::test]
async fn future_pain_points_are_current() {
    let test = TestApp::start().await;
    let mut point = pain_point(0, "s", None, Duration::ZERO);
    point["occurredAt"] = json!("9999-12-31T23:59:59.999Z");
    let id = create(&test, &[point]).await;
    assert_eq!(numbers(&test, &id).await.0, [1, 1, 0, 0]);
    assert_eq!(get(&test, &id).await.body["lastSeen"], "9999-12-31T23:59:59.999Z");
}

#[tokio::test]
async fn sessions_and_known_users_are_counted_once() {
    let test = TestApp::start().await;
    let points = [
        pain_point(0, "a", Some("ann"), DAY),
        pain_point(1, "a", None, DAY),
        pain_point(2, "b", Some("ann"), 2 * DAY),
        pain_point(3, "c", None, 3 * DAY),
        pain_point(4, "c", Some("bob"), 31 * DAY),
        pain_point(5, "A", None, 31 * DAY),
        pain_point(6, "c", None, 59 * DAY),
        pain_point(7, "z", Some("zoe"), 61 * DAY),
    ];
    let id = create(&test, &points).await;
    assert_eq!(numbers(&test, &id).await, ([4, 3, 1, 2], json!(50)));
    assert_eq!(get(&test, &id).await.body["firstSeen"], "2026-09-21T04:16:00.000Z");
}

#[tokio::test]
async fn sessions_in_both_insights_are_counted_twice() {
    let test = TestApp::start().await;
    let points: Vec<Value> = (0..6)
        .map(|number| {
            pain_point(number, "s", Some("u"), DAY * u32::try_from(number % 2 * 40).unwrap())
        })
        .collect();
    let id = create(&test, &points).await;
    assert_eq!(numbers(&test, &id).await, ([3, 1, 1, 1], json!(0)));
    let split_off = id_of(&split(&test, &id, [0, 1, 2]).await);
    assert_eq!(numbers(&test, &split_off).await, ([2, 1, 1, 1], json!(0)));
    assert_eq!(numbers(&test, &id).await, ([1, 1, 1, 1], json!(0)));
    merge(&test, &split_off, &id).await;
    assert_eq!(numbers(&test, &id).await, ([3, 1, 1, 1], json!(0)));
}

#[tokio::test]
async fn trends_have_one_decimal() {
    let test = TestApp::start().await;
    let mut number = 0;
    for (now, before, trend) in [
        (0, 0, json!(0)),
        (5, 0, json!(100)),
        (0, 5, json!(-100)),
        (4, 3, json!(33.3)),
        (1, 3, json!(-66.7)),
        (3, 3, json!(0)),
        (9, 3, json!(200)),
        (17, 16, json!(6.3)),
    ] {
        let mut points = vec![pain_point(number, "old", None, 90 * DAY)];
        for (count, age) in [(now, DAY), (before, 45 * DAY)] {
            for session in 0..count {
                number += 1;
                points.push(pain_point(number, &session.to_string(), None, age));
            }
        }
        number += 1;
        let id = create(&test, &points).await;
        assert_eq!(numbers(&test, &id).await, ([now, now, 0, before], trend));
    }
}
