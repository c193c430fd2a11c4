//! The requests that Sentry's tools send beside uploads.

use std::time::Duration;

use serde_json::{Value, json};

use shared::http::Method;
use tests::app::{PROJECT, TestApp};
use tests::call::Reply;
use tests::source_maps::{DEBUG_ID, MAP, bundle_of, tool_call};

use super::deliver;

#[tokio::test]
async fn tools_get_what_they_expect() {
    let test = TestApp::start().await;
    let get = |path: &str| tool_call(&test.key, Method::GET, path);
    let host = get("organizations/default/chunk-upload").header("host", "shop.example.com");
    let options = host.send(&test.app).await;
    assert_eq!(options.status, 200);
    assert_eq!(options.body["hashAlgorithm"], "sha1");
    for part in ["release_files", "artifact_bundles_v2"] {
        assert!(options.body["accept"].as_array().unwrap().contains(&json!(part)));
    }
    assert!(options.body["maxRequestSize"].as_u64().unwrap() <= 4_718_592);
    for (path, body) in [
        ("auth", json!({})),
        ("organizations/default/repos", json!([])),
        ("organizations/default/releases/shop@1/previous-with-commits", json!({})),
    ] {
        assert_eq!(get(path).send(&test.app).await.body, body, "{path}");
    }
    assert_eq!(get("organizations/default").send(&test.app).await.body["slug"], "default");
    assert_eq!(get("organizations").send(&test.app).await.body[0]["slug"], "default");
    let projects = get("organizations/default/projects").send(&test.app).await;
    assert_eq!(projects.body[0]["slug"], PROJECT);
    for path in ["x", "organizations/default/x", "projects/default/shop/x"] {
        let reply = get(path).send(&test.app).await;
        assert_eq!((reply.status, reply.body["detail"].is_string()), (404, true), "{path}");
    }
}

const RELEASES: &str = "organizations/default/releases";

async fn post(test: &TestApp, path: &str, body: &Value) -> Reply {
    tool_call(&test.key, Method::POST, path).json(body).send(&test.app).await
}

async fn create(test: &TestApp, release: &str) -> Reply {
    post(test, RELEASES, &json!({"version": release, "projects": [PROJECT]})).await
}

/// Adds a collection of releases, and returns its ID.
async fn collect(test: &TestApp) -> String {
    let body = json!({"name": "Releases", "source": "releases"});
    let create = test.call(&create_event_marker_collection::OPERATION).json(&body);
    create.send(&test.app).await.body["id"].as_str().unwrap().to_owned()
}

async fn marked(test: &TestApp, collection: &str) -> Vec<Value> {
    let list = test.call(&list_event_markers::OPERATION).parameter("collectionId", collection);
    list.send(&test.app).await.body["items"].as_array().unwrap().clone()
}

fn names(items: &[Value]) -> Vec<&str> {
    items.iter().map(|it| it["name"].as_str().unwrap()).collect()
}

#[tokio::test]
async fn releases_become_known_once() {
    let test = TestApp::start().await;
    let collection = collect(&test).await;
    let send = |method, path: &str, body: &Value| tool_call(&test.key, method, path).json(body);
    let body = json!({"version": "shop@1", "projects": [PROJECT]});
    for (method, path, body) in [
        (Method::POST, RELEASES.to_owned(), body.clone()),
        (Method::POST, format!("projects/default/{PROJECT}/releases"), body),
        (
            Method::PUT,
            format!("{RELEASES}/shop@1"),
            json!({"projects": [PROJECT], "dateReleased": "x"}),
        ),
        (Method::PUT, format!("{RELEASES}/shop@1"), json!({"dateReleased": "x"})),
        (Method::PUT, format!("projects/default/{PROJECT}/releases/team/shop@2"), json!({})),
    ] {
        test.pass(Duration::from_secs(1));
        let reply = send(method, &path, &body).send(&test.app).await;
        assert_eq!(reply.status, 200, "{path}: {}", reply.body);
    }
    for body in [
        json!({"projects": [PROJECT]}),
        json!({"version": "x".repeat(201), "projects": [PROJECT]}),
        json!({"version": "1"}),
        json!({"version": "1", "projects": vec![PROJECT; 21]}),
    ] {
        assert_eq!(post(&test, RELEASES, &body).await.status, 400, "{body}");
    }
    let unknown = json!({"version": "1", "projects": [PROJECT, "missing"]});
    assert_eq!(post(&test, RELEASES, &unknown).await.status, 404);

    // An upload names a release too. The first event of a known release changes nothing.
    test.pass(Duration::from_secs(1));
    let upload = json!({"projects": [PROJECT], "version": "shop@3"});
    let bundle = bundle_of(MAP, DEBUG_ID);
    tests::source_maps::upload(&test.app, &test.key, &bundle, &upload).await;
    deliver(&test, tests::source_maps::event(1, None, "shop@1", &[1], "t")).await;

    test.pass(Duration::from_secs(1));
    let known = ["shop@1", "team/shop@2", "shop@3"];
    let markers = marked(&test, &collection).await;
    assert_eq!(names(&markers), known);
    let activity = test.call(&get_project_activity::OPERATION).send(&test.app).await.body;
    let items = activity["items"].as_array().unwrap();
    let mut listed = names(items);
    listed.reverse();
    assert_eq!(listed, known);
    let seen = items.last().unwrap()["at"].clone();
    assert_eq!((&seen, &seen), (&json!("2026-11-21T04:16:01.000Z"), &markers[0]["occurredAt"]));
}

