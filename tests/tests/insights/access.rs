//! Insight IDs, sizes of bodies, and the number of round trips.

use serde_json::json;
use tests::app::TestApp;
use tests::call::{Call, Gateway};
use tests::insights::upload;

use super::{
    ADD, CREATE, GET, LIST, LIST_PAIN_POINTS, MERGE, OPERATIONS_ON_AN_INSIGHT, SPLIT, UPDATE,
    call_for, create, creation, merge, split_of, stored, valid,
};

#[tokio::test]
async fn insights_are_merged_only_into_their_own_project() {
    let test = TestApp::start().await;
    test.other_project().await;
    let id = create(&test, 0..2).await;
    let other = valid(CREATE, "other", "", "").key(&test.key).send(&test.app).await;
    let reply = merge(&test, &id, other.body["id"].as_str().unwrap()).await;
    assert_eq!(reply.violations(), [("/into", "unknown_insight")]);
    assert!(stored(&test).await.iter().all(|item| !item.contains("mergedInto")));
}

#[tokio::test]
async fn ids_are_case_insensitive() {
    let test = TestApp::start().await;
    let (id, into) = (create(&test, 0..2).await, create(&test, 10..11).await);
    let project = test.project_id.to_string().to_uppercase();
    for operation in OPERATIONS_ON_AN_INSIGHT {
        let call = valid(operation, &project, &id.to_uppercase(), &into.to_uppercase());
        for gateway in [Gateway::HttpApi, Gateway::RestApi] {
            let reply = call.clone().gateway(gateway).key(&test.key).send(&test.app).await;
            assert!(reply.status < 300, "{}: {}", operation.name, reply.body);
            if reply.body["mergedInto"].is_string() {
                assert_eq!(reply.body["mergedInto"], into);
            }
        }
    }
    assert_eq!(super::get(&test, &id).await.body["mergedInto"], json!(into));
}

#[tokio::test]
async fn only_pain_points_can_have_large_bodies() {
    let test = TestApp::start().await;
    let id = create(&test, 0..2).await;
    let padded = |body: &serde_json::Value, bytes: usize| {
        let sent = body.to_string();
        format!("{}{sent}", " ".repeat(bytes - sent.len()))
    };
    for (operation, body, most) in [
        (CREATE, creation(5..7), 1_048_576),
        (ADD, upload(7..9), 1_048_576),
        (SPLIT, split_of([1]), 262_144),
        (UPDATE, json!({"viewed": true}), 262_144),
    ] {
        let call = call_for(&test, operation, &id);
        let reply = call.clone().bytes(padded(&body, most + 1)).send(&test.app).await;
        assert_eq!(reply.problem(), (413, "body_too_large"), "{}", operation.name);
        let reply = call.bytes(padded(&body, most)).send(&test.app).await;
        assert!(reply.status < 300, "{}: {}", operation.name, reply.body);
    }
}

#[tokio::test]
async fn warm_functions_make_few_round_trips() {
    let test = TestApp::start().await;
    let id = create(&test, 0..500).await;
    let trips = async |call: Call| {
        test.round_trips();
        let reply = call.send(&test.app).await;
        assert!(reply.status < 300, "{}", reply.body);
        test.round_trips()
    };
    // Claims of a hundred pain points each, then the insight.
    assert_eq!(trips(test.call(CREATE).json(&creation(600..601))).await, 2);
    assert_eq!(trips(test.call(CREATE).json(&creation(1_000..1_500))).await, 6);
    // An insight, then its chunks.
    assert_eq!(trips(call_for(&test, GET, &id)).await, 2);
    assert_eq!(trips(test.call(LIST)).await, 2);
    assert_eq!(trips(call_for(&test, LIST_PAIN_POINTS, &id)).await, 3);
    assert_eq!(trips(call_for(&test, UPDATE, &id).json(&json!({"viewed": true}))).await, 3);
    assert_eq!(trips(call_for(&test, UPDATE, &id).json(&json!({"viewed": true}))).await, 2);
    assert_eq!(trips(call_for(&test, ADD, &id).json(&upload(500..510))).await, 4);
    assert_eq!(trips(call_for(&test, ADD, &id).json(&upload(500..510))).await, 2);
    // Also the latest pain point of each half, unless it is known.
    let split_off = call_for(&test, SPLIT, &id).json(&split_of([3, 4]));
    assert_eq!(trips(split_off.clone()).await, 4);
    assert_eq!(trips(split_off.clone()).await, 5, "a repeated split also reads the new insight");
    let split_off = super::id_of(&split_off.send(&test.app).await);
    // Both insights with their chunks.
    assert_eq!(trips(call_for(&test, MERGE, &split_off).json(&json!({"into": id}))).await, 5);
}
