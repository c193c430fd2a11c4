//! Leases of an invocation's shards.

use std::time::Duration;

use uuid::Uuid;

use notifications::store::{NotificationStore, Shard};
use shared::app::App;
use shared::dynamodb::StoreError;
use shared::timestamp::Timestamp;

/// Age at which a lease is renewed: a quarter of its duration.
const RENEWED_AFTER: Duration = Duration::from_secs(5);

pub(crate) struct Leases {
    owner: Uuid,
    held: Vec<(Shard, Timestamp)>,
}

impl Leases {
    pub(crate) fn new(owner: Uuid) -> Self {
        Self { owner, held: Vec::new() }
    }

    /// Acquires the lease of a shard, unless another invocation holds it.
    pub(crate) async fn take(&mut self, app: &App, shard: Shard) -> Result<(), StoreError> {
        let now = app.clock.now();
        if NotificationStore::new(&app.store).lease_shard(shard, self.owner, now).await? {
            self.held.push((shard, now));
        }
        Ok(())
    }

    pub(crate) fn has(&self, shard: Shard) -> bool {
        self.held.iter().any(|(held, _)| *held == shard)
    }

    /// Returns the shards whose leases are held.
    pub(crate) fn shards(&self) -> Vec<Shard> {
        self.held.iter().map(|(shard, _)| *shard).collect()
    }

    /// Renews the lease of a shard if it is older than [`RENEWED_AFTER`]. Returns `false` if it is
    /// lost.
    pub(crate) async fn keep(&mut self, app: &App, shard: Shard) -> Result<bool, StoreError> {
        let now = app.clock.now();
        let Some(at) = self.held.iter().position(|(held, _)| *held == shard) else {
            return Ok(false);
        };
        if self.held[at].1.plus(RENEWED_AFTER) > now {
            return Ok(true);
        }
        let is_kept =
            NotificationStore::new(&app.store).lease_shard(shard, self.owner, now).await?;
        if is_kept {
            self.held[at].1 = now;
        } else {
            self.held.remove(at);
        }
        Ok(is_kept)
    }

    /// Releases all leases.
    pub(crate) async fn release(&self, app: &App) -> Result<(), StoreError> {
        for (shard, _) in &self.held {
            NotificationStore::new(&app.store).release_shard(*shard, self.owner).await?;
        }
        Ok(())
    }
}
