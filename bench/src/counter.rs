//! A proxy in front of the engine that notes every call: how many round trips a request makes, and
//! what it sends. It costs time, so nothing is timed through it.

use std::sync::{Arc, Mutex, PoisonError};

use axum::Router;
use axum::body::Bytes;
use axum::extract::{DefaultBodyLimit, State};
use axum::http::{HeaderMap, Method, StatusCode, Uri, header};
use axum::response::{IntoResponse, Response};
use axum::serve::ListenerExt;
use tokio::net::TcpListener;
use tokio::task::JoinHandle;

use crate::Result;

/// A call of DynamoDB.
#[derive(Clone)]
pub(crate) struct Call {
    /// The operation, such as `TransactWriteItems`.
    pub(crate) operation: String,
    /// What was sent.
    pub(crate) body: Bytes,
}

#[derive(Clone)]
struct Shared {
    engine: String,
    client: reqwest::Client,
    calls: Arc<Mutex<Vec<Call>>>,
}

/// The proxy.
pub(crate) struct Counter {
    endpoint: String,
    shared: Shared,
    server: JoinHandle<()>,
}

impl Counter {
    /// Starts the proxy in front of the engine at an endpoint.
    pub(crate) async fn start(engine: String) -> Result<Self> {
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
            // It never ends by itself.
            let _ = axum::serve(listener, routes).await;
        });
        Ok(Self { endpoint, shared, server })
    }

    /// Where it listens.
    pub(crate) fn endpoint(&self) -> &str {
        &self.endpoint
    }

    /// The calls since it was last asked.
    pub(crate) fn take(&self) -> Vec<Call> {
        std::mem::take(&mut self.shared.calls.lock().unwrap_or_else(PoisonError::into_inner))
    }
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
    let call = Call { operation, body: body.clone() };
    shared.calls.lock().unwrap_or_else(PoisonError::into_inner).push(call);

    headers.remove(header::HOST);
    let url = format!("{}{uri}", shared.engine);
    let request = shared.client.request(method, url).headers(headers).body(body);
    let answer = async {
        let answer = request.send().await?;
        let (status, mut headers) = (answer.status(), answer.headers().clone());
        // The body is sent on whole, and its length told anew.
        headers.remove(header::TRANSFER_ENCODING);
        Ok::<_, reqwest::Error>((status, headers, answer.bytes().await?))
    };
    match answer.await {
        Ok(answer) => answer.into_response(),
        Err(error) => (StatusCode::BAD_GATEWAY, error.to_string()).into_response(),
    }
}
