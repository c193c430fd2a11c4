//! The tables. Only this module knows their keys and attributes (docs/data-model.md).
//!
//! The store is concrete: the AWS SDK against whatever speaks DynamoDB's protocol at the
//! configured endpoint. Tests use a real engine behind the same SDK.

pub mod batch;
pub mod client;
mod damage;
mod error;
pub mod idempotency;
pub mod immutable_items;
pub mod item;
pub mod last_seen;
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
pub use sweep::Sweep;
pub use table_names::{
    DEFAULT_TABLE_PREFIX, RESTORED_TABLES_VARIABLE, TABLE_PREFIX_VARIABLE, TableNames,
    TableNamesError,
};
pub use transaction::ConflictRetry;

/// All tables, behind one client. The client is this module's own: every write goes through one of its
/// few functions, each of which recognizes itself when it is sent twice (docs/data-model.md, "How a
/// write recognizes itself").
#[derive(Debug, Clone)]
pub struct Store {
    client: Client,
    tables: TableNames,
    report_damage: DamageReport,
    unchanging: Arc<ImmutableItemCache>,
}

impl Store {
    /// The tables of these names, or of those that start with a prefix.
    pub fn new(client: Client, tables: impl Into<TableNames>) -> Self {
        let unchanging = Arc::default();
        Self { client, tables: tables.into(), report_damage: damage::log, unchanging }
    }

    /// The names, without the prefix, of tables in the account whose names begin with it: of the first
    /// hundred, among which restored ones would be.
    pub async fn list_table_names(&self) -> Result<Vec<String>, StoreError> {
        let prefix = self.tables.prefix();
        // No table has a name of less.
        let before = (prefix.len() >= 3).then(|| prefix.to_owned());
        let listed =
            self.client.list_tables().set_exclusive_start_table_name(before).send().await?;
        let names = listed.table_names.unwrap_or_default();
        Ok(names.iter().filter_map(|name| name.strip_prefix(prefix)).map(str::to_owned).collect())
    }

    /// The full name of a table.
    pub fn table(&self, name: &str) -> String {
        self.tables.of(name)
    }
}
