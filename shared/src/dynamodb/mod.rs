//! The tables. Only this module knows their keys and attributes (docs/data-model.md).
//!
//! The store is concrete: the AWS SDK against whatever speaks DynamoDB's protocol at the
//! configured endpoint. Tests use a real engine behind the same SDK.

pub(crate) mod batch;
pub mod client;
mod error;
pub(crate) mod idempotency;
pub(crate) mod item;
pub(crate) mod page;
pub(crate) mod request;
mod single_write;
pub(crate) mod transaction;

use aws_sdk_dynamodb::Client;
use aws_sdk_dynamodb::error::{ProvideErrorMetadata, SdkError};

pub use error::{Cause, StoreError};
pub use idempotency::{Idempotent, Replay};
pub use transaction::ConflictRetry;

/// All tables, behind one client.
#[derive(Debug, Clone)]
pub struct Store {
    pub(crate) client: Client,
    table_prefix: String,
}

impl Store {
    /// The tables whose names start with `table_prefix`.
    pub fn new(client: Client, table_prefix: impl Into<String>) -> Self {
        Self { client, table_prefix: table_prefix.into() }
    }

    /// The full name of a table.
    pub(crate) fn table(&self, name: &str) -> String {
        format!("{}{name}", self.table_prefix)
    }
}

/// What a conditional write gave; `None` if its condition failed.
pub(crate) fn unless_condition_failed<T, E, R>(
    written: Result<T, SdkError<E, R>>,
) -> Result<Option<T>, StoreError>
where
    E: ProvideErrorMetadata + std::error::Error + Send + Sync + 'static,
    R: std::fmt::Debug + Send + Sync + 'static,
{
    match written {
        Ok(answer) => Ok(Some(answer)),
        Err(error) if error.code() == Some("ConditionalCheckFailedException") => Ok(None),
        Err(error) => Err(error.into()),
    }
}
