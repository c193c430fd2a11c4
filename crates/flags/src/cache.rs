//! A cache of the flags that a warm function evaluates.

use std::num::NonZeroUsize;
use std::sync::Arc;

use shared::cache::Progress;
use shared::dynamodb::{Store, StoreError};
use shared::projects::project::ProjectId;
use shared::telemetry::{PATTERNS_NOT_CACHED, log_bound_met};
use shared::timestamp::Timestamp;

use super::evaluation::Flags;
use super::evaluation::patterns::{PatternCache, ProjectPatterns};
use super::revision_cache::{CacheLimits, Freshness, LoadedValue, RevisionCache};
use super::store::StoredFlags;
use super::{FlagKey, MAX_PROJECT_BYTES};
use crate::store::FlagStore;

/// Cache limits in bytes of memory, without patterns, which have separate limits. All flags of one
/// project fit.
const LIMITS: CacheLimits = CacheLimits {
    entries: NonZeroUsize::MIN.saturating_add(999),
    bytes: 32_000_000,
    bytes_per_project: MAX_PROJECT_BYTES,
};

/// Recently evaluated flags: all flags of a project, or one flag with its prerequisites and
/// segments.
pub struct FlagCache {
    flags: RevisionCache<Option<FlagKey>, Flags>,
    patterns: PatternCache,
}

impl Default for FlagCache {
    fn default() -> Self {
        Self { flags: RevisionCache::new(LIMITS), patterns: PatternCache::default() }
    }
}

impl FlagCache {
    /// Returns all unarchived flags of a project.
    pub async fn flags(
        &self,
        db: &Store,
        project: ProjectId,
        freshness: Freshness,
        now: Timestamp,
    ) -> Result<Arc<Flags>, StoreError> {
        let patterns = self.patterns.of(project);
        let for_read = Arc::clone(&patterns);
        let read = move |store: Store, known: Option<Arc<Flags>>, progress: Progress| {
            let patterns = Arc::clone(&for_read);
            async move {
                let known = known.as_deref();
                let read = FlagStore::new(&store)
                    .flags_to_evaluate(project, known, &patterns, &progress)
                    .await?;
                Ok(loaded(read, false))
            }
        };
        let flags = self.flags.get(db, (project, None), freshness, now, read).await;
        report_uncached_patterns(project, &patterns, now);
        flags
    }

    /// Returns a flag with everything that it depends on; no flag if none has this key or it is
    /// archived. An absent flag is looked up each time, so that a new flag can be evaluated
    /// immediately.
    pub async fn flag(
        &self,
        db: &Store,
        project: ProjectId,
        flag: &FlagKey,
        freshness: Freshness,
        now: Timestamp,
    ) -> Result<Arc<Flags>, StoreError> {
        let patterns = self.patterns.of(project);
        let for_read = (flag.clone(), Arc::clone(&patterns));
        let read = move |store: Store, known: Option<Arc<Flags>>, progress: Progress| {
            let (key, patterns) = for_read.clone();
            async move {
                let known = known.as_deref();
                let read = FlagStore::new(&store)
                    .flag_to_evaluate(project, &key, known, &patterns, &progress)
                    .await?;
                let is_absent = read.flags.get(key.as_str()).is_none();
                Ok(loaded(read, is_absent))
            }
        };
        let flags = self.flags.get(db, (project, Some(flag.clone())), freshness, now, read).await;
        report_uncached_patterns(project, &patterns, now);
        flags
    }
}

/// Logs once per read if some patterns were not cached and each evaluation must compile them.
fn report_uncached_patterns(project: ProjectId, patterns: &ProjectPatterns, now: Timestamp) {
    if patterns.take_uncached() {
        log_bound_met(PATTERNS_NOT_CACHED, &project.to_string(), now);
    }
}

fn loaded(
    StoredFlags { flags, bytes, revision }: StoredFlags,
    is_absent: bool,
) -> LoadedValue<Flags> {
    LoadedValue { value: flags, revision, bytes, is_absent }
}
