//! A proxy that changes nothing, and remembers what was asked for.

use std::fmt;
use std::sync::{Arc, Mutex as StdMutex};

use local::environment::table_prefix;
use serde_json::Value;

use super::{Proxy, ProxyResponse, Upstream};
use crate::wire::Request;

/// What a request asked for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RecordedRequest {
    /// The action, such as `TransactWriteItems`.
    pub action: String,
    /// The table, without its prefix, of each item that the request names; of a query the table that it reads.
    pub tables: Vec<String>,
}

impl fmt::Display for RecordedRequest {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{} {}", self.action, self.tables.join(" "))
    }
}

/// The proxy. Its clones remember the same.
#[derive(Debug, Clone)]
pub struct Recorder {
    upstream: Arc<Upstream>,
    asked: Arc<StdMutex<Vec<RecordedRequest>>>,
}

impl Recorder {
    /// A proxy in front of an engine.
    pub fn before(engine: &str) -> Self {
        Self { upstream: Arc::new(Upstream::new(engine)), asked: Arc::default() }
    }

    /// What was asked for since this was last called.
    pub fn take(&self) -> Vec<RecordedRequest> {
        std::mem::take(&mut self.asked.lock().expect("nobody panicked"))
    }
}

impl Proxy for Recorder {
    async fn answer(&self, request: Request) -> ProxyResponse {
        let body: Value = serde_json::from_slice(&request.body).expect("a request is JSON");
        let asked = RecordedRequest { action: request.target.clone(), tables: tables_of(&body) };
        self.asked.lock().expect("nobody panicked").push(asked);
        self.upstream.forward(&request).await
    }
}

/// The table of each item that a request names.
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
