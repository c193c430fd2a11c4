//! What a warm function remembers of the flags that it evaluates.

use std::num::NonZeroUsize;
use std::sync::Arc;

use shared::cache::Progress;
use shared::dynamodb::{Store, StoreError};
use shared::projects::project::ProjectId;
use shared::telemetry::{PATTERNS_NOT_KEPT, log_bound_met};
use shared::timestamp::Timestamp;

use super::evaluation::Flags;
use super::evaluation::patterns::{PatternCache, ProjectPatterns};
use super::revision_cache::{CacheLimits, Freshness, LoadedValue, RevisionCache};
use super::store::StoredFlags;
use super::{FlagKey, MAX_PROJECT_BYTES};
use crate::store::FlagStore;

/// How much is remembered, in bytes of memory; patterns have bounds of their own. All flags of one project fit.
const BOUNDS: CacheLimits = CacheLimits {
    entries: NonZeroUsize::MIN.saturating_add(999),
    bytes: 32_000_000,
    bytes_of_project: MAX_PROJECT_BYTES,
};

/// The flags of projects that were evaluated lately: all flags of a project, or one of them with all that
/// it depends on.
pub struct FlagCache {
    flags: RevisionCache<Option<FlagKey>, Flags>,
    patterns: PatternCache,
}

impl Default for FlagCache {
    fn default() -> Self {
        Self { flags: RevisionCache::new(BOUNDS), patterns: PatternCache::default() }
    }
}

impl FlagCache {
    /// Returns all flags of a project that are not archived.
    pub async fn flags(
        &self,
        db: &Store,
        project: ProjectId,
        freshness: Freshness,
        now: Timestamp,
    ) -> Result<Arc<Flags>, StoreError> {
        let patterns = self.patterns.of(project);
        let for_reading = Arc::clone(&patterns);
        let read = move |store: Store, known: Option<Arc<Flags>>, progress: Progress| {
            let patterns = Arc::clone(&for_reading);
            async move {
                let known = known.as_deref();
                let read = FlagStore::new(&store)
                    .flags_to_evaluate(project, known, &patterns, &progress)
                    .await?;
                Ok(made(read, false))
            }
        };
        let flags = self.flags.get(db, (project, None), freshness, now, read).await;
        report_lack_of_room(project, &patterns, now);
        flags
    }

    /// A flag with all that it depends on; nothing if there is no such flag, or it is archived. That
    /// there is none is looked at each time: a flag can be evaluated from the moment it is made.
    pub async fn flag(
        &self,
        db: &Store,
        project: ProjectId,
        flag: &FlagKey,
        freshness: Freshness,
        now: Timestamp,
    ) -> Result<Arc<Flags>, StoreError> {
        let patterns = self.patterns.of(project);
        let for_reading = (flag.clone(), Arc::clone(&patterns));
        let read = move |store: Store, known: Option<Arc<Flags>>, progress: Progress| {
            let (key, patterns) = for_reading.clone();
            async move {
                let known = known.as_deref();
                let read = FlagStore::new(&store)
                    .flag_to_evaluate(project, &key, known, &patterns, &progress)
                    .await?;
                let is_absent = read.flags.get(key.as_str()).is_none();
                Ok(made(read, is_absent))
            }
        };
        let flags = self.flags.get(db, (project, Some(flag.clone())), freshness, now, read).await;
        report_lack_of_room(project, &patterns, now);
        flags
    }
}

/// Logs once for each read that some of its patterns must be compiled for each evaluation.
fn report_lack_of_room(project: ProjectId, patterns: &ProjectPatterns, now: Timestamp) {
    if patterns.take_lack_of_room() {
        log_bound_met(PATTERNS_NOT_KEPT, &project.to_string(), now);
    }
}

fn made(StoredFlags { flags, bytes, state }: StoredFlags, is_absent: bool) -> LoadedValue<Flags> {
    LoadedValue { value: flags, state, bytes, is_absent }
}
