//! Schemathesis, which tries the running stack with what `openapi.yaml` describes and with what it
//! rules out.

use std::process::Stdio;

use futures_util::{StreamExt, stream};
use tests::app::PROJECT;
use tests::errors::project;
use tests::operations::OPERATIONS;
use tests::stack::Stack;
use tests::workspace;
use tokio::process::Command;

/// What it tries, and how long, in seconds: each operation for itself, and then those that `links` of
/// `openapi.yaml` lead to from what others made. `SCHEMATHESIS_SECONDS` gives each more.
const PHASES: [(&str, &str); 2] = [("examples,coverage,fuzzing", "40"), ("stateful", "15")];
/// Where its tries begin, so that a change is judged by what it changed. `SCHEMATHESIS_SEED` tries others.
const SEED: &str = "20261122";

#[tokio::test]
async fn schemathesis_finds_no_server_error_and_no_undocumented_answer() {
    let stack = Stack::start().await;
    // What a function takes to start counts for none of its operations.
    stream::iter(OPERATIONS)
        .for_each_concurrent(4, |operation| {
            let url = format!("{}{}", stack.base_url, operation.path);
            let request = stack.http.request(operation.method.clone(), url);
            async { assert!(!request.send().await.unwrap().status().is_server_error()) }
        })
        .await;

    let project = project(&stack.store, stack.project_id).await;
    let setting = |name, default: &str| std::env::var(name).unwrap_or_else(|_| default.to_owned());
    let seed = setting("SCHEMATHESIS_SEED", SEED);
    let mut tried = String::new();
    for (phases, seconds) in PHASES {
        let seconds = setting("SCHEMATHESIS_SECONDS", seconds);
        let folder = tempfile::tempdir().unwrap();
        let output = Command::new(workspace().join(".venv/schemathesis/bin/schemathesis"))
            .arg("--config-file")
            .arg(workspace().join("tests/contract/schemathesis.toml"))
            .arg("run")
            .arg(workspace().join("openapi.yaml"))
            .args(["--url", &stack.base_url, "--max-time", &seconds, "--seed", &seed])
            .args(["--phases", phases])
            .args(["--header", &format!("x-api-key: {}", stack.key)])
            .env("SCHEMATHESIS_HOOKS", workspace().join("tests/contract/schemathesis_hooks.py"))
            .env("PROJECT", PROJECT)
            .env("INGEST_ID", project.ingest_id.to_string())
            .env("SENTRY_KEY", project.public_key.to_string())
            // It keeps what it finds in the folder that it is started in.
            .current_dir(folder.path())
            .stdin(Stdio::null())
            .output()
            .await
            .expect("it is installed; make test-tools");
        let said = String::from_utf8_lossy(&output.stdout);
        assert!(output.status.success(), "{said}\n{}", String::from_utf8_lossy(&output.stderr));
        // Each phase that was wanted was carried out: none is left out for want of links.
        let is_done = |phase: &str| {
            let mut summary = said.lines().map(str::trim).filter_map(|it| it.strip_prefix("✅ "));
            summary.any(|done| done.eq_ignore_ascii_case(phase))
        };
        assert!(phases.split(',').all(is_done), "{said}");
        tried.push_str(&said);
    }
    let failed: Vec<_> = stack.served().into_iter().filter(|it| it.status >= 500).collect();
    assert!(failed.is_empty(), "{failed:?}\n{tried}");
    assert!(!stack.log().contains("\"level\":\"ERROR\""), "{}", stack.log());
}
