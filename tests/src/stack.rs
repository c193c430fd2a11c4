//! The complete local stack over HTTP for one test: gateway, function binaries and an engine in
//! memory.

use std::collections::BTreeMap;
use std::fs;
use std::net::{Ipv4Addr, TcpListener};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use aws_sdk_dynamodb::Client;
use local::engine::Engine;
use local::gateway::{Gateway, GatewayOptions, Served};
use local::watch::Watch;
use local::{demo, environment, template};
use reqwest::header::{HeaderMap, HeaderValue, ORIGIN};
use reqwest::{Method, RequestBuilder, Response};
use shared::dynamodb::{Store, client};
use shared::projects::api_key::ApiKeyRecord;
use shared::projects::project::ProjectId;
use tempfile::TempDir;

use crate::app::PROJECT;
use crate::call::Reply;
use crate::contract;
use crate::functions::Functions;

/// Maximum delay of a line in the log on a busy machine.
const LOG_PATIENCE: Duration = Duration::from_secs(30);

/// A running stack. It ends with the test.
pub struct Stack {
    /// The address of the API, without a trailing slash.
    pub base_url: String,
    /// The tables behind it.
    pub engine: Engine,
    /// The same tables, through the store.
    pub store: Store,
    /// A client for inspecting the same tables.
    pub client: Client,
    /// The id of the project [`PROJECT`].
    pub project_id: ProjectId,
    /// A key with all scopes for all projects.
    pub key: String,
    /// Client that sends requests like a page, so that all responses must be readable by pages.
    pub http: reqwest::Client,
    served: Arc<Mutex<Vec<Served>>>,
    _gateway: Gateway,
    functions: Functions,
    folder: TempDir,
}

impl Stack {
    /// Starts the stack and waits until its functions respond.
    pub async fn start() -> Self {
        Self::start_without(&[]).await
    }

    /// Starts the stack without some environment variables of the functions.
    pub async fn start_without(missing: &[&str]) -> Self {
        let folder = tempfile::tempdir().expect("the folder is created");
        let address = (Ipv4Addr::LOCALHOST, 0).into();
        let engine = Engine::start(address, None, &crate::tables()).expect("the engine starts");
        let client = client::for_endpoint(&engine.endpoint()).expect("the client is created");
        let store = Store::new(client.clone(), environment::table_prefix());
        let project_id =
            demo::ensure_project(&store, PROJECT, "Shop").await.expect("the project is created");
        let key = demo::create_key(&store, |record| record).await.expect("the key is created");

        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a port is free");
        let base_url = format!("http://{}", listener.local_addr().expect("it has an address"));
        let mut variables = environment::variables(&engine.endpoint());
        variables.extend(environment::outside(&base_url));
        variables.retain(|(name, _)| !missing.contains(name));
        let log = fs::File::create(folder.path().join("log")).expect("the log is created");
        let functions = Functions::start(variables, log).await;
        let served = Arc::new(Mutex::new(Vec::new()));
        let reported = Arc::clone(&served);
        let options = GatewayOptions {
            workspace: &crate::workspace(),
            functions: functions.url.clone(),
            patience: Duration::from_mins(2),
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
            functions,
            folder,
        }
    }

    /// Creates a key that differs from the default one.
    pub async fn key_with(&self, adjust: impl FnOnce(ApiKeyRecord) -> ApiKeyRecord) -> String {
        demo::create_key(&self.store, adjust).await.expect("the key is created")
    }

    /// Returns a request like that of a page, without a key. The first request to a function also
    /// starts it.
    pub fn request(&self, method: Method, path: &str) -> RequestBuilder {
        let url = format!("{}{path}", self.base_url);
        self.http.request(method, url).timeout(Duration::from_mins(2))
    }

    /// Returns a request with the key.
    pub fn with_key(&self, method: Method, path: &str) -> RequestBuilder {
        self.request(method, path).header("x-api-key", &self.key)
    }

    /// Runs a job once.
    pub async fn run_job(&self, function: &str) -> Response {
        let url = format!("{}/2015-03-31/functions/{function}/invocations", self.functions.url);
        self.http.post(url).body("{}").send().await.expect("the job responds")
    }

    /// Runs the jobs on the local stack's schedules while it is polled.
    pub async fn run_schedules(&self) {
        let template = crate::workspace().join("template.yaml");
        let schedules = template::read_local_schedules(&template).expect("the template is valid");
        Watch::run_schedules(&self.functions.url, &schedules, |_| ()).await;
    }

    /// Returns the memory of each function in bytes: that of its largest process.
    pub async fn memory(&self) -> BTreeMap<String, u64> {
        self.functions.memory().await
    }

    /// Returns the ids of a function's processes.
    pub async fn processes_of(&self, function: &str) -> Vec<u32> {
        self.functions.processes_of(function).await
    }

    /// Returns the requests that were completed so far.
    pub fn served(&self) -> Vec<Served> {
        self.served.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Returns the log as soon as it is complete. Another process writes its lines, which can
    /// follow the responses.
    pub async fn log_until(&self, is_complete: impl Fn(&str) -> bool) -> String {
        let started = Instant::now();
        loop {
            let log = self.log();
            if is_complete(&log) {
                return log;
            }
            assert!(started.elapsed() < LOG_PATIENCE, "the log is incomplete:\n{log}");
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }

    /// Returns the log of the functions.
    pub fn log(&self) -> String {
        fs::read_to_string(self.folder.path().join("log")).expect("the log can be read")
    }
}

fn client_of_a_page() -> reqwest::Client {
    let origin = (ORIGIN, HeaderValue::from_static("https://page.example"));
    let client = reqwest::Client::builder().default_headers(HeaderMap::from_iter([origin]));
    client.build().expect("the client is created")
}

/// Sends a request to an operation, and checks the response against `openapi.yaml`.
pub async fn send(operation_id: &str, request: RequestBuilder) -> Reply {
    let response = request.send().await.expect("the API responds");
    let (status, headers) = (response.status().as_u16(), response.headers().clone());
    let text = response.text().await.expect("the body is complete");
    let reply = Reply::new(status, headers, text);
    contract::check(operation_id, &reply);
    reply
}
