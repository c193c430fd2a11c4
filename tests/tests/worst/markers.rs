//! Event marker collections.

use serde_json::{Map, Value, json};
use tests::markers::filled;

use super::hostile::BODY_BYTES;
use super::{Case, Field, Report, Visibility, padded};

/// A hundred events with as many attributes as fit.
fn events() -> Value {
    let attributes: Map<String, Value> =
        (0..50).map(|at| (format!("{at}{}", "k".repeat(10)), json!("é".repeat(9)))).collect();
    let event =
        json!({"name": "v1", "occurredAt": "2026-11-21T04:16:00Z", "attributes": attributes});
    json!({"events": vec![event; 95]})
}

#[tokio::test]
async fn markers_cost_little() {
    let scene = Visibility::start().await;
    let report = &mut Report::default();
    let create = |at: usize| {
        let body =
            json!({"name": format!("{at}{}", "é".repeat(190)), "description": "é".repeat(2_000)});
        scene.call("create-event-marker-collection").json(&body)
    };
    let cases = vec![Case::once("all of it", 201, create(0))];
    scene.measure("create-event-marker-collection", cases, report).await;
    for at in 1..100 {
        scene.make(create(at)).await;
    }
    let page = scene.call("list-event-marker-collections").query("limit", 100);
    let page = vec![Case::of("a page", 200, page)];
    scene.measure("list-event-marker-collections", page, report).await;

    let collection = filled(&scene.test.app.store, scene.test.project_id, 500).await;
    let call = |id: &str| scene.call(id).parameter("collectionId", collection);
    let add = call("add-event-markers").header("content-type", "application/json");
    let add = add.bytes(padded(&events(), BODY_BYTES));
    scene.measure("add-event-markers", vec![Case::of("much of all", 201, add)], report).await;
    let page = call("list-event-markers").query("limit", 100);
    scene.measure("list-event-markers", vec![Case::of("a page", 200, page)], report).await;
    let get = vec![Case::of("one", 200, call("get-event-marker-collection"))];
    scene.measure("get-event-marker-collection", get, report).await;
    let delete = vec![Case::once("one", 204, call("delete-event-marker-collection"))];
    scene.measure("delete-event-marker-collection", delete, report).await;
    report.finish(Field::Markers);
}
