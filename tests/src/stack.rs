//! The whole local stack over HTTP: the gateway, `cargo lambda watch`, the function binaries and an
//! engine in memory, all of it for one test.

use std::collections::{BTreeMap, HashMap};
use std::fs;
use std::iter;
use std::net::{Ipv4Addr, TcpListener};
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use aws_sdk_dynamodb::Client;
use local::engine::Engine;
use local::gateway::{Gateway, GatewayOptions, Served};
use local::watch::{Output, Watch, WatchOptions};
use local::{demo, environment, template};
use reqwest::header::{HeaderMap, HeaderValue, ORIGIN};
use reqwest::{RequestBuilder, Response};
use shared::dynamodb::{Store, client};
use shared::projects::api_key::ApiKeyRecord;
use shared::projects::project::ProjectId;
use tempfile::TempDir;

use crate::app::PROJECT;
use crate::call::Reply;
use crate::contract;

/// A running stack; all of it ends with the test.
pub struct Stack {
    /// The address of the API, without a slash at its end.
    pub base_url: String,
    /// The tables behind it.
    pub engine: Engine,
    /// The same tables, through the store.
    pub store: Store,
    /// The same tables, for looking into them.
    pub client: Client,
    /// The id of the project [`PROJECT`].
    pub project_id: ProjectId,
    /// A key with all scopes for all projects.
    pub key: String,
    /// For requests, as of a page: whatever is answered, pages must be able to read it.
    pub http: reqwest::Client,
    served: Arc<Mutex<Vec<Served>>>,
    _gateway: Gateway,
    watch: Watch,
    folder: TempDir,
}

impl Stack {
    /// Starts the stack and waits until its functions answer.
    pub async fn start() -> Self {
        let folder = tempfile::tempdir().expect("a folder can be made");
        let address = (Ipv4Addr::LOCALHOST, 0).into();
        let engine = Engine::start(address, None, &crate::tables()).expect("it starts");
        let client = client::for_endpoint(&engine.endpoint()).expect("a client is made");
        let store = Store::new(client.clone(), environment::table_prefix());
        let project_id = demo::ensure_project(&store, PROJECT, "Shop").await.expect("it is made");
        let key = demo::create_key(&store, |record| record).await.expect("it is made");

        let environment_file = folder.path().join(environment::FILE);
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a port is free");
        let base_url = format!("http://{}", listener.local_addr().expect("it has an address"));
        let mut variables = environment::variables(&engine.endpoint());
        variables.extend(environment::outside(&base_url));
        environment::write(&environment_file, &variables).expect("it is written");
        let log = fs::File::create(folder.path().join("log")).expect("a log can be made");
        let mut watch = Watch::start(WatchOptions {
            workspace: &crate::workspace(),
            environment: &environment_file,
            runner: &crate::function_binary("waymark-local"),
            reload: false,
            output: Output::File(log),
        })
        .expect("cargo lambda watch starts");
        let limit = Duration::from_mins(2);
        if let Err(error) = watch.until_answered("create-feature-flag", limit).await {
            let log = fs::read_to_string(folder.path().join("log")).unwrap_or_default();
            panic!("{error}\n{log}");
        }
        let served = Arc::new(Mutex::new(Vec::new()));
        let reported = Arc::clone(&served);
        let options = GatewayOptions {
            workspace: &crate::workspace(),
            functions: watch.url().to_owned(),
            patience: limit,
            report: Box::new(move |request| {
                reported.lock().unwrap_or_else(PoisonError::into_inner).push(request.clone());
            }),
        };
        let gateway = Gateway::start(listener, options).expect("the gateway starts");
        Self {
            base_url,
            engine,
            store,
            client,
            project_id,
            key,
            http: client_of_a_page(),
            served,
            _gateway: gateway,
            watch,
            folder,
        }
    }

    /// A key that differs from the usual one.
    pub async fn key_with(&self, adjust: impl FnOnce(ApiKeyRecord) -> ApiKeyRecord) -> String {
        demo::create_key(&self.store, adjust).await.expect("it is made")
    }

