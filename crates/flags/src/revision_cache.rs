//! Caches values derived from a project's flags, each with the revision it was read at
//! (docs/data-model.md, "feature-flags").
//!
//! Each flag or segment write increments the revision, so one small read validates an entry. If
//! that read fails, the last good value is served.

use std::hash::Hash;
use std::num::NonZeroUsize;
use std::pin::{Pin, pin};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use lru::LruCache;
use tokio::time::{Instant, timeout};

use shared::cache::{Cooldown, MAX_STALE, Progress, STALL_TIMEOUT};
use shared::dynamodb::{Cause, Store, StoreError};
use shared::projects::project::ProjectId;
use shared::telemetry::log_stale_flags;
use shared::timestamp::Timestamp;
use shared::usage::note_cache_lookup;

use crate::store::{FlagSetRevision, FlagStore};

/// Time for which flags are served without checking their revision: the maximum delay until a
/// disabled flag is no longer served.
const MAX_AGE: Duration = Duration::from_secs(5);
/// Stall timeout before a request falls back to flags older than [`LONG_STALE`], or to older flags
/// than the current ones that it requires.
const LONG_STALL_TIMEOUT: Duration = Duration::from_secs(1);
const LONG_STALE: Duration = Duration::from_mins(1);
/// Maximum total wait for a read that makes progress, if older flags can be served. Leaves time for
/// the rest of the request.
const MAX_WAIT: Duration = Duration::from_secs(2);
/// Stall time after which a pending read is discarded. A pending read advances only while a request
/// waits for it, and each of its calls has a timeout.
const MAX_STALL: Duration = Duration::from_secs(30);
/// Minimum interval between reads for requests that require current flags, per project.
const CURRENT_PERIOD: Duration = Duration::from_secs(1);
/// Maximum time until a transaction is completely visible. Flags that are read this long after the
/// first sight of their revision are complete.
const COMMIT_GRACE: Duration = Duration::from_secs(1);
/// Maximum number of projects with a known revision.
const MAX_PROJECTS: NonZeroUsize = NonZeroUsize::MIN.saturating_add(999);

/// The required freshness of flags.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Freshness {
    /// At most five seconds old.
    Cached,
    /// Current, since the caller requires it. At most one second old if other requests require it
    /// too.
    Current,
}

/// A value derived from a project's flags.
#[derive(Debug)]
pub(crate) struct LoadedValue<V> {
    pub(crate) value: V,
    /// The revision that was read with the flags.
    pub(crate) revision: FlagSetRevision,
    /// Approximate size in bytes.
    pub(crate) bytes: usize,
    /// `true` if the requested item does not exist. Each request then checks the revision.
    pub(crate) is_absent: bool,
}

/// A cache of values derived from projects' flags. `K` distinguishes the values of one project.
pub(crate) struct RevisionCache<K: Eq + Hash, V> {
    entries: Mutex<Entries<K, V>>,
    revisions: Arc<Revisions>,
    limits: CacheLimits,
}

/// Entries by project and key.
type Entries<K, V> = LruCache<(ProjectId, K), Arc<CacheEntry<V>>>;

/// Capacity of a cache.
#[derive(Debug, Clone, Copy)]
pub(crate) struct CacheLimits {
    /// Maximum number of entries.
    pub(crate) entries: NonZeroUsize,
    /// Maximum total size in bytes.
    pub(crate) bytes: usize,
    /// Maximum size of one project's entries in bytes.
    pub(crate) bytes_per_project: usize,
}

/// A cached value and the read that will replace it.
struct CacheEntry<V> {
    last: Mutex<Option<CachedRead<V>>>,
    progress: Progress,
    /// The pending read. The lock holder drives it while others wait. A request that times out
    /// leaves it to the next one.
    pending: tokio::sync::Mutex<Option<PendingRead<V>>>,
}

struct PendingRead<V> {
    began: Timestamp,
    /// Progress count at the start of the read.
    initial_count: u64,
    /// Last observed progress count, and the time when it was first observed.
    count: u64,
    unchanged_since: Timestamp,
    reading: Pin<Box<dyn Future<Output = Result<CachedRead<V>, StoreError>> + Send>>,
}

struct CachedRead<V> {
    value: Arc<V>,
    bytes: usize,
    revision: FlagSetRevision,
    /// `true` if no transaction can have been partly visible during the read, so that the value is
    /// complete.
    is_settled: bool,
    is_absent: bool,
    /// Last time at which the value was known to be current.
    as_of: Timestamp,
}

/// Revisions and cooldowns of projects, shared by all entries.
#[derive(Debug)]
struct Revisions {
    /// The last known revisions.
    known: Mutex<LruCache<ProjectId, KnownRevision>>,
    /// Cooldowns after failed or stalled reads.
    cooldowns: Mutex<LruCache<ProjectId, Arc<Cooldown>>>,
}

