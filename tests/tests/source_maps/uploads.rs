//! Uploads: valid, repeated, broken and foreign ones.

use serde_json::json;

use shared::dynamodb::item::{item_at, key, n};
use shared::projects::api_key::{ApiKeyRecord, Scope};
use source_maps::bundle::Checksum;
use tests::app::{PROJECT, TestApp};
use tests::source_maps::{DEBUG_ID, MAP, assemble, bundle, bundle_of};

use super::{TABLE, deliver, errors, events_of, listed, stored, upload};

#[tokio::test]
async fn missing_chunks_are_named_until_they_are_there() {
    let test = TestApp::start().await;
    let bundle = bundle_of(MAP, DEBUG_ID);
    let projects = json!({"projects": [PROJECT], "version": "shop@1", "dist": "7"});
    let first = assemble(&test.app, &test.key, &bundle, &projects).await;
    assert_eq!(first.body["state"], "not_found");
    assert_eq!(first.body["missingChunks"].as_array().unwrap().len(), 1);
    let uploaded = tests::source_maps::upload(&test.app, &test.key, &bundle, &projects).await;
    assert_eq!(uploaded.body, json!({"state": "ok", "missingChunks": []}));
    let again = assemble(&test.app, &test.key, &bundle, &projects).await;
    assert_eq!(again.body["state"], "ok");
    let listed = listed(&test).await;
    let map = &listed["items"][0];
    assert_eq!(map["debugId"], DEBUG_ID);
    assert_eq!((&map["release"], &map["dist"]), (&json!("shop@1"), &json!("7")));
    assert_eq!((&map["url"], &map["size"]), (&json!("~/app.js"), &json!(MAP.len())));
    assert_eq!(listed["failures"], json!([]));
    assert_eq!(stored(&test, "piece#").await, 1);
}

