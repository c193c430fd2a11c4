//! Permissions, and the order of checks.

use serde_json::json;
use tests::app::{PROJECT, TestApp};

use super::{
    ADD, CREATE, DELETE, GET, LIST, LIST_EVENTS, add, call, create, other_project, some_events,
    stored, valid,
};

#[tokio::test]
async fn collections_are_found_only_in_their_own_project() {
    let test = TestApp::start().await;
    other_project(&test).await;
    let id = create(&test).await;
    add(&test, &id, &some_events(2)).await;
    let before = stored(&test).await;
    let simple = id.replace('-', "");
    for operation in [GET, DELETE, ADD, LIST_EVENTS] {
        for (project, id) in [
            ("other", id.as_str()),
            (PROJECT, "01902f3c-0000-7000-8000-000000000000"),
            (PROJECT, "nonsense"),
            (PROJECT, &simple),
            (PROJECT, &format!("{{{id}}}")),
            (PROJECT, "%00"),
        ] {
            let reply = valid(operation, project, id).key(&test.key).send(&test.app).await;
            assert_eq!(reply.problem(), (404, "collection_not_found"), "{} {id}", operation.name);
        }
    }
    assert_eq!(stored(&test).await, before);
    for operation in [GET, LIST_EVENTS, ADD, DELETE] {
        let upper = id.to_uppercase();
        let project = test.project_id.to_string().to_uppercase();
        let reply = valid(operation, &project, &upper).key(&test.key).send(&test.app).await;
        assert!(reply.status < 300, "{}: {}", operation.name, reply.body);
    }
}

#[tokio::test]
async fn warm_functions_make_one_round_trip() {
    let test = TestApp::start().await;
    let id = create(&test).await;
    let trips = async |call: tests::call::Call| {
        test.round_trips();
        let reply = call.send(&test.app).await;
        assert!(reply.status < 300, "{}", reply.body);
        test.round_trips()
    };
    let adding = |count| super::call_for(&test, ADD, &id).json(&some_events(count));
    assert_eq!(trips(call(&test, CREATE).json(&json!({"name": "n"}))).await, 1);
    assert_eq!(trips(call(&test, LIST)).await, 1);
    assert_eq!(trips(super::call_for(&test, GET, &id)).await, 1);
    assert_eq!(trips(adding(1)).await, 1);
    assert_eq!(trips(adding(98)).await, 1);
    assert_eq!(trips(adding(98).header("idempotency-key", "a")).await, 1);
    assert_eq!(trips(adding(99)).await, 2, "they do not fit into one transaction");
    assert_eq!(trips(adding(100).header("idempotency-key", "b")).await, 2);
    assert_eq!(
        trips(super::call_for(&test, LIST_EVENTS, &id)).await,
        2,
        "the collection, then its events"
    );
    assert_eq!(trips(super::call_for(&test, DELETE, &id)).await, 1);
}
