//! Runs one instance of a function, between `cargo lambda watch` and the function's process.
//!
//! `cargo lambda watch` never replaces a process that ended. The ended process's invocation gets no
//! response, and once all processes of a function have ended, its events are not processed. So
//! cargo starts each program through this runner, which fetches events and passes them to the
//! process. If the process ends or exceeds the function's timeout, the runner reports an error like
//! Lambda, and starts a new process for the next event.

use std::collections::HashMap;
use std::env::{self, VarError};
use std::io;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::time::Duration;

use axum::body::Bytes;
use serde_json::json;
use tokio::process::{Child, Command};

use crate::runtime_api::{
    Event, FUNCTION_VARIABLE, InvocationError, RUNTIME_API_VARIABLE, RuntimeApi,
};

/// Command of `waymark-local` that runs an instance.
pub const COMMAND: &str = "run-instance";
/// Environment variable with the functions' timeouts: a JSON object of seconds by function.
pub const TIMEOUTS_VARIABLE: &str = "WAYMARK_LOCAL_TIMEOUTS";
/// Environment variable with the function's program.
const PROGRAM_VARIABLE: &str = "WAYMARK_LOCAL_PROGRAM";

/// Lambda's error type if the process ended.
pub(crate) const EXITED: &str = "Runtime.ExitError";
/// Lambda's error type if the function timed out.
pub(crate) const TIMED_OUT: &str = "Sandbox.Timedout";

/// Lambda's maximum timeout, for functions without one.
const LONGEST_TIMEOUT: Duration = Duration::from_mins(15);

/// Returns the cargo setting that starts programs through `runner`.
pub(crate) fn runner_setting(runner: &Path) -> String {
    // A JSON array of strings is also valid TOML.
    format!("target.'cfg(all())'.runner={}", json!([runner.to_string_lossy(), COMMAND]))
}

/// Runs an instance of the function that Lambda's environment variables name, until
/// `cargo lambda watch` ends.
///
/// # Errors
/// The program cannot start, a variable is missing, or the Runtime API fails.
pub async fn run(
    program: Option<&Path>,
    report: fn(&str),
) -> Result<(), Box<dyn std::error::Error>> {
    if let Some(program) = program {
        // With the program among its arguments, the runner would be killed by tools that kill by
        // name.
        let mut runner = std::process::Command::new(env::current_exe()?);
        return Err(runner.arg(COMMAND).env(PROGRAM_VARIABLE, program).exec().into());
    }
    let program = env::var_os(PROGRAM_VARIABLE).ok_or(VarError::NotPresent)?;
    let function = env::var(FUNCTION_VARIABLE)?;
    let timeouts = env::var(TIMEOUTS_VARIABLE).unwrap_or_default();
    let timeouts: HashMap<String, u64> = serde_json::from_str(&timeouts).unwrap_or_default();
    let timeout = timeouts.get(&function).map_or(LONGEST_TIMEOUT, |it| Duration::from_secs(*it));
    let api = env::var(RUNTIME_API_VARIABLE)?;
    let api = api.strip_prefix("http://").unwrap_or(&api);
    let invocations = format!("http://{api}/2018-06-01/runtime/invocation");
    let http = reqwest::Client::new();

    let start = move || Command::new(&program);
    let mut instance = Instance::new(&function, report, start);
    instance.ensure_process().await?;
    loop {
        let Ok(next) = http.get(format!("{invocations}/next")).send().await else {
            return Ok(());
        };
        let next = next.error_for_status()?;
        let header = |name| next.headers().get(name).and_then(|it| it.to_str().ok());
        let id = header("lambda-runtime-aws-request-id").unwrap_or_default().to_owned();
        let trace = header("lambda-runtime-trace-id").unwrap_or_default().to_owned();
        let event = Event { id: id.clone(), trace, body: next.bytes().await?, time: timeout };
        let (kind, body) = match instance.invoke(event).await? {
            Ok(response) => ("response", response),
            Err(report) => ("error", report.into()),
        };
        // The caller can be gone. In that case, `cargo lambda watch` returns an error.
        http.post(format!("{invocations}/{id}/{kind}")).body(body).send().await?;
    }
}

