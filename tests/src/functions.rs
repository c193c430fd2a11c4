//! The functions of a stack. They are invoked like those under `cargo lambda watch`, and their
//! processes start with their first events.

use std::collections::{BTreeMap, HashMap};
use std::env;
use std::fs::{self, File};
use std::net::Ipv4Addr;
use std::path::PathBuf;
use std::process::Stdio;
use std::sync::{Arc, Mutex as SyncMutex, MutexGuard, PoisonError};
use std::time::Duration;

use axum::Router;
use axum::body::Bytes;
use axum::extract::{DefaultBodyLimit, Path, State};
use axum::http::StatusCode;
use axum::routing::post;
use local::instance::Instance;
use local::runtime_api::Event;
use local::template;
use tokio::net::TcpListener;
use tokio::process::Command;
use tokio::sync::{Mutex, Semaphore};
use tokio::task::JoinHandle;

use crate::{function_binary, workspace};

/// Environment variable for a release build of the functions, to measure it.
const RELEASE: &str = "RELEASE";
/// Processes per function, as in the local stack.
const PROCESSES: usize = 2;

/// Running functions. They end when this is dropped.
pub(crate) struct Functions {
    /// The address of invocations, without a trailing slash.
    pub(crate) url: String,
    shared: Arc<Shared>,
    server: JoinHandle<()>,
}

struct Shared {
    variables: Vec<(&'static str, String)>,
    log: File,
    timeouts: HashMap<String, Duration>,
    functions: SyncMutex<HashMap<String, Arc<Instances>>>,
}

/// The instances of a function.
struct Instances {
    turns: Semaphore,
    all: Vec<Mutex<Instance>>,
    timeout: Duration,
}

impl Functions {
    /// Accepts invocations. Processes get `variables`, and write to `log`.
    pub(crate) async fn start(variables: Vec<(&'static str, String)>, log: File) -> Self {
        let template = fs::read_to_string(workspace().join("template.yaml"));
        let timeouts = template::timeouts(&template.expect("the template can be read"));
        let shared = Arc::new(Shared {
            variables,
            log,
            timeouts: timeouts.expect("the template is valid"),
            functions: SyncMutex::default(),
        });
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.expect("a port is free");
        let url = format!("http://{}", listener.local_addr().expect("it has an address"));
        let routes = Router::new()
            .route("/2015-03-31/functions/{function}/invocations", post(invoke))
            .layer(DefaultBodyLimit::disable())
            .with_state(Arc::clone(&shared));
        let server = tokio::spawn(async move {
            // The server does not end by itself.
            let _ = axum::serve(listener, routes).await;
        });
        Self { url, shared, server }
    }

    /// Returns the ids of a function's processes, as soon as it is idle.
    pub(crate) async fn processes_of(&self, function: &str) -> Vec<u32> {
        let mut processes = Vec::new();
        for instance in &self.shared.instances_of(function).all {
            processes.extend(instance.lock().await.process_id());
        }
        processes
    }

    /// Returns the memory of each function in bytes: that of its largest process. A second process
    /// can start at any time.
    pub(crate) async fn memory(&self) -> BTreeMap<String, u64> {
        let functions: Vec<String> = self.shared.functions().keys().cloned().collect();
        let mut memory = BTreeMap::new();
        for function in functions {
            let processes = self.processes_of(&function).await;
            let largest = processes.into_iter().filter_map(resident_memory).max();
            memory.extend(largest.map(|bytes| (function, bytes)));
        }
        memory
    }
}

impl Drop for Functions {
    fn drop(&mut self) {
        self.server.abort();
    }
}

impl Shared {
    fn functions(&self) -> MutexGuard<'_, HashMap<String, Arc<Instances>>> {
        self.functions.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn instances_of(&self, function: &str) -> Arc<Instances> {
        let mut functions = self.functions();
        if let Some(instances) = functions.get(function) {
            return Arc::clone(instances);
        }
        let all = (0..PROCESSES).map(|_| Mutex::new(self.instance(function))).collect();
        let timeout = self.timeouts[function];
        let instances = Instances { turns: Semaphore::new(PROCESSES), all, timeout };
        Arc::clone(functions.entry(function.to_owned()).or_insert(Arc::new(instances)))
    }

    fn instance(&self, function: &str) -> Instance {
        let (program, variables) = (program(function), self.variables.clone());
        let log = self.log.try_clone().expect("the file handle can be cloned");
        Instance::new(
            function,
            |_| (),
            move || {
                let output = || log.try_clone().map_or_else(|_| Stdio::null(), Stdio::from);
                let mut command = Command::new(&program);
                command.env_clear().envs(variables.iter().cloned());
                command.stdin(Stdio::null()).stdout(output()).stderr(output());
                command
            },
        )
    }
}

fn program(function: &str) -> PathBuf {
    if env::var_os(RELEASE).is_some() {
        return workspace().join("target/release").join(function);
    }
    function_binary(function)
}

async fn invoke(
    State(shared): State<Arc<Shared>>,
    Path(function): Path<String>,
    body: Bytes,
) -> (StatusCode, Bytes) {
    // As in Lambda, an invocation continues if the caller disconnects.
    let outcome = tokio::spawn(async move {
        let instances = shared.instances_of(&function);
        let _turn = instances.turns.acquire().await;
        let idle = instances.all.iter().find_map(|it| it.try_lock().ok());
        let mut instance = match idle {
            Some(idle) => idle,
            None => instances.all[0].lock().await,
        };
        instance.invoke(Event::new(body, instances.timeout)).await.expect("the process starts")
    });
    match outcome.await {
        Ok(Ok(response)) => (StatusCode::OK, response),
        Ok(Err(report)) => (StatusCode::INTERNAL_SERVER_ERROR, report.into()),
        Err(error) => (StatusCode::INTERNAL_SERVER_ERROR, error.to_string().into()),
    }
}

/// Returns the resident memory of a process in bytes, or `None` if it has ended.
fn resident_memory(process: u32) -> Option<u64> {
    let status = fs::read_to_string(format!("/proc/{process}/status")).ok()?;
    let resident = status.lines().find_map(|line| line.strip_prefix("VmRSS:"))?;
    let kilobytes: u64 = resident.trim().trim_end_matches(" kB").parse().ok()?;
    Some(kilobytes * 1_024)
}
