//! A fake of the HTTP API of Bedrock's runtime.

pub(crate) mod runtime_api;

use std::net::Ipv4Addr;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use axum::Router;
use axum::body::to_bytes;
use axum::extract::Request;
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use serde_json::{Value, json};
use tokio::net::TcpListener;

/// A running fake.
pub(crate) struct FakeModel {
    /// The address of the fake.
    pub(crate) endpoint: String,
    received: Arc<Mutex<Vec<ReceivedRequest>>>,
}

/// A received request.
#[derive(Debug, Clone)]
pub(crate) struct ReceivedRequest {
    pub(crate) path: String,
    pub(crate) authorization: String,
    pub(crate) body: Value,
}

/// The response to a request.
#[derive(Debug, Clone)]
pub(crate) struct Reply {
    status: u16,
    error: Option<&'static str>,
    body: String,
    delay: Duration,
}

impl FakeModel {
    /// Starts a fake. `script` returns the response by the number of earlier requests.
    pub(crate) async fn start(script: impl Fn(usize) -> Reply + Send + Sync + 'static) -> Self {
        let received: Arc<Mutex<Vec<ReceivedRequest>>> = Arc::default();
        let seen = Arc::clone(&received);
        let script = Arc::new(script);
        let respond = move |request: Request| {
            let (seen, script) = (Arc::clone(&seen), Arc::clone(&script));
            async move {
                let request = read(request).await;
                let before = {
                    let mut seen = seen.lock().unwrap();
                    seen.push(request);
                    seen.len() - 1
                };
                let reply = script(before);
                tokio::time::sleep(reply.delay).await;
                reply.into_response()
            }
        };
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
        let endpoint = format!("http://{}", listener.local_addr().unwrap());
        let server = axum::serve(listener, Router::new().fallback(respond));
        tokio::spawn(server.into_future());
        Self { endpoint, received }
    }

    /// Returns all received requests.
    pub(crate) fn requests(&self) -> Vec<ReceivedRequest> {
        self.received.lock().unwrap().clone()
    }
}

async fn read(request: Request) -> ReceivedRequest {
    let (parts, body) = request.into_parts();
    let body = to_bytes(body, usize::MAX).await.unwrap();
    ReceivedRequest {
        path: parts.uri.path().to_owned(),
        authorization: parts.headers[header::AUTHORIZATION].to_str().unwrap().to_owned(),
        body: serde_json::from_slice(&body).unwrap(),
    }
}

impl Reply {
    /// Returns a call of the tool with these filters.
    pub(crate) fn call(filters: &Value) -> Self {
        let input = json!({ "filters": filters });
        let call = json!({"toolUse": {"toolUseId": "1", "name": "set_filters", "input": input}});
        Self::message(&json!([call]), "tool_use")
    }

    /// Returns a message of the model.
    pub(crate) fn message(content: &Value, stop_reason: &str) -> Self {
        let body = json!({
            "output": {"message": {"role": "assistant", "content": content}},
            "stopReason": stop_reason,
            "usage": {"inputTokens": 900, "outputTokens": 60, "totalTokens": 960},
            "metrics": {"latencyMs": 400},
        });
        Self::text(200, &body.to_string())
    }

    /// Returns an error of Bedrock.
    pub(crate) fn error(status: u16, name: &'static str) -> Self {
        let body = json!({"message": "No. You received: firefox kerfuffle"}).to_string();
        Self { error: Some(name), ..Self::text(status, &body) }
    }

    /// Returns a response with any text.
    pub(crate) fn text(status: u16, body: &str) -> Self {
        Self { status, error: None, body: body.to_owned(), delay: Duration::ZERO }
    }

    /// Delays the response.
    pub(crate) fn after(self, delay: Duration) -> Self {
        Self { delay, ..self }
    }
}

impl IntoResponse for Reply {
    fn into_response(self) -> Response {
        let status = StatusCode::from_u16(self.status).unwrap();
        let mut response = (status, self.body).into_response();
        let headers = response.headers_mut();
        headers.insert(header::CONTENT_TYPE, "application/json".parse().unwrap());
        if let Some(error) = self.error {
            headers.insert("x-amzn-errortype", error.parse().unwrap());
        }
        response
    }
}
