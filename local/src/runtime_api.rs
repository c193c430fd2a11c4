//! The Lambda Runtime API of one function process, on loopback. Like Lambda, it hands out one event
//! at a time and receives the outcome.
//!
//! Unlike with `cargo lambda watch`, the caller starts the function's process, so it can inspect
//! and end it.

use std::net::{Ipv4Addr, SocketAddr};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use axum::Router;
use axum::body::Bytes;
use axum::extract::{DefaultBodyLimit, Path, State};
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use axum::serve::ListenerExt;
use tokio::net::TcpListener;
use tokio::sync::{mpsc, oneshot};
use tokio::task::JoinHandle;

/// Environment variable with the address of a function's Runtime API.
pub(crate) const RUNTIME_API_VARIABLE: &str = "AWS_LAMBDA_RUNTIME_API";
/// Environment variable with a function's name.
pub(crate) const FUNCTION_VARIABLE: &str = "AWS_LAMBDA_FUNCTION_NAME";

/// A function's response to one event.
#[derive(Debug)]
pub struct InvocationResponse {
    /// The time when the function fetched the event.
    pub taken: Instant,
    /// The time when the response had arrived.
    pub arrived: Instant,
    /// The response, as sent.
    pub body: Bytes,
}

/// The reason why there is no response.
#[derive(Debug, thiserror::Error)]
pub enum InvocationError {
    /// The function reported an error for the event.
    #[error("the function failed: {0}")]
    Failed(String),
    /// The function reported that it cannot start.
    #[error("the function could not start: {0}")]
    NotStarted(String),
    /// The server ended.
    #[error("the Runtime API ended before the function responded")]
    Ended,
}

type Outcome = Result<InvocationResponse, InvocationError>;

/// An event for a function.
#[derive(Debug, Clone)]
pub struct Event {
    /// The id of the invocation.
    pub(crate) id: String,
    /// The tracing header.
    pub(crate) trace: String,
    pub(crate) body: Bytes,
    /// The time until the event's deadline.
    pub(crate) time: Duration,
}

impl Event {
    /// Returns an event with an id of its own.
    pub fn new(body: impl Into<Bytes>, time: Duration) -> Self {
        static NUMBER: AtomicU64 = AtomicU64::new(0);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let id = format!("c6af9ac6-7b61-41e6-8a7a-{number:012x}");
        let trace = "Root=1-5759e988-bd862e3fe1be46a994272793;Parent=53995c3f42cd8ad8;Sampled=0";
        Self { id, trace: trace.to_owned(), body: body.into(), time }
    }
}

struct Invocation {
    event: Event,
    outcome: oneshot::Sender<Outcome>,
}

struct RunningFunction {
    id: String,
    taken: Instant,
    outcome: oneshot::Sender<Outcome>,
}

struct Shared {
    waiting: tokio::sync::Mutex<mpsc::UnboundedReceiver<Invocation>>,
    running: Mutex<Option<RunningFunction>>,
}

/// A running server. It ends when it is dropped.
pub struct RuntimeApi {
    address: SocketAddr,
    queue: mpsc::UnboundedSender<Invocation>,
    shared: Arc<Shared>,
    server: JoinHandle<()>,
}

