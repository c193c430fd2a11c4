//! The embedded DynamoDB engine.

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

/// The reason why the engine could not start.
#[derive(Debug, thiserror::Error)]
pub enum EngineError {
    /// The address is in use or invalid.
    #[error("cannot listen on {address}: {source}")]
    Address {
        /// The address.
        address: SocketAddr,
        /// The cause.
        source: std::io::Error,
    },
    /// The data cannot be used, or a table cannot be created.
    #[error("{0}")]
    Database(String),
    /// A table was created from another version of the template.
    #[error(
        "table {0} was created with other keys or indexes than template.yaml has now; delete the \
         data with `make reset`"
    )]
    OtherKeys(String),
}

/// An embedded DynamoDB that runs until it is dropped.
pub struct Engine {
    address: SocketAddr,
    stop: Option<oneshot::Sender<()>>,
    server: Option<JoinHandle<()>>,
    /// Own runtime: its work is independent of the caller's runtime, and ends with the engine.
    runtime: Option<Runtime>,
}

impl Engine {
    /// Starts the engine at an address; port 0 selects a free port. The data is stored in `file`,
    /// or in memory without one. Missing tables are created.
    pub fn start(
        address: SocketAddr,
        file: Option<&Path>,
        tables: &[Table],
    ) -> Result<Self, EngineError> {
        let database = match file {
            Some(file) => {
                // SQLite creates its other files with the mode of this one.
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
            // Errors after the shutdown signal have no receiver.
            let _ = dynoxide::server::serve_with_shutdown(listener, database, stopped).await;
        });
        Ok(Self { address, stop: Some(stop), server: Some(server), runtime: Some(runtime) })
    }

    /// Returns the address of the engine.
    pub fn endpoint(&self) -> String {
        format!("http://{}", self.address)
    }

    /// Stops the engine after current requests. Its data is then safe.
    pub async fn stop(mut self) {
        drop(self.stop.take());
        if let Some(server) = self.server.take() {
            let _ = server.await;
        }
    }

    /// Closes all connections immediately and refuses new ones, like an unavailable DynamoDB.
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

/// Returns the keys of a table and its indexes, by index name. The table's own name is empty.
fn keys(table: &Json) -> BTreeMap<&str, &Json> {
    let indexes = ["GlobalSecondaryIndexes", "LocalSecondaryIndexes"];
    let indexes = indexes.iter().filter_map(|property| table[property].as_array()).flatten();
    let indexes =
        indexes.map(|index| (index["IndexName"].as_str().unwrap_or_default(), &index["KeySchema"]));
    indexes.chain([("", &table["KeySchema"])]).collect()
}

fn request<T: DeserializeOwned>(body: Json) -> Result<T, serde_json::Error> {
    serde_json::from_value(body)
}
