//! The tables. Only this module knows their keys and attributes (docs/data-model.md).
//!
//! The store is concrete: the AWS SDK against whatever speaks DynamoDB's protocol at the
//! configured endpoint. Tests use a real engine behind the same SDK.

mod access;
mod api_keys;
mod batch;
pub mod client;
mod email_preferences;
mod error_counts;
mod error_days;
mod error_events;
mod errors;
mod event_markers;
mod feature_flags;
mod flag_changes;
mod flag_evaluation;
mod flag_items;
mod flag_prerequisites;
mod idempotency;
mod insights;
mod item;
mod packing;
mod page;
mod pain_points;
mod projects;
mod purge;
mod single_write;
mod transaction;

use std::error::Error;
use std::iter;

use aws_sdk_dynamodb::Client;
use aws_sdk_dynamodb::error::{ProvideErrorMetadata, SdkError};

pub use access::Access;
pub use api_keys::Revocation;
pub use error_counts::{Activity, ProjectEvents};
pub use error_days::ReadColumns;
pub use error_events::{Counting, EVENT_RETENTION};
pub use event_markers::{CollectionCreation, CollectionDeletion, EventAddition};
pub use feature_flags::{FlagCreation, ListedFlags};
pub use flag_changes::{FlagDeletion, FlagReplacement};
pub use flag_evaluation::StoredFlags;
pub use idempotency::{Idempotent, Repetition};
pub use insights::{InsightWrite, Together};
pub use packing::{NewErrorId, PackingLimits};
pub use pain_points::{BatchId, Claim};
pub use projects::{IngestAccess, ProjectCreation, ProjectIdentity};
pub use transaction::Attempts;

/// Why the store could not do what it was asked to.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// DynamoDB throttles, is out of reach or did not answer in time, after all retries.
    #[error("DynamoDB is not available: {0}")]
    Unavailable(String),
    /// DynamoDB throttles a transaction: the partition, or the table, takes no more.
    #[error("DynamoDB throttles a transaction: {0}")]
    Throttled(String),
    /// Other writers kept getting in between until the retries ran out.
    #[error("other writers kept getting in between: {0}")]
    Contended(String),
    /// DynamoDB refused a request that should be valid: a missing table or permission, or a bug.
    #[error("DynamoDB refused a request: {0}")]
    Refused(String),
    /// An item is not of the form in which this code writes it.
    #[error("an item of table {table} is damaged: attribute {attribute}")]
    Damaged {
        /// The table's name without its prefix.
        table: &'static str,
        /// The attribute that is missing or of another form.
        attribute: &'static str,
    },
}

/// All tables, behind one client.
#[derive(Debug, Clone)]
pub struct Store {
    client: Client,
    table_prefix: String,
}

impl Store {
    /// The tables whose names start with `table_prefix`.
    pub fn new(client: Client, table_prefix: impl Into<String>) -> Self {
        Self { client, table_prefix: table_prefix.into() }
    }

    /// The full name of a table.
    fn table(&self, name: &str) -> String {
        format!("{}{name}", self.table_prefix)
    }
}

impl<E, R> From<SdkError<E, R>> for StoreError
where
    E: ProvideErrorMetadata + std::error::Error + 'static,
    R: std::fmt::Debug,
{
    fn from(error: SdkError<E, R>) -> Self {
        let refused = match &error {
            SdkError::ServiceError(service) => !is_transient(service.err().code()),
            SdkError::ConstructionFailure(_) => true,
            _ => false,
        };
        let cause = match &error {
            SdkError::ServiceError(service) => told_by_dynamodb(service.err()),
            error => {
                let causes = iter::successors(error.source(), |&cause| cause.source());
                causes.fold(error.to_string(), |told, cause| format!("{told}: {cause}"))
            }
        };
        if refused { Self::Refused(cause) } else { Self::Unavailable(cause) }
    }
}

/// What DynamoDB says of a request. The error itself would show the whole answer, items included.
fn told_by_dynamodb(error: &impl ProvideErrorMetadata) -> String {
    let code = error.code().unwrap_or("no code");
    format!("{code}: {}", error.message().unwrap_or("no message"))
}

impl From<aws_sdk_dynamodb::error::BuildError> for StoreError {
    fn from(error: aws_sdk_dynamodb::error::BuildError) -> Self {
        Self::Refused(error.to_string())
    }
}

/// What a conditional write gave; `None` if its condition failed.
fn unless_condition_failed<T, E, R>(
    written: Result<T, SdkError<E, R>>,
) -> Result<Option<T>, StoreError>
where
    E: ProvideErrorMetadata + std::error::Error + 'static,
    R: std::fmt::Debug,
{
    match written {
        Ok(answer) => Ok(Some(answer)),
        Err(error) if error.code() == Some("ConditionalCheckFailedException") => Ok(None),
        Err(error) => Err(error.into()),
    }
}

/// Whether DynamoDB names an error that says nothing about the request itself.
fn is_transient(code: Option<&str>) -> bool {
    matches!(
        code,
        Some(
            "InternalServerError"
                | "LimitExceededException"
                | "ProvisionedThroughputExceeded"
                | "ProvisionedThroughputExceededException"
                | "RequestLimitExceeded"
                | "ServiceUnavailable"
                | "ThrottlingError"
                | "ThrottlingException"
                | "TransactionInProgressException"
        )
    )
}
