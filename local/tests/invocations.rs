//! Invocations of functions that end or never respond, and the invocations after them.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::net::Ipv4Addr;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use axum::Router;
use axum::extract::State;
use axum::routing::post;
use local::gateway::{Gateway, GatewayOptions};
use local::instance::{COMMAND, TIMEOUTS_VARIABLE};
use local::runtime_api::{Event, InvocationError, RuntimeApi};
use local::template::Schedule;
use local::watch::Watch;
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio::process::Command;
use tokio::sync::mpsc;

/// Accepts invocations, and responds to the first `responses` of them. Returns its address, and a
/// message for each accepted invocation.
async fn invocations(responses: usize) -> (String, mpsc::UnboundedReceiver<()>) {
    type Invocations = (mpsc::UnboundedSender<()>, Arc<AtomicUsize>);
    async fn accept(State((accepted, responses)): State<Invocations>) -> String {
        accepted.send(()).unwrap();
        let left = |responses: usize| responses.checked_sub(1);
        if responses.fetch_update(Ordering::Relaxed, Ordering::Relaxed, left).is_err() {
            std::future::pending::<()>().await;
        }
        json!({"statusCode": 204}).to_string()
    }
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let (sender, accepted) = mpsc::unbounded_channel();
    let path = "/2015-03-31/functions/{function}/invocations";
    let service = Router::new().route(path, post(accept));
    let service = service.with_state((sender, Arc::new(AtomicUsize::new(responses))));
    tokio::spawn(async move { axum::serve(listener, service).await });
    (url, accepted)
}

#[tokio::test]
async fn schedule_continues_after_a_run_without_response() {
    let (url, mut accepted) = invocations(0).await;
    let (every, timeout) = (Duration::from_millis(10), Duration::from_millis(50));
    let schedules = [Schedule { function: "sweep".to_owned(), every, timeout }];
    let runs = async {
        for _ in 0..3 {
            accepted.recv().await.unwrap();
        }
    };
    tokio::select! {
        () = runs => (),
        () = Watch::run_schedules(&url, &schedules, |_| ()) => unreachable!("schedules have no end"),
    }
}

#[tokio::test]
async fn gateway_returns_503_after_the_function_timeout() {
    let (functions, _accepted) = invocations(1).await;
    let workspace = tempfile::tempdir().unwrap();
    let template = "
Resources:
  GetThing:
    Properties:
      CodeUri: target/package/get-thing.zip
      Timeout: 1
  Api:
    Properties:
      DefinitionBody:
        paths:
          /thing:
            get:
              x-amazon-apigateway-integration:
                uri: !Sub arn:x/functions/${GetThing.Arn}/invocations
";
    std::fs::write(workspace.path().join("template.yaml"), template).unwrap();
    let listener = std::net::TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    let url = format!("http://{}/thing", listener.local_addr().unwrap());
    let patience = Duration::from_mins(10);
    let (report, mut served) = mpsc::unbounded_channel();
    let report = Box::new(move |it: &local::gateway::Served| report.send(it.clone()).unwrap());
    let options = GatewayOptions { workspace: workspace.path(), functions, patience, report };
    let _gateway = Gateway::start(listener, options).unwrap();

    assert_eq!(reqwest::get(&url).await.unwrap().status(), 204);
    served.recv().await.unwrap();
    let response = reqwest::get(&url).await.unwrap();
    assert_eq!(response.status(), 503);
    let problem = served.recv().await.unwrap().problem.unwrap();
    assert!(problem.contains("get-thing did not respond within 1 seconds"), "{problem}");
}

#[tokio::test]
async fn ended_and_hung_processes_are_replaced() {
    let upstream = RuntimeApi::start().await.unwrap();
    let program = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fake_function.py");
    let _runner = Command::new(env!("CARGO_BIN_EXE_waymark-local"))
        .arg(COMMAND)
        .arg(program)
        .envs(upstream.variables("fake"))
        .env(TIMEOUTS_VARIABLE, json!({"fake": 5}).to_string())
        .kill_on_drop(true)
        .spawn()
        .unwrap();
    let invoke =
        async |event: &'static str| upstream.invoke(Event::new(event, Duration::ZERO)).await;
    for (event, error, message) in [
        ("die", "Runtime.ExitError", "fake exited (signal: 9 (SIGKILL))"),
        ("wait", "Sandbox.Timedout", "fake timed out after 5 s"),
    ] {
        let Err(InvocationError::Failed(report)) = invoke(event).await else { panic!("{event}") };
        let report: Value = serde_json::from_str(&report).unwrap();
        assert_eq!(report, json!({"errorType": error, "errorMessage": message}));
        assert_eq!(&invoke("hello").await.unwrap().body[..], b"hello", "after {event}");
    }
    // The process ends half a second later, without fetching the next event.
    for event in ["leave", "hello"] {
        assert_eq!(&invoke(event).await.unwrap().body[..], event.as_bytes());
    }
}
