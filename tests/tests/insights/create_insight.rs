//! Creating and reading insights.

use std::time::Duration;
use tests::call::Call;

use futures_util::future::join_all;
use serde_json::{Value, json};
use tests::app::{PROJECT, TestApp};
use tests::call::Reply;
use tests::insights::{self, upload};

use super::{
    CREATE, LIST, LIST_PAIN_POINTS, call, call_for, create, creation, etag, get, id_of,
    is_replayed, members, numbered, other_project, stored, stored_of,
};

async fn created(test: &TestApp, body: &Value) -> Reply {
    call(test, CREATE).json(body).send(&test.app).await
}

#[tokio::test]
async fn new_insights_are_returned_with_all_fields() {
    let test = TestApp::start().await;
    let mut body = creation([0, 1, 3, 8]);
    body["title"] = json!("  Checkout ");
    body["description"] = json!(" Of the shop\n");
    let reply = created(&test, &body).await;
    let id = id_of(&reply);
    let expected = json!({
        "viewed": false,
        "id": id,
        "title": "Checkout",
        "description": " Of the shop\n",
        "status": "open",
        "mergedInto": null,
        // Sessions: 0, 1, 3 and 1. Users: none, 1, none and 3.
        "affectedSessions": 3,
        "identifiedUsers": 2,
        "occurrences": 4,
        "previousAffectedSessions": 0,
        "trendPercent": 100,
        "firstSeen": "2026-11-20T04:16:00.000Z",
        "lastSeen": "2026-11-20T04:16:08.000Z",
        "excerpt": "Replay excerpt 8",
    });
    assert_eq!((reply.status, &reply.body), (201, &expected));
    assert_eq!(etag(&reply), "\"1\"");
    let location = format!("/v0/projects/{}/replay-insights/{id}", test.project_id);
    assert_eq!(reply.headers["location"], location);
    let reply = get(&test, &id).await;
    assert_eq!((&reply.body, etag(&reply)), (&expected, "\"1\""));
    let reply = call(&test, LIST).send(&test.app).await;
    assert_eq!(reply.body, json!({"items": [expected], "nextCursor": null}));
}

#[tokio::test]
async fn pain_points_are_listed_with_all_fields() {
    let test = TestApp::start().await;
    let mut body = creation([0, 1]);
    body["painPoints"][0] = json!({
        "id": insights::id(0).to_uppercase(),
        "sessionId": " s ",
        "occurredAt": "2026-11-20T05:16:00.0009+01:00",
        "title": " Rage click ",
    });
    let id = id_of(&created(&test, &body).await);
    let reply = call_for(&test, LIST_PAIN_POINTS, &id).send(&test.app).await;
    let expected = json!([
        {
            "id": insights::id(1),
            "sessionId": "session-1",
            "userId": "user-1",
            "occurredAt": "2026-11-20T04:16:01.000Z",
            "title": "Pain point 1",
            "excerpt": "Replay excerpt 1",
            "evidence": null,
        },
        {
            "id": insights::id(0),
            "sessionId": " s ",
            "userId": null,
            "occurredAt": "2026-11-20T04:16:00.000Z",
            "title": "Rage click",
            "excerpt": "",
            "evidence": null,
        },
    ]);
    assert_eq!(reply.body, json!({"items": expected, "nextCursor": null}));
}

#[tokio::test]
async fn descriptions_are_optional() {
    let test = TestApp::start().await;
    for (number, description) in [None, Some(Value::Null), Some(json!(""))].into_iter().enumerate()
    {
        let mut body = creation([number]);
        if let Some(description) = description {
            body["description"] = description;
        }
        let reply = created(&test, &body).await;
        assert_eq!((reply.status, &reply.body["description"]), (201, &json!("")));
    }
}

#[tokio::test]
async fn all_violations_are_listed_and_nothing_is_written() {
    let test = TestApp::start().await;
    let long = |count| "é".repeat(count);
    let valid = creation(0..1)["painPoints"][0].clone();
    let two = json!([valid, {"id": insights::id(0), "title": 5}]);
    for (body, violations) in [
        (json!([]), vec![("", "invalid_type")]),
        (json!({}), vec![("/painPoints", "required"), ("/title", "required")]),
        (
            json!({"title": null, "painPoints": null}),
            vec![("/painPoints", "required"), ("/title", "required")],
        ),
        (
            json!({"title": " ", "painPoints": []}),
            vec![("/painPoints", "too_few_items"), ("/title", "too_short")],
        ),
        (
            json!({"title": long(201), "description": long(2_001), "painPoints": {}, "viewed": true}),
            vec![
                ("/description", "too_long"),
                ("/painPoints", "invalid_type"),
                ("/title", "too_long"),
                ("/viewed", "unknown_field"),
            ],
        ),
        (
            json!({"title": "a\u{0}", "description": "a\u{0}", "painPoints": two}),
            vec![
                ("/description", "invalid_format"),
                ("/painPoints/1/occurredAt", "required"),
                ("/painPoints/1/sessionId", "required"),
                ("/painPoints/1/title", "invalid_type"),
                ("/title", "invalid_format"),
            ],
        ),
        (creation(0..501), vec![("/painPoints", "too_many_items")]),
    ] {
        let reply = created(&test, &body).await;
        assert_eq!(reply.problem(), (400, "validation_failed"));
        let mut found = reply.violations();
        found.sort_unstable();
        assert_eq!(found, violations);
    }
    assert!(stored(&test).await.is_empty());
    let mut longest = creation(0..500);
    (longest["title"], longest["description"]) = (json!(long(200)), json!(long(2_000)));
    let reply = created(&test, &longest).await;
    assert_eq!((reply.status, &reply.body["occurrences"]), (201, &json!(500)));
    assert_eq!(members(&test, &id_of(&reply)).await, numbered(0..500));
}

