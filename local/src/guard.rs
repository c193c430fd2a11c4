//! Rejects requests that web pages of other sites send to the local stack.
//!
//! Every page in a browser can send requests to loopback. With DNS rebinding, an attacker resolves
//! a page's host name to 127.0.0.1, and the page can also read the responses. Such requests name
//! the attacker's host.

use std::io;
use std::net::{IpAddr, Ipv4Addr, SocketAddr, TcpListener};
use std::sync::Arc;

use axum::Router;
use axum::body::{Body, to_bytes};
use axum::extract::{Request, State};
use axum::http::header::{CONNECTION, HOST, ORIGIN, TRANSFER_ENCODING};
use axum::http::request::Parts;
use axum::http::uri::Authority;
use axum::http::{Response, StatusCode};
use axum::response::IntoResponse;
use axum::serve::ListenerExt;
use shared::app::{Clock, Ids};
use tokio::task::JoinHandle;

/// Cause of a rejection.
pub(crate) const REASON: &str =
    "the local stack serves only localhost and loopback addresses, and no pages of other origins";

/// Maximum bytes of a body, as in DynamoDB.
const MAX_BODY_BYTES: usize = 16 * 1024 * 1024;

/// `true` if the request names a host, and every host that it names is loopback.
pub(crate) fn names_loopback(request: &Parts) -> bool {
    let header_hosts = request.headers.get_all(HOST).iter();
    let header_hosts = header_hosts.map(|it| Authority::try_from(it.as_bytes()).ok());
    let mut hosts = header_hosts.chain(request.uri.authority().cloned().map(Some)).peekable();
    hosts.peek().is_some() && hosts.all(|it| it.is_some_and(|it| is_loopback(it.host())))
}

fn is_loopback(host: &str) -> bool {
    let in_brackets = host.strip_prefix('[').and_then(|it| it.strip_suffix(']'));
    let address = in_brackets.unwrap_or(host).parse();
    host.eq_ignore_ascii_case("localhost") || address.is_ok_and(|it: IpAddr| it.is_loopback())
}

/// `true` if a page with another origin than the requested host sent the request.
pub(crate) fn is_of_foreign_page(request: &Parts) -> bool {
    let host = request.headers.get(HOST).map(|host| [b"http://", host.as_bytes()].concat());
    let mut origins = request.headers.get_all(ORIGIN).iter();
    origins.any(|origin| Some(origin.as_bytes()) != host.as_deref())
}

/// Returns a loopback address that pages cannot guess, with port 0, for servers that do not check
/// `Host`. On systems with only 127.0.0.1, such as macOS, only the port is secret.
pub fn hidden_address() -> SocketAddr {
    let random = Ids::Random.new_uuid(Clock::System.now()).into_bytes();
    let hidden = Ipv4Addr::new(127, random[13], random[14], random[15].clamp(1, 254));
    let is_usable = TcpListener::bind((hidden, 0)).is_ok();
    (if is_usable { hidden } else { Ipv4Addr::LOCALHOST }, 0).into()
}

/// A server that forwards accepted requests to the embedded DynamoDB, which has no such check. It
/// ends when it is dropped.
pub struct Guard {
    server: JoinHandle<()>,
}

impl Guard {
    /// Starts to forward the requests of a listener.
    ///
    /// # Errors
    /// The listener cannot be used.
    pub fn start(listener: TcpListener, endpoint: String) -> io::Result<Self> {
        listener.set_nonblocking(true)?;
        // With Nagle's algorithm, a response in two parts would wait 40 ms for an acknowledgment.
        let listener = tokio::net::TcpListener::from_std(listener)?.tap_io(|stream| {
            let _ = stream.set_nodelay(true);
        });
        let upstream = Arc::new((reqwest::Client::new(), endpoint));
        let service = Router::new().fallback(forward).with_state(upstream);
        let server = tokio::spawn(async move {
            // The server does not end by itself.
            let _ = axum::serve(listener, service).await;
        });
        Ok(Self { server })
    }
}

impl Drop for Guard {
    fn drop(&mut self) {
        self.server.abort();
    }
}

async fn forward(
    State(upstream): State<Arc<(reqwest::Client, String)>>,
    request: Request,
) -> Response<Body> {
    let (mut parts, body) = request.into_parts();
    if !names_loopback(&parts) || is_of_foreign_page(&parts) {
        return (StatusCode::FORBIDDEN, REASON).into_response();
    }
    let Ok(body) = to_bytes(body, MAX_BODY_BYTES).await else {
        return StatusCode::PAYLOAD_TOO_LARGE.into_response();
    };
    let (http, endpoint) = &*upstream;
    let path = parts.uri.path_and_query().map_or("/", |it| it.as_str());
    let Ok(uri) = format!("{endpoint}{path}").parse() else {
        return StatusCode::BAD_REQUEST.into_response();
    };
    parts.uri = uri;
    for name in [HOST, CONNECTION, TRANSFER_ENCODING] {
        parts.headers.remove(name);
    }
    let response = match reqwest::Request::try_from(Request::from_parts(parts, body)) {
        Ok(request) => http.execute(request).await,
        Err(error) => Err(error),
    };
    match response {
        Ok(response) => Response::from(response).map(Body::new),
        Err(error) => (StatusCode::BAD_GATEWAY, error.to_string()).into_response(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parts(uri: &str, headers: &[(&str, &str)]) -> Parts {
        let request =
            headers.iter().fold(Request::get(uri), |it, (name, value)| it.header(*name, *value));
        request.body(()).unwrap().into_parts().0
    }

    #[test]
    fn only_loopback_hosts_are_served() {
        for host in ["localhost", "LOCALHOST:9000", "127.0.0.1:9000", "127.8.9.10", "[::1]:9000"] {
            assert!(names_loopback(&parts("/", &[("host", host)])), "{host}");
        }
        for host in [
            "evil.example",
            "evil.example:9000",
            "localhost.evil.example",
            "127.0.0.1.evil.example",
            "10.0.0.1",
            "0.0.0.0:9000",
            "[::]",
            "",
            "no host",
            "[::",
            "é",
        ] {
            assert!(!names_loopback(&parts("/", &[("host", host)])), "{host}");
        }
        assert!(!names_loopback(&parts("/", &[])), "no host");
        let two = [("host", "localhost"), ("host", "evil.example")];
        assert!(!names_loopback(&parts("/", &two)), "two hosts");
        assert!(
            !names_loopback(&parts("http://evil.example/", &two[..1])),
            "another in the request line"
        );
    }

    #[test]
    fn pages_of_other_origins_are_foreign() {
        let from = |origin| {
            is_of_foreign_page(&parts("/", &[("host", "127.0.0.1:9000"), ("origin", origin)]))
        };
        assert!(!is_of_foreign_page(&parts("/", &[("host", "127.0.0.1:9000")])));
        assert!(!from("http://127.0.0.1:9000"));
        for origin in
            ["https://evil.example", "null", "http://127.0.0.1:3000", "http://localhost:9000"]
        {
            assert!(from(origin), "{origin}");
        }
    }
}
