//! Runs `cargo lambda watch`, a local substitute for Lambda.

use std::collections::HashMap;
use std::ffi::OsString;
use std::net::TcpListener;
use std::path::Path;
use std::process::Stdio;
use std::time::{Duration, Instant};
use std::{env, io};

use rustix::process::{Pid, Signal, kill_process_group};
use serde_json::json;
use tokio::io::{AsyncBufReadExt, AsyncRead, BufReader};
use tokio::process::{Child, Command};
use tokio::time::MissedTickBehavior;

use crate::guard::hidden_address;
use crate::instance::{self, TIMEOUTS_VARIABLE};
use crate::template::{self, Schedule, TemplateError};

/// Processes per function. A single one would process requests one after another; more than two are
/// not faster locally.
const CONCURRENCY: &str = "2";

/// The reason why the functions do not respond.
#[derive(Debug, thiserror::Error)]
pub enum WatchError {
    /// `cargo lambda` is not installed.
    #[error(
        "`cargo lambda watch` cannot be started: {0}. Install it with `make tools`, or \
         `pip install cargo-lambda`"
    )]
    NotInstalled(io::Error),
    /// The process ended.
    #[error("`cargo lambda watch` ended ({0}); see its messages above")]
    Ended(std::process::ExitStatus),
    /// No function responded in time.
    #[error("no function responded within {} seconds; see the messages above", .0.as_secs())]
    Silent(Duration),
    /// The timeouts in `template.yaml` cannot be read.
    #[error(transparent)]
    Template(#[from] TemplateError),
    /// The operating system does not report the process status.
    #[error("`cargo lambda watch` cannot be watched: {0}")]
    Unknown(io::Error),
}

/// Options for running the functions.
#[derive(Debug)]
pub struct WatchOptions<'a> {
    /// The root of the workspace.
    pub workspace: &'a Path,
    /// A file with environment variables of the functions.
    pub environment: &'a Path,
    /// The program `waymark-local`, which runs each function instance.
    pub runner: &'a Path,
    /// Receives each line of messages, build output and function logs.
    pub on_line: fn(&str),
}

/// A running `cargo lambda watch`. It and the functions end when it is dropped.
pub struct Watch {
    child: Child,
    group: Option<Pid>,
    url: String,
}

impl Watch {
    /// Starts the process. Missing binaries are built on first use.
    pub fn start(options: &WatchOptions<'_>) -> Result<Self, WatchError> {
        let template = template::read(&options.workspace.join("template.yaml"))?;
        let timeouts = template::timeouts(&template)?;
        let timeouts = timeouts.iter().map(|(function, it)| (function.as_str(), it.as_secs()));
        // The port is free now; another process could still take it before the start.
        let port = TcpListener::bind(hidden_address()).and_then(|it| it.local_addr());
        let address = port.map_err(WatchError::Unknown)?;
        let mut command = Command::new("cargo-lambda");
        command
            .env("PATH", path_with_tools(options.workspace))
            .args(["lambda", "watch", "--disable-cors", "--manifest-path"])
            .arg(options.workspace.join("Cargo.toml"))
            .args(["--concurrency", CONCURRENCY])
            .args(["--invoke-address", &address.ip().to_string()])
            .args(["--invoke-port", &address.port().to_string()])
            .arg("--env-file")
            .arg(options.environment)
            .args(["--config", &instance::runner_setting(options.runner)])
            .current_dir(options.workspace)
            .env(TIMEOUTS_VARIABLE, json!(timeouts.collect::<HashMap<_, _>>()).to_string())
            .stdin(Stdio::null())
            // The process group lets all child processes be ended together.
            .process_group(0)
            .kill_on_drop(true);
        command.stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().map_err(WatchError::NotInstalled)?;
        child.stdout.take().map(|lines| tokio::spawn(read_lines(lines, options.on_line)));
        child.stderr.take().map(|lines| tokio::spawn(read_lines(lines, options.on_line)));
        let group = child.id().and_then(|id| i32::try_from(id).ok()).and_then(Pid::from_raw);
        Ok(Self { child, group, url: format!("http://{address}") })
    }