#[tokio::test]
async fn broken_bundles_leave_nothing_but_their_reason() {
    let test = TestApp::start().await;
    let of = |map: &str| bundle_of(map, DEBUG_ID);
    let files = [("a", MAP.as_bytes()), ("b", MAP.as_bytes())];
    let map =
        |url: &str| json!({"type": "source_map", "url": url, "headers": {"debug-id": DEBUG_ID}});
    let script = json!({"type": "minified_source", "url": "~/a.js",
        "headers": {"debug-id": DEBUG_ID, "sourcemap": "a.js.map"}});
    let many = format!(
        r#"{{"version":3,"sources":[],"names":[],"mappings":"{}"}}"#,
        "A,".repeat(4_000_001)
    );
    for (bytes, part) in [
        (of(MAP)[..200].to_vec(), "archive cannot be read"),
        (of(r#"{"version":3,"mapp"#), "~/app.js: the map is not valid JSON: EOF"),
        (of(r#"{"version":2,"sources":[],"names":[],"mappings":""}"#), "version 2"),
        (of(&many), "4000001 mappings, but the limit is 4000000"),
        (
            bundle(&json!({"files": {"../a": map("~/a.js.map")}}), &files),
            "not a file of the bundle",
        ),
        (
            bundle(&json!({"files": {"a": map("~/a.js.map"), "b": map("~/b.js.map")}}), &files),
            "have the same debug ID",
        ),
        (
            bundle(
                &json!({"files": {"a": script, "b": {"type": "minified_source", "url": "~/a.js.map"}}}),
                &files,
            ),
            "~/a.js.map: the file is not a source map",
        ),
    ] {
        let reply = upload(&test, &bytes).await;
        let detail = reply.body["detail"].as_str().unwrap();
        assert!(detail.contains(part), "{part}: {}", reply.body);
        assert!(reply.status == 413 || reply.body["state"] == "error", "{}", reply.body);
        let listed = listed(&test).await;
        assert_eq!(listed["items"], json!([]));
        assert_eq!(listed["failures"][0]["detail"], detail);
        test.pass(std::time::Duration::from_secs(1));
    }
    assert_eq!(stored(&test, "piece#").await + stored(&test, "map#").await, 0);
    // The debug ID of a rejected bundle explains unresolved frames.
    deliver(&test, tests::source_maps::event(1, Some(DEBUG_ID), "", &[12], "t")).await;
    let events = events_of(&test, &errors(&test).await[0]).await;
    assert_eq!(events[0]["mapStatus"], "failed");
    // A corrected bundle is accepted immediately.
    assert_eq!(upload(&test, &of(MAP)).await.body["state"], "ok");
}

#[tokio::test]
async fn valid_maps_beside_a_broken_one_are_not_stored() {
    let test = TestApp::start().await;
    let other = DEBUG_ID.replace('d', "e");
    let map = |url: &str, id: &str| json!({"type": "source_map", "url": url, "headers": {"debug-id": id}});
    let files = json!({"a": map("~/a.js.map", DEBUG_ID), "b": map("~/b.js.map", &other)});
    let bundle_with = |second: &str| {
        bundle(&json!({ "files": files }), &[("a", MAP.as_bytes()), ("b", second.as_bytes())])
    };
    let reply = upload(&test, &bundle_with(&MAP.replace("AAIAA", "A*"))).await;
    let detail = reply.body["detail"].as_str().unwrap();
    assert!(detail.starts_with("~/b.js.map: the map cannot be read"), "{}", reply.body);
    assert_eq!(listed(&test).await["items"], json!([]));
    for start in ["piece#", "map#", "due"] {
        assert_eq!(stored(&test, start).await, 0, "{start}");
    }
    // The failure explains frames of each of its maps.
    deliver(&test, tests::source_maps::event(1, Some(&other), "", &[12], "t")).await;
    let events = events_of(&test, &errors(&test).await[0]).await;
    assert_eq!(events[0]["mapStatus"], "failed");
    assert_eq!(upload(&test, &bundle_with(MAP)).await.body["state"], "ok");
    assert_eq!(listed(&test).await["items"].as_array().unwrap().len(), 2);
}

#[tokio::test]
async fn full_projects_get_no_maps_until_some_are_deleted() {
    let test = TestApp::start().await;
    let bundle = bundle_of(MAP, DEBUG_ID);
    let listing = key(&format!("maps#{}", test.project_id), "0");
    let full = item_at(listing.clone(), [("storedBytes", n(20_i64 << 30))]);
    test.app.store.put_over(TABLE, full).await.unwrap();
    // The other project has capacity, but the bundle is for both or none.
    test.other_project().await;
    let both = json!({"projects": ["other", PROJECT]});
    let reply = tests::source_maps::upload(&test.app, &test.key, &bundle, &both).await;
    assert_eq!(reply.status, 409, "{}", reply.body);
    assert_eq!(stored(&test, "piece#").await + stored(&test, "map#").await, 0);
    test.pass(std::time::Duration::from_secs(16));
    let reply = upload(&test, &bundle).await;
    assert_eq!((reply.status, &reply.body["state"]), (409, &json!(null)), "{}", reply.body);
    assert!(reply.body["detail"].as_str().unwrap().contains("delete source maps of old releases"));
    assert_eq!(stored(&test, "piece#").await + stored(&test, "map#").await, 0);
    test.app.store.delete_all(TABLE, vec![listing]).await.unwrap();
    test.pass(std::time::Duration::from_secs(16));
    assert_eq!(upload(&test, &bundle).await.body["state"], "ok");
}

#[tokio::test]
async fn corrupted_chunks_are_rejected() {
    let test = TestApp::start().await;
    let call = tests::source_maps::tool_call(
        &test.key,
        shared::http::Method::POST,
        "organizations/default/chunk-upload",
    );
    let part = |name: &str, content: &str| {
        format!(
            "--b\r\ncontent-disposition: form-data; name=\"file\"; filename=\"{name}\"\r\n\r\n{content}\r\n--b--"
        )
    };
    let name = Checksum::of(b"x").to_string();
    let many = part(&name, "x").replace("--b--", "").repeat(17) + "--b--";
    for (content_type, body, status) in [
        ("multipart/form-data; boundary=b", many, 400),
        ("multipart/form-data; boundary=b", part(&"0".repeat(40), "x"), 400),
        ("multipart/form-data; boundary=b", part("x", "x"), 400),
        ("multipart/form-data; boundary=b", "--b\r\nx".to_owned(), 400),
        ("multipart/form-data", part("x", "x"), 415),
        ("multipart/form-data; boundary=b", part("x", &"x".repeat(5_000_000)), 413),
    ] {
        let reply =
            call.clone().header("content-type", content_type).bytes(body).send(&test.app).await;
        assert_eq!(reply.status, status, "{}", reply.body);
        assert!(reply.body["detail"].is_string());
    }
    assert_eq!(stored(&test, "chunk#").await, 0);
}

#[tokio::test]
async fn other_organizations_and_projects_are_unknown() {
    let test = TestApp::start().await;
    let bundle = bundle_of(MAP, DEBUG_ID);
    for projects in [json!({"projects": ["missing"]}), json!({"projects": [PROJECT, "missing"]})] {
        let reply = tests::source_maps::upload(&test.app, &test.key, &bundle, &projects).await;
        assert_eq!(reply.status, 404);
        assert!(reply.body["detail"].as_str().unwrap().contains("missing"));
    }
    let path = "organizations/other/chunk-upload";
    let call = tests::source_maps::tool_call(&test.key, shared::http::Method::GET, path);
    assert_eq!(call.send(&test.app).await.status, 404);
    let key =
        test.key_with(|key| ApiKeyRecord { scopes: [Scope::ErrorsWrite].into(), ..key }).await;
    let reply = assemble(&test.app, &key, &bundle, &json!({"projects": [PROJECT]})).await;
    assert_eq!(reply.status, 403);
    assert!(reply.body["detail"].as_str().unwrap().contains("source-maps:write"));
    assert_eq!(stored(&test, "map").await, 0);
}
