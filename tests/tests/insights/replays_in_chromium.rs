//! Scripted sessions with the official SDK in Chromium: their pain points are those of the labels.

#![allow(clippy::print_stdout)]

use std::collections::BTreeSet;
use std::net::Ipv4Addr;
use std::process::Stdio;
use std::sync::{Arc, Mutex};

use axum::Router;
use axum::body::Bytes;
use axum::extract::State;
use axum::http::{HeaderMap, Method, StatusCode};
use rand::SeedableRng;
use rand::rngs::ChaCha8Rng;
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio::process::Command;

use shared::app::{App, Clock};
use shared::projects::project::Project;
use tests::{browser, seed, workspace};

use super::replays::{Shop, delivery, titles};

/// Number of sessions: one of each script. `REPLAY_SESSIONS=200` runs more.
const SESSIONS: &str = "20";

/// The function behind HTTP.
struct Ingestion {
    app: App,
    project: Project,
    /// The bodies of deliveries that can be repeated.
    bodies: Mutex<Vec<Vec<u8>>>,
}

async fn ingest(
    State(ingestion): State<Arc<Ingestion>>,
    method: Method,
    headers: HeaderMap,
    body: Bytes,
) -> (StatusCode, [(&'static str, &'static str); 2], String) {
    let cors = [("access-control-allow-origin", "*"), ("access-control-allow-headers", "*")];
    if method != Method::POST {
        return (StatusCode::NO_CONTENT, cors, String::new());
    }
    let user_agent = headers["user-agent"].to_str().unwrap();
    let sent = delivery(&ingestion.project, body.to_vec()).header("user-agent", user_agent);
    let reply = sent.send(&ingestion.app).await;
    if [200, 503].contains(&reply.status) {
        ingestion.bodies.lock().unwrap().push(body.to_vec());
    }
    (StatusCode::from_u16(reply.status).unwrap(), cors, reply.body.to_string())
}

/// A pain point as a label: replay, kind, element, route, and whether an error followed.
type Label = (String, String, String, String, bool);

#[tokio::test(flavor = "multi_thread")]
async fn scripted_sessions_have_exactly_their_pain_points() {
    let shop = Shop::start().await;
    let app = shop.test.app_at(Clock::System);
    let bodies = Mutex::default();
    let ingestion = Arc::new(Ingestion { app, project: shop.project.clone(), bodies });
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
    let address = listener.local_addr().unwrap();
    let router = Router::new().fallback(ingest).with_state(Arc::clone(&ingestion));
    tokio::spawn(async move { axum::serve(listener, router).await.unwrap() });

    let chromium = browser();
    let sessions = std::env::var("REPLAY_SESSIONS").unwrap_or_else(|_| SESSIONS.to_owned());
    let (key, number) = (shop.project.public_key, shop.project.ingest_id);
    let output = Command::new("node")
        .args(["replays.mjs", &chromium, &sessions])
        .env("SENTRY_DSN", format!("http://{key}@{address}/{number}"))
        .current_dir(workspace().join("tests/sdks/browser"))
        .stderr(Stdio::inherit())
        .kill_on_drop(true)
        .output()
        .await
        .unwrap();
    let visited: Vec<Value> = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(visited.len().to_string(), sessions);
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let mut expected = BTreeSet::new();
    for session in &visited {
        assert_eq!(session["left"], true, "{session}");
        for label in session["labels"].as_array().unwrap() {
            expected.insert((
                text(&session["replay"]).replace('-', ""),
                text(&label["kind"]),
                text(&label["element"]),
                text(&label["route"]),
                label["hasError"] == true,
            ));
        }
    }

    let mut found: BTreeSet<Label> = BTreeSet::new();
    let mut points = 0;
    for insight in shop.insights().await {
        for point in shop.pain_points(insight["id"].as_str().unwrap()).await {
            let evidence = &point["evidence"];
            points += 1;
            found.insert((
                text(&point["sessionId"]),
                text(&evidence["kind"]),
                text(&evidence["element"]),
                text(&evidence["route"]),
                evidence["errorId"].is_string(),
            ));
            assert_eq!(evidence["browser"], "Chrome 140.0.0.0");
        }
    }
    println!("{sessions} sessions, {points} pain points");
    let missing: Vec<_> = expected.difference(&found).collect();
    let wrong: Vec<_> = found.difference(&expected).collect();
    let names = json!(visited.iter().map(|it| [&it["name"], &it["replay"]]).collect::<Vec<_>>());
    assert!(missing.is_empty() && wrong.is_empty(), "{missing:?} {wrong:?} {names}");

    // The same deliveries twice, in random order and often killed.
    let bodies = ingestion.bodies.lock().unwrap().clone();
    let mut random = ChaCha8Rng::seed_from_u64(seed());
    let repeated = shop.redeliver(&ingestion.app, &bodies, &mut random).await;
    assert_eq!(titles(&repeated), titles(&shop.insights().await));
}
