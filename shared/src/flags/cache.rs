//! What a warm function remembers of the flags that it evaluates.

use std::num::NonZeroUsize;
use std::sync::Arc;

use crate::app::App;
use crate::cache::Progress;
use crate::dynamodb::{Store, StoreError};
use crate::projects::project::ProjectId;
use crate::telemetry::{PATTERNS_NOT_KEPT, log_bound_met};

use super::evaluation::Flags;
use super::evaluation::patterns::{PatternCache, ProjectPatterns};
use super::state_cache::{Bounds, Freshness, Made, StateCache};
use super::store::StoredFlags;
use super::{FlagKey, MAX_PROJECT_BYTES};

/// How much is remembered, in bytes of memory; patterns have bounds of their own. All flags of one project fit.
const BOUNDS: Bounds = Bounds {
    entries: NonZeroUsize::MIN.saturating_add(999),
    bytes: 32_000_000,
    bytes_of_project: MAX_PROJECT_BYTES,
};

/// The flags of projects that were evaluated lately: all flags of a project, or one of them with all that
/// it depends on.
pub(crate) struct FlagCache {
    flags: StateCache<Option<FlagKey>, Flags>,
    patterns: PatternCache,
}

impl Default for FlagCache {
    fn default() -> Self {
        Self { flags: StateCache::new(BOUNDS), patterns: PatternCache::default() }
    }
}

impl App {
    /// All flags of a project that are not archived.
    pub async fn evaluated_flags(
        &self,
        project: ProjectId,
        freshness: Freshness,
    ) -> Result<Arc<Flags>, StoreError> {
        let cache = self.cache::<FlagCache>();
        let patterns = cache.patterns.of(project);
        let for_reading = Arc::clone(&patterns);
        let read = move |store: Store, known: Option<Arc<Flags>>, progress: Progress| {
            let patterns = Arc::clone(&for_reading);
            async move {
                let known = known.as_deref();
                let read = store.flags_to_evaluate(project, known, &patterns, &progress).await?;
                Ok(made(read, false))
            }
        };
        let flags = cache.flags.get(self, (project, None), freshness, read).await;
        self.tell_lack_of_room(project, &patterns);
        flags
    }

    /// A flag with all that it depends on; nothing if there is no such flag, or it is archived. That
    /// there is none is looked at each time: a flag can be evaluated from the moment it is made.
    pub async fn evaluated_flag(
        &self,
        project: ProjectId,
        flag: &FlagKey,
        freshness: Freshness,
    ) -> Result<Arc<Flags>, StoreError> {
        let cache = self.cache::<FlagCache>();
        let patterns = cache.patterns.of(project);
        let for_reading = (flag.clone(), Arc::clone(&patterns));
        let read = move |store: Store, known: Option<Arc<Flags>>, progress: Progress| {
            let (key, patterns) = for_reading.clone();
            async move {
                let known = known.as_deref();
                let read =
                    store.flag_to_evaluate(project, &key, known, &patterns, &progress).await?;
                let is_absent = read.flags.get(key.as_str()).is_none();
                Ok(made(read, is_absent))
            }
        };
        let flags = cache.flags.get(self, (project, Some(flag.clone())), freshness, read).await;
        self.tell_lack_of_room(project, &patterns);
        flags
    }

    /// Tells once for each reading that some of its patterns have to be compiled for each evaluation.
    fn tell_lack_of_room(&self, project: ProjectId, patterns: &ProjectPatterns) {
        if patterns.take_lack_of_room() {
            log_bound_met(PATTERNS_NOT_KEPT, &project.to_string(), self.clock.now());
        }
    }
}

fn made(StoredFlags { flags, bytes, state }: StoredFlags, is_absent: bool) -> Made<Flags> {
    Made { value: flags, state, bytes, is_absent }
}
