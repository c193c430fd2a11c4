//! Proxies in front of the engine: they answer as DynamoDB may, and the engine never does.

mod faults;
mod item_by_item;
mod outage;
mod partition_limits;
mod recorder;
mod slow;

pub use faults::{Faults, InjectedFault};
pub use item_by_item::ItemByItem;
pub use outage::Outage;
pub use partition_limits::PartitionLimits;
pub use recorder::{RecordedRequest, Recorder};
pub use slow::Slow;

use std::net::Ipv4Addr;
use std::sync::Arc;

use serde_json::{Value, json};
use tokio::net::{TcpListener, TcpStream};

use crate::wire::{self, Request};

/// An answer: its status and its body.
pub type ProxyResponse = (u16, Vec<u8>);

/// What answers requests to DynamoDB.
pub trait Proxy: Send + Sync + 'static {
    /// The answer to a request.
    fn answer(&self, request: Request) -> impl Future<Output = ProxyResponse> + Send;
}

/// Starts a proxy, which ends with the runtime, and answers where it listens.
pub async fn serve(proxy: Arc<impl Proxy>) -> String {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.expect("a port is free");
    let endpoint = format!("http://{}", listener.local_addr().expect("it has an address"));
    tokio::spawn(async move {
        while let Ok((connection, _)) = listener.accept().await {
            let _ = connection.set_nodelay(true);
            tokio::spawn(converse(connection, Arc::clone(&proxy)));
        }
    });
    endpoint
}

/// Answers one request after the other. What is under way is carried out, whoever still waits for it.
async fn converse(mut connection: TcpStream, proxy: Arc<impl Proxy>) {
    while let Some(request) = wire::read_request(&mut connection).await {
        let (status, body) = proxy.answer(request).await;
        if wire::write_answer(&mut connection, status, &body).await.is_none() {
            return;
        }
    }
}

/// The way from a proxy to the engine.
#[derive(Debug)]
pub struct Upstream {
    engine: String,
    http: reqwest::Client,
}

impl Upstream {
    /// The way to the engine at an endpoint.
    pub fn new(engine: &str) -> Self {
        Self { engine: engine.to_owned(), http: reqwest::Client::new() }
    }

    /// Has the engine answer a request.
    pub async fn forward(&self, request: &Request) -> ProxyResponse {
        let mut call = self.http.post(&self.engine).body(request.body.clone());
        for (name, value) in &request.headers {
            if !matches!(&**name, "host" | "content-length" | "connection") {
                call = call.header(name, value);
            }
        }
        let answer = call.send().await.expect("the engine answers");
        (answer.status().as_u16(), answer.bytes().await.expect("an answer has an end").to_vec())
    }

    /// Has the engine answer a request with another body.
    async fn forward_as(&self, request: &Request, body: &Value) -> ProxyResponse {
        let body = body.to_string().into_bytes();
        self.forward(&Request { body, ..request.clone() }).await
    }
}

/// A refusal as DynamoDB gives it, with further members.
fn refusal(name: &str, mut members: Value) -> ProxyResponse {
    members["__type"] = json!(format!("com.amazonaws.dynamodb.v20120810#{name}"));
    (400, members.to_string().into_bytes())
}

/// An answer with what was left unprocessed.
fn with_unprocessed(answer: Vec<u8>, member: &str, unprocessed: &Value) -> Vec<u8> {
    if unprocessed.as_object().is_none_or(serde_json::Map::is_empty) {
        return answer;
    }
    let mut answer: Value = serde_json::from_slice(&answer).expect("an answer is JSON");
    answer[member] = unprocessed.clone();
    answer.to_string().into_bytes()
}
