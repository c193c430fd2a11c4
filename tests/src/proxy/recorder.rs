//! A proxy that records requests without changing them.

use std::fmt;
use std::sync::{Arc, Mutex as StdMutex};

use local::environment::table_prefix;
use serde_json::Value;

use super::{Proxy, ProxyResponse, Upstream};
use crate::wire::Request;

/// A recorded request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RecordedRequest {
    /// The action, such as `TransactWriteItems`.
    pub action: String,
    /// The table, without prefix, of each item in the request. For queries, the queried table.
    pub tables: Vec<String>,
    /// Number of bytes of the request and of the response.
    pub bytes: (usize, usize),
}

impl fmt::Display for RecordedRequest {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{} {}", self.action, self.tables.join(" "))
    }
}

/// The proxy. Clones share their records.
#[derive(Debug, Clone)]
pub struct Recorder {
    upstream: Arc<Upstream>,
    requests: Arc<StdMutex<Vec<RecordedRequest>>>,
}

impl Recorder {
    /// Returns a proxy in front of an engine.
    pub fn before(engine: &str) -> Self {
        Self { upstream: Arc::new(Upstream::new(engine)), requests: Arc::default() }
    }

    /// Returns the requests since the last call.
    pub fn take(&self) -> Vec<RecordedRequest> {
        std::mem::take(&mut self.requests.lock().expect("not poisoned"))
    }
}

impl Proxy for Recorder {
    async fn respond(&self, request: Request) -> ProxyResponse {
        let body: Value = serde_json::from_slice(&request.body).expect("the request is JSON");
        let (status, response) = self.upstream.forward(&request).await;
        let recorded = RecordedRequest {
            action: request.target.clone(),
            tables: tables_of(&body),
            bytes: (request.body.len(), response.len()),
        };
        self.requests.lock().expect("not poisoned").push(recorded);
        (status, response)
    }
}

/// Returns the table of each item in a request.
fn tables_of(body: &Value) -> Vec<String> {
    let named = |table: &str| table.strip_prefix(&table_prefix()).unwrap_or(table).to_owned();
    if let Some(actions) = body["TransactItems"].as_array() {
        let tables = actions.iter().filter_map(|action| action.as_object()?.values().next());
        return tables.filter_map(|action| action["TableName"].as_str()).map(named).collect();
    }
    if let Some(tables) = body["RequestItems"].as_object() {
        let count = |items: &Value| {
            let items = items["Keys"].as_array().or_else(|| items.as_array());
            items.map_or(0, Vec::len)
        };
        let of_table = |(table, items): (&String, &Value)| vec![named(table); count(items)];
        let mut tables: Vec<String> = tables.iter().flat_map(of_table).collect();
        tables.sort();
        return tables;
    }
    body["TableName"].as_str().map(named).into_iter().collect()
}
