//! Insights and their pain points.

use serde_json::{Value, json};

use insights::draft::MAX_PAIN_POINTS_BYTES;
use tests::insights::{filled, id, upload};

use super::{Case, Fixture, Report, padded};

/// Maximum pain points of an insight.
const MAX_PAIN_POINTS: usize = 18_000;
/// Maximum pain points of a request.
const MAX_PER_REQUEST: usize = 500;

/// Returns the pain points with these numbers, each with the maximum length for their total.
fn long(numbers: std::ops::Range<usize>) -> Value {
    let points: Vec<Value> = numbers
        .map(|number| {
            let mut point = upload([number])["painPoints"][0].clone();
            point["excerpt"] = json!("é".repeat(900));
            point["userId"] = json!(format!("{number}{}", "u".repeat(100)));
            point
        })
        .collect();
    json!(points)
}

#[tokio::test]
async fn insights_cost_little() {
    let fixture = Fixture::start().await;
    let report = &mut Report::default();
    let large = |body: &Value| padded(body, MAX_PAIN_POINTS_BYTES);

    let body = large(
        &json!({"title": "x".repeat(200), "painPoints": long(100_000..100_000 + MAX_PER_REQUEST)}),
    );
    let create = fixture.call("create-insight").header("content-type", "application/json");
    let cases = vec![Case::once("many pain points", 201, create.bytes(body))];
    fixture.measure("create-insight", cases, report).await;

    let store = &fixture.test.app.store;
    let project = fixture.test.project_id;
    let full = filled(store, project, MAX_PAIN_POINTS - MAX_PER_REQUEST, MAX_PER_REQUEST).await;
    let call = |id: &str| fixture.call(id).parameter("insightId", full);
    let body =
        large(&json!({"painPoints": long(MAX_PAIN_POINTS..MAX_PAIN_POINTS + MAX_PER_REQUEST)}));
    let add = call("add-pain-points").header("content-type", "application/json").bytes(body);
    fixture
        .measure("add-pain-points", vec![Case::once("to a full insight", 200, add)], report)
        .await;

    let get = vec![Case::of("a full insight", 200, call("get-insight"))];
    fixture.measure("get-insight", get, report).await;
    let page = vec![Case::of("a page", 200, call("list-pain-points").query("limit", 100))];
    fixture.measure("list-pain-points", page, report).await;
    let patch = json!({"title": "é".repeat(200), "description": "é".repeat(2_000), "viewed": true});
    let update = vec![Case::of("all of it", 200, call("update-insight").json(&patch))];
    fixture.measure("update-insight", update, report).await;

    let ids: Vec<String> = (MAX_PAIN_POINTS..MAX_PAIN_POINTS + MAX_PER_REQUEST).map(id).collect();
    let split = call("split-insight").json(&json!({"painPointIds": ids, "title": "Half"}));
    fixture
        .measure("split-insight", vec![Case::once("of a full insight", 201, split)], report)
        .await;

    let body = json!({"title": "Other", "painPoints": upload(200_000..200_001)["painPoints"]});
    let other = fixture.make(fixture.call("create-insight").json(&body)).await.body["id"].clone();
    let merge = call("merge-insights").json(&json!({"into": other}));
    fixture.measure("merge-insights", vec![Case::once("a full insight", 200, merge)], report).await;

    for at in 0..100 {
        let numbers = 300_000 + at..300_001 + at;
        let body = json!({"title": "é".repeat(200), "painPoints": upload(numbers)["painPoints"]});
        fixture.make(fixture.call("create-insight").json(&body)).await;
    }
    let page = vec![Case::of("a page", 200, fixture.call("list-insights").query("limit", 100))];
    fixture.measure("list-insights", page, report).await;
    report.finish("Replay insights");
}