#[tokio::test]
async fn duplicates_count_once_and_conflicting_ids_are_rejected() {
    let test = TestApp::start().await;
    let mut body = creation([0, 1, 0, 1, 1]);
    body["painPoints"][2]["id"] = json!(insights::id(0).to_uppercase());
    body["painPoints"][4]["title"] = json!("  Pain point 1");
    let reply = created(&test, &body).await;
    assert_eq!((reply.status, &reply.body["occurrences"]), (201, &json!(2)));
    let mut body = creation([5, 6, 5, 5]);
    body["painPoints"][2]["userId"] = json!("another user");
    let reply = created(&test, &body).await;
    assert_eq!(reply.violations(), [("/painPoints/2/id", "duplicate")]);
}

#[tokio::test]
async fn pain_points_are_in_one_insight_per_project() {
    let test = TestApp::start().await;
    create(&test, 0..5).await;
    let before = stored(&test).await;
    let reply = created(&test, &creation([7, 3, 8, 4])).await;
    assert_eq!(reply.problem(), (409, "pain_point_exists"));
    let detail = reply.body["detail"].as_str().unwrap();
    for (number, named) in [(7, false), (3, true), (8, false), (4, true)] {
        assert_eq!(detail.contains(&insights::id(number)), named, "{detail}");
    }
    let insights = stored_of(&test, "project#").await;
    assert_eq!(insights, 1, "{before:?}");
    let elsewhere = other_project(&test).await.to_string();
    let other = Call::of(CREATE).parameter("idOrSlug", elsewhere).key(&test.key);
    let reply = other.json(&creation(0..5)).send(&test.app).await;
    assert_eq!((reply.status, &reply.body["occurrences"]), (201, &json!(5)));
}

#[tokio::test]
async fn requests_succeed_without_the_taken_pain_points() {
    let test = TestApp::start().await;
    create(&test, [0]).await;
    // Claims need several transactions, so some new pain points are claimed without effect.
    let reply = created(&test, &creation(0..250)).await;
    assert_eq!(reply.problem(), (409, "pain_point_exists"));
    let reply = created(&test, &creation(1..250)).await;
    assert_eq!((reply.status, &reply.body["occurrences"]), (201, &json!(249)));
}

#[tokio::test]
async fn retried_creations_return_the_same_insight() {
    let test = TestApp::start().await;
    let request =
        |number| call(&test, CREATE).header("idempotency-key", "k").json(&creation([number]));
    let duplicates = join_all((0..8).map(|_| request(0).send(&test.app))).await;
    assert!(duplicates.iter().all(|reply| reply.status == 201 && reply.body == duplicates[0].body));
    assert_eq!(duplicates.iter().filter(|reply| is_replayed(reply)).count(), 7);
    let id = id_of(&duplicates[0]);
    super::add(&test, &id, [5]).await;
    let again = request(0).send(&test.app).await;
    assert!(is_replayed(&again));
    assert_eq!((again.status, &again.body, etag(&again)), (201, &duplicates[0].body, "\"1\""));
    assert_eq!(again.headers["location"], duplicates[0].headers["location"]);
    let other = request(1).send(&test.app).await;
    assert_eq!(other.problem(), (409, "idempotency_conflict"));
    assert_eq!(
        created(&test, &creation([1])).await.status,
        201,
        "the conflicting request claimed nothing"
    );
    test.pass(Duration::from_hours(24));
    assert_eq!(request(0).send(&test.app).await.problem(), (409, "pain_point_exists"));
}

#[tokio::test]
async fn rejected_creations_do_not_use_their_key() {
    let test = TestApp::start().await;
    create(&test, [0]).await;
    let request = |numbers: std::ops::Range<usize>| {
        call(&test, CREATE).header("idempotency-key", "k").json(&creation(numbers))
    };
    let rejected = request(0..3).send(&test.app).await;
    assert_eq!(rejected.problem(), (409, "pain_point_exists"));
    let reply = request(1..3).send(&test.app).await;
    assert_eq!((reply.status, is_replayed(&reply)), (201, false));
}

#[tokio::test]
async fn idempotency_keys_are_separate_per_api_key() {
    let test = TestApp::start().await;
    let other = test.key_with(|key| key).await;
    let request = |key: &str, number| {
        let call = Call::of(CREATE).parameter("idOrSlug", PROJECT).key(key);
        call.header("idempotency-key", "k").json(&creation([number]))
    };
    let first = request(&test.key, 0).send(&test.app).await;
    let second = request(&other, 1).send(&test.app).await;
    assert_eq!((first.status, second.status), (201, 201));
    assert_ne!(first.body["id"], second.body["id"]);
    // Keys of different operations are also separate.
    let reply = call_for(&test, super::ADD, &id_of(&first)).header("idempotency-key", "k");
    assert_eq!(reply.json(&upload([2])).send(&test.app).await.status, 200);
}
