//! The number of round trips.

use serde_json::json;
use tests::app::TestApp;

use super::{ADD, CREATE, DELETE, GET, LIST, LIST_EVENTS, create, some_events};

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
    assert_eq!(trips(test.call(CREATE).json(&json!({"name": "n"}))).await, 1);
    assert_eq!(trips(test.call(LIST)).await, 1);
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
