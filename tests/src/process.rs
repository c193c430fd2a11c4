//! Functions as separate processes, which tests can kill.

use std::env;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use local::environment;
use local::runtime_api::{Event, RuntimeApi};
use serde_json::Value;
use tokio::process::{Child, Command};

use crate::function_binary;

/// Environment variable with the folder of an earlier release's functions. If it is set, every
/// second process comes from there (`make versions`).
const EARLIER_BINARIES: &str = "EARLIER_BINARIES";

fn binary(function: &str) -> PathBuf {
    static STARTED: AtomicUsize = AtomicUsize::new(0);
    let earlier = env::var_os(EARLIER_BINARIES).map(|folder| PathBuf::from(folder).join(function));
    // That release might lack the function.
    let earlier = earlier.filter(|earlier| earlier.exists());
    let uses_earlier = STARTED.fetch_add(1, Ordering::Relaxed).is_multiple_of(2);
    earlier.filter(|_| uses_earlier).unwrap_or_else(|| function_binary(function))
}

/// A function's process with its own Runtime API.
pub struct Process {
    api: RuntimeApi,
    child: Child,
}

impl Process {
    /// Starts a function for the engine at `endpoint`, with additional environment variables. Its
    /// output is appended to the file `log`.
    pub async fn start(
        function: &str,
        endpoint: &str,
        more: &[(&'static str, String)],
        log: &Path,
    ) -> Self {
        let api = RuntimeApi::start().await.expect("the Runtime API starts");
        let log =
            File::options().create(true).append(true).open(log).expect("the log can be opened");
        let child = Command::new(binary(function))
            .env_clear()
            .envs(api.variables(function))
            .envs(environment::variables(endpoint))
            .envs(more.iter().cloned())
            .stdin(Stdio::null())
            .stdout(log.try_clone().expect("the file handle can be cloned"))
            .stderr(log)
            .kill_on_drop(true)
            .spawn()
            .expect("the process starts");
        Self { api, child }
    }

    /// Sends an event and returns the response.
    pub async fn invoke(&self, event: String) -> Value {
        let event = Event::new(event, Duration::from_mins(1));
        let response = self.api.invoke(event).await.expect("the function responds");
        serde_json::from_slice(&response.body).expect("the response is JSON")
    }

    /// Sends an event, and kills the process after `life`. Returns `true` if it had not responded.
    pub async fn kill_after(self, life: Duration, event: String) -> bool {
        let response = tokio::time::timeout(life, self.invoke(event)).await;
        self.kill().await;
        response.is_err()
    }

    /// Kills the process with SIGKILL, which it cannot handle.
    pub async fn kill(mut self) {
        self.child.kill().await.expect("the process can be killed");
    }
}