#[tokio::test]
async fn deploys_become_markers_once() {
    let test = TestApp::start().await;
    let collection = collect(&test).await;
    let deploys = format!("{RELEASES}/shop@1/deploys");
    let dated = json!({"environment": "production", "name": "blue", "url": "https://ci/7",
        "dateStarted": "2026-11-20T00:00:00Z", "dateFinished": "2026-11-20T00:00:05.123456Z"});
    let unknown = post(&test, &deploys, &dated).await;
    assert_eq!((unknown.status, unknown.body["detail"].is_string()), (404, true));
    create(&test, "shop@1").await;
    for body in [&dated, &json!({"environment": "staging"})] {
        let first = post(&test, &deploys, body).await;
        assert_eq!(first.status, 200, "{}", first.body);
        // The tool lost the response, and an hour later a person repeats the command.
        test.pass(Duration::from_hours(1));
        assert_eq!(post(&test, &deploys, body).await.body["id"], first.body["id"]);
    }
    let named = json!({"environment": "production", "projects": [PROJECT]});
    assert_eq!(post(&test, &deploys, &named).await.status, 200);

    let markers = marked(&test, &collection).await;
    let production = "shop@1 deployed to production";
    let expected = [production, "shop@1", "shop@1 deployed to staging", production];
    assert_eq!(names(&markers), expected);
    assert_eq!(markers[0]["occurredAt"], "2026-11-20T00:00:05.123Z");
    assert_eq!(markers[2]["occurredAt"], "2026-11-21T05:16:00.000Z");
    assert_eq!(markers[0]["description"], "blue");
    let attributes =
        json!({"release": "shop@1", "environment": "production", "url": "https://ci/7"});
    assert_eq!(markers[0]["attributes"], attributes);

    for (body, status) in [
        (json!({}), 400),
        (json!({"environment": "x".repeat(201)}), 400),
        (json!({"environment": "a\nb"}), 400),
        (json!({"environment": "e", "name": "x".repeat(201)}), 400),
        (json!({"environment": "e", "url": "x".repeat(1_001)}), 400),
        (json!({"environment": "e", "dateFinished": "yesterday"}), 400),
        (json!({"environment": "e", "projects": ["missing"]}), 404),
    ] {
        let reply = post(&test, &deploys, &body).await;
        assert_eq!((reply.status, reply.body["detail"].is_string()), (status, true), "{body}");
    }
    assert_eq!(marked(&test, &collection).await.len(), expected.len());
}

#[tokio::test]
async fn a_key_registers_100_releases_and_deploys_a_day() {
    let test = TestApp::start().await;
    let collection = collect(&test).await;
    for number in 0..101 {
        let expected = if number < 100 { 200 } else { 409 };
        assert_eq!(create(&test, &format!("r{number}")).await.status, expected);
        let body = json!({"environment": format!("e{number}")});
        let reply = post(&test, &format!("{RELEASES}/r0/deploys"), &body).await;
        assert_eq!(reply.status, expected, "{}", reply.body);
    }
    // Known releases and the releases of events do not count.
    assert_eq!(create(&test, "r0").await.status, 200);
    deliver(&test, tests::source_maps::event(1, None, "r100", &[1], "t")).await;
    let found = test.call(&get_event_marker_collection::OPERATION);
    let found = found.parameter("collectionId", collection.as_str()).send(&test.app).await;
    assert_eq!(found.body["eventCount"], 201);
    test.pass(Duration::from_hours(24));
    assert_eq!(create(&test, "r101").await.status, 200);
}
