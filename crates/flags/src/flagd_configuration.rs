//! A cache of flagd configurations, since flagd polls them.

mod http;

use std::num::NonZeroUsize;
use std::sync::Arc;

use shared::cache::Progress;
use shared::dynamodb::{Store, StoreError};
use shared::entity_tag::EntityTag;
use shared::projects::project::ProjectId;
use shared::timestamp::Timestamp;

use super::flagd::{Layout, export};
use super::revision_cache::{CacheLimits, Freshness, LoadedValue, RevisionCache};
use crate::store::FlagStore;

/// Cache limits. Each project has one configuration.
const LIMITS: CacheLimits = CacheLimits {
    entries: NonZeroUsize::MIN.saturating_add(99),
    bytes: 24_000_000,
    bytes_per_project: 24_000_000,
};

/// A project's flags in flagd's format.
#[derive(Debug)]
pub struct FlagdConfiguration {
    /// The flag definition document.
    document: String,
    etag: EntityTag,
}

/// Recently requested configurations.
pub struct ConfigurationCache(RevisionCache<(), FlagdConfiguration>);

impl Default for ConfigurationCache {
    fn default() -> Self {
        Self(RevisionCache::new(LIMITS))
    }
}

impl ConfigurationCache {
    /// Returns a project's flags for flagd, at most five seconds old. While no flag changes, this
    /// costs one read unit per five seconds.
    pub async fn get(
        &self,
        db: &Store,
        project: ProjectId,
        now: Timestamp,
    ) -> Result<Arc<FlagdConfiguration>, StoreError> {
        let read = move |store: Store, _: Option<Arc<FlagdConfiguration>>, progress: Progress| async move {
            let read = FlagStore::new(&store).flags_to_export(project, &progress).await?;
            let document = export(project, &read.flags, &read.segments, Layout::Compact).document;
            let bytes = document.len();
            let value = FlagdConfiguration { etag: EntityTag::of(&document), document };
            Ok(LoadedValue { value, revision: read.revision, bytes, is_absent: false })
        };
        self.0.get(db, (project, ()), Freshness::Cached, now, read).await
    }
}
