//! Schemathesis tests the running stack with valid and invalid requests, based on `openapi.yaml`.

use std::process::Stdio;

use futures_util::{StreamExt, stream};
use tests::app::PROJECT;
use tests::errors::project;
use tests::operations::OPERATIONS;
use tests::stack::Stack;
use tests::workspace;
use tokio::process::Command;

/// Phases, with their limits: the examples of `openapi.yaml`, which end by themselves, systematic
/// requests, random ones, and sequences along its `links`. Each has its own run, so that a slow one
/// leaves time for the others. The sequences have no time limit: on a busy machine, it can pass
/// before the first of them. `SCHEMATHESIS_SECONDS` replaces each limit.
const PHASES: [(&str, [&str; 2]); 4] = [
    ("examples", ["--max-time", "240"]),
    ("coverage", ["--max-time", "12"]),
    ("fuzzing", ["--max-time", "10"]),
    ("stateful", ["--max-examples", "2"]),
];
/// Fixed seed, so that results differ only because of code changes. `SCHEMATHESIS_SEED` overrides
/// it.
const SEED: &str = "20261122";

#[tokio::test]
async fn schemathesis_finds_no_errors() {
    let stack = Stack::start().await;
    // Function starts must not count as operation time.
    stream::iter(OPERATIONS)
        .for_each_concurrent(4, |operation| {
            let url = format!("{}{}", stack.base_url, operation.path);
            let request = stack.http.request(operation.method.clone(), url);
            let log = || stack.log();
            async move {
                let status = request.send().await.unwrap().status();
                assert!(!status.is_server_error(), "{}: {status}\n{}", operation.name, log());
            }
        })
        .await;

    let project = project(&stack.store, stack.project_id).await;
    let seed = std::env::var("SCHEMATHESIS_SEED").unwrap_or_else(|_| SEED.to_owned());
    let mut tried = String::new();
    let seconds = std::env::var("SCHEMATHESIS_SECONDS").ok();
    for (phase, limit) in PHASES {
        let limit = seconds.as_deref().map_or(limit, |seconds| ["--max-time", seconds]);
        let folder = tempfile::tempdir().unwrap();
        let output = Command::new(workspace().join(".venv/schemathesis/bin/schemathesis"))
            .arg("--config-file")
            .arg(workspace().join("tests/contract/schemathesis.toml"))
            .arg("run")
            .arg(workspace().join("openapi.yaml"))
            .args(["--url", &stack.base_url, "--seed", &seed])
            .args(limit)
            .args(["--phases", phase])
            .args(["--header", &format!("x-api-key: {}", stack.key)])
            .env("SCHEMATHESIS_HOOKS", workspace().join("tests/contract/schemathesis_hooks.py"))
            .env("PROJECT", PROJECT)
            .env("INGEST_ID", project.ingest_id.to_string())
            .env("SENTRY_KEY", project.public_key.to_string())
            // Schemathesis stores findings in its working directory.
            .current_dir(folder.path())
            .stdin(Stdio::null())
            .output()
            .await
            .expect("schemathesis is installed; run make test-tools");
        let printed = String::from_utf8_lossy(&output.stdout);
        assert!(output.status.success(), "{printed}\n{}", String::from_utf8_lossy(&output.stderr));
        // The phase must complete, and not be skipped because of missing links.
        let mut done = printed.lines().filter_map(|it| it.trim().strip_prefix("✅ "));
        assert!(done.any(|it| it.eq_ignore_ascii_case(phase)), "{printed}");
        tried.push_str(&printed);
    }
    let failed: Vec<_> = stack.served().into_iter().filter(|it| it.status >= 500).collect();
    assert!(failed.is_empty(), "{failed:?}\n{tried}");
    assert!(!stack.log().contains("\"level\":\"ERROR\""), "{}", stack.log());
}