#[derive(Debug, Clone, Copy)]
struct KnownRevision {
    revision: FlagSetRevision,
    /// Time of the first sight of this revision.
    since: Timestamp,
    /// Time of the last read.
    at: Timestamp,
    /// Time of the last read for a request that required current flags.
    current_at: Option<Timestamp>,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    // A panic while a lock was held cannot have left a partial change.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl<V> Clone for CachedRead<V> {
    fn clone(&self) -> Self {
        Self { value: Arc::clone(&self.value), ..*self }
    }
}

impl<V> Default for CacheEntry<V> {
    fn default() -> Self {
        Self {
            last: Mutex::default(),
            progress: Progress::default(),
            pending: tokio::sync::Mutex::default(),
        }
    }
}

impl<K, V> RevisionCache<K, V>
where
    K: Clone + Eq + Hash + Send + 'static,
    V: Send + Sync + 'static,
{
    pub(crate) fn new(limits: CacheLimits) -> Self {
        let revisions = Arc::new(Revisions::default());
        Self { entries: Mutex::new(LruCache::new(limits.entries)), revisions, limits }
    }

    /// Returns a value at least as fresh as `freshness`. On a miss, calls `read` with the last
    /// value.
    ///
    /// While DynamoDB fails or stalls, serves the last good value for up to [`MAX_STALE`]. A read
    /// that makes progress is awaited for up to [`MAX_WAIT`]. Then the last good value is served,
    /// and the next request resumes the read. Without a good value, waits until the read ends.
    ///
    /// # Errors
    ///
    /// [`StoreError::Unavailable`] if current flags cannot be read within [`MAX_WAIT`]. The error
    /// of the read if there is no good value.
    pub(crate) async fn get<R, F>(
        &self,
        db: &Store,
        (project, selection): (ProjectId, K),
        freshness: Freshness,
        now: Timestamp,
        read: R,
    ) -> Result<Arc<V>, StoreError>
    where
        R: Fn(Store, Option<Arc<V>>, Progress) -> F + Clone + Send + 'static,
        F: Future<Output = Result<LoadedValue<V>, StoreError>> + Send + 'static,
    {
        let entry = self.entry(project, &selection);
        let last = entry.last();
        let requirement =
            self.revisions.requirement(project, freshness, now).checking_absence(last.as_ref());
        let fresh = last.as_ref().filter(|last| requirement.is_met_by(last));
        note_cache_lookup(fresh.is_some());
        if let Some(fresh) = fresh {
            return Ok(Arc::clone(&fresh.value));
        }
        let refresh = entry.refresh(db, &self.revisions, requirement, read);
        let fallback = last.filter(|it| it.is_usable_at(now));
        let Some(fallback) = fallback else {
            let read = refresh.await?;
            self.evict_over_limits(project, &selection);
            return Ok(read);
        };
        let cooldown = self.revisions.cooldown(project);
        if cooldown.is_cooling_down(now) {
            return Ok(fallback.value);
        }
        let is_current = freshness == Freshness::Current;
        let waits_long = is_current || now >= fallback.as_of.plus(LONG_STALE);
        let stall_timeout = if waits_long { LONG_STALL_TIMEOUT } else { STALL_TIMEOUT };
        let cause = match wait_while_progressing(refresh, &entry.progress, stall_timeout).await {
            WaitOutcome::Read(Ok(read)) => {
                self.evict_over_limits(project, &selection);
                return Ok(read);
            }
            WaitOutcome::Read(Err(error)) => {
                cooldown.begin(now);
                error.to_string()
            }
            WaitOutcome::Stalled => {
                cooldown.begin(now);
                "DynamoDB did not respond in time".to_owned()
            }
            WaitOutcome::TooLong if is_current => {
                let cause = Cause::of_step("reading current flags", TOO_LARGE);
                return Err(StoreError::Unavailable(cause));
            }
            WaitOutcome::TooLong => TOO_LARGE.to_owned(),
        };
        // Another request's read can have ended, though its value is not fresh enough.
        let fallback = entry.last().filter(|it| it.is_usable_at(now)).unwrap_or(fallback);
        log_stale_flags(project, fallback.as_of, &cause, now);
        Ok(fallback.value)
    }

    fn entry(&self, project: ProjectId, selection: &K) -> Arc<CacheEntry<V>> {
        let mut entries = lock(&self.entries);
        Arc::clone(entries.get_or_insert((project, selection.clone()), Arc::default))
    }

    /// Evicts the least recently used entries beyond the limits of the project and of the cache.
    /// Never evicts the entry that was just loaded.
    fn evict_over_limits(&self, project: ProjectId, selection: &K) {
        let mut entries = lock(&self.entries);
        let (mut project_bytes, mut total_bytes) = (0_usize, 0_usize);
        let mut evicted = Vec::new();
        for ((owner, key), entry) in entries.iter() {
            let bytes = entry.bytes();
            let is_own = *owner == project;
            total_bytes = total_bytes.saturating_add(bytes);
            project_bytes = project_bytes.saturating_add(if is_own { bytes } else { 0 });
            let is_over = total_bytes > self.limits.bytes
                || is_own && project_bytes > self.limits.bytes_per_project;
            if is_over && !(is_own && key == selection) {
                evicted.push((*owner, key.clone()));
                total_bytes = total_bytes.saturating_sub(bytes);
                project_bytes = project_bytes.saturating_sub(if is_own { bytes } else { 0 });
            }
        }
        for key in evicted {
            entries.pop(&key);
        }
    }
}

