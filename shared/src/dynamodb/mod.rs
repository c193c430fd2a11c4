//! The DynamoDB store: client, items, requests and transactions (docs/data-model.md).
//!
//! The store always uses the AWS SDK with the configured endpoint. Tests use a real engine behind
//! the same SDK.

pub mod batch;
pub mod client;
mod damage;
mod error;
pub mod idempotency;
pub mod immutable_items;
pub mod item;
pub mod last_seen;
mod newest;
pub mod page;
mod quotas;
pub mod request;
pub mod server_clock;
mod sweep;
mod table_names;
pub mod transaction;
mod unknown_outcome;
mod write;

use std::sync::Arc;

use aws_sdk_dynamodb::Client;

use immutable_items::ImmutableItemCache;

pub use damage::{DamageReport, DamagedItem};
pub use error::{Cause, StoreError};
pub use idempotency::{Idempotent, Replay};
pub use newest::Newest;
pub use sweep::Sweep;
pub use table_names::{
    DEFAULT_TABLE_PREFIX, RESTORED_TABLES_VARIABLE, TABLE_PREFIX_VARIABLE, TableNames,
    TableNamesError,
};
pub use transaction::ConflictRetry;

/// All tables, with one client. The client is private to this module, so every write goes through
/// one of its few functions. They handle repeated requests (docs/data-model.md, "Idempotent
/// writes").
#[derive(Debug, Clone)]
pub struct Store {
    client: Client,
    tables: TableNames,
    report_damage: DamageReport,
    immutable_items: Arc<ImmutableItemCache>,
}

impl Store {
    /// Creates a store of the tables with these names, or with a prefix.
    pub fn new(client: Client, tables: impl Into<TableNames>) -> Self {
        let immutable_items = Arc::default();
        Self { client, tables: tables.into(), report_damage: damage::log, immutable_items }
    }

    /// Returns the names, without the prefix, of the account's tables that start with the prefix.
    /// Reads the first hundred tables from the prefix on, which include restored ones.
    pub async fn list_table_names(&self) -> Result<Vec<String>, StoreError> {
        let prefix = self.tables.prefix();
        // Table names have at least 3 characters.
        let before = (prefix.len() >= 3).then(|| prefix.to_owned());
        let listed =
            self.client.list_tables().set_exclusive_start_table_name(before).send().await?;
        let names = listed.table_names.unwrap_or_default();
        Ok(names.iter().filter_map(|name| name.strip_prefix(prefix)).map(str::to_owned).collect())
    }

    /// Returns the full name of a table.
    pub fn table(&self, name: &str) -> String {
        self.tables.of(name)
    }
}
