//! `cargo lambda watch`: Lambda on a laptop.

use std::collections::HashMap;
use std::ffi::OsString;
use std::fs::File;
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

/// Processes per function. One would answer requests one after the other; more would not be faster
/// on a laptop.
const CONCURRENCY: &str = "2";

/// Why the functions do not answer.
#[derive(Debug, thiserror::Error)]
pub enum WatchError {
    /// `cargo lambda` is not there.
    #[error(
        "`cargo lambda watch` cannot be started: {0}. Install it with `make tools`, or \
         `pip install cargo-lambda`"
    )]
    NotInstalled(io::Error),
    /// It ended.
    #[error("`cargo lambda watch` ended ({0}); its messages above say why")]
    Ended(std::process::ExitStatus),
    /// No function answered in time.
    #[error("no function answered within {} seconds; the messages above may say why", .0.as_secs())]
    Silent(Duration),
    /// `template.yaml` has no timeouts that can be read.
    #[error(transparent)]
    Template(#[from] TemplateError),
    /// The operating system would not say how the process is doing.
    #[error("`cargo lambda watch` cannot be watched: {0}")]
    Unknown(io::Error),
}

/// How the functions are run.
#[derive(Debug)]
pub struct WatchOptions<'a> {
    /// The root of the workspace.
    pub workspace: &'a Path,
    /// A file of environment variables for the functions.
    pub environment: &'a Path,
    /// The program `waymark-local`, which runs each instance of a function.
    pub runner: &'a Path,
    /// Whether a change of the code rebuilds the functions.
    pub reload: bool,
    /// Where its messages, those of the build and the functions' logs go.
    pub output: Output,
}

/// What becomes of all lines that functions, builds and `cargo lambda watch` write.
#[derive(Debug)]
pub enum Output {
    /// They are kept in a file.
    File(File),
    /// Each is handed over.
    Lines(fn(&str)),
}

/// A running `cargo lambda watch`; it and the functions end when it is dropped.
pub struct Watch {
    child: Child,
    group: Option<Pid>,
    url: String,
}

impl Watch {
    /// Starts it. The binaries should have been built: what is missing is built on first use.
    pub fn start(options: WatchOptions<'_>) -> Result<Self, WatchError> {
        let template = template::read(&options.workspace.join("template.yaml"))?;
        let timeouts = template::timeouts(&template)?;
        let timeouts = timeouts.iter().map(|(function, it)| (function.as_str(), it.as_secs()));
        // Nobody else calls it, so any port will do; it may be taken again only by accident.
        let port = TcpListener::bind(hidden_address()).and_then(|it| it.local_addr());
        let address = port.map_err(WatchError::Unknown)?;
        let mut command = Command::new("cargo");
        command
            .current_dir(options.workspace)
            .env("PATH", path_with_tools(options.workspace))
            .args(["lambda", "watch", "--disable-cors"])
            .args(["--concurrency", CONCURRENCY])
            .args(["--invoke-address", &address.ip().to_string()])
            .args(["--invoke-port", &address.port().to_string()])
            .arg("--env-file")
            .arg(options.environment)
            .args(["--config", &instance::runner_setting(options.runner)])
            .env(TIMEOUTS_VARIABLE, json!(timeouts.collect::<HashMap<_, _>>()).to_string())
            .stdin(Stdio::null())
            // A group of its own, so that all that it starts can be ended with it.
            .process_group(0)
            .kill_on_drop(true);
        if !options.reload {
            command.args(["--ignore-changes", "--quiet"]);
        }
        let hand_over = match options.output {
            Output::File(file) => {
                let twin = file.try_clone().map_err(WatchError::Unknown)?;
                command.stdout(file).stderr(twin);
                None
            }
            Output::Lines(hand_over) => {
                command.stdout(Stdio::piped()).stderr(Stdio::piped());
                Some(hand_over)
            }
        };
        let mut child = command.spawn().map_err(WatchError::NotInstalled)?;
        if let Some(hand_over) = hand_over {
            child.stdout.take().map(|lines| tokio::spawn(read_lines(lines, hand_over)));
            child.stderr.take().map(|lines| tokio::spawn(read_lines(lines, hand_over)));
        }
        let group = child.id().and_then(|id| i32::try_from(id).ok()).and_then(Pid::from_raw);
        Ok(Self { child, group, url: format!("http://{address}") })
    }

    /// Where functions are invoked, without a slash at its end.
    pub fn url(&self) -> &str {
        &self.url
    }

    /// The number of its process, which is the parent of all that it starts.
    pub fn process_id(&self) -> Option<i32> {
        self.group.map(Pid::as_raw_pid)
    }

    /// Waits until a function answers.
    pub async fn until_answered(
        &mut self,
        function: &str,
        limit: Duration,
    ) -> Result<(), WatchError> {
        // A preflight request, which asks nothing else.
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
            if let Ok(answer) = request.send().await
                && answer.status().is_success()
            {
                return Ok(());
            }
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
        Err(WatchError::Silent(limit))
    }

    /// Invokes scheduled functions as often as they are to run, for as long as it is polled. A run that exceeds
    /// its function's timeout is reported to `tell`, and delays no later run.
    pub async fn run_schedules(url: &str, schedules: &[Schedule], tell: fn(&str)) {
        let client = reqwest::Client::new();
        let runs = schedules.iter().map(|Schedule { function, every, timeout }| {
            let url = invocation_url(url, function);
            let client = &client;
            async move {
                let mut timer = tokio::time::interval(*every);
                timer.set_missed_tick_behavior(MissedTickBehavior::Delay);
                // The first tick comes at once; a schedule's first run comes after its time.
                timer.tick().await;
                loop {
                    timer.tick().await;
                    // The function logs other failures.
                    let run = client.post(&url).body("{}").timeout(*timeout).send().await;
                    if run.is_err_and(|error| error.is_timeout()) {
                        let seconds = timeout.as_secs();
                        tell(&format!(
                            "{function} did not answer within {seconds} s; its schedule continues"
                        ));
                    }
                }
            }
        });
        futures_util::future::join_all(runs).await;
        // No schedule at all: nothing to do, for as long as it is polled.
        std::future::pending::<()>().await;
    }

    /// Waits until it ends by itself.
    pub async fn ended(&mut self) -> WatchError {
        match self.child.wait().await {
            Ok(status) => WatchError::Ended(status),
            Err(error) => WatchError::Unknown(error),
        }
    }

    /// Ends it and the functions.
    pub async fn stop(mut self) {
        self.signal(Signal::TERM);
        let patience = Duration::from_secs(2);
        if tokio::time::timeout(patience, self.child.wait()).await.is_err() {
            self.signal(Signal::KILL);
        }
    }

    fn signal(&self, signal: Signal) {
        if let Some(group) = self.group {
            // It may have ended by itself.
            let _ = kill_process_group(group, signal);
        }
    }
}

/// Where a function is invoked, as Lambda names the place.
pub(crate) fn invocation_url(url: &str, function: &str) -> String {
    format!("{url}/2015-03-31/functions/{function}/invocations")
}

async fn read_lines(output: impl AsyncRead + Unpin, hand_over: fn(&str)) {
    let mut output = BufReader::new(output);
    let mut line = Vec::new();
    // Once it cannot be read, nobody writes any more.
    while output.read_until(b'\n', &mut line).await.is_ok_and(|length| length > 0) {
        hand_over(String::from_utf8_lossy(&line).trim_end());
        line.clear();
    }
}

/// `PATH` with the workspace's own tools first, which `make tools` installs.
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
