//! Purging: the events of deleted collections, removed in batches by whoever holds a job's lease.
//!
//! There is no cursor to keep: progress is the shrinking partition. A purger that is killed leaves
//! its lease to run out, and a second one that works on the same job deletes what is deleted already.

use std::time::Duration;

use shared::dynamodb::StoreError;
use shared::dynamodb::item::{ItemReader, key, s};
use shared::timestamp::Timestamp;

use super::MarkerStore;
use super::collections::{TABLE, events_pk, job_key, jobs_pk, read_job};
use crate::{CollectionId, PurgeJob};

/// How long a purger may be silent before another takes over.
const LEASE: Duration = Duration::from_secs(30);

impl MarkerStore<'_> {
    /// All purge jobs, the oldest first. Strongly consistent: a job that was just queued is seen.
    pub async fn list_purge_jobs(self) -> Result<Vec<PurgeJob>, StoreError> {
        let mut items = self
            .db
            .query(TABLE)
            .consistent_read(true)
            .key_condition_expression("pk = :pk")
            .expression_attribute_values(":pk", jobs_pk())
            .into_paginator()
            .items()
            .send();
        let mut jobs = Vec::new();
        while let Some(item) = items.next().await {
            let item = item?;
            jobs.extend(self.db.unless_damaged(&item, read_job(&item))?);
        }
        jobs.sort_by_key(|job| job.deleted_at);
        Ok(jobs)
    }

    /// Takes or renews the lease of a job at `now`. False if another purger holds it, or the job is
    /// done.
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

    /// Gives up the lease of a job, so that the next purger need not wait for it to run out.
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

    /// Removes a job whose events are all gone, if its lease is still held.
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

    /// The sort keys of up to `limit` events of a collection. Strongly consistent: an empty answer
    /// means that there are none.
    pub async fn event_keys(
        self,
        collection: CollectionId,
        limit: i32,
    ) -> Result<Vec<String>, StoreError> {
        let answer = self
            .db
            .query(TABLE)
            .consistent_read(true)
            .key_condition_expression("pk = :pk")
            .expression_attribute_values(":pk", s(events_pk(collection)))
            .projection_expression("sk")
            .limit(limit)
            .send()
            .await?;
        let items = answer.items.unwrap_or_default();
        let keys = items.iter().map(|item| ItemReader { table: TABLE, item }.text("sk"));
        keys.map(|key| key.map(str::to_owned)).collect()
    }

    /// Deletes events, several batches at a time.
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
