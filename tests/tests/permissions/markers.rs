//! Functions for event markers.

use std::time::Duration;

use aws_sdk_dynamodb::types::AttributeValue;
use serde_json::{Value, json};
use tests::app::TestApp;

use super::{assert_uses_all, deadline, id, items, scheduled, send};

pub(super) const FUNCTIONS: [&str; 8] = [
    add_event_markers::OPERATION.name,
    create_event_marker_collection::OPERATION.name,
    delete_event_marker_collection::OPERATION.name,
    get_event_marker_collection::OPERATION.name,
    list_event_marker_collections::OPERATION.name,
    list_event_markers::OPERATION.name,
    purge_event_markers::JOB.name,
    get_project_activity::OPERATION.name,
];

const TABLE: &str = "event-markers";

fn events(count: usize) -> Value {
    json!({"events": vec![json!({"name": "v1", "occurredAt": "2026-11-21T04:16:00Z"}); count]})
}

/// Leaves an event pending in its collection, like a writer that died between its two transactions.
async fn leave_pending(test: &TestApp, collection: &str) {
    let events = test.items(TABLE).await;
    let event = events.into_iter().find(|item| item["pk"].as_s().unwrap().starts_with("events#"));
    let pending =
        AttributeValue::L(vec![AttributeValue::M(event.expect("the collection has an event"))]);
    let (project, collection) =
        (format!("project#{}", test.project_id), format!("collection#{collection}"));
    let key = [("pk", project.as_str()), ("sk", collection.as_str())];
    test.tamper(TABLE, key, "pending", pending).await;
}

#[tokio::test]
async fn marker_functions_use_exactly_their_permissions() {
    let test = TestApp::start().await;
    let scenario = Box::pin(async {
        let create = test.call(&create_event_marker_collection::OPERATION);
        let create = create.header("idempotency-key", "k").json(&json!({"name": "Releases"}));
        let collection = id(&send(&test, create.clone(), 201).await);
        send(&test, create, 201).await;
        let of = |operation| test.call(operation).parameter("collectionId", &collection);

        // More events than fit into one transaction, and another request after pending events.
        let add = of(&add_event_markers::OPERATION).json(&events(100));
        send(&test, add.clone().header("idempotency-key", "k"), 201).await;
        let elsewhere = test.call(&add_event_markers::OPERATION).parameter("collectionId", "-");
        let elsewhere = elsewhere.header("idempotency-key", "k").json(&events(1));
        send(&test, elsewhere, 409).await;
        leave_pending(&test, &collection).await;
        send(&test, add, 201).await;

        leave_pending(&test, &collection).await;
        let list = of(&list_event_markers::OPERATION).query("limit", 7);
        let page = send(&test, list.clone(), 200).await;
        assert_eq!(items(&page).len(), 7);
        let next = page.body["nextCursor"].as_str().unwrap();
        send(&test, list.query("cursor", next), 200).await;

        send(&test, of(&get_event_marker_collection::OPERATION), 200).await;
        send(&test, test.call(&list_event_marker_collections::OPERATION), 200).await;
        send(&test, test.call(&get_project_activity::OPERATION), 200).await;
        send(&test, of(&delete_event_marker_collection::OPERATION), 204).await;

        let purge = || Box::pin((purge_event_markers::JOB.run)(&test.app, deadline()));
        scheduled(purge_event_markers::JOB.name, purge()).await;
        test.pass(Duration::from_mins(1));
        scheduled(purge_event_markers::JOB.name, purge()).await;
        assert!(test.items(TABLE).await.is_empty());
    });
    assert_uses_all(&FUNCTIONS, scenario).await;
}
