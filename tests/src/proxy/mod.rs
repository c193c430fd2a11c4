//! Proxies in front of the engine. They respond like DynamoDB in ways that the engine never does.

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

/// A response: status and body.
pub type ProxyResponse = (u16, Vec<u8>);

/// A server that responds to DynamoDB requests.
pub trait Proxy: Send + Sync + 'static {
    /// Responds to a request.
    fn respond(&self, request: Request) -> impl Future<Output = ProxyResponse> + Send;
}

/// Starts a proxy that ends with the runtime, and returns its address.
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

/// Responds to requests in order. A request is completed even if the client disconnects.
async fn converse(mut connection: TcpStream, proxy: Arc<impl Proxy>) {
    while let Some(request) = wire::read_request(&mut connection).await {
        let (status, body) = proxy.respond(request).await;
        if wire::write_response(&mut connection, status, &body).await.is_none() {
            return;
        }
    }
}

/// The connection from a proxy to the engine.
#[derive(Debug)]
pub struct Upstream {
    engine: String,
    http: reqwest::Client,
}

impl Upstream {
    /// Returns a connection to the engine at an endpoint.
    pub fn new(engine: &str) -> Self {
        Self { engine: engine.to_owned(), http: reqwest::Client::new() }
    }

    /// Forwards a request to the engine.
    pub async fn forward(&self, request: &Request) -> ProxyResponse {
        let mut call = self.http.post(&self.engine).body(request.body.clone());
        for (name, value) in &request.headers {
            if !matches!(&**name, "host" | "content-length" | "connection") {
                call = call.header(name, value);
            }
        }
        let response = call.send().await.expect("the engine responds");
        (response.status().as_u16(), response.bytes().await.expect("the body is complete").to_vec())
    }

    /// Forwards a request with another body to the engine.
    async fn forward_as(&self, request: &Request, body: &Value) -> ProxyResponse {
        let body = body.to_string().into_bytes();
        self.forward(&Request { body, ..request.clone() }).await
    }
}

/// Returns a DynamoDB error with additional fields.
fn rejection(name: &str, mut fields: Value) -> ProxyResponse {
    fields["__type"] = json!(format!("com.amazonaws.dynamodb.v20120810#{name}"));
    (400, fields.to_string().into_bytes())
}

/// Adds unprocessed items to a response.
fn with_unprocessed(response: Vec<u8>, field: &str, unprocessed: &Value) -> Vec<u8> {
    if unprocessed.as_object().is_none_or(serde_json::Map::is_empty) {
        return response;
    }
    let mut response: Value = serde_json::from_slice(&response).expect("the response is JSON");
    response[field] = unprocessed.clone();
    response.to_string().into_bytes()
}
