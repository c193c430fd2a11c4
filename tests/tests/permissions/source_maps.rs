//! Functions for source maps.

use std::time::Duration;

use serde_json::json;
use shared::http::Method;
use shared::projects::api_key::ApiKeyRecord;
use tests::app::{PROJECT, TestApp};
use tests::source_maps::{DEBUG_ID, MAP, bundle, bundle_of, put_chunks, queue, tool_call, upload};

use super::{assert_uses_all, deadline, scheduled, send};

pub(super) const FUNCTIONS: [&str; 4] = [
    delete_source_maps::OPERATION.name,
    list_source_maps::OPERATION.name,
    maintain_source_maps::JOB.name,
    upload_source_maps::OPERATION.name,
];

async fn maintain(test: &TestApp) {
    scheduled(
        maintain_source_maps::JOB.name,
        (maintain_source_maps::JOB.run)(&test.app, deadline()),
    )
    .await;
}

#[tokio::test]
async fn source_map_functions_use_exactly_their_permissions() {
    let test = TestApp::start().await;
    let upload_to = json!({"projects": [PROJECT], "version": "shop@1"});
    let scenario = Box::pin(async {
        // A release and a deploy are marked in a collection.
        let releases = json!({"name": "Releases", "source": "releases"});
        let create = test.call(&create_event_marker_collection::OPERATION).json(&releases);
        send(&test, create, 201).await;
        let release = json!({"version": "shop@0", "projects": [PROJECT]});
        let post = |path, body| tool_call(&test.key, Method::POST, path).json(&body);
        send(&test, post("organizations/default/releases", release), 200).await;
        let deploy = json!({"environment": "production"});
        send(&test, post("organizations/default/releases/shop@0/deploys", deploy), 200).await;
        for map in [MAP, "{", &MAP.replace("cart", "basket")] {
            test.pass(Duration::from_mins(2));
            upload(&test.app, &test.key, &bundle_of(map, DEBUG_ID), &upload_to).await;
        }
        let padded = format!("{MAP}{}", " ".repeat(40 << 20));
        let map = |name: &str, id: &str| {
            let url = format!("~/{name}.js.map");
            json!({"type": "source_map", "url": url, "headers": {"debug-id": id}})
        };
        let other = DEBUG_ID.replace('d', "e");
        let files = json!({"files": {"a": map("a", DEBUG_ID), "b": map("b", &other)}});
        let content = [("a", padded.as_bytes()), ("b", padded.as_bytes())];
        let large = bundle(&files, &content);
        upload(&test.app, &test.key, &large, &upload_to).await;
        let limited = test
            .key_with(|key| ApiKeyRecord { projects: Some([test.project_id].into()), ..key })
            .await;
        for key in [&test.key, &limited] {
            let get = tool_call(key, Method::GET, "organizations/default/projects");
            send(&test, get, 200).await;
        }
        send(&test, test.call(&list_source_maps::OPERATION), 200).await;
        maintain(&test).await;
        for map in [&MAP.replace("cart", "box"), "{"] {
            let bundle = bundle_of(map, DEBUG_ID);
            put_chunks(&test.app, &test.key, &bundle).await;
            queue(&test.app, test.project_id, &bundle).await;
        }
        maintain(&test).await;
        let delete = test.call(&delete_source_maps::OPERATION);
        send(&test, delete.clone().query("debugId", DEBUG_ID), 204).await;
        upload(&test.app, &test.key, &bundle_of(MAP, DEBUG_ID), &upload_to).await;
        send(&test, delete.query("release", "shop@1"), 204).await;
        upload(&test.app, &test.key, &bundle_of(MAP, DEBUG_ID), &upload_to).await;
        test.pass(Duration::from_hours(181 * 24));
        maintain(&test).await;
    });
    assert_uses_all(&FUNCTIONS, scenario).await;
}
