//! Frames: resolved before grouping, and when they are read.

use std::time::Duration;

use serde_json::{Value, json};

use shared::dynamodb::item::item;
use source_maps::MapKey;
use source_maps::event::MinifiedFrame;
use source_maps::store::{ProjectMaps, Resolver, SourceMapCache};
use tests::app::{PROJECT, TestApp};
use tests::source_maps::{DEBUG_ID, MAP, bundle, bundle_of, event};

use super::{TABLE, deliver, errors, events_of, frames, listed, upload};

/// Time after which a map takes effect in warm functions.
const EFFECT: Duration = Duration::from_secs(16);

fn assert_resolved(frames: &[Value]) {
    let [outer, inner] = frames else { panic!("{frames:?}") };
    assert_eq!(outer["filename"], "src/cart.js");
    assert_eq!((&outer["lineno"], &outer["colno"]), (&json!(6), &json!(10)));
    assert_eq!(outer["contextLine"], "  return total(cart.items);");
    assert_eq!(outer["preContext"].as_array().unwrap().len(), 5);
    assert_eq!(outer["postContext"], json!(["}", ""]));
    assert_eq!(outer.get("function"), None);
    assert_eq!(inner["function"], "total");
    assert_eq!(inner["lineno"], 5);
    let minified = json!({"filename": "https://shop.example.com/app.js", "lineno": 1, "colno": 1, "function": "t"});
    assert_eq!(inner["minified"], minified);
    assert_eq!(inner["in_app"], true);
}

#[tokio::test]
async fn frames_are_resolved_before_grouping() {
    let test = TestApp::start().await;
    assert_eq!(upload(&test, &bundle_of(MAP, DEBUG_ID)).await.body["state"], "ok");
    deliver(&test, event(1, Some(DEBUG_ID), "", &[11, 1], "t")).await;
    // The next build has other names and another debug ID.
    let other = DEBUG_ID.replace('d', "e");
    assert_eq!(upload(&test, &bundle_of(MAP, &other)).await.body["state"], "ok");
    deliver(&test, event(2, Some(&other), "", &[11, 1], "n")).await;
    let errors = errors(&test).await;
    assert_eq!(errors.len(), 1, "two builds of the same code are one error");
    assert_eq!(errors[0]["count"], 2);
    let events = events_of(&test, &errors[0]).await;
    assert_eq!(events[0]["mapStatus"], Value::Null);
    assert_resolved(&frames(&events[1]));
}

