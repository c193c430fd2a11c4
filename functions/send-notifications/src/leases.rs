//! The shards that a run works on.

use std::time::Duration;

use uuid::Uuid;

use notifications::store::{NotificationStore, Shard};
use shared::app::App;
use shared::dynamodb::StoreError;
use shared::timestamp::Timestamp;

/// How long before a lease is renewed: a quarter of its length.
const RENEWED_AFTER: Duration = Duration::from_secs(5);

pub(crate) struct Leases {
    owner: Uuid,
    held: Vec<(Shard, Timestamp)>,
}

impl Leases {
    pub(crate) fn new(owner: Uuid) -> Self {
        Self { owner, held: Vec::new() }
    }

    /// Takes a shard, unless another run works on it.
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

    /// The shards that were taken and not lost.
    pub(crate) fn shards(&self) -> Vec<Shard> {
        self.held.iter().map(|(shard, _)| *shard).collect()
    }

    /// Renews the lease of a shard that may end soon. False if it is lost.
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

    /// Gives all shards back.
    pub(crate) async fn release(&self, app: &App) -> Result<(), StoreError> {
        for (shard, _) in &self.held {
            NotificationStore::new(&app.store).release_shard(*shard, self.owner).await?;
        }
        Ok(())
    }
}
