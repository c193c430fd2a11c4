//! Functions as processes of their own, which a test can kill.

use std::env;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use local::environment;
use local::runtime_api::RuntimeApi;
use serde_json::Value;
use tokio::process::{Child, Command};

use crate::function_binary;

/// The folder with the functions of an earlier release, of which every other process is then (`make versions`).
const EARLIER_BINARIES: &str = "EARLIER_BINARIES";

fn binary(function: &str) -> PathBuf {
    static STARTED: AtomicUsize = AtomicUsize::new(0);
    let earlier = env::var_os(EARLIER_BINARIES).map(|folder| PathBuf::from(folder).join(function));
    // That release may not have had the function.
    let earlier = earlier.filter(|earlier| earlier.exists());
    let is_turn = STARTED.fetch_add(1, Ordering::Relaxed).is_multiple_of(2);
    earlier.filter(|_| is_turn).unwrap_or_else(|| function_binary(function))
}

/// A process of a function, under a Runtime API of its own.
pub struct Process {
    api: RuntimeApi,
    child: Child,
}

impl Process {
    /// Starts a function over the engine at `endpoint`, with more variables than every function has. What it
    /// writes is added to the file `log`.
    pub async fn start(
        function: &str,
        endpoint: &str,
        more: &[(&'static str, String)],
        log: &Path,
    ) -> Self {
        let api = RuntimeApi::start().await.expect("it starts");
        let log = File::options().create(true).append(true).open(log).expect("it can be written");
        let child = Command::new(binary(function))
            .env_clear()
            .envs(api.variables(function))
            .envs(environment::variables(endpoint))
            .envs(more.iter().cloned())
            .stdin(Stdio::null())
            .stdout(log.try_clone().expect("a file can be shared"))
            .stderr(log)
            .kill_on_drop(true)
            .spawn()
            .expect("it starts");
        Self { api, child }
    }

    /// Hands it an event, and answers its response.
    pub async fn invoke(&self, event: String) -> Value {
        let answer = self.api.invoke(event, Duration::from_mins(1)).await.expect("it answers");
        serde_json::from_slice(&answer.body).expect("the answer is JSON")
    }

    /// Hands it an event, and kills it after a time. Answers whether it had not yet answered.
    pub async fn kill_after(self, life: Duration, event: String) -> bool {
        let answer = tokio::time::timeout(life, self.invoke(event)).await;
        self.kill().await;
        answer.is_err()
    }

    /// Ends it with SIGKILL, which it cannot notice.
    pub async fn kill(mut self) {
        self.child.kill().await.expect("it can be killed");
    }
}
