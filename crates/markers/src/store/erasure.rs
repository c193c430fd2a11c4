//! What a project that is erased leaves in table `event-markers`.

use shared::dynamodb::item::{ItemReader, s};
use shared::dynamodb::{StoreError, Sweep};
use shared::projects::project::ProjectId;
use shared::timestamp::Timestamp;

use super::MarkerStore;
use super::collections::{CollectionDeletion, TABLE, project_pk};
use crate::CollectionId;

/// How many collections are deleted at a time, by a transaction each.
const AT_ONCE: i32 = 25;

impl MarkerStore<'_> {
    /// Deletes some of a project's collections, and queues their events for purging. Nothing is left where
    /// it removed nothing.
    pub async fn erase_collections(
        self,
        project: ProjectId,
        now: Timestamp,
    ) -> Result<Sweep, StoreError> {
        let answer = self
            .db
            .query(TABLE)
            .consistent_read(true)
            .key_condition_expression("pk = :pk")
            .expression_attribute_values(":pk", s(project_pk(project)))
            .projection_expression("pk, sk")
            .limit(AT_ONCE)
            .send()
            .await?;
        let mut removed = 0;
        for item in answer.items.unwrap_or_default() {
            let id = |sk: &str| CollectionId::parse(sk.strip_prefix("collection#")?);
            let collection = ItemReader { table: TABLE, item: &item }.parsed("sk", id)?;
            let deleted = self.delete_collection(project, collection, now).await?;
            removed += u64::from(deleted == CollectionDeletion::Deleted);
        }
        Ok(Sweep { removed, after: None })
    }

    /// Whether the events of all collections are gone that were deleted up to a time.
    pub async fn are_events_purged(self, until: Timestamp) -> Result<bool, StoreError> {
        Ok(self.list_purge_jobs().await?.iter().all(|job| job.deleted_at > until))
    }
}
