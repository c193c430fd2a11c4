//! A process of a function, started as Lambda starts it and measured from outside.

use std::fs::{self, File};
use std::path::Path;
use std::process::Stdio;
use std::time::{Duration, Instant};

use axum::body::Bytes;
use serde_json::Value as Json;
use tokio::process::{Child, Command};

use local::environment;
use local::runtime_api::{Event, InvocationResponse, RuntimeApi};

use crate::Result;
use crate::program::{Program, Programs};
use crate::report::Report;
use crate::request::schedule;
use crate::statistics::{Sorted, count, millis};

/// The time limit of a request, as in `template.yaml`.
const REQUEST_TIME: Duration = Duration::from_secs(10);
/// The time limit of a scheduled job.
const JOB_TIME: Duration = Duration::from_mins(1);
/// The time within which a function waits for the next event after its response.
const IDLE_AFTER: Duration = Duration::from_millis(3);

/// The number of unmeasured requests to a warm process.
const WARM_UPS: usize = 20;
/// The number of consecutive requests whose processor time is measured together.
const BLOCK: usize = 10;
/// The maximum number of invocations of a job before the benchmark fails.
const MAX_INVOCATIONS: u32 = 5;

/// A response and its timing.
pub(crate) struct Reply {
    /// The body; empty for a job.
    pub(crate) body: String,
    /// The time since the function received the event.
    pub(crate) latency: Duration,
    /// The time since the start of the process.
    pub(crate) since_start: Duration,
}

/// The figures of requests to a warm process, in milliseconds.
#[derive(Default)]
pub(crate) struct Requests {
    /// The time from receipt of each event to the response.
    pub(crate) latency: Vec<f64>,
    /// The mean processor time per request of each block.
    pub(crate) cpu: Vec<f64>,
}

impl Requests {
    pub(crate) fn latency(&self) -> Sorted {
        Sorted::new(self.latency.iter().copied())
    }

    /// Returns the median of [`Self::cpu`], which a disturbed block does not affect.
    pub(crate) fn median_cpu(&self) -> f64 {
        Sorted::new(self.cpu.iter().copied()).median()
    }

    /// Returns the median difference in processor time from other requests, block by block.
    pub(crate) fn cpu_beyond(&self, others: &Self) -> f64 {
        Sorted::new(self.cpu.iter().zip(&others.cpu).map(|(ours, theirs)| ours - theirs)).median()
    }
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
    /// Starts a program with an engine at `endpoint`, as Lambda starts it.
    pub(crate) async fn start(
        programs: &Programs,
        program: Program,
        endpoint: &str,
        more: &[(&str, String)],
    ) -> Result<Self> {
        let api = RuntimeApi::start().await?;
        let name = program.to_string();
        let mut command = Command::new(programs.binary(program));
        command
            .env_clear()
            .envs(api.variables(&name))
            .envs(environment::variables(endpoint))
            .envs(more.iter().map(|(name, value)| (*name, value)))
            .stdin(Stdio::null())
            .stdout(output(programs.log())?)
            .stderr(output(programs.log())?)
            .kill_on_drop(true);
        let started = Instant::now();
        let child = command.spawn().map_err(|error| {
            format!("cannot start {name}: {error}; `make bench` builds the programs")
        })?;
        let id = child.id().ok_or("a process ended at its start")?;
        Ok(Self { name, child, id, started, api })
    }

    /// Sends an event and waits up to `time` for the response.
    async fn invoke(&mut self, event: Bytes, time: Duration) -> Result<InvocationResponse> {
        let name = &self.name;
        tokio::select! {
            outcome = self.api.invoke(Event::new(event, time)) => {
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
        let invocation = self.invoke(schedule(), JOB_TIME).await?;
        Ok(self.reply(&invocation, String::new()))
    }

    /// Sends a block of requests one after the other, and adds their figures to `requests`.
    pub(crate) async fn send(
        &mut self,
        status: u64,
        block: impl IntoIterator<Item = Bytes>,
        requests: &mut Requests,
    ) -> Result<()> {
        let (before, mut sent) = (self.cpu().await?, 0);
        for request in block {
            requests.latency.push(millis(self.expect(status, request).await?.latency));
            sent += 1;
        }
        let cpu = self.cpu().await?.saturating_sub(before);
        requests.cpu.push(millis(cpu / sent));
        Ok(())
    }

    /// Sends requests in blocks. Measures all but the first [`WARM_UPS`].
    pub(crate) async fn measure(
        &mut self,
        status: u64,
        requests: impl IntoIterator<Item = Bytes>,
    ) -> Result<Requests> {
        let mut left = requests.into_iter();
        for request in left.by_ref().take(WARM_UPS) {
            self.expect(status, request).await?;
        }
        let (mut measured, left): (_, Vec<Bytes>) = (Requests::default(), left.collect());
        for block in left.chunks(BLOCK) {
            self.send(status, block.iter().cloned(), &mut measured).await?;
        }
        Ok(measured)
    }

    /// Runs a job on a backlog of events for as long as `is_left` returns `true`. Adds its figures.
    pub(crate) async fn measure_job(
        &mut self,
        report: &mut Report,
        events: usize,
        is_left: impl AsyncFn() -> Result<bool>,
    ) -> Result<()> {
        let (mut invocations, mut time) = (0, Duration::ZERO);
        let before = self.cpu().await?;
        while is_left().await? {
            if invocations == MAX_INVOCATIONS {
                return Err(format!("{} did not process all {events} events", self.name).into());
            }
            time += self.run_job().await?.latency;
            invocations += 1;
        }
        let cpu = self.cpu().await?.saturating_sub(before);
        let (name, events) = (&self.name, count(events));
        report.add(name, "events", events, "", None);
        report.add(name, "invocations", invocations.into(), "", None);
        report.add(name, "events per second", events / time.as_secs_f64(), "", None);
        report.add(name, "CPU time per 1,000 events", millis(cpu) * 1e3 / events, "ms", None);
        Ok(())
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