/// Reason for serving old flags although no read failed.
const TOO_LARGE: &str = "reading them takes longer than a request can wait";

/// Outcome of waiting for a read.
enum WaitOutcome<V> {
    Read(Result<Arc<V>, StoreError>),
    /// The read made no progress.
    Stalled,
    /// The read made progress, but did not end.
    TooLong,
}

/// Waits for a read until it makes no progress for `stall_timeout`, or until [`MAX_WAIT`] is over.
async fn wait_while_progressing<V>(
    reading: impl Future<Output = Result<Arc<V>, StoreError>>,
    progress: &Progress,
    stall_timeout: Duration,
) -> WaitOutcome<V> {
    let mut reading = pin!(reading);
    let began = Instant::now();
    loop {
        let before = progress.count();
        match timeout(stall_timeout, reading.as_mut()).await {
            Ok(read) => return WaitOutcome::Read(read),
            Err(_) if progress.count() == before => return WaitOutcome::Stalled,
            // Less than half a timeout remains.
            Err(_) if began.elapsed() + stall_timeout / 2 > MAX_WAIT => {
                return WaitOutcome::TooLong;
            }
            Err(_) => {}
        }
    }
}

/// The freshness that a request requires.
#[derive(Debug, Clone, Copy)]
struct FreshnessRequirement {
    project: ProjectId,
    /// The value must be known to be current at this time or later.
    not_before: Timestamp,
    /// `true` if the revision must be read even if one is known from `not_before`. Another write
    /// can follow in the same millisecond.
    must_be_read: bool,
    now: Timestamp,
}

impl FreshnessRequirement {
    fn is_met_by<V>(self, reading: &CachedRead<V>) -> bool {
        !self.must_be_read && self.accepts(reading.as_of)
    }

    /// Also requires a read if the last value is that the item does not exist. The item can have
    /// been created since.
    fn checking_absence<V>(self, last: Option<&CachedRead<V>>) -> Self {
        let is_absent = last.is_some_and(|last| last.is_absent);
        Self { must_be_read: self.must_be_read || is_absent, ..self }
    }

    /// `true` if information from this time is fresh enough. A time in the future was recorded
    /// before the clock was set back.
    fn accepts(self, at: Timestamp) -> bool {
        self.not_before <= at && at <= self.now
    }
}

impl<V: Send + Sync + 'static> CacheEntry<V> {
    fn last(&self) -> Option<CachedRead<V>> {
        lock(&self.last).clone()
    }

    fn bytes(&self) -> usize {
        lock(&self.last).as_ref().map_or(0, |last| last.bytes)
    }

    /// Returns a value that meets the requirement. Concurrent requests share one read.
    async fn refresh<R, F>(
        &self,
        store: &Store,
        revisions: &Arc<Revisions>,
        mut requirement: FreshnessRequirement,
        read: R,
    ) -> Result<Arc<V>, StoreError>
    where
        R: Fn(Store, Option<Arc<V>>, Progress) -> F + Clone + Send + 'static,
        F: Future<Output = Result<LoadedValue<V>, StoreError>> + Send + 'static,
    {
        let mut pending = self.pending.lock().await;
        let now = requirement.now;
        loop {
            let last = self.last();
            if let Some(last) = last.as_ref().filter(|last| requirement.is_met_by(last)) {
                return Ok(Arc::clone(&last.value));
            }
            if let Some(reading) = pending.as_mut() {
                reading.record_progress(self.progress.count(), now);
            }
            if pending.as_ref().is_some_and(|it| it.must_restart(requirement)) {
                *pending = None;
            }
            let is_own = pending.is_none();
            let reading = pending.get_or_insert_with(|| {
                let (store, revisions, read) = (store.clone(), Arc::clone(revisions), read.clone());
                let progress = self.progress.clone();
                let count = progress.count();
                let reading = Box::pin(load(store, revisions, requirement, last, read, progress));
                PendingRead {
                    began: now,
                    initial_count: count,
                    count,
                    unchanged_since: now,
                    reading,
                }
            });
            let began = reading.began;
            let outcome = reading.reading.as_mut().await;
            *pending = None;
            // A read that another request began is not current, so check the revision again.
            requirement.must_be_read &= !is_own;
            match outcome {
                Ok(reading) => *lock(&self.last) = Some(reading),
                Err(_) if began < now => {}
                Err(error) => return Err(error),
            }
        }
    }
}

