//! The flags of a project as flagd fetches them, again and again: what a warm function remembers of them.

mod http;

use std::num::NonZeroUsize;
use std::sync::Arc;

use crate::app::App;
use crate::cache::Progress;
use crate::dynamodb::{Store, StoreError};
use crate::entity_tag::EntityTag;
use crate::projects::project::ProjectId;

use super::flagd::{Layout, export};
use super::state_cache::{Bounds, Freshness, Made, StateCache};

/// How much is remembered. A project has one configuration.
const BOUNDS: Bounds = Bounds {
    entries: NonZeroUsize::MIN.saturating_add(99),
    bytes: 24_000_000,
    bytes_of_project: 24_000_000,
};

/// The flags of a project for flagd.
#[derive(Debug)]
pub enum FlagdConfiguration {
    /// A flag definition document, and its entity tag.
    Document(String, EntityTag),
    /// The project has more flags than fit into an answer: over 8 MB.
    TooLarge,
}

/// The configurations that were asked for lately.
pub(crate) struct ConfigurationCache(StateCache<(), FlagdConfiguration>);

impl Default for ConfigurationCache {
    fn default() -> Self {
        Self(StateCache::new(BOUNDS))
    }
}

impl App {
    /// The flags of a project for flagd, as of at most five seconds ago. While none of them changes,
    /// that takes a read of one unit every five seconds.
    pub async fn flagd_configuration(
        &self,
        project: ProjectId,
    ) -> Result<Arc<FlagdConfiguration>, StoreError> {
        let read = move |store: Store, _: Option<Arc<FlagdConfiguration>>, progress: Progress| async move {
            let read = store.flags_to_export(project, &progress).await?;
            let (value, bytes) = if read.is_cut {
                (FlagdConfiguration::TooLarge, 0)
            } else {
                let export = export(project, &read.flags, &read.segments, Layout::Compact);
                let (etag, bytes) = (EntityTag::of(&export.document), export.document.len());
                (FlagdConfiguration::Document(export.document, etag), bytes)
            };
            Ok(Made { value, state: read.state, bytes, is_absent: false })
        };
        let cache = self.cache::<ConfigurationCache>();
        cache.0.get(self, (project, ()), Freshness::Cached, read).await
    }
}
