//! Erases a project's items in the table `event-markers`.

use shared::dynamodb::item::ItemReader;
use shared::dynamodb::{StoreError, Sweep};
use shared::projects::project::ProjectId;
use shared::timestamp::Timestamp;

use super::MarkerStore;
use super::collections::{CollectionDeletion, TABLE, project_pk};
use crate::CollectionId;

/// Maximum number of collections deleted per step, one transaction each.
const MAX_COLLECTIONS: i32 = 25;

impl MarkerStore<'_> {
    /// Deletes some of a project's collections, and queues their events for purging. None are left
    /// if it deletes nothing.
    pub async fn erase_collections(
        self,
        project: ProjectId,
        now: Timestamp,
    ) -> Result<Sweep, StoreError> {
        let output = self
            .db
            .partition(TABLE, project_pk(project))
            .projection_expression("pk, sk")
            .limit(MAX_COLLECTIONS)
            .send()
            .await?;
        let mut removed = 0;
        for item in output.items.unwrap_or_default() {
            let id = |sk: &str| CollectionId::parse(sk.strip_prefix("collection#")?);
            let collection = ItemReader { table: TABLE, item: &item }.parsed("sk", id)?;
            let deleted = self.delete_collection(project, collection, Vec::new(), now).await?;
            removed += u64::from(deleted == CollectionDeletion::Deleted);
        }
        Ok(Sweep { removed, after: None })
    }

    /// Returns `true` if the events of all collections that were deleted until this time are
    /// purged.
    pub async fn are_events_purged(self, until: Timestamp) -> Result<bool, StoreError> {
        Ok(self.list_purge_jobs().await?.iter().all(|job| job.deleted_at > until))
    }
}
