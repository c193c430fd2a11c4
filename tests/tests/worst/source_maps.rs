//! Source maps.

use serde_json::json;
use tests::app::PROJECT;
use tests::source_maps::{DEBUG_ID, MAP, bundle_of, upload};

use super::{Case, Fixture, Report};

#[tokio::test]
async fn source_maps_cost_little() {
    let fixture = Fixture::start().await;
    let report = &mut Report::default();
    let test = &fixture.test;
    for number in 0..100 {
        let id = DEBUG_ID.replace("d0c3f1b2", &format!("{number:08}"));
        let release = json!({"projects": [PROJECT], "version": "shop@1"});
        upload(&test.app, &test.key, &bundle_of(MAP, &id), &release).await;
    }
    let page = Case::of("a page", 200, fixture.call("list-source-maps").query("limit", 100));
    fixture.measure("list-source-maps", vec![page], report).await;
    let release = fixture.call("delete-source-maps").query("release", "shop@1");
    let all = vec![Case::once("a hundred maps", 204, release)];
    fixture.measure("delete-source-maps", all, report).await;

    let chunks = fixture.call("get-source-map-upload");
    let chunks = chunks.parameter("path", "organizations/default/chunk-upload");
    fixture.measure("get-source-map-upload", vec![Case::of("options", 200, chunks)], report).await;
    let release = json!({"version": "x".repeat(200), "projects": [PROJECT]});
    let post =
        fixture.call("upload-source-maps").parameter("path", "organizations/default/releases");
    let post = vec![Case::of("a release", 200, post.json(&release))];
    fixture.measure("upload-source-maps", post, report).await;
    let put =
        fixture.call("finalize-release").parameter("path", "organizations/default/releases/1");
    let put = vec![Case::of("a release", 200, put.json(&json!({"projects": [PROJECT]})))];
    fixture.measure("finalize-release", put, report).await;
    report.finish("Source maps");
}
