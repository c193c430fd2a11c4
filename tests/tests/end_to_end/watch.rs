//! `cargo lambda watch`, which runs the functions of `make run`.

use std::net::Ipv4Addr;
use std::time::Duration;

use local::engine::Engine;
use local::environment;
use local::watch::{Watch, WatchOptions};
use tests::{function_binary, tables, workspace};

#[allow(clippy::print_stdout)] // Shown if the test fails.
fn show(line: &str) {
    println!("{line}");
}

#[tokio::test]
async fn cargo_lambda_watch_starts_functions() {
    let folder = tempfile::tempdir().unwrap();
    let engine = Engine::start((Ipv4Addr::LOCALHOST, 0).into(), None, &tables()).unwrap();
    let environment = folder.path().join(environment::FILE);
    environment::write(&environment, &environment::variables(&engine.endpoint())).unwrap();
    let mut watch = Watch::start(&WatchOptions {
        workspace: &workspace(),
        environment: &environment,
        runner: &function_binary("waymark-local"),
        on_line: show,
    })
    .unwrap();
    for function in ["get-caller", "create-feature-flag"] {
        watch.wait_until_ready(function, Duration::from_mins(2)).await.unwrap();
    }
    watch.stop().await;
}
