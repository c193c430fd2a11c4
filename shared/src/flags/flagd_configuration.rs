//! The flags of a project as flagd fetches them, again and again: what a warm function remembers of them.

mod http;

use std::num::NonZeroUsize;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use lru::LruCache;

use crate::app::App;
use crate::dynamodb::StoreError;
use crate::entity_tag::EntityTag;
use crate::projects::project::ProjectId;
use crate::timestamp::Timestamp;
use crate::usage::note_cache_lookup;

use super::flagd::{Layout, export};

/// How long a configuration is served without a look at whether it still is the project's.
const MAX_AGE: Duration = Duration::from_secs(5);
/// How many configurations are remembered.
const MAX_PROJECTS: NonZeroUsize = NonZeroUsize::MIN.saturating_add(99);
/// How many bytes of them.
const MAX_BYTES: usize = 24_000_000;

/// A flag definition document of flagd, and its entity tag.
#[derive(Debug)]
pub struct FlagdConfiguration {
    /// The document.
    pub document: String,
    /// The tag of the document.
    pub etag: EntityTag,
}

/// The configurations that were asked for lately.
#[derive(Debug)]
pub(crate) struct ConfigurationCache(Mutex<LruCache<ProjectId, Remembered>>);

#[derive(Debug, Clone)]
struct Remembered {
    configuration: Arc<FlagdConfiguration>,
    /// The number of the state of the project's flags, which was read before them.
    state: i64,
    /// When it was last known to be the project's.
    at: Timestamp,
}

impl Default for ConfigurationCache {
    fn default() -> Self {
        Self(Mutex::new(LruCache::new(MAX_PROJECTS)))
    }
}

impl ConfigurationCache {
    fn get(&self, project: ProjectId) -> Option<Remembered> {
        // A panic while the lock was held cannot have left the map half-changed.
        self.0.lock().unwrap_or_else(PoisonError::into_inner).get(&project).cloned()
    }

    fn insert(&self, project: ProjectId, remembered: Remembered) {
        let mut entries = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        entries.put(project, remembered);
        let bytes = |entries: &LruCache<ProjectId, Remembered>| -> usize {
            entries.iter().map(|(_, it)| it.configuration.document.len()).sum()
        };
        while entries.len() > 1 && bytes(&entries) > MAX_BYTES {
            entries.pop_lru();
        }
    }
}

impl App {
    /// The flags of a project for flagd, as of at most five seconds ago. While none of them changes,
    /// that takes a read of one unit every five seconds.
    pub async fn flagd_configuration(
        &self,
        project: ProjectId,
    ) -> Result<Arc<FlagdConfiguration>, StoreError> {
        let cache = self.cache::<ConfigurationCache>();
        let known = cache.get(project);
        let at = self.clock.now();
        let fresh = known.as_ref().filter(|it| it.at <= at && at < it.at.plus(MAX_AGE));
        note_cache_lookup(fresh.is_some());
        if let Some(fresh) = fresh {
            return Ok(Arc::clone(&fresh.configuration));
        }
        // Before the flags: a change in between shows the next time.
        let state = self.store.flags_state(project).await?;
        let configuration = if let Some(unchanged) = known.filter(|it| it.state == state) {
            unchanged.configuration
        } else {
            let (flags, segments) = self.store.flags_to_export(project).await?;
            let document = export(project, &flags, &segments, Layout::Compact).document;
            let etag = EntityTag::of(&document);
            Arc::new(FlagdConfiguration { document, etag })
        };
        let remembered = Remembered { configuration: Arc::clone(&configuration), state, at };
        cache.insert(project, remembered);
        Ok(configuration)
    }
}

#[cfg(test)]
mod tests {
    use uuid::Uuid;

    use super::*;

    fn remember(cache: &ConfigurationCache, number: u128, bytes: usize) {
        let document = " ".repeat(bytes);
        let etag = EntityTag::of("");
        let configuration = Arc::new(FlagdConfiguration { document, etag });
        let at = Timestamp::from_millis(0);
        let project = ProjectId::new(Uuid::from_u128(number));
        cache.insert(project, Remembered { configuration, state: 1, at });
    }

    fn known(cache: &ConfigurationCache) -> Vec<u128> {
        let is_known =
            |number: &u128| cache.get(ProjectId::new(Uuid::from_u128(*number))).is_some();
        (0..300).filter(is_known).collect()
    }

    #[test]
    fn what_is_remembered_is_bounded_in_number_and_in_bytes() {
        let cache = ConfigurationCache::default();
        (0..150).for_each(|number| remember(&cache, number, 1));
        assert_eq!(known(&cache).len(), 100);
        let cache = ConfigurationCache::default();
        for number in 0..4 {
            remember(&cache, number, MAX_BYTES / 3);
        }
        assert_eq!(known(&cache), [1, 2, 3]);
        remember(&cache, 7, MAX_BYTES + 1);
        assert_eq!(known(&cache), [7], "the latest stays, whatever its size");
    }
}