#[tokio::test]
async fn scopes_name_functions() {
    let test = TestApp::start().await;
    let scopes = r#""names":["checkout","total"],"scopes":"BAAA,BFBQC,CCB,BFBAD,CCB,CBA""#;
    let map = MAP.replace(r#""names":["checkout"]"#, scopes);
    assert_eq!(upload(&test, &bundle_of(&map, DEBUG_ID)).await.body["state"], "ok");
    deliver(&test, event(1, Some(DEBUG_ID), "", &[11, 1], "t")).await;
    let events = events_of(&test, &errors(&test).await[0]).await;
    // Without scopes, the outer frame has no name, and the inner one that of the call.
    let names = frames(&events[0]).iter().map(|it| it["function"].clone()).collect::<Vec<_>>();
    assert_eq!(names, ["checkout", "checkout"]);
}

#[tokio::test]
async fn earlier_events_are_resolved_when_read() {
    let test = TestApp::start().await;
    deliver(&test, event(1, Some(DEBUG_ID), "", &[11, 1], "t")).await;
    let before = errors(&test).await;
    let events = events_of(&test, &before[0]).await;
    assert_eq!(events[0]["mapStatus"], "missing");
    assert_eq!(frames(&events[0])[0].get("minified"), None);
    upload(&test, &bundle_of(MAP, DEBUG_ID)).await;
    test.pass(EFFECT);
    let events = events_of(&test, &before[0]).await;
    assert_eq!(events[0]["mapStatus"], Value::Null);
    assert_resolved(&frames(&events[0]));
    // The event keeps its error; later events can form a new error.
    deliver(&test, event(2, Some(DEBUG_ID), "", &[11, 1], "t")).await;
    assert_eq!(errors(&test).await.len(), 2);
}

#[tokio::test]
async fn scripts_without_debug_ids_are_found_by_release_and_url() {
    let test = TestApp::start().await;
    let manifest = json!({"files": {
        "a": {"type": "minified_source", "url": "~/app.js", "headers": {"sourcemap": "app.js.map"}},
        "b": {"type": "source_map", "url": "~/app.js.map"},
    }});
    let bundle = bundle(&manifest, &[("a", b"x"), ("b", MAP.as_bytes())]);
    let release = json!({"projects": [PROJECT], "version": "shop@1"});
    let reply = tests::source_maps::upload(&test.app, &test.key, &bundle, &release).await;
    assert_eq!(reply.body["state"], "ok", "{}", reply.body);
    deliver(&test, event(1, None, "shop@1", &[11, 1], "t")).await;
    deliver(&test, event(2, None, "shop@2", &[11, 1], "t")).await;
    let errors = errors(&test).await;
    assert_eq!(errors.len(), 2);
    let mut statuses = Vec::new();
    for error in &errors {
        let event = &events_of(&test, error).await[0];
        statuses.push((event["event"]["release"].clone(), event["mapStatus"].clone()));
    }
    statuses.sort_by_key(|(release, _)| release.to_string());
    assert_eq!(statuses, [(json!("shop@1"), Value::Null), (json!("shop@2"), json!("missing"))]);
}

#[tokio::test]
async fn maps_of_other_projects_resolve_nothing() {
    let test = TestApp::start().await;
    test.other_project().await;
    let other = json!({"projects": ["other"]});
    tests::source_maps::upload(&test.app, &test.key, &bundle_of(MAP, DEBUG_ID), &other).await;
    deliver(&test, event(1, Some(DEBUG_ID), "", &[11, 1], "t")).await;
    let events = events_of(&test, &errors(&test).await[0]).await;
    assert_eq!(events[0]["mapStatus"], "missing");
    assert_eq!(listed(&test).await["items"], json!([]));
}

#[tokio::test]
async fn only_parsed_tables_are_cached() {
    let test = TestApp::start().await;
    upload(&test, &bundle_of(MAP, DEBUG_ID)).await;
    let key = MapKey::of_debug_id(DEBUG_ID).unwrap();
    let frames = [MinifiedFrame { exception: 0, frame: 0, key, line: 0, column: 10 }];
    let maps = ProjectMaps::new(&test.app.store, test.project_id);
    let resolves = async |cache: &SourceMapCache| {
        let resolver = Resolver::new(maps, cache, test.app.clock.now());
        !resolver.resolve(&frames).await.unwrap().frames.is_empty()
    };
    let cache = SourceMapCache::default();
    assert!(resolves(&cache).await);
    let mut pieces = test.items(TABLE).await;
    pieces.retain(|item| item["pk"].as_s().unwrap().starts_with("piece#"));
    let keys = pieces.iter().map(|it| item(["pk", "sk"].map(|name| (name, it[name].clone()))));
    test.app.store.delete_all(TABLE, keys.collect()).await.unwrap();
    assert!(resolves(&cache).await);
    // The store's cache of unchanging items is for columns of errors.
    assert!(!resolves(&SourceMapCache::default()).await);
}

#[tokio::test]
async fn newer_map_of_a_debug_id_counts() {
    let test = TestApp::start().await;
    upload(&test, &bundle_of(MAP, DEBUG_ID)).await;
    deliver(&test, event(1, Some(DEBUG_ID), "", &[11], "t")).await;
    let newer = bundle_of(&MAP.replace("cart.js", "basket.js"), DEBUG_ID);
    assert_eq!(upload(&test, &newer).await.body["state"], "ok");
    assert_eq!(listed(&test).await["items"].as_array().unwrap().len(), 1);
    test.pass(EFFECT);
    deliver(&test, event(2, Some(DEBUG_ID), "", &[11], "t")).await;
    let mut files = Vec::new();
    for error in errors(&test).await {
        files.push(frames(&events_of(&test, &error).await[0])[0]["filename"].clone());
    }
    files.sort_by_key(ToString::to_string);
    assert_eq!(files, ["src/basket.js", "src/cart.js"]);
    // The replaced bundle is assembled again.
    assert_eq!(upload(&test, &bundle_of(MAP, DEBUG_ID)).await.body["state"], "ok");
    test.pass(EFFECT);
    deliver(&test, event(3, Some(DEBUG_ID), "", &[11], "t")).await;
    assert_eq!(errors(&test).await.iter().map(|it| it["count"].as_u64().unwrap()).max(), Some(2));
}
