//! The tables. Only this module knows their keys and attributes (docs/data-model.md).
//!
//! The store is concrete: the AWS SDK against whatever speaks DynamoDB's protocol at the
//! configured endpoint. Tests use a real engine behind the same SDK.

pub(crate) mod batch;
pub mod client;
mod damage;
mod error;
pub(crate) mod idempotency;
pub(crate) mod item;
pub(crate) mod last_seen;
pub(crate) mod page;
mod quotas;
pub(crate) mod request;
pub(crate) mod server_clock;
mod sweep;
pub(crate) mod transaction;
mod write;

use aws_sdk_dynamodb::Client;

pub use damage::{DamageReport, DamagedItem};
pub use error::{Cause, StoreError};
pub use idempotency::{Idempotent, Replay};
pub use sweep::Sweep;
pub use transaction::ConflictRetry;

/// All tables, behind one client. The client is this module's own: every write goes through one of its
/// few functions, each of which recognizes itself when it is sent twice (docs/data-model.md, "How a
/// write recognizes itself").
#[derive(Debug, Clone)]
pub struct Store {
    client: Client,
    table_prefix: String,
    report_damage: DamageReport,
}

impl Store {
    /// The tables whose names start with `table_prefix`.
    pub fn new(client: Client, table_prefix: impl Into<String>) -> Self {
        Self { client, table_prefix: table_prefix.into(), report_damage: damage::log }
    }

    /// The full name of a table.
    pub(crate) fn table(&self, name: &str) -> String {
        format!("{}{name}", self.table_prefix)
    }
}
