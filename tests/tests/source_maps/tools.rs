//! The requests that Sentry's tools send beside uploads.

use serde_json::json;

use shared::http::Method;
use tests::app::{PROJECT, TestApp};
use tests::source_maps::tool_call;

use super::stored;

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

#[tokio::test]
async fn releases_become_known_once() {
    let test = TestApp::start().await;
    let send = |method, path: &str, body| tool_call(&test.key, method, path).json(&body);
    let organization = "organizations/default/releases";
    let body = json!({"version": "shop@1", "projects": [PROJECT]});
    for (method, path, body) in [
        (Method::POST, organization.to_owned(), body.clone()),
        (Method::POST, format!("projects/default/{PROJECT}/releases"), body),
        (
            Method::PUT,
            format!("{organization}/shop@1"),
            json!({"projects": [PROJECT], "dateReleased": "x"}),
        ),
        (Method::PUT, format!("{organization}/shop@1"), json!({"dateReleased": "x"})),
        (
            Method::POST,
            format!("{organization}/shop@1/deploys"),
            json!({"environment": "production"}),
        ),
    ] {
        let reply = send(method, &path, body).send(&test.app).await;
        assert_eq!(reply.status, 200, "{path}: {}", reply.body);
    }
    assert_eq!(stored(&test, "releases#").await, 1);
    for body in [json!({"projects": [PROJECT]}), json!({"version": "x".repeat(201)})] {
        assert_eq!(send(Method::POST, organization, body).send(&test.app).await.status, 400);
    }
    let unknown = json!({"version": "1", "projects": ["missing"]});
    assert_eq!(send(Method::POST, organization, unknown).send(&test.app).await.status, 404);
}
