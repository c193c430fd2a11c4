//! Schemathesis tests the running stack with valid and invalid requests, based on `openapi.yaml`.

use std::process::Stdio;

use futures_util::{StreamExt, stream};
use tests::app::PROJECT;
use tests::errors::project;
use tests::operations::OPERATIONS;
use tests::stack::Stack;
use tests::workspace;
use tokio::process::Command;

/// Phases, with their longest duration in seconds: the examples of `openapi.yaml`, which end by
/// themselves, systematic requests, random ones, and sequences along its `links`. Each has its own
/// run, so that a slow one leaves time for the others. `SCHEMATHESIS_SECONDS` replaces each duration.
const PHASES: [(&str, &str); 4] =
    [("examples", "240"), ("coverage", "12"), ("fuzzing", "10"), ("stateful", "10")];
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
    let setting = |name, default: &str| std::env::var(name).unwrap_or_else(|_| default.to_owned());
    let seed = setting("SCHEMATHESIS_SEED", SEED);
    let mut tried = String::new();
    for (phase, seconds) in PHASES {
        let seconds = setting("SCHEMATHESIS_SECONDS", seconds);
        let folder = tempfile::tempdir().unwrap();
        let output = Command::new(workspace().join(".venv/schemathesis/bin/schemathesis"))
            .arg("--config-file")
            .arg(workspace().join("tests/contract/schemathesis.toml"))
            .arg("run")
            .arg(workspace().join("openapi.yaml"))
            .args(["--url", &stack.base_url, "--max-time", &seconds, "--seed", &seed])
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
