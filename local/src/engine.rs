//! The embedded DynamoDB.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::path::Path;

use dynoxide::Database;
use serde::de::DeserializeOwned;
use serde_json::{Value as Json, json};
use tokio::net::TcpListener;
use tokio::runtime::{Builder, Runtime};
use tokio::sync::oneshot;
use tokio::task::JoinHandle;

use crate::environment::open_private;
use crate::template::Table;

/// Why the engine could not start.
#[derive(Debug, thiserror::Error)]
pub enum EngineError {
    /// Its address is taken, or cannot be used.
    #[error("cannot listen on {address}: {source}")]
    Address {
        /// The address.
        address: SocketAddr,
        /// What went wrong.
        source: std::io::Error,
    },
    /// Its data cannot be used, or a table cannot be made.
    #[error("{0}")]
    Database(String),
    /// A table was made by another version of the template.
    #[error(
        "table {0} was made with other keys or indexes than template.yaml declares now; start \
         afresh with `make reset`"
    )]
    OtherKeys(String),
}

/// A DynamoDB that runs until it is dropped.
pub struct Engine {
    address: SocketAddr,
    stop: Option<oneshot::Sender<()>>,
    server: Option<JoinHandle<()>>,
    /// A runtime of its own: what it does is done beside its user's work, and ends with it.
    runtime: Option<Runtime>,
}

impl Engine {
    /// Starts the engine at an address; port 0 takes any that is free. Its data is in a file, or,
    /// where none is given, in memory. Tables that are not there yet are made.
    pub fn start(
        address: SocketAddr,
        file: Option<&Path>,
        tables: &[Table],
    ) -> Result<Self, EngineError> {
        let database = match file {
            Some(file) => {
                // SQLite gives its other files the mode of this one.
                open_private(file).map_err(|error| EngineError::Database(error.to_string()))?;
                Database::new(&file.to_string_lossy())
            }
            None => Database::memory(),
        };
        let database = database.map_err(|error| EngineError::Database(error.to_string()))?;
        for table in tables {
            ensure(&database, table)?;
        }
        let unusable = |source| EngineError::Address { address, source };
        let listener = std::net::TcpListener::bind(address).map_err(unusable)?;
        listener.set_nonblocking(true).map_err(unusable)?;
        let address = listener.local_addr().map_err(unusable)?;
        let runtime = Builder::new_multi_thread().worker_threads(1).enable_all().build();
        let runtime = runtime.map_err(|error| EngineError::Database(error.to_string()))?;
        let (stop, stopped) = oneshot::channel();
        let server = runtime.spawn(async move {
            let Ok(listener) = TcpListener::from_std(listener) else { return };
            let stopped = async {
                let _ = stopped.await;
            };
            // It ends when it is told to; nobody is left to hear of an error then.
            let _ = dynoxide::server::serve_with_shutdown(listener, database, stopped).await;
        });
        Ok(Self { address, stop: Some(stop), server: Some(server), runtime: Some(runtime) })
    }

    /// Where the engine listens.
    pub fn endpoint(&self) -> String {
        format!("http://{}", self.address)
    }

    /// Stops the engine after the requests that are under way; its data is safe afterwards.
    pub async fn stop(mut self) {
        drop(self.stop.take());
        if let Some(server) = self.server.take() {
            let _ = server.await;
        }
    }

    /// Ends all connections at once and refuses new ones, as a DynamoDB that is down would.
    pub fn kill(&mut self) {
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_background();
        }
    }
}

impl Drop for Engine {
    fn drop(&mut self) {
        self.kill();
    }
}

fn ensure(database: &Database, table: &Table) -> Result<(), EngineError> {
    let failed = |error: &dyn std::fmt::Display| {
        EngineError::Database(format!("table {}: {error}", table.name))
    };
    let describe = request(json!({ "TableName": table.name })).map_err(|e| failed(&e))?;
    if let Ok(existing) = database.describe_table(describe) {
        let existing = serde_json::to_value(existing).map_err(|e| failed(&e))?;
        if keys(&existing["Table"]) == keys(&table.create) {
            return Ok(());
        }
        return Err(EngineError::OtherKeys(table.name.clone()));
    }
    let create = request(table.create.clone()).map_err(|e| failed(&e))?;
    database.create_table(create).map_err(|e| failed(&e))?;
    if let Some(attribute) = &table.time_to_live_attribute {
        let specification = json!({ "AttributeName": attribute, "Enabled": true });
        let update = json!({ "TableName": table.name, "TimeToLiveSpecification": specification });
        let update = request(update).map_err(|e| failed(&e))?;
        database.update_time_to_live(update).map_err(|e| failed(&e))?;
    }
    Ok(())
}

/// The keys of a table and of its indexes, by the index's name. The table's own have none.
fn keys(table: &Json) -> BTreeMap<&str, &Json> {
    let indexes = ["GlobalSecondaryIndexes", "LocalSecondaryIndexes"];
    let indexes = indexes.iter().filter_map(|member| table[member].as_array()).flatten();
    let indexes =
        indexes.map(|index| (index["IndexName"].as_str().unwrap_or_default(), &index["KeySchema"]));
    indexes.chain([("", &table["KeySchema"])]).collect()
}

fn request<T: DeserializeOwned>(body: Json) -> Result<T, serde_json::Error> {
    serde_json::from_value(body)
}
