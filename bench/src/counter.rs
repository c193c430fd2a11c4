//! A proxy in front of the engine that records every call and its consumed capacity. The proxy adds
//! latency, so no request is timed through it.

use std::sync::{Arc, Mutex, PoisonError};

use axum::Router;
use axum::body::Bytes;
use axum::extract::{DefaultBodyLimit, State};
use axum::http::{HeaderMap, Method, StatusCode, Uri, header};
use axum::response::{IntoResponse, Response};
use axum::serve::ListenerExt;
use serde_json::Value as Json;
use tokio::net::TcpListener;
use tokio::task::JoinHandle;

use crate::Result;
use crate::process::Process;
use crate::program::{Program, Programs};
use crate::stack::Stack;

/// A recorded DynamoDB call.
#[derive(Clone)]
pub(crate) struct Call {
    /// The operation, such as `TransactWriteItems`.
    pub(crate) operation: String,
    pub(crate) body: Bytes,
    /// The consumed capacity units, which functions request; 0 if the call failed.
    pub(crate) units: f64,
}

impl Call {
    /// `true` if the call only reads.
    pub(crate) fn is_read(&self) -> bool {
        matches!(&*self.operation, "BatchGetItem" | "GetItem" | "Query" | "Scan")
    }

    /// Returns the actions of the call's transaction; empty if it writes no transaction.
    pub(crate) fn actions(&self) -> Vec<Json> {
        let mut body: Json = serde_json::from_slice(&self.body).unwrap_or_default();
        match body["TransactItems"].take() {
            Json::Array(actions) => actions,
            _ => Vec::new(),
        }
    }
}

#[derive(Clone)]
struct Shared {
    engine: String,
    client: reqwest::Client,
    calls: Arc<Mutex<Vec<Call>>>,
}

/// The proxy.
struct Counter {
    endpoint: String,
    shared: Shared,
    server: JoinHandle<()>,
}

impl Counter {
    /// Starts the proxy in front of the engine at the endpoint `engine`.
    async fn start(engine: String) -> Result<Self> {
        let listener = TcpListener::bind(("127.0.0.1", 0)).await?;
        let endpoint = format!("http://{}", listener.local_addr()?);
        let listener = listener.tap_io(|stream| {
            let _ = stream.set_nodelay(true);
        });
        let shared = Shared { engine, client: reqwest::Client::new(), calls: Arc::default() };
        let routes = Router::new()
            .fallback(forward)
            .layer(DefaultBodyLimit::disable())
            .with_state(shared.clone());
        let server = tokio::spawn(async move {
            // `serve` only ends when `Drop` aborts this task.
            let _ = axum::serve(listener, routes).await;
        });
        Ok(Self { endpoint, shared, server })
    }

    /// Returns the URL of the proxy.
    fn endpoint(&self) -> &str {
        &self.endpoint
    }

    /// Returns the calls since the previous `take`, and removes them.
    fn take(&self) -> Vec<Call> {
        std::mem::take(&mut self.shared.calls.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

/// Sends requests to a new process of a program, and returns the calls of each.
pub(crate) async fn calls(
    programs: &Programs,
    (program, variables): (Program, &[(&str, String)]),
    stack: &Stack,
    status: u64,
    requests: impl IntoIterator<Item = Bytes>,
) -> Result<Vec<Vec<Call>>> {
    let counter = Counter::start(stack.endpoint()).await?;
    let mut process = Process::start(programs, program, counter.endpoint(), variables).await?;
    let mut calls = Vec::new();
    for request in requests {
        process.expect(status, request).await?;
        calls.push(counter.take());
    }
    process.stop().await?;
    Ok(calls)
}

/// Returns the largest figure of warm requests. The first request is not warm.
pub(crate) fn most_of_warm(calls: &[Vec<Call>], figure: impl Fn(&[Call]) -> f64) -> f64 {
    calls.iter().skip(1).map(|calls| figure(calls)).fold(f64::NAN, f64::max)
}

impl Drop for Counter {
    fn drop(&mut self) {
        self.server.abort();
    }
}

async fn forward(
    State(shared): State<Shared>,
    method: Method,
    uri: Uri,
    mut headers: HeaderMap,
    body: Bytes,
) -> Response {
    let target = headers.get("x-amz-target").and_then(|target| target.to_str().ok());
    let operation = target.unwrap_or_default().rsplit('.').next().unwrap_or_default().to_owned();
    let sent = body.clone();

    headers.remove(header::HOST);
    let url = format!("{}{uri}", shared.engine);
    let request = shared.client.request(method, url).headers(headers).body(body);
    let response = async {
        let response = request.send().await?;
        let (status, mut headers) = (response.status(), response.headers().clone());
        // The body is forwarded as a whole, with its length.
        headers.remove(header::TRANSFER_ENCODING);
        Ok::<_, reqwest::Error>((status, headers, response.bytes().await?))
    };
    let response = response.await;
    let units = response.as_ref().map_or(0.0, |(_, _, body)| consumed_units(body));
    let call = Call { operation, body: sent, units };
    shared.calls.lock().unwrap_or_else(PoisonError::into_inner).push(call);
    match response {
        Ok(response) => response.into_response(),
        Err(error) => (StatusCode::BAD_GATEWAY, error.to_string()).into_response(),
    }
}

/// Returns the capacity units in a response, which has one figure, or one for each table.
fn consumed_units(response: &Bytes) -> f64 {
    let response: Json = serde_json::from_slice(response).unwrap_or_default();
    let units = |capacity: &Json| capacity["CapacityUnits"].as_f64().unwrap_or_default();
    match &response["ConsumedCapacity"] {
        Json::Array(tables) => tables.iter().map(units).sum(),
        capacity => units(capacity),
    }
}