    /// Runs a function of a schedule once.
    pub async fn run_job(&self, function: &str) -> Response {
        let url = format!("{}/2015-03-31/functions/{function}/invocations", self.watch.url());
        self.http.post(url).body("{}").send().await.expect("it is answered")
    }

    /// Runs the functions of schedules as often as the local stack does, for as long as it is polled.
    pub async fn run_schedules(&self) {
        let template = crate::workspace().join("template.yaml");
        let schedules = template::read_hurried_schedules(&template).expect("the template is there");
        Watch::run_schedules(self.watch.url(), &schedules, |_| ()).await;
    }

    /// The memory of each function, in bytes: of all its processes, by their program.
    pub fn memory(&self) -> BTreeMap<String, u64> {
        let mut memory = BTreeMap::new();
        for (_, process) in self.processes() {
            *memory.entry(process.program).or_default() += process.bytes;
        }
        memory
    }

    /// The ids of a function's processes.
    pub fn processes_of(&self, function: &str) -> Vec<i32> {
        let of_function = self.processes().filter(|(_, process)| process.program == function);
        of_function.map(|(id, _)| id).collect()
    }

    /// All processes below `cargo lambda watch`, by id.
    fn processes(&self) -> impl Iterator<Item = (i32, Process)> {
        let root = self.watch.process_id().expect("it runs");
        let all = fs::read_dir("/proc").expect("this is Linux").flatten();
        let all: HashMap<i32, Process> =
            all.filter_map(|entry| read_process(&entry.path())).collect();
        let parents: HashMap<i32, i32> = all.iter().map(|(id, it)| (*id, it.parent)).collect();
        let is_below = move |(_, process): &(i32, Process)| {
            let above = iter::successors(Some(process.parent), |id| parents.get(id).copied());
            above.into_iter().any(|id| id == root)
        };
        all.into_iter().filter(is_below)
    }

    /// The requests that were answered so far.
    pub fn served(&self) -> Vec<Served> {
        self.served.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// All that the functions and `cargo lambda watch` have logged so far.
    pub fn log(&self) -> String {
        fs::read_to_string(self.folder.path().join("log")).expect("the log can be read")
    }
}

/// A process of this machine.
struct Process {
    parent: i32,
    program: String,
    /// How much memory it has.
    bytes: u64,
}

/// A process by its number, unless it has just ended.
fn read_process(folder: &Path) -> Option<(i32, Process)> {
    let number = folder.file_name()?.to_str()?.parse().ok()?;
    let stat = fs::read_to_string(folder.join("stat")).ok()?;
    // After the program's name, in parentheses, come the state and the parent.
    let (_, rest) = stat.rsplit_once(") ")?;
    let parent = rest.split(' ').nth(1)?.parse().ok()?;
    let program = fs::read_link(folder.join("exe")).ok()?.file_name()?.to_str()?.to_owned();
    let status = fs::read_to_string(folder.join("status")).ok()?;
    let resident = status.lines().find_map(|line| line.strip_prefix("VmRSS:"))?;
    let kilobytes: u64 = resident.trim().trim_end_matches(" kB").parse().ok()?;
    Some((number, Process { parent, program, bytes: kilobytes * 1_024 }))
}

fn client_of_a_page() -> reqwest::Client {
    let origin = (ORIGIN, HeaderValue::from_static("https://page.example"));
    let client = reqwest::Client::builder().default_headers(HeaderMap::from_iter([origin]));
    client.build().expect("it is made")
}

/// Sends a request to an operation, and holds `openapi.yaml` against the answer.
pub async fn send(operation_id: &str, request: RequestBuilder) -> Reply {
    let response = request.send().await.expect("it is answered");
    let (status, headers) = (response.status().as_u16(), response.headers().clone());
    let text = response.text().await.expect("the answer has an end");
    let reply = Reply::new(status, headers, text);
    contract::check(operation_id, &reply);
    reply
}
