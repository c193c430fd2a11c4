//! A proxy in front of the API that records exchanges and can reject requests.

use std::net::Ipv4Addr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use axum::Router;
use axum::body::{Body, Bytes};
use axum::extract::State;
use axum::http::header::{
    CONTENT_ENCODING, CONTENT_LENGTH, ETAG, HOST, IF_NONE_MATCH, RETRY_AFTER, TRANSFER_ENCODING,
};
use axum::http::{HeaderMap, HeaderName, Method, Response, StatusCode, Uri};
use tokio::net::TcpListener;
use tokio::task::JoinHandle;

/// A running proxy. It ends with the test.
pub(crate) struct RecordingProxy {
    /// The address, without a trailing slash.
    pub(crate) base_url: String,
    shared: Arc<Shared>,
    task: JoinHandle<()>,
}

/// A forwarded request and its response.
#[derive(Debug, Clone)]
pub(crate) struct Exchange {
    pub(crate) at: Instant,
    pub(crate) responded_at: Instant,
    pub(crate) path: String,
    pub(crate) body: Bytes,
    pub(crate) content_encoding: Option<String>,
    pub(crate) if_none_match: Option<String>,
    pub(crate) status: u16,
    pub(crate) etag: Option<String>,
    pub(crate) response_body: String,
}

struct Shared {
    upstream: String,
    http: reqwest::Client,
    exchanges: Mutex<Vec<Exchange>>,
    /// The `retry-after` of the next rejection.
    rejection: Mutex<Option<String>>,
}

impl RecordingProxy {
    /// Starts to forward requests to the API at `upstream`.
    pub(crate) async fn start(upstream: &str) -> Self {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.expect("a port is free");
        let address = listener.local_addr().expect("it has an address");
        let shared = Arc::new(Shared {
            upstream: upstream.to_owned(),
            http: reqwest::Client::new(),
            exchanges: Mutex::default(),
            rejection: Mutex::default(),
        });
        let router = Router::new().fallback(exchange).with_state(Arc::clone(&shared));
        let server = axum::serve(listener, router);
        let task = tokio::spawn(async move { server.await.expect("the server runs") });
        Self { base_url: format!("http://{address}"), shared, task }
    }

    /// Rejects the next request with 429.
    pub(crate) fn reject_next(&self, retry_after: &str) {
        *locked(&self.shared.rejection) = Some(retry_after.to_owned());
    }

    /// Returns all exchanges so far.
    pub(crate) fn exchanges(&self) -> Vec<Exchange> {
        locked(&self.shared.exchanges).clone()
    }
}

impl Drop for RecordingProxy {
    fn drop(&mut self) {
        self.task.abort();
    }
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

async fn exchange(
    State(shared): State<Arc<Shared>>,
    method: Method,
    uri: Uri,
    mut headers: HeaderMap,
    body: Bytes,
) -> Response<Body> {
    let at = Instant::now();
    let if_none_match = text_of(&headers, &IF_NONE_MATCH);
    let content_encoding = text_of(&headers, &CONTENT_ENCODING);
    let rejection = locked(&shared.rejection).take();
    let (status, response_headers, response_body) = if let Some(retry_after) = rejection {
        let retry_after = retry_after.parse().expect("the value is valid");
        let headers = HeaderMap::from_iter([(RETRY_AFTER, retry_after)]);
        (StatusCode::TOO_MANY_REQUESTS, headers, String::new())
    } else {
        let url = format!("{}{uri}", shared.upstream);
        for of_the_connection in [HOST, CONTENT_LENGTH, TRANSFER_ENCODING] {
            headers.remove(of_the_connection);
        }
        let request = shared.http.request(method, url).headers(headers).body(body.clone());
        let response = request.send().await.expect("the API responds");
        let (status, mut headers) = (response.status(), response.headers().clone());
        headers.remove(TRANSFER_ENCODING);
        (status, headers, response.text().await.expect("the body is complete"))
    };
    locked(&shared.exchanges).push(Exchange {
        at,
        responded_at: Instant::now(),
        path: uri.path().to_owned(),
        body,
        content_encoding,
        if_none_match,
        status: status.as_u16(),
        etag: text_of(&response_headers, &ETAG),
        response_body: response_body.clone(),
    });
    let mut response = Response::new(Body::from(response_body));
    *response.status_mut() = status;
    *response.headers_mut() = response_headers;
    response
}

fn text_of(headers: &HeaderMap, name: &HeaderName) -> Option<String> {
    headers.get(name).map(|value| value.to_str().expect("the header is text").to_owned())
}
