//! The flags of a project as flagd fetches them, again and again: what a warm function remembers of them.

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

/// How much is remembered. A project has one configuration.
const BOUNDS: CacheLimits = CacheLimits {
    entries: NonZeroUsize::MIN.saturating_add(99),
    bytes: 24_000_000,
    bytes_of_project: 24_000_000,
};

/// The flags of a project for flagd.
#[derive(Debug)]
pub struct FlagdConfiguration {
    /// A flag definition document.
    document: String,
    etag: EntityTag,
}

/// The configurations that were asked for lately.
pub struct ConfigurationCache(RevisionCache<(), FlagdConfiguration>);

impl Default for ConfigurationCache {
    fn default() -> Self {
        Self(RevisionCache::new(BOUNDS))
    }
}

impl ConfigurationCache {
    /// Returns the flags of a project for flagd, as of at most five seconds ago. While none of them changes,
    /// that takes a read of one unit every five seconds.
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
            Ok(LoadedValue { value, state: read.state, bytes, is_absent: false })
        };
        self.0.get(db, (project, ()), Freshness::Cached, now, read).await
    }
}
