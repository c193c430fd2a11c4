//! A local API Gateway: the HTTP API of `template.yaml` in front of the functions.
//!
//! Like API Gateway, it finds the route of a request and invokes the function with an event of
//! payload format 2.0. It converts the result to a response. The gateway responds itself, in API
//! Gateway's format, to requests that do not reach a function.

mod api;
mod cors;
mod event;
mod functions;
mod mailbox;
mod pages;
mod report;
mod response;

use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use axum::Router;
use axum::body::{Body, Bytes};
use axum::extract::{ConnectInfo, Request, State};
use axum::http::request::Parts;
use axum::http::{HeaderName, HeaderValue, Method, Response, StatusCode};
use futures_util::StreamExt;
use shared::app::{Clock, Ids};
use tokio::net::TcpListener;
use tokio::task::JoinHandle;

use crate::guard;
use crate::template::TemplateError;

pub use mailbox::{EVENT_BRIDGE_PATH, SES_PATH};
pub use report::Served;

use api::Api;
use cors::Cors;
use event::Received;
use functions::{Functions, InvocationError};

/// Maximum bytes of a body in API Gateway: documented as 10 MB, enforced as 10 MiB.
pub const MAX_BODY_BYTES: usize = 10 * 1024 * 1024;
/// Maximum bytes of the request line and all headers in API Gateway.
pub const MAX_HEAD_BYTES: usize = 10_240;

/// API Gateway's response header with the request id.
const REQUEST_ID: HeaderName = HeaderName::from_static("apigw-requestid");

