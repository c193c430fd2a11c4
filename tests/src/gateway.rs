//! API Gateway in front of the ingestion of errors, on loopback.
//!
//! `cargo lambda watch` takes a body without a `content-type` for text, and answers one that is not
//! by itself. API Gateway hands such a body over as base64; so does this.

use std::collections::BTreeSet;
use std::net::Ipv4Addr;
use std::sync::{Arc, Mutex, PoisonError};

use axum::Router;
use axum::body::Bytes;
use axum::extract::{Path, Query, State};
use axum::http::{HeaderMap, StatusCode};
use axum::routing::post;
use tokio::net::TcpListener;
use tokio::task::JoinHandle;

use crate::call::Call;
use crate::stack::Stack;

/// A running gateway; it ends with the test.
pub struct Gateway {
    /// Its address, without a slash at its end.
    pub base_url: String,
    codings: Arc<Mutex<BTreeSet<String>>>,
    task: JoinHandle<()>,
}

#[derive(Clone)]
struct Shared {
    stack: Arc<Stack>,
    codings: Arc<Mutex<BTreeSet<String>>>,
}

impl Gateway {
    /// Starts to hand over what comes to the function of a stack.
    pub async fn start(stack: Arc<Stack>) -> Self {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.expect("a port is free");
        let address = listener.local_addr().expect("it has an address");
        let codings = Arc::default();
        let shared = Shared { stack, codings: Arc::clone(&codings) };
        let router = Router::new().route("/api/{ingestId}/envelope/", post(ingest));
        let server = axum::serve(listener, router.with_state(shared));
        let task = tokio::spawn(async move { server.await.expect("it serves") });
        Self { base_url: format!("http://{address}"), codings, task }
    }

    /// How bodies were compressed that came so far.
    pub fn codings(&self) -> BTreeSet<String> {
        self.codings.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

impl Drop for Gateway {
    fn drop(&mut self) {
        self.task.abort();
    }
}

async fn ingest(
    State(Shared { stack, codings }): State<Shared>,
    Path(ingest_id): Path<String>,
    Query(query): Query<Vec<(String, String)>>,
    headers: HeaderMap,
    body: Bytes,
) -> (StatusCode, String) {
    let mut call =
        Call::of(&ingest_error_events::OPERATION).parameter("ingestId", ingest_id).bytes(body);
    for (name, value) in &query {
        call = call.query(name, value);
    }
    for (name, value) in &headers {
        let value = value.to_str().expect("it is text");
        call = call.header(name.as_str(), value);
        if name == "content-encoding" {
            codings.lock().unwrap_or_else(PoisonError::into_inner).insert(value.to_owned());
        }
    }
    let reply = stack.invoke(call.id(), &call.event()).await;
    let status = StatusCode::from_u16(reply.status).expect("it is a status");
    (status, reply.body.to_string())
}
