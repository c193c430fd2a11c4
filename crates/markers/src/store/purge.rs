//! Purges the events of deleted collections in batches, under the lease of a job.
//!
//! No cursor is stored: the shrinking partition is the progress. If a purger is killed, its lease
//! expires. A second purger of the same job only deletes events that are already deleted.

use std::time::Duration;

use shared::dynamodb::StoreError;
use shared::dynamodb::item::{ItemReader, key, s};
use shared::timestamp::Timestamp;

use super::MarkerStore;
use super::collections::{TABLE, events_pk, job_key, jobs_pk, read_job};
use crate::{CollectionId, PurgeJob};

/// Time after which another purger can take over a lease that was not renewed.
const LEASE: Duration = Duration::from_secs(30);

impl MarkerStore<'_> {
    /// Returns all purge jobs, oldest first. Strongly consistent, so that a new job is visible.
    pub async fn list_purge_jobs(self) -> Result<Vec<PurgeJob>, StoreError> {
        let query = self.db.query(TABLE).consistent_read(true);
        let query = query
            .key_condition_expression("pk = :pk")
            .expression_attribute_values(":pk", jobs_pk());
        let items = self.db.all(query).await?;
        let mut jobs: Vec<PurgeJob> = self.db.undamaged(&items, read_job)?;
        jobs.sort_by_key(|job| job.deleted_at);
        Ok(jobs)
    }

    /// Takes or renews the lease of a job at `now`. Returns `false` if another purger holds it, or
    /// if the job is finished.
    pub async fn lease_purge_job(
        self,
        collection: CollectionId,
        owner: &str,
        now: Timestamp,
    ) -> Result<bool, StoreError> {
        let lease = self
            .db
            .update(TABLE, job_key(collection))
            .condition_expression(
                "attribute_exists(pk) AND (attribute_not_exists(leaseOwner) \
                 OR leaseOwner = :owner OR leaseUntil < :now)",
            )
            .update_expression("SET leaseOwner = :owner, leaseUntil = :until")
            .expression_attribute_values(":owner", s(owner))
            .expression_attribute_values(":now", s(now))
            .expression_attribute_values(":until", s(now.plus(LEASE)));
        self.db.write_if(lease).await
    }

    /// Releases the lease of a job, so that the next purger need not wait until it expires.
    pub async fn release_purge_job(
        self,
        collection: CollectionId,
        owner: &str,
    ) -> Result<(), StoreError> {
        let release = self
            .db
            .update(TABLE, job_key(collection))
            .condition_expression("leaseOwner = :owner")
            .update_expression("REMOVE leaseOwner, leaseUntil")
            .expression_attribute_values(":owner", s(owner));
        self.db.write_if(release).await.map(drop)
    }

    /// Removes a job without remaining events, if its lease is still held.
    pub async fn finish_purge_job(
        self,
        collection: CollectionId,
        owner: &str,
    ) -> Result<(), StoreError> {
        let finish = self
            .db
            .delete(TABLE, job_key(collection))
            .condition_expression("leaseOwner = :owner")
            .expression_attribute_values(":owner", s(owner));
        self.db.write_if(finish).await.map(drop)
    }

    /// Returns the sort keys of up to `limit` events of a collection. Strongly consistent, so that
    /// an empty result means that none remain.
    pub async fn event_keys(
        self,
        collection: CollectionId,
        limit: i32,
    ) -> Result<Vec<String>, StoreError> {
        let output = self
            .db
            .partition(TABLE, events_pk(collection))
            .projection_expression("sk")
            .limit(limit)
            .send()
            .await?;
        let items = output.items.unwrap_or_default();
        let keys = items.iter().map(|item| ItemReader { table: TABLE, item }.text("sk"));
        keys.map(|key| key.map(str::to_owned)).collect()
    }

    /// Deletes events, several batches concurrently.
    pub async fn delete_events(
        self,
        collection: CollectionId,
        sort_keys: &[String],
    ) -> Result<(), StoreError> {
        let pk = events_pk(collection);
        self.db
            .delete_all(TABLE, sort_keys.iter().map(|sort_key| key(&pk, sort_key)).collect())
            .await
    }
}
