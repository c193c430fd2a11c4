//! A proxy in front of the engine that notes every call: how many round trips a request makes, what
//! it sends, how long the engine takes, and the capacity that is consumed, which it asks for itself.
//! It costs time, so no request is timed through it.

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

/// A call of DynamoDB.
#[derive(Clone)]
pub(crate) struct Call {
    /// The operation, such as `TransactWriteItems`.
    pub(crate) operation: String,
    /// What was sent.
    pub(crate) body: Bytes,
    /// When it was sent on to the engine.
    pub(crate) started: Instant,
    /// How long the engine took to answer.
    pub(crate) time: Duration,
    /// The capacity units that it consumed, by the engine's account; 0 if it failed.
    pub(crate) units: f64,
}

impl Call {
    /// Whether it only reads.
    pub(crate) fn is_read(&self) -> bool {
        matches!(&*self.operation, "BatchGetItem" | "GetItem" | "Query" | "Scan")
    }

    /// The actions of the transaction that it writes; `None` if it writes none.
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

/// How long at least one of the calls was under way: those that are made at once count once.
pub(crate) fn time_under_way(calls: &[Call]) -> Duration {
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

/// What a request sends to DynamoDB. Bytes are those of the JSON in which it is sent, more than
/// DynamoDB counts against its limits.
#[derive(Clone, Copy, Default)]
pub(crate) struct Sent {
    pub(crate) calls: usize,
    /// The most actions of a transaction.
    pub(crate) actions: usize,
    /// The bytes of the largest transaction.
    pub(crate) transaction: usize,
    /// The bytes of the largest item that a transaction puts.
    pub(crate) item: usize,
}

impl Sent {
    /// What a request sent by its calls.
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

    /// Of each figure the greater.
    pub(crate) fn most(self, other: Self) -> Self {
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
    let sent = body.clone();

    headers.remove(header::HOST);
    // What is sent on is longer.
    headers.remove(header::CONTENT_LENGTH);
    let body = with_consumed_capacity(&body).unwrap_or(body);
    let url = format!("{}{uri}", shared.engine);
    let request = shared.client.request(method, url).headers(headers).body(body);
    let started = Instant::now();
    let answer = async {
        let answer = request.send().await?;
        let (status, mut headers) = (answer.status(), answer.headers().clone());
        // The body is sent on whole, and its length told anew.
        headers.remove(header::TRANSFER_ENCODING);
        Ok::<_, reqwest::Error>((status, headers, answer.bytes().await?))
    };
    let answer = answer.await;
    let time = started.elapsed();
    let units = answer.as_ref().map_or(0.0, |(_, _, answer)| consumed_units(answer));
    let call = Call { operation, body: sent, started, time, units };
    shared.calls.lock().unwrap_or_else(PoisonError::into_inner).push(call);
    match answer {
        Ok(answer) => answer.into_response(),
        Err(error) => (StatusCode::BAD_GATEWAY, error.to_string()).into_response(),
    }
}

/// The request, asking also for the capacity that it consumes.
fn with_consumed_capacity(request: &Bytes) -> Option<Bytes> {
    let mut request: Json = serde_json::from_slice(request).ok()?;
    request.as_object_mut()?.insert("ReturnConsumedCapacity".to_owned(), "TOTAL".into());
    Some(request.to_string().into())
}

/// The capacity units that an answer tells of: one figure, or one for each table.
fn consumed_units(answer: &Bytes) -> f64 {
    let answer: Json = serde_json::from_slice(answer).unwrap_or_default();
    let units = |capacity: &Json| capacity["CapacityUnits"].as_f64().unwrap_or_default();
    match &answer["ConsumedCapacity"] {
        Json::Array(tables) => tables.iter().map(units).sum(),
        capacity => units(capacity),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn calls_that_are_under_way_at_once_count_once() {
        let start = Instant::now();
        let call = |from: u64, to: u64| Call {
            operation: "Query".to_owned(),
            body: Bytes::new(),
            started: start + Duration::from_millis(from),
            time: Duration::from_millis(to - from),
            units: 0.0,
        };
        let calls = [call(40, 50), call(0, 20), call(5, 10), call(15, 30)];
        assert_eq!(time_under_way(&calls), Duration::from_millis(40));
        assert_eq!(time_under_way(&[]), Duration::ZERO);
    }
}
