//! Event marker collections.

use serde_json::{Map, Value, json};
use tests::markers::filled;

use super::hostile::BODY_BYTES;
use super::{Case, Fixture, Report, padded};

/// Returns a hundred events with the maximum attributes.
fn events() -> Value {
    let attributes: Map<String, Value> =
        (0..50).map(|at| (format!("{at}{}", "k".repeat(10)), json!("é".repeat(9)))).collect();
    let event =
        json!({"name": "v1", "occurredAt": "2026-11-21T04:16:00Z", "attributes": attributes});
    json!({"events": vec![event; 95]})
}

#[tokio::test]
async fn markers_cost_little() {
    let fixture = Fixture::start().await;
    let report = &mut Report::default();
    let create = |at: usize| {
        let body =
            json!({"name": format!("{at}{}", "é".repeat(190)), "description": "é".repeat(2_000)});
        fixture.call("create-event-marker-collection").json(&body)
    };
    let cases = vec![Case::once("all of it", 201, create(0))];
    fixture.measure("create-event-marker-collection", cases, report).await;
    for at in 1..100 {
        fixture.make(create(at)).await;
    }
    let page = fixture.call("list-event-marker-collections").query("limit", 100);
    let page = vec![Case::of("a page", 200, page)];
    fixture.measure("list-event-marker-collections", page, report).await;

    let collection = filled(&fixture.test.app.store, fixture.test.project_id, 500).await;
    let call = |id: &str| fixture.call(id).parameter("collectionId", collection);
    let add = call("add-event-markers").header("content-type", "application/json");
    let add = add.bytes(padded(&events(), BODY_BYTES));
    fixture.measure("add-event-markers", vec![Case::of("much of all", 201, add)], report).await;
    let page = call("list-event-markers").query("limit", 100);
    fixture.measure("list-event-markers", vec![Case::of("a page", 200, page)], report).await;
    let activity = fixture.call("get-project-activity").query("limit", 100).query("from", 0);
    let activity = vec![Case::of("all", 200, activity)];
    fixture.measure("get-project-activity", activity, report).await;
    let get = vec![Case::of("one", 200, call("get-event-marker-collection"))];
    fixture.measure("get-event-marker-collection", get, report).await;
    let delete = vec![Case::once("one", 204, call("delete-event-marker-collection"))];
    fixture.measure("delete-event-marker-collection", delete, report).await;
    report.finish("Event markers");
}
