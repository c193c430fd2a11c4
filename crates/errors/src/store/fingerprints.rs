//! Fingerprints, which map events to errors, in table `errors`.
//!
//! | pk | sk | item |
//! | --- | --- | --- |
//! | `fingerprints#PROJECT` | `FINGERPRINT` | its error, or the time of the error's deletion |

use aws_sdk_dynamodb::types::TransactWriteItem;
use aws_sdk_dynamodb::types::builders::UpdateBuilder;

use shared::dynamodb::StoreError;
use shared::dynamodb::item::{Item, ItemReader, key, n, s};
use shared::dynamodb::request::IntoAction;
use shared::projects::project::ProjectId;
use shared::timestamp::Timestamp;

use super::ErrorStore;
use super::errors::TABLE;
use crate::grouping::Fingerprint;
use crate::{ErrorId, ErrorRecord, NewError};

/// The error of a fingerprint.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct FingerprintEntry {
    /// The ID of the error.
    pub error: Option<ErrorId>,
    /// The time when the last error with the fingerprint was deleted.
    pub deleted_at: Option<Timestamp>,
}

impl ErrorStore<'_> {
    /// Returns the entry of a fingerprint. Strongly consistent: an error that was just created is
    /// found, and one that was just deleted is not.
    pub async fn find_fingerprint(
        self,
        project: ProjectId,
        fingerprint: Fingerprint,
        now: Timestamp,
    ) -> Result<FingerprintEntry, StoreError> {
        let found = self.db.get(TABLE, fingerprint_key(project, fingerprint)).await?;
        let found = found.filter(|item| is_kept(item, now));
        found.as_ref().map_or_else(|| Ok(FingerprintEntry::default()), read_fingerprint)
    }

    /// Returns the action that puts the fingerprint of an error to be created `now`.
    pub(super) fn put_fingerprint(
        self,
        project: ProjectId,
        new: &NewError,
        error: &ErrorRecord,
        now: Timestamp,
    ) -> Result<TransactWriteItem, StoreError> {
        let mut item = fingerprint_key(project, new.description.fingerprint);
        item.insert("errorId".to_owned(), s(error.id));
        item.insert("expiresAt".to_owned(), n(error.expires_at.as_seconds()));
        let mut condition = "attribute_not_exists(pk) OR expiresAt <= :now".to_owned();
        let mut put = self.db.put(TABLE, item.clone());
        if let Some(deleted_at) = new.events_since {
            item.insert("deletedAt".to_owned(), n(deleted_at.as_millis()));
            condition.push_str(" OR attribute_not_exists(errorId) AND deletedAt = :deletedAt");
            put = self
                .db
                .put(TABLE, item)
                .expression_attribute_values(":deletedAt", n(deleted_at.as_millis()));
        }
        put.condition_expression(condition)
            .expression_attribute_values(":now", n(now.as_seconds()))
            .into_action()
    }

    /// Returns an update of an error's fingerprint, on the condition that it still belongs to the
    /// error.
    pub(super) fn update_fingerprint(
        self,
        project: ProjectId,
        error: &ErrorRecord,
    ) -> UpdateBuilder {
        self.db
            .update(TABLE, fingerprint_key(project, error.description.fingerprint))
            .condition_expression("errorId = :id")
            .expression_attribute_values(":id", s(error.id))
    }
}

/// `true` if an item has not expired. DynamoDB can take days to remove expired items.
pub(super) fn is_kept(item: &Item, now: Timestamp) -> bool {
    let expires_at = ItemReader { table: TABLE, item }.optional_integer("expiresAt");
    !matches!(expires_at, Ok(Some(expires_at)) if expires_at <= now.as_seconds())
}

pub(super) fn fingerprint_key(project: ProjectId, fingerprint: Fingerprint) -> Item {
    key(&format!("fingerprints#{project}"), &fingerprint.to_string())
}

pub(super) fn read_fingerprint(item: &Item) -> Result<FingerprintEntry, StoreError> {
    let reader = ItemReader { table: TABLE, item };
    Ok(FingerprintEntry {
        error: reader.optional_parsed("errorId", ErrorId::parse)?,
        deleted_at: reader.optional_millis("deletedAt")?,
    })
}