    /// Returns the address for invocations, without a trailing slash.
    pub fn url(&self) -> &str {
        &self.url
    }

    /// Waits until a function responds.
    pub async fn wait_until_ready(
        &mut self,
        function: &str,
        limit: Duration,
    ) -> Result<(), WatchError> {
        // A preflight request, which has no side effects.
        let event = json!({
            "version": "2.0", "routeKey": "$default", "rawPath": "/", "rawQueryString": "",
            "headers": {}, "isBase64Encoded": false,
            "requestContext": {"stage": "$default", "http": {"method": "OPTIONS", "path": "/"}},
        });
        let client = reqwest::Client::new();
        let url = invocation_url(&self.url, function);
        let started = Instant::now();
        while started.elapsed() < limit {
            if let Some(status) = self.child.try_wait().map_err(WatchError::Unknown)? {
                return Err(WatchError::Ended(status));
            }
            let request = client.post(&url).json(&event).timeout(limit);
            if let Ok(response) = request.send().await
                && response.status().is_success()
            {
                return Ok(());
            }
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
        Err(WatchError::Silent(limit))
    }

    /// Invokes scheduled functions at their intervals while it is polled. A run that exceeds its
    /// timeout is passed to `report` and does not stop the schedule.
    pub async fn run_schedules(url: &str, schedules: &[Schedule], report: fn(&str)) {
        let client = reqwest::Client::new();
        let runs = schedules.iter().map(|Schedule { function, every, timeout }| {
            let url = invocation_url(url, function);
            let client = &client;
            async move {
                let mut timer = tokio::time::interval(*every);
                timer.set_missed_tick_behavior(MissedTickBehavior::Delay);
                // The first tick is immediate, but the first run follows after one interval.
                timer.tick().await;
                loop {
                    timer.tick().await;
                    // Functions log other failures themselves.
                    let run = client.post(&url).body("{}").timeout(*timeout).send().await;
                    if run.is_err_and(|error| error.is_timeout()) {
                        let seconds = timeout.as_secs();
                        report(&format!(
                            "{function} did not respond within {seconds} s; its schedule continues"
                        ));
                    }
                }
            }
        });
        futures_util::future::join_all(runs).await;
        // Without schedules, the future stays pending.
        std::future::pending::<()>().await;
    }

    /// Waits until the process ends by itself.
    pub async fn ended(&mut self) -> WatchError {
        match self.child.wait().await {
            Ok(status) => WatchError::Ended(status),
            Err(error) => WatchError::Unknown(error),
        }
    }

    /// Ends the process and the functions.
    pub async fn stop(mut self) {
        self.signal(Signal::TERM);
        let grace_period = Duration::from_secs(2);
        if tokio::time::timeout(grace_period, self.child.wait()).await.is_err() {
            self.signal(Signal::KILL);
        }
    }

    fn signal(&self, signal: Signal) {
        if let Some(group) = self.group {
            // The group can have ended already.
            let _ = kill_process_group(group, signal);
        }
    }
}

/// Returns Lambda's URL for invocations of a function.
pub(crate) fn invocation_url(url: &str, function: &str) -> String {
    format!("{url}/2015-03-31/functions/{function}/invocations")
}

async fn read_lines(output: impl AsyncRead + Unpin, on_line: fn(&str)) {
    let mut output = BufReader::new(output);
    let mut line = Vec::new();
    // A read error means that the writer has ended.
    while output.read_until(b'\n', &mut line).await.is_ok_and(|length| length > 0) {
        on_line(String::from_utf8_lossy(&line).trim_end());
        line.clear();
    }
}

/// Returns `PATH` with the workspace's tools first, which `make tools` installs.
fn path_with_tools(workspace: &Path) -> OsString {
    let tools = workspace.join(".venv").join("bin");
    let tools = tools.canonicalize().unwrap_or(tools);
    let path = env::var_os("PATH").unwrap_or_default();
    let folders = std::iter::once(tools).chain(env::split_paths(&path));
    env::join_paths(folders).unwrap_or(path)
}

impl Drop for Watch {
    fn drop(&mut self) {
        self.signal(Signal::KILL);
    }
}
