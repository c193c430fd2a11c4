//! A fake of Lambda's Runtime API, which gives a binary one event.

use std::net::Ipv4Addr;
use std::sync::{Arc, Mutex};

use axum::Router;
use axum::body::to_bytes;
use axum::extract::Request;
use axum::http::{Method, StatusCode};
use axum::response::{IntoResponse, Response};
use serde_json::Value;
use tokio::net::TcpListener;
use tokio::sync::oneshot::{Receiver, Sender, channel};

/// Starts a fake. Returns its address and, later, the binary's response to the event.
pub(crate) async fn start(event: &Value) -> (String, Receiver<Value>) {
    let (sender, response) = channel();
    let event = Arc::new(Mutex::new(Some(event.to_string())));
    let sender = Arc::new(Mutex::new(Some(sender)));
    let serve = move |request| converse(request, Arc::clone(&event), Arc::clone(&sender));
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
    let address = listener.local_addr().unwrap().to_string();
    tokio::spawn(axum::serve(listener, Router::new().fallback(serve)).into_future());
    (address, response)
}

async fn converse(
    request: Request,
    event: Arc<Mutex<Option<String>>>,
    response: Arc<Mutex<Option<Sender<Value>>>>,
) -> Response {
    if request.method() == Method::POST {
        let body = to_bytes(request.into_body(), usize::MAX).await.unwrap();
        let response = response.lock().unwrap().take().expect("one event has one response");
        response.send(serde_json::from_slice(&body).unwrap()).unwrap();
        return StatusCode::ACCEPTED.into_response();
    }
    let event = event.lock().unwrap().take();
    match event {
        Some(event) => {
            let id = ("lambda-runtime-aws-request-id", "1");
            let deadline = ("lambda-runtime-deadline-ms", "9999999999999");
            let function = ("lambda-runtime-invoked-function-arn", "arn:aws:lambda:::function:f");
            ([id, deadline, function], event).into_response()
        }
        None => std::future::pending().await,
    }
}