impl RuntimeApi {
    /// Starts a server on a free port.
    pub async fn start() -> std::io::Result<Self> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await?;
        let address = listener.local_addr()?;
        // With Nagle's algorithm, a response in two parts would wait 40 ms for an acknowledgment.
        let listener = listener.tap_io(|stream| {
            let _ = stream.set_nodelay(true);
        });
        let (queue, waiting) = mpsc::unbounded_channel();
        let shared = Arc::new(Shared {
            waiting: tokio::sync::Mutex::new(waiting),
            running: Mutex::new(None),
        });
        let routes = Router::new()
            .route("/2018-06-01/runtime/invocation/next", get(next))
            .route("/2018-06-01/runtime/invocation/{id}/response", post(response))
            .route("/2018-06-01/runtime/invocation/{id}/error", post(error))
            .route("/2018-06-01/runtime/init/error", post(error_at_init))
            .layer(DefaultBodyLimit::disable())
            .with_state(Arc::clone(&shared));
        let server = tokio::spawn(async move {
            // The server does not end by itself.
            let _ = axum::serve(listener, routes).await;
        });
        Ok(Self { address, queue, shared, server })
    }

    /// Returns `true` if the function has fetched an event, and not yet reported its outcome.
    pub(crate) fn is_running(&self) -> bool {
        self.shared.running.lock().unwrap_or_else(PoisonError::into_inner).is_some()
    }

    /// Returns its address, for [`RUNTIME_API_VARIABLE`].
    pub(crate) fn address(&self) -> String {
        self.address.to_string()
    }

    /// Returns the environment variables that Lambda sets for a function.
    pub fn variables(&self, function: &str) -> Vec<(&'static str, String)> {
        vec![
            (RUNTIME_API_VARIABLE, self.address()),
            (FUNCTION_VARIABLE, function.to_owned()),
            ("AWS_LAMBDA_FUNCTION_VERSION", "$LATEST".to_owned()),
            ("AWS_LAMBDA_FUNCTION_MEMORY_SIZE", "256".to_owned()),
            ("AWS_LAMBDA_LOG_GROUP_NAME", format!("/aws/lambda/{function}")),
            ("AWS_LAMBDA_LOG_STREAM_NAME", "local".to_owned()),
            ("AWS_LAMBDA_LOG_FORMAT", "JSON".to_owned()),
            ("AWS_LAMBDA_LOG_LEVEL", "INFO".to_owned()),
            ("AWS_LAMBDA_INITIALIZATION_TYPE", "on-demand".to_owned()),
        ]
    }

    /// Passes an event to the function, as soon as the function fetches it, and waits for the
    /// outcome. The event's deadline is not enforced.
    pub async fn invoke(&self, event: Event) -> Outcome {
        let (outcome, receiver) = oneshot::channel();
        let invocation = Invocation { event, outcome };
        self.queue.send(invocation).map_err(|_| InvocationError::Ended)?;
        receiver.await.unwrap_or(Err(InvocationError::Ended))
    }
}

impl Drop for RuntimeApi {
    fn drop(&mut self) {
        self.server.abort();
    }
}

impl Shared {
    fn begin(&self, running: RunningFunction) {
        *self.running.lock().unwrap_or_else(PoisonError::into_inner) = Some(running);
    }

    /// Ends the running invocation, if it has this id.
    fn end(&self, id: &str) -> Option<RunningFunction> {
        let mut running = self.running.lock().unwrap_or_else(PoisonError::into_inner);
        running.take_if(|running| running.id == id)
    }
}

async fn next(State(shared): State<Arc<Shared>>) -> Response {
    let Some(invocation) = shared.waiting.lock().await.recv().await else {
        return StatusCode::GONE.into_response();
    };
    let Invocation { event: Event { id, trace, body, time }, outcome } = invocation;
    let deadline = SystemTime::now() + time;
    let deadline = deadline.duration_since(UNIX_EPOCH).unwrap_or_default().as_millis();
    let headers = [
        ("content-type", "application/json".to_owned()),
        ("lambda-runtime-aws-request-id", id.clone()),
        ("lambda-runtime-deadline-ms", deadline.to_string()),
        (
            "lambda-runtime-invoked-function-arn",
            "arn:aws:lambda:eu-west-1:123456789012:function:local".to_owned(),
        ),
        ("lambda-runtime-trace-id", trace),
    ];
    shared.begin(RunningFunction { id, taken: Instant::now(), outcome });
    (headers, body).into_response()
}

async fn response(
    State(shared): State<Arc<Shared>>,
    Path(id): Path<String>,
    body: Bytes,
) -> StatusCode {
    let arrived = Instant::now();
    // The receiver can be gone.
    if let Some(RunningFunction { taken, outcome, .. }) = shared.end(&id) {
        let _ = outcome.send(Ok(InvocationResponse { taken, arrived, body }));
    }
    StatusCode::ACCEPTED
}

async fn error(
    State(shared): State<Arc<Shared>>,
    Path(id): Path<String>,
    body: String,
) -> StatusCode {
    if let Some(running) = shared.end(&id) {
        let _ = running.outcome.send(Err(InvocationError::Failed(body)));
    }
    StatusCode::ACCEPTED
}

async fn error_at_init(State(shared): State<Arc<Shared>>, body: String) -> StatusCode {
    if let Some(invocation) = shared.waiting.lock().await.recv().await {
        let _ = invocation.outcome.send(Err(InvocationError::NotStarted(body)));
    }
    StatusCode::ACCEPTED
}