/// An instance of a function: a process for one event at a time. It is replaced if it ends or
/// exceeds an event's time.
pub struct Instance {
    function: String,
    report: fn(&str),
    start: Box<dyn Fn() -> Command + Send + Sync>,
    process: Option<Process>,
}

impl Instance {
    /// Returns an instance whose processes `start` describes. Replaced processes are passed to
    /// `report`.
    pub fn new(
        function: &str,
        report: fn(&str),
        start: impl Fn() -> Command + Send + Sync + 'static,
    ) -> Self {
        let function = function.to_owned();
        Self { function, report, start: Box::new(start), process: None }
    }

    /// Starts a process, unless one is running.
    async fn ensure_process(&mut self) -> io::Result<&mut Process> {
        let running = self.process.take_if(|it| !it.has_ended());
        let process = match running {
            Some(process) => process,
            None => Process::start((self.start)(), &self.function).await?,
        };
        Ok(self.process.insert(process))
    }

    /// Passes an event to the process. Returns its response, or an error report like Lambda's.
    ///
    /// # Errors
    /// No process can be started.
    pub async fn invoke(&mut self, event: Event) -> io::Result<Result<Bytes, String>> {
        let was_idle = self.process_id().is_some();
        let process = self.ensure_process().await?;
        let mut outcome = process.invoke(event.clone()).await;
        if was_idle
            && matches!(outcome, Err(Failure::Ended(EXITED, _)))
            && !process.api.is_running()
        {
            // The process was ending, and never fetched the event.
            self.process = None;
            outcome = self.ensure_process().await?.invoke(event).await;
        }
        Ok(outcome.map_err(|failure| match failure {
            Failure::Reported(error) => error,
            Failure::Ended(error_type, how) => {
                let message = format!("{} {how}", self.function);
                (self.report)(&format!("{message}; its next event gets a new process"));
                self.process = None;
                json!({ "errorType": error_type, "errorMessage": message }).to_string()
            }
        }))
    }

    /// Returns the id of the process, if it is running.
    pub fn process_id(&mut self) -> Option<u32> {
        let process = self.process.as_mut()?;
        if process.has_ended() { None } else { process.child.id() }
    }
}

/// A process of the function, with its Runtime API.
struct Process {
    api: RuntimeApi,
    child: Child,
}

/// An invocation without a response.
enum Failure {
    /// The function's own error report.
    Reported(String),
    /// Error type and description, if the process ended or must be ended.
    Ended(&'static str, String),
}

impl Process {
    async fn start(mut command: Command, function: &str) -> io::Result<Self> {
        let api = RuntimeApi::start().await?;
        command.envs(api.variables(function)).env_remove(PROGRAM_VARIABLE);
        Ok(Self { child: command.kill_on_drop(true).spawn()?, api })
    }

    fn has_ended(&mut self) -> bool {
        !matches!(self.child.try_wait(), Ok(None))
    }

    async fn invoke(&mut self, event: Event) -> Result<Bytes, Failure> {
        let timeout = event.time;
        tokio::select! {
            biased;
            outcome = self.api.invoke(event) => outcome.map(|it| it.body).map_err(|error| match error {
                InvocationError::Failed(report) | InvocationError::NotStarted(report) => {
                    Failure::Reported(report)
                }
                InvocationError::Ended => Failure::Ended(EXITED, error.to_string()),
            }),
            status = self.child.wait() => {
                let status = status.map_or_else(|error| error.to_string(), |it| it.to_string());
                Err(Failure::Ended(EXITED, format!("exited ({status})")))
            }
            () = tokio::time::sleep(timeout) => {
                Err(Failure::Ended(TIMED_OUT, format!("timed out after {} s", timeout.as_secs())))
            }
        }
    }
}
