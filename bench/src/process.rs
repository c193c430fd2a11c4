//! A process of a function, started as Lambda starts it and measured from outside.

use std::fs::{self, File};
use std::path::Path;
use std::process::Stdio;
use std::time::{Duration, Instant};

use axum::body::Bytes;
use serde_json::Value as Json;
use tokio::process::{Child, Command};

use local::runtime_api::{InvocationResponse, RuntimeApi};

use crate::Result;
use crate::events;
use crate::program::{Program, Programs};

/// The time limit of a request, as in `template.yaml`.
const REQUEST_TIME: Duration = Duration::from_secs(10);
/// The time limit of a scheduled job.
const JOB_TIME: Duration = Duration::from_mins(1);
/// The time within which a function waits for the next event after its response.
const IDLE_AFTER: Duration = Duration::from_millis(3);

/// A response and its timing.
pub(crate) struct Reply {
    /// The body; empty for a job.
    pub(crate) body: String,
    /// The time since the function received the event.
    pub(crate) latency: Duration,
    /// The time since the start of the process.
    pub(crate) since_start: Duration,
}

/// A running function.
pub(crate) struct Process {
    name: String,
    child: Child,
    id: u32,
    started: Instant,
    api: RuntimeApi,
}

impl Process {
    pub(crate) async fn start(
        programs: &Programs,
        program: Program,
        variables: &[(&str, String)],
    ) -> Result<Self> {
        let api = RuntimeApi::start().await?;
        let name = program.name();
        let mut command = Command::new(programs.binary(program));
        command
            .env_clear()
            .envs(api.variables(&name))
            .envs(variables.iter().map(|(name, value)| (*name, value)))
            .stdin(Stdio::null())
            .stdout(output(programs.log())?)
            .stderr(output(programs.log())?)
            .kill_on_drop(true);
        let started = Instant::now();
        let child = command.spawn().map_err(|error| format!("cannot start {name}: {error}"))?;
        let id = child.id().ok_or("a process ended at its start")?;
        Ok(Self { name, child, id, started, api })
    }

    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    /// Sends an event and waits up to `time` for the response.
    async fn invoke(&mut self, event: Bytes, time: Duration) -> Result<InvocationResponse> {
        let name = &self.name;
        tokio::select! {
            outcome = self.api.invoke(event, time) => {
                outcome.map_err(|error| format!("{name}: {error}").into())
            }
            status = self.child.wait() => {
                Err(format!("{name} ended unexpectedly: {}", status?).into())
            }
            () = tokio::time::sleep(time) => {
                Err(format!("{name} did not respond within {time:?}").into())
            }
        }
    }

    /// Sends a request, and fails unless the response has the status.
    pub(crate) async fn expect(&mut self, status: u64, request: Bytes) -> Result<Reply> {
        let invocation = self.invoke(request, REQUEST_TIME).await?;
        let response: Json = serde_json::from_slice(&invocation.body)?;
        let found = response["statusCode"].as_u64().ok_or("a response has no status")?;
        let body = response["body"].as_str().unwrap_or_default().to_owned();
        if found == status {
            return Ok(self.reply(&invocation, body));
        }
        Err(format!("{} returned {found} instead of {status}: {body}", self.name).into())
    }

    /// Runs a scheduled job once, and fails if the job fails.
    pub(crate) async fn run_job(&mut self) -> Result<Reply> {
        let invocation = self.invoke(events::schedule(), JOB_TIME).await?;
        Ok(self.reply(&invocation, String::new()))
    }

    fn reply(&self, invocation: &InvocationResponse, body: String) -> Reply {
        let InvocationResponse { taken, arrived, .. } = *invocation;
        Reply { body, latency: arrived - taken, since_start: arrived - self.started }
    }

    /// Returns the processor time of the process so far.
    pub(crate) async fn cpu(&self) -> Result<Duration> {
        // The kernel updates the exact time of a thread when the thread goes to sleep.
        tokio::time::sleep(IDLE_AFTER).await;
        let mut nanoseconds = 0;
        for task in fs::read_dir(format!("/proc/{}/task", self.id))? {
            let statistics = fs::read_to_string(task?.path().join("schedstat"))?;
            let running = statistics.split(' ').next().unwrap_or_default();
            nanoseconds += running.parse::<u64>()?;
        }
        Ok(Duration::from_nanos(nanoseconds))
    }

    /// Returns the peak resident memory of the process so far, in bytes.
    pub(crate) fn peak_memory(&self) -> Result<u64> {
        let status = fs::read_to_string(format!("/proc/{}/status", self.id))?;
        let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
        let kibibytes = line.and_then(|line| line.trim().strip_suffix(" kB"));
        let kibibytes: u64 = kibibytes.ok_or("the kernel reports no VmHWM")?.trim().parse()?;
        Ok(kibibytes * 1_024)
    }

    pub(crate) async fn stop(mut self) -> Result<()> {
        Ok(self.child.kill().await?)
    }
}

fn output(log: Option<&Path>) -> Result<Stdio> {
    Ok(match log {
        Some(path) => File::options().create(true).append(true).open(path)?.into(),
        None => Stdio::null(),
    })
}
