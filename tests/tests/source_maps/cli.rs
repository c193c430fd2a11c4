//! `sentry-cli`, unchanged, against the function behind HTTP.

use std::net::Ipv4Addr;
use std::path::Path;
use std::sync::Arc;

use axum::Router;
use axum::body::{self, Body};
use axum::extract::{Request, State};
use axum::response::Response;
use serde_json::json;
use tokio::net::TcpListener;
use tokio::process::Command;

use shared::app::{App, Clock};
use tests::app::{PROJECT, TestApp};
use tests::call::Call;
use tests::source_maps::{DEBUG_ID, MAP};

use super::{listed, stored};

const MAX_BODY_BYTES: usize = 6 << 20;

async fn respond(State(app): State<Arc<App>>, request: Request) -> Response {
    let path = request.uri().path().trim_start_matches("/api/0/").trim_matches('/');
    let call = Call::of(&upload_source_maps::OPERATION).method(request.method().clone());
    let mut call = call.parameter("path", path);
    for (name, value) in request.headers() {
        call = call.header(name.as_str(), value.to_str().unwrap());
    }
    let bytes = body::to_bytes(request.into_body(), MAX_BODY_BYTES).await.unwrap();
    let reply = call.bytes(bytes).base64().send(&app).await;
    let mut response = Response::builder().status(reply.status);
    for (name, value) in &reply.headers {
        response = response.header(name, value);
    }
    response.body(Body::from(reply.text)).unwrap()
}

/// The command with its environment.
struct Cli {
    url: String,
    key: String,
}

impl Cli {
    async fn start(test: &TestApp) -> Self {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
        let url = format!("http://{}/", listener.local_addr().unwrap());
        let app = Arc::new(test.app_at(Clock::System));
        let router = Router::new().fallback(respond).with_state(app);
        tokio::spawn(async move { axum::serve(listener, router).await.unwrap() });
        Self { url, key: test.key.clone() }
    }

    /// Runs a command in a folder. Returns whether it succeeded, and its output.
    async fn run(&self, folder: &Path, arguments: &str) -> (bool, String) {
        let script = "tests/sdks/bundlers/node_modules/@sentry/cli/bin/sentry-cli";
        let output = Command::new("node")
            .arg(tests::workspace().join(script))
            .args(arguments.split(' '))
            .current_dir(folder)
            .env("SENTRY_URL", &self.url)
            .env("SENTRY_AUTH_TOKEN", &self.key)
            .env("SENTRY_ORG", "default")
            .env("SENTRY_PROJECT", PROJECT)
            .kill_on_drop(true)
            .output()
            .await
            .unwrap();
        let text = [output.stdout, output.stderr].concat();
        (output.status.success(), String::from_utf8_lossy(&text).into_owned())
    }

    async fn succeed(&self, folder: &Path, arguments: &str) {
        let (is_success, output) = self.run(folder, arguments).await;
        assert!(is_success, "{arguments}: {output}");
    }
}

/// Writes a script and its map.
fn write(folder: &Path, name: &str, debug_id: Option<&str>, map: &str) {
    let id = debug_id.map(|id| format!("//# debugId={id}\n")).unwrap_or_default();
    let script = format!("function t(){{n()}}\n{id}//# sourceMappingURL={name}.js.map\n");
    std::fs::write(folder.join(format!("{name}.js")), script).unwrap();
    let map = match debug_id {
        Some(id) => map.replacen('{', &format!(r#"{{"debug_id":"{id}","#), 1),
        None => map.to_owned(),
    };
    std::fs::write(folder.join(format!("{name}.js.map")), map).unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn sentry_cli_notes_releases_and_deploys() {
    let test = TestApp::start().await;
    let body = json!({"name": "Releases", "source": "releases"});
    let create = test.call(&create_event_marker_collection::OPERATION).json(&body);
    let collection = create.send(&test.app).await.body["id"].as_str().unwrap().to_owned();
    let cli = Cli::start(&test).await;
    let folder = tempfile::tempdir().unwrap();
    let deploy = "deploys new --release shop@1 --env production --started 5 --finished 9";
    let (is_success, output) = cli.run(folder.path(), deploy).await;
    assert!(!is_success && output.contains("Release not found"), "{output}");
    for arguments in ["releases new shop@1", "releases finalize shop@1", deploy, deploy] {
        cli.succeed(folder.path(), arguments).await;
    }
    let list = test.call(&list_event_markers::OPERATION);
    let markers = list.parameter("collectionId", collection).send(&test.app).await.body;
    let names = markers["items"].as_array().unwrap().iter().map(|it| it["name"].as_str().unwrap());
    assert_eq!(names.collect::<Vec<_>>(), ["shop@1 deployed to production", "shop@1"]);
    assert_eq!(markers["items"][0]["occurredAt"], "1970-01-01T00:00:09.000Z");
}

#[tokio::test(flavor = "multi_thread")]
async fn sentry_cli_shows_why_bundles_are_rejected() {
    let test = TestApp::start().await;
    let cli = Cli::start(&test).await;
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let upload = "sourcemaps upload --wait --no-rewrite --release shop@1 .";
    let second = MAP.replace("\"version\":3", "\"version\":2");
    let mappings = "A,".repeat(10_000_000);
    let many = format!(r#"{{"version":3,"sources":[],"names":[],"mappings":"{mappings}"}}"#);
    let nested = r#"{"version":3,"sections":[{"offset":{"line":0,"column":0},"map":{"version":3,"sections":[]}}]}"#;
    for (name, id, map, part) in [
        (
            "app",
            Some(DEBUG_ID),
            &MAP[..60],
            "~/app.js.map: the file is not a source map: it is truncated",
        ),
        ("app", Some(DEBUG_ID), "no map", "~/app.js.map: the file is not a source map"),
        ("app", Some(DEBUG_ID), &second, "~/app.js: the map has version 2"),
        ("app", Some(DEBUG_ID), &many, "10000000 mappings, but the limit is 4000000"),
        ("app", Some(DEBUG_ID), nested, "~/app.js: a section of the map has sections itself"),
        ("other", Some(DEBUG_ID), MAP, "have the same debug ID"),
    ] {
        write(folder, "app", Some(DEBUG_ID), MAP);
        write(folder, name, id, map);
        let (is_success, output) = cli.run(folder, upload).await;
        assert!(!is_success && output.contains(part), "{part}: {output}");
        assert_eq!(stored(&test, "piece#").await + stored(&test, "map#").await, 0, "{part}");
    }
    // The fixed files are accepted immediately.
    write(folder, "other", None, MAP);
    cli.succeed(folder, "sourcemaps inject .").await;
    cli.succeed(folder, upload).await;
    let maps = listed(&test).await["items"].as_array().unwrap().clone();
    assert_eq!(maps.len(), 2, "{maps:?}");
    assert!(maps.iter().all(|it| it["release"] == "shop@1" && it["debugId"].is_string()));
}
