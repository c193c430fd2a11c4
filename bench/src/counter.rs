//! A proxy in front of the engine that records every call: body, duration and consumed capacity.
//! It requests the consumed capacity itself. The proxy adds latency, so no request is timed
//! through it.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

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

/// A recorded DynamoDB call.
#[derive(Clone)]
pub(crate) struct Call {
    /// The operation, such as `TransactWriteItems`.
    pub(crate) operation: String,
    pub(crate) body: Bytes,
    /// The time at which the proxy forwarded it to the engine.
    pub(crate) started: Instant,
    /// The time until the engine's response.
    pub(crate) time: Duration,
    /// The consumed capacity units that the engine reported; 0 if the call failed.
    pub(crate) units: f64,
}

impl Call {
    /// `true` if the call only reads.
    pub(crate) fn is_read(&self) -> bool {
        matches!(&*self.operation, "BatchGetItem" | "GetItem" | "Query" | "Scan")
    }

    /// Returns the actions of the call's transaction; `None` if it writes no transaction.
    pub(crate) fn actions(&self) -> Result<Option<Vec<Json>>> {
        if self.operation != "TransactWriteItems" {
            return Ok(None);
        }
        let mut body: Json = serde_json::from_slice(&self.body)?;
        match body["TransactItems"].take() {
            Json::Array(actions) => Ok(Some(actions)),
            _ => Err("a transaction has no actions".into()),
        }
    }
}

/// Returns the time during which at least one call was in progress. Concurrent calls count once.
pub(crate) fn time_in_progress(calls: &[Call]) -> Duration {
    let mut spans: Vec<_> = calls.iter().map(|it| (it.started, it.started + it.time)).collect();
    spans.sort_unstable();
    let (mut total, mut covered) = (Duration::ZERO, None);
    for (start, end) in spans {
        let start = covered.map_or(start, |covered| start.max(covered));
        total += end.saturating_duration_since(start);
        covered = covered.max(Some(end));
    }
    total
}

/// The volume that a request sends to DynamoDB. Sizes are those of the JSON on the wire, which
/// exceed the sizes that DynamoDB compares with its limits.
#[derive(Clone, Copy, Default)]
pub(crate) struct Sent {
    pub(crate) calls: usize,
    /// The number of actions of the largest transaction.
    pub(crate) actions: usize,
    /// The size of the largest transaction, in bytes.
    pub(crate) transaction: usize,
    /// The size of the largest item that a transaction puts, in bytes.
    pub(crate) item: usize,
}

impl Sent {
    /// Returns the volume of a request from its calls.
    pub(crate) fn by(calls: &[Call]) -> Result<Self> {
        let mut sent = Self { calls: calls.len(), ..Self::default() };
        for call in calls {
            let Some(actions) = call.actions()? else { continue };
            sent.actions = sent.actions.max(actions.len());
            sent.transaction = sent.transaction.max(call.body.len());
            let items = actions.iter().filter_map(|action| action.pointer("/Put/Item"));
            sent.item = items.map(|item| item.to_string().len()).fold(sent.item, usize::max);
        }
        Ok(sent)
    }

    /// Returns the maximum of each figure.
    pub(crate) fn max(self, other: Self) -> Self {
        Self {
            calls: self.calls.max(other.calls),
            actions: self.actions.max(other.actions),
            transaction: self.transaction.max(other.transaction),
            item: self.item.max(other.item),
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
pub(crate) struct Counter {
    endpoint: String,
    shared: Shared,
    server: JoinHandle<()>,
}

impl Counter {
    /// Starts the proxy in front of the engine at the endpoint `engine`.
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
            // `serve` only ends when `Drop` aborts this task.
            let _ = axum::serve(listener, routes).await;
        });
        Ok(Self { endpoint, shared, server })
    }

    /// Returns the URL of the proxy.
    pub(crate) fn endpoint(&self) -> &str {
        &self.endpoint
    }

    /// Returns the calls since the previous `take`, and removes them.
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
    let sent = body.clone();

    headers.remove(header::HOST);
    // The forwarded body is longer.
    headers.remove(header::CONTENT_LENGTH);
    let body = with_consumed_capacity(&body).unwrap_or(body);
    let url = format!("{}{uri}", shared.engine);
    let request = shared.client.request(method, url).headers(headers).body(body);
    let started = Instant::now();
    let response = async {
        let response = request.send().await?;
        let (status, mut headers) = (response.status(), response.headers().clone());
        // The body is forwarded as a whole, with its length.
        headers.remove(header::TRANSFER_ENCODING);
        Ok::<_, reqwest::Error>((status, headers, response.bytes().await?))
    };
    let response = response.await;
    let time = started.elapsed();
    let units = response.as_ref().map_or(0.0, |(_, _, body)| consumed_units(body));
    let call = Call { operation, body: sent, started, time, units };
    shared.calls.lock().unwrap_or_else(PoisonError::into_inner).push(call);
    match response {
        Ok(response) => response.into_response(),
        Err(error) => (StatusCode::BAD_GATEWAY, error.to_string()).into_response(),
    }
}

/// Returns the request with `ReturnConsumedCapacity`; `None` if it is not a JSON object.
fn with_consumed_capacity(request: &Bytes) -> Option<Bytes> {
    let mut request: Json = serde_json::from_slice(request).ok()?;
    request.as_object_mut()?.insert("ReturnConsumedCapacity".to_owned(), "TOTAL".into());
    Some(request.to_string().into())
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn concurrent_calls_count_once() {
        let start = Instant::now();
        let call = |from: u64, to: u64| Call {
            operation: "Query".to_owned(),
            body: Bytes::new(),
            started: start + Duration::from_millis(from),
            time: Duration::from_millis(to - from),
            units: 0.0,
        };
        let calls = [call(40, 50), call(0, 20), call(5, 10), call(15, 30)];
        assert_eq!(time_in_progress(&calls), Duration::from_millis(40));
        assert_eq!(time_in_progress(&[]), Duration::ZERO);
    }
}