/// The reason why the gateway could not start.
#[derive(Debug, thiserror::Error)]
pub enum GatewayError {
    /// The routes in `template.yaml` cannot be read.
    #[error(transparent)]
    Template(#[from] TemplateError),
    /// The address cannot be used.
    #[error("the gateway cannot listen: {0}")]
    Address(#[from] std::io::Error),
}

/// Options of a gateway.
pub struct GatewayOptions<'a> {
    /// The root of the workspace.
    pub workspace: &'a Path,
    /// The address for invocations, without a trailing slash.
    pub functions: String,
    /// Timeout of a function's first response, which can include a build. Later responses have the
    /// function's own timeout.
    pub patience: Duration,
    /// Called for each completed request.
    pub report: Box<dyn Fn(&Served) + Send + Sync>,
}

/// A running gateway. It ends when it is dropped.
pub struct Gateway {
    server: JoinHandle<()>,
}

struct Shared {
    api: Api,
    cors: Option<Cors>,
    functions: Functions,
    api_reference: pages::ApiReference,
    mailbox: mailbox::Mailbox,
    report: Box<dyn Fn(&Served) + Send + Sync>,
    port: u16,
}

impl Gateway {
    /// Starts to serve a listener.
    pub fn start(
        listener: std::net::TcpListener,
        options: GatewayOptions<'_>,
    ) -> Result<Self, GatewayError> {
        listener.set_nonblocking(true)?;
        let port = listener.local_addr()?.port();
        let listener = TcpListener::from_std(listener)?;
        let template = crate::template::read(&options.workspace.join("template.yaml"))?;
        let timeouts = crate::template::timeouts(&template)?;
        let shared = Arc::new(Shared {
            api: Api::parse(&template)?,
            cors: Cors::parse(&template)?,
            functions: Functions::new(options.functions, options.patience, timeouts),
            api_reference: pages::ApiReference::of(options.workspace),
            mailbox: mailbox::Mailbox::default(),
            report: options.report,
            port,
        });
        let service = Router::new().fallback(serve).with_state(shared);
        let service = service.into_make_service_with_connect_info::<SocketAddr>();
        let server = tokio::spawn(async move {
            // Errors after the gateway is dropped have no receiver.
            let _ = axum::serve(listener, service).await;
        });
        Ok(Self { server })
    }
}

impl Drop for Gateway {
    fn drop(&mut self) {
        self.server.abort();
    }
}

async fn serve(
    State(shared): State<Arc<Shared>>,
    ConnectInfo(client): ConnectInfo<SocketAddr>,
    request: Request,
) -> Response<Body> {
    let started = Instant::now();
    let now = Clock::System.now();
    let (parts, body) = request.into_parts();
    let body = read(body).await;
    let id = Ids::Random.new_uuid(now);
    let (mut response, failure) = match shared.respond(&parts, body, client, now, id).await {
        Ok(response) => (response, None),
        Err(rejection) => (response::error(rejection.status), rejection.cause),
    };
    if let Ok(id) = HeaderValue::from_str(&id.to_string()) {
        response.headers_mut().insert(REQUEST_ID, id);
    }
    let is_for_pages = guard::names_loopback(&parts) && !mailbox::is_private(parts.uri.path());
    if let Some(cors) = shared.cors.as_ref().filter(|_| is_for_pages) {
        cors.apply(&parts, response.headers_mut());
    }
    (shared.report)(&Served {
        at: now,
        method: parts.method.to_string(),
        path: parts.uri.path().to_owned(),
        status: response.status().as_u16(),
        duration: started.elapsed(),
        problem: report::problem_of(&response, failure.as_deref()),
    });
    response.map(Body::from)
}

/// An error response of the gateway itself.
struct Rejection {
    status: StatusCode,
    /// Details for the terminal.
    cause: Option<String>,
}

impl From<StatusCode> for Rejection {
    fn from(status: StatusCode) -> Self {
        Self { status, cause: None }
    }
}

impl Shared {
    async fn respond(
        &self,
        parts: &Parts,
        body: Option<Bytes>,
        client: SocketAddr,
        now: shared::timestamp::Timestamp,
        id: uuid::Uuid,
    ) -> Result<Response<Bytes>, Rejection> {
        let path = parts.uri.path();
        if !guard::names_loopback(parts)
            || (mailbox::is_private(path) && guard::is_of_foreign_page(parts))
        {
            let cause = Some(guard::REASON.to_owned());
            return Err(Rejection { status: StatusCode::FORBIDDEN, cause });
        }
        if head_bytes(parts) > MAX_HEAD_BYTES {
            return Err(StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE.into());
        }
        // With CORS configured, API Gateway responds to all OPTIONS requests itself.
        if parts.method == Method::OPTIONS && self.cors.is_some() {
            return Ok(response::empty(StatusCode::NO_CONTENT));
        }
        if let Some(page) = self.api_reference.respond(parts) {
            return Ok(page);
        }
        if let Some(response) = self.mailbox.respond(parts, body.as_ref(), now) {
            return Ok(response);
        }
        let (route, parameters) =
            self.api.find(&parts.method, path).ok_or(StatusCode::NOT_FOUND)?;
        let body = body.ok_or(StatusCode::PAYLOAD_TOO_LARGE)?;
        let received = Received { parts, body: &body, client, port: self.port, at: now, id };
        let event = event::of(&received, &route.key, &parameters);
        let payload = self.functions.invoke(&route.function, event).await;
        let payload = payload.map_err(|error| Rejection {
            status: match error {
                InvocationError::TooMany => StatusCode::TOO_MANY_REQUESTS,
                InvocationError::NoResponse(_) => StatusCode::SERVICE_UNAVAILABLE,
                InvocationError::Failed(_) => StatusCode::INTERNAL_SERVER_ERROR,
            },
            cause: Some(error.to_string()),
        })?;
        response::from_function(&payload).map_err(|reason| Rejection {
            status: StatusCode::INTERNAL_SERVER_ERROR,
            cause: Some(format!("{} returned no HTTP response: {reason}", route.function)),
        })
    }
}

/// Reads a body. Returns `None` if it is too large, but also reads and discards the rest. Clients
/// that are still sending when the response arrives can see a broken connection instead of the
/// response.
async fn read(body: Body) -> Option<Bytes> {
    let mut chunks = body.into_data_stream();
    let (mut read, mut length) = (Vec::new(), 0_usize);
    while let Some(chunk) = chunks.next().await {
        let Ok(chunk) = chunk else { break };
        length = length.saturating_add(chunk.len());
        if length <= MAX_BODY_BYTES {
            read.extend_from_slice(&chunk);
        } else {
            read = Vec::new();
        }
    }
    (length <= MAX_BODY_BYTES).then(|| Bytes::from(read))
}

/// Returns the size of the head as API Gateway counts it: the request line, and names and values of
/// headers.
fn head_bytes(parts: &Parts) -> usize {
    let line = parts.method.as_str().len() + parts.uri.to_string().len();
    let header = |(name, value): (&HeaderName, &HeaderValue)| name.as_str().len() + value.len();
    line + parts.headers.iter().map(header).sum::<usize>()
}
