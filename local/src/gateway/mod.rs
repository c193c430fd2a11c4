//! API Gateway on a laptop: an HTTP API in front of the functions, as `template.yaml` declares it.
//!
//! It does with a request what API Gateway does, with whatever bytes it has: finds its route, makes an
//! event of payload format 2.0 of it, has the function invoked, and makes a response of what the
//! function answers. What never reaches a function it answers itself, in API Gateway's own form.

mod answer;
mod api;
mod cors;
mod event;
mod functions;
mod mailbox;
mod pages;
mod report;

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

/// The most bytes of a body, as of API Gateway: 10 MB, which it takes for 10 MiB.
pub const MAX_BODY_BYTES: usize = 10 * 1024 * 1024;
/// The most bytes of the request line and all headers together, as of API Gateway.
pub const MAX_HEAD_BYTES: usize = 10_240;

/// API Gateway names each request in its answer.
const REQUEST_ID: HeaderName = HeaderName::from_static("apigw-requestid");

/// Why the gateway could not start.
#[derive(Debug, thiserror::Error)]
pub enum GatewayError {
    /// `template.yaml` does not tell its routes.
    #[error(transparent)]
    Template(#[from] TemplateError),
    /// Its address cannot be used.
    #[error("the gateway cannot listen: {0}")]
    Address(#[from] std::io::Error),
}

/// What a gateway stands in front of.
pub struct GatewayOptions<'a> {
    /// The root of the workspace.
    pub workspace: &'a Path,
    /// Where functions are invoked, without a slash at its end.
    pub functions: String,
    /// Time limit of a function's first answer, which includes a build. Later ones have the function's own
    /// timeout.
    pub patience: Duration,
    /// Is told of each request that was answered.
    pub report: Box<dyn Fn(&Served) + Send + Sync>,
}

/// A running gateway; it ends when it is dropped.
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
    /// Starts to answer what comes to a listener.
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
            // It ends when it is told to; nobody is left to hear of an error then.
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
    let (mut response, failure) = match shared.answer(&parts, body, client, now, id).await {
        Ok(response) => (response, None),
        Err(refusal) => (answer::own(refusal.status), refusal.cause),
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
        wrong: report::what_went_wrong(&response, failure.as_deref()),
    });
    response.map(Body::from)
}

/// A request that the gateway answers itself.
struct Refusal {
    status: StatusCode,
    /// What a person at the terminal should know besides.
    cause: Option<String>,
}

impl From<StatusCode> for Refusal {
    fn from(status: StatusCode) -> Self {
        Self { status, cause: None }
    }
}

impl Shared {
    async fn answer(
        &self,
        parts: &Parts,
        body: Option<Bytes>,
        client: SocketAddr,
        now: shared::timestamp::Timestamp,
        id: uuid::Uuid,
    ) -> Result<Response<Bytes>, Refusal> {
        let path = parts.uri.path();
        if !guard::names_loopback(parts)
            || (mailbox::is_private(path) && guard::is_of_foreign_page(parts))
        {
            let cause = Some(guard::REASON.to_owned());
            return Err(Refusal { status: StatusCode::FORBIDDEN, cause });
        }
        if head_bytes(parts) > MAX_HEAD_BYTES {
            return Err(StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE.into());
        }
        // Where it is set up to let pages call, API Gateway answers all of these by itself.
        if parts.method == Method::OPTIONS && self.cors.is_some() {
            return Ok(answer::empty(StatusCode::NO_CONTENT));
        }
        if let Some(page) = self.api_reference.answer(parts) {
            return Ok(page);
        }
        if let Some(answer) = self.mailbox.answer(parts, body.as_ref(), now) {
            return Ok(answer);
        }
        let (route, parameters) =
            self.api.find(&parts.method, path).ok_or(StatusCode::NOT_FOUND)?;
        let body = body.ok_or(StatusCode::PAYLOAD_TOO_LARGE)?;
        let received = Received { parts, body: &body, client, port: self.port, at: now, id };
        let event = event::of(&received, &route.key, &parameters);
        let answered = self.functions.invoke(&route.function, event).await;
        let answered = answered.map_err(|error| Refusal {
            status: match error {
                InvocationError::TooMany => StatusCode::TOO_MANY_REQUESTS,
                InvocationError::NoAnswer(_) => StatusCode::SERVICE_UNAVAILABLE,
                InvocationError::Failed(_) => StatusCode::INTERNAL_SERVER_ERROR,
            },
            cause: Some(error.to_string()),
        })?;
        answer::of_function(&answered).map_err(|reason| Refusal {
            status: StatusCode::INTERNAL_SERVER_ERROR,
            cause: Some(format!("{} answered no HTTP response: {reason}", route.function)),
        })
    }
}

/// A body, unless it is too large. What is too much is read too, and forgotten: a client that is
/// answered while it still sends may see a broken connection and no answer.
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

/// As API Gateway counts: the request line, and names and values of headers.
fn head_bytes(parts: &Parts) -> usize {
    let line = parts.method.as_str().len() + parts.uri.to_string().len();
    let header = |(name, value): (&HeaderName, &HeaderValue)| name.as_str().len() + value.len();
    line + parts.headers.iter().map(header).sum::<usize>()
}
