//! Deletion, expiry, crashes and erasure.

use std::time::Duration;

use serde_json::json;

use shared::dynamodb::Sweep;
use source_maps::store::ProjectMaps;
use tests::app::{PROJECT, TestApp};
use tests::source_maps::{DEBUG_ID, MAP, bundle_of, event, put_chunks, queue};

use super::{MINUTE, TABLE, deliver, errors, events_of, listed, maintain, stored, upload};

const DAY: Duration = Duration::from_hours(24);

#[tokio::test]
async fn deleted_maps_can_be_uploaded_again() {
    let test = TestApp::start().await;
    let bundle = bundle_of(MAP, DEBUG_ID);
    upload(&test, &bundle).await;
    let delete = || test.call(&delete_source_maps::OPERATION);
    assert_eq!(delete().send(&test.app).await.status, 400);
    assert_eq!(delete().query("debugId", "x").send(&test.app).await.status, 400);
    assert_eq!(delete().query("release", "shop@1").send(&test.app).await.status, 204);
    assert_eq!(listed(&test).await["items"].as_array().unwrap().len(), 1);
    for _ in 0..2 {
        assert_eq!(delete().query("debugId", DEBUG_ID).send(&test.app).await.status, 204);
    }
    assert_eq!(listed(&test).await["items"], json!([]));
    maintain(&test).await;
    assert_eq!(stored(&test, "piece#").await, 0);
    deliver(&test, event(1, Some(DEBUG_ID), "", &[11], "t")).await;
    assert_eq!(events_of(&test, &errors(&test).await[0]).await[0]["mapStatus"], "missing");
    // The chunks are still there, but the bundle does not count as assembled.
    let upload = json!({"projects": [PROJECT], "version": "shop@1"});
    let reply = tests::source_maps::assemble(&test.app, &test.key, &bundle, &upload).await;
    assert_eq!(reply.body["state"], "ok");
    assert_eq!(delete().query("release", "shop@1").send(&test.app).await.status, 204);
    assert_eq!(listed(&test).await["items"], json!([]));
}

#[tokio::test]
async fn used_maps_outlive_unused_ones() {
    let test = TestApp::start().await;
    let other = DEBUG_ID.replace('d', "e");
    upload(&test, &bundle_of(MAP, DEBUG_ID)).await;
    upload(&test, &bundle_of(MAP, &other)).await;
    test.pass(DAY * 100);
    deliver(&test, event(1, Some(DEBUG_ID), "", &[11], "t")).await;
    let used = listed(&test).await["items"].clone();
    let used = used.as_array().unwrap().iter().find(|it| it["debugId"] == DEBUG_ID).unwrap();
    assert_ne!(used["lastUsedAt"], used["createdAt"]);
    test.pass(DAY * 81);
    maintain(&test).await;
    let left = listed(&test).await["items"].clone();
    assert_eq!(left.as_array().unwrap().len(), 1);
    assert_eq!(left[0]["debugId"], DEBUG_ID);
    assert_eq!(stored(&test, "piece#").await, 1);
    test.pass(DAY * 100);
    maintain(&test).await;
    assert_eq!(listed(&test).await["items"], json!([]));
    for start in ["piece#", "map#", "due", "bundles#"] {
        assert_eq!(stored(&test, start).await, 0, "{start}");
    }
}

#[tokio::test]
async fn queued_bundles_are_assembled_by_the_job() {
    let test = TestApp::start().await;
    let text = "x".repeat(40_000_000);
    let map = |id: char| {
        let json = json!({"version": 3, "sources": ["a.js"], "sourcesContent": [text], "names": [],
            "mappings": "AAAA"});
        (DEBUG_ID.replace('d', &id.to_string()), json.to_string())
    };
    let maps = [map('1'), map('2')];
    let files: serde_json::Map<String, serde_json::Value> = maps.iter().enumerate().map(|(number, (id, _))| {
        let file = json!({"type": "source_map", "url": format!("~/{number}.js.map"), "headers": {"debug-id": id}});
        (format!("f{number}"), file)
    }).collect();
    let contents: Vec<(String, &[u8])> = maps
        .iter()
        .enumerate()
        .map(|(number, (_, map))| (format!("f{number}"), map.as_bytes()))
        .collect();
    let contents: Vec<(&str, &[u8])> =
        contents.iter().map(|(name, map)| (name.as_str(), *map)).collect();
    let bundle = tests::source_maps::bundle(&json!({ "files": files }), &contents);
    let projects = json!({"projects": [PROJECT]});
    let first = upload(&test, &bundle).await;
    assert_eq!(first.body["state"], "created", "{}", first.body);
    let again = tests::source_maps::assemble(&test.app, &test.key, &bundle, &projects).await;
    assert_eq!(again.body["state"], "created");
    assert_eq!(listed(&test).await["items"], json!([]));
    maintain(&test).await;
    assert_eq!(listed(&test).await["items"].as_array().unwrap().len(), 2);
    let again = tests::source_maps::assemble(&test.app, &test.key, &bundle, &projects).await;
    assert_eq!(again.body["state"], "ok");
    assert_eq!(stored(&test, "assembly-queue").await, 0);
}

#[tokio::test]
async fn failed_queued_bundles_can_be_uploaded_again() {
    let test = TestApp::start().await;
    let (broken, bundle) = (bundle_of("{", DEBUG_ID), bundle_of(MAP, DEBUG_ID));
    put_chunks(&test.app, &test.key, &broken).await;
    for queued in [&broken, &bundle] {
        queue(&test.app, test.project_id, queued).await;
        maintain(&test).await;
        test.pass(MINUTE);
    }
    let failures = listed(&test).await["failures"].clone();
    let details: Vec<_> = failures.as_array().unwrap().iter().map(|it| &it["detail"]).collect();
    let [newest, oldest] = details.as_slice() else { panic!("{failures}") };
    assert_eq!(**newest, "chunks of the bundle have expired; upload it again");
    assert!(oldest.as_str().unwrap().starts_with("~/app.js: the map is not valid JSON"));
    for start in ["assembly-queue", "piece#", "map#", "due"] {
        assert_eq!(stored(&test, start).await, 0, "{start}");
    }
    assert_eq!(upload(&test, &bundle).await.body["state"], "ok");
}

#[tokio::test]
async fn erasure_removes_maps_and_chunks() {
    let test = TestApp::start().await;
    test.other_project().await;
    let both = json!({"projects": [PROJECT], "version": "shop@1"});
    tests::source_maps::upload(&test.app, &test.key, &bundle_of(MAP, DEBUG_ID), &both).await;
    upload(&test, &bundle_of("{", DEBUG_ID)).await;
    let other = json!({"projects": ["other"]});
    let kept = bundle_of(&MAP.replace("cart", "basket"), DEBUG_ID);
    tests::source_maps::upload(&test.app, &test.key, &kept, &other).await;
    test.pass(MINUTE);
    let store = ProjectMaps::new(&test.app.store, test.project_id);
    while store.erase_bundles().await.unwrap() != Sweep::default() {}
    while store.erase_maps().await.unwrap() != Sweep::default() {}
    let id = test.project_id.to_string();
    let left = test.items(TABLE).await;
    assert!(!left.iter().any(|item| format!("{item:?}").contains(&id)), "{left:?}");
    assert_eq!(stored(&test, "chunk#").await, 1, "the other project's chunk stays");
    assert_eq!(stored(&test, "piece#").await, 1);
    assert_eq!(put_chunks(&test.app, &test.key, &kept).await.status, 200);
}