impl<V> PendingRead<V> {
    /// Records the current progress count.
    fn record_progress(&mut self, count: u64, now: Timestamp) {
        if count != self.count {
            (self.count, self.unchanged_since) = (count, now);
        }
    }

    /// `true` if the read must start again. A read with progress continues, since its progress
    /// would be lost.
    fn must_restart(&self, requirement: FreshnessRequirement) -> bool {
        let has_begun = self.count != self.initial_count;
        let now = requirement.now;
        self.began > now
            || now >= self.unchanged_since.plus(MAX_STALL)
            || requirement.must_be_read && !has_begun
    }
}

impl<V> CachedRead<V> {
    /// `true` if the value can be served while newer ones cannot be read.
    fn is_usable_at(&self, now: Timestamp) -> bool {
        !self.is_absent && self.as_of <= now && now < self.as_of.plus(MAX_STALE)
    }
}

/// Checks the revision, reading it unless it is known, and reads a new value if the last one has
/// another revision.
async fn load<V, R, F>(
    store: Store,
    revisions: Arc<Revisions>,
    requirement: FreshnessRequirement,
    last: Option<CachedRead<V>>,
    read: R,
    progress: Progress,
) -> Result<CachedRead<V>, StoreError>
where
    R: Fn(Store, Option<Arc<V>>, Progress) -> F,
    F: Future<Output = Result<LoadedValue<V>, StoreError>>,
{
    let FreshnessRequirement { project, now, .. } = requirement;
    // An unsettled value is always read again.
    if let Some(last) = last.as_ref().filter(|last| last.is_settled) {
        let is_enough =
            |it: &KnownRevision| !requirement.must_be_read && requirement.accepts(it.at);
        let known = match revisions.known(project).filter(is_enough) {
            Some(known) => known,
            None => revisions.record(
                project,
                FlagStore::new(&store).flag_set_revision(project).await?,
                now,
            ),
        };
        if known.revision == last.revision {
            return Ok(CachedRead { as_of: known.at, ..last.clone() });
        }
        progress.note();
    }
    let loaded = read(store, last.map(|last| last.value), progress).await?;
    let known = revisions.record(project, loaded.revision, now);
    Ok(CachedRead {
        value: Arc::new(loaded.value),
        bytes: loaded.bytes,
        revision: loaded.revision,
        is_settled: now >= known.since.plus(COMMIT_GRACE),
        is_absent: loaded.is_absent,
        as_of: now,
    })
}

impl Default for Revisions {
    fn default() -> Self {
        Self {
            known: Mutex::new(LruCache::new(MAX_PROJECTS)),
            cooldowns: Mutex::new(LruCache::new(MAX_PROJECTS)),
        }
    }
}

impl Revisions {
    fn known(&self, project: ProjectId) -> Option<KnownRevision> {
        lock(&self.known).get(&project).copied()
    }

    fn cooldown(&self, project: ProjectId) -> Arc<Cooldown> {
        Arc::clone(lock(&self.cooldowns).get_or_insert(project, Arc::default))
    }

    /// Returns the requirement of a request at `now`.
    fn requirement(
        &self,
        project: ProjectId,
        freshness: Freshness,
        now: Timestamp,
    ) -> FreshnessRequirement {
        if freshness == Freshness::Cached {
            let not_before = now.minus(MAX_AGE).plus(Duration::from_millis(1));
            return FreshnessRequirement { project, not_before, must_be_read: false, now };
        }
        let mut revisions = lock(&self.known);
        let Some(known) = revisions.get_mut(&project) else {
            return FreshnessRequirement { project, not_before: now, must_be_read: true, now };
        };
        let recent = known.current_at.filter(|at| *at <= now && now < at.plus(CURRENT_PERIOD));
        if let Some(not_before) = recent {
            return FreshnessRequirement { project, not_before, must_be_read: false, now };
        }
        known.current_at = Some(now);
        FreshnessRequirement { project, not_before: now, must_be_read: true, now }
    }

    /// Records a revision that was read at `now`.
    fn record(
        &self,
        project: ProjectId,
        revision: FlagSetRevision,
        now: Timestamp,
    ) -> KnownRevision {
        let mut revisions = lock(&self.known);
        let before = revisions.get(&project).copied();
        let known = KnownRevision {
            revision,
            since: before.filter(|it| it.revision == revision).map_or(now, |it| it.since),
            at: now,
            current_at: before.and_then(|it| it.current_at),
        };
        revisions.put(project, known);
        known
    }
}

#[cfg(test)]
mod tests;
