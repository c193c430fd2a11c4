//! The whole local stack over HTTP: `cargo lambda watch`, the function binaries and an engine in
//! memory, all of it for one test.

use std::fs;
use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::time::Duration;

use aws_sdk_dynamodb::Client;
use lambda_http::http::{HeaderMap, HeaderName};
use local::engine::Engine;
use local::watch::{Watch, WatchOptions};
use local::{demo, environment};
use reqwest::RequestBuilder;
use serde_json::Value;
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
    /// For requests.
    pub http: reqwest::Client,
    _watch: Watch,
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
        let variables = environment::variables(&engine.endpoint());
        environment::write(&environment_file, &variables).expect("it is written");
        let address = free_address();
        let log = fs::File::create(folder.path().join("log")).expect("a log can be made");
        let mut watch = Watch::start(WatchOptions {
            workspace: &crate::workspace(),
            address,
            environment: &environment_file,
            reload: false,
            log: Some(log),
        })
        .expect("cargo lambda watch starts");
        let base_url = format!("http://{address}");
        let url = format!("{base_url}/v0/project/{PROJECT}/feature-flags");
        if let Err(error) = watch.until_answered(&url, Duration::from_mins(2)).await {
            let log = fs::read_to_string(folder.path().join("log")).unwrap_or_default();
            panic!("{error}\n{log}");
        }
        let http = reqwest::Client::new();
        Self { base_url, engine, store, client, project_id, key, http, _watch: watch, folder }
    }

    /// A key that differs from the usual one.
    pub async fn key_with(&self, adjust: impl FnOnce(ApiKeyRecord) -> ApiKeyRecord) -> String {
        demo::create_key(&self.store, adjust).await.expect("it is made")
    }

    /// Hands a function an event of API Gateway as it is, and answers its response. For what
    /// `cargo lambda watch` does not let through: it answers a body that is not UTF-8 itself.
    pub async fn invoke(&self, function: &str, event: &Value) -> Reply {
        let url = format!("{}/2015-03-31/functions/{function}/invocations", self.base_url);
        let response = self.http.post(url).json(event).send().await.expect("it is answered");
        let response: Value = response.json().await.expect("a response is JSON");
        let mut headers = HeaderMap::new();
        for (name, value) in response["headers"].as_object().expect("there are headers") {
            let name: HeaderName = name.parse().expect("it is a name");
            headers.insert(name, value.as_str().expect("text").parse().expect("it is a value"));
        }
        let status = response["statusCode"].as_u64().and_then(|status| status.try_into().ok());
        let text = response["body"].as_str().unwrap_or_default().to_owned();
        Reply::new(status.expect("there is a status"), headers, text)
    }

    /// All that the functions and `cargo lambda watch` have logged so far.
    pub fn log(&self) -> String {
        fs::read_to_string(self.folder.path().join("log")).expect("the log can be read")
    }
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

fn free_address() -> SocketAddr {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a port is free");
    listener.local_addr().expect("it has an address")
}
