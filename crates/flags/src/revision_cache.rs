//! What a warm function remembers of what it made of projects' flags, each as of a state of them
//! (docs/data-model.md, "feature-flags").
//!
//! Every write of a flag or segment grows the number of its project's state. So whether something still
//! is as it was made is one small read; and while even that fails, the last good one serves.

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

/// How long flags are served without a look at whether they still are the project's: the longest that a
/// flag may go on being served after it was switched off.
const MAX_AGE: Duration = Duration::from_secs(5);
/// How long nothing may come before whoever could be served flags older than [`LONG_STALE`], or asks for them as
/// they are, is served older ones.
const LONG_STALL_TIMEOUT: Duration = Duration::from_secs(1);
const LONG_STALE: Duration = Duration::from_mins(1);
/// How long whoever could be served older flags waits in all, while something comes: as long as a request has,
/// but for what comes before and after.
const MAX_WAIT: Duration = Duration::from_secs(2);
/// After how long a reading is given up of which nothing more has come. It goes on only while somebody waits
/// for it, and each of its calls has a limit of its own.
const MAX_SILENCE: Duration = Duration::from_secs(30);
/// How often those who ask for flags as they are now have them read, of a project.
const CURRENT_PERIOD: Duration = Duration::from_secs(1);
/// How long a transaction may be halfway: what is read that much later in the same state is all of it.
const COMMIT_GRACE: Duration = Duration::from_secs(1);
/// Of how many projects the state is known.
const MAX_PROJECTS: NonZeroUsize = NonZeroUsize::MIN.saturating_add(999);

/// How new the flags of an evaluation must be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Freshness {
    /// As of at most five seconds ago.
    Cached,
    /// As of now: the caller asks for it. As of at most a second ago, if others do as well.
    Current,
}

/// What was made of a project's flags.
#[derive(Debug)]
pub(crate) struct LoadedValue<V> {
    pub(crate) value: V,
    /// The state that was read with the flags.
    pub(crate) state: FlagSetRevision,
    /// About how many bytes it has.
    pub(crate) bytes: usize,
    /// Whether what was asked for is not there: then the state is looked at each time.
    pub(crate) is_absent: bool,
}

/// What was made of projects' flags lately: for each project one or several, told apart by `K`.
pub(crate) struct RevisionCache<K: Eq + Hash, V> {
    slots: Mutex<Slots<K, V>>,
    states: Arc<States>,
    bounds: CacheLimits,
}

/// The places of what is remembered, by project and what of it.
type Slots<K, V> = LruCache<(ProjectId, K), Arc<CacheEntry<V>>>;

/// How much is remembered.
#[derive(Debug, Clone, Copy)]
pub(crate) struct CacheLimits {
    /// How many of all projects.
    pub(crate) entries: NonZeroUsize,
    /// How many bytes of all projects.
    pub(crate) bytes: usize,
    /// How many bytes of one project.
    pub(crate) bytes_of_project: usize,
}

/// The place of one thing that is remembered.
struct CacheEntry<V> {
    last: Mutex<Option<CachedRead<V>>>,
    progress: Progress,
    /// The reading that is under way. Whoever holds the lock drives it, so that others who want the same
    /// wait for it; whoever waited too long leaves it to the next.
    under_way: tokio::sync::Mutex<Option<PendingRead<V>>>,
}

struct PendingRead<V> {
    began: Timestamp,
    /// How much had come of readings when it began.
    count_before: u64,
    /// How much had come when it was last looked at, and since when that is so.
    count: u64,
    silent_since: Timestamp,
    reading: Pin<Box<dyn Future<Output = Result<CachedRead<V>, StoreError>> + Send>>,
}

struct CachedRead<V> {
    value: Arc<V>,
    bytes: usize,
    state: FlagSetRevision,
    /// Whether no write can have been halfway when the flags were read: then they are all of the state.
    is_settled: bool,
    is_absent: bool,
    /// As of when it is known to be the project's.
    as_of: Timestamp,
}

/// What is known of projects, whatever of their flags is asked for.
#[derive(Debug)]
struct States {
    /// The states that their flags are known to be in.
    known: Mutex<LruCache<ProjectId, KnownState>>,
    /// While nothing newer could be read of any of their flags.
    pauses: Mutex<LruCache<ProjectId, Arc<Cooldown>>>,
}

#[derive(Debug, Clone, Copy)]
struct KnownState {
    state: FlagSetRevision,
    /// When it was first seen here.
    since: Timestamp,
    /// When it was last read.
    at: Timestamp,
    /// When it was last read for somebody who asked for flags as they are.
    current_at: Option<Timestamp>,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    // A panic while a lock was held cannot have left anything half-changed.
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
            under_way: tokio::sync::Mutex::default(),
        }
    }
}

impl<K, V> RevisionCache<K, V>
where
    K: Clone + Eq + Hash + Send + 'static,
    V: Send + Sync + 'static,
{
    pub(crate) fn new(bounds: CacheLimits) -> Self {
        let states = Arc::new(States::default());
        Self { slots: Mutex::new(LruCache::new(bounds.entries)), states, bounds }
    }

    /// What is made of a project's flags, as new as it must be, by `read` if it is not remembered;
    /// `read` gets what was remembered last.
    ///
    /// While it cannot be read, or nothing comes of it, what was last read serves, for up to ten minutes. While
    /// something comes it is waited for, as long as a request may take. What is not read by then goes on with the
    /// next request, and what was last read serves; but whoever asks for flags as they are is told that they
    /// cannot be had. Without something that could serve it takes what it takes, and fails as reading does.
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
        let slot = self.slot(project, &selection);
        let last = slot.last();
        let asked = self.states.asked(project, freshness, now).beside(last.as_ref());
        let fresh = last.as_ref().filter(|last| asked.is_met_by(last));
        note_cache_lookup(fresh.is_some());
        if let Some(fresh) = fresh {
            return Ok(Arc::clone(&fresh.value));
        }
        let newer = slot.newer(db, &self.states, asked, read);
        let good = last.filter(|it| it.serves_at(now));
        let Some(good) = good else {
            let read = newer.await?;
            self.forget_beyond_bounds(project, &selection);
            return Ok(read);
        };
        let pause = self.states.pause(project);
        if pause.is_cooling_down(now) {
            return Ok(good.value);
        }
        let is_current = freshness == Freshness::Current;
        let is_patient = is_current || now >= good.as_of.plus(LONG_STALE);
        let patience = if is_patient { LONG_STALL_TIMEOUT } else { STALL_TIMEOUT };
        let cause = match wait_while_it_comes(newer, &slot.progress, patience).await {
            WaitOutcome::Read(Ok(read)) => {
                self.forget_beyond_bounds(project, &selection);
                return Ok(read);
            }
            WaitOutcome::Read(Err(error)) => {
                pause.begin(now);
                error.to_string()
            }
            WaitOutcome::InSilence => {
                pause.begin(now);
                "the tables did not answer in time".to_owned()
            }
            WaitOutcome::TooLong if is_current => {
                let cause = Cause::of_step("reading flags as they are", TOO_LARGE);
                return Err(StoreError::Unavailable(cause));
            }
            WaitOutcome::TooLong => TOO_LARGE.to_owned(),
        };
        // A reading that others left has perhaps come to its end, though not to be new enough.
        let good = slot.last().filter(|it| it.serves_at(now)).unwrap_or(good);
        log_stale_flags(project, good.as_of, &cause, now);
        Ok(good.value)
    }

    fn slot(&self, project: ProjectId, selection: &K) -> Arc<CacheEntry<V>> {
        let mut slots = lock(&self.slots);
        Arc::clone(slots.get_or_insert((project, selection.clone()), Arc::default))
    }

    /// Forgets what was of no use for the longest time, of the project and of all, but never what was just
    /// made.
    fn forget_beyond_bounds(&self, project: ProjectId, selection: &K) {
        let mut slots = lock(&self.slots);
        let (mut of_project, mut of_all) = (0_usize, 0_usize);
        let mut beyond = Vec::new();
        for ((of, what), slot) in slots.iter() {
            let bytes = slot.bytes();
            let is_own = *of == project;
            of_all = of_all.saturating_add(bytes);
            of_project = of_project.saturating_add(if is_own { bytes } else { 0 });
            let is_beyond =
                of_all > self.bounds.bytes || is_own && of_project > self.bounds.bytes_of_project;
            if is_beyond && !(is_own && what == selection) {
                beyond.push((*of, what.clone()));
                of_all = of_all.saturating_sub(bytes);
                of_project = of_project.saturating_sub(if is_own { bytes } else { 0 });
            }
        }
        for key in beyond {
            slots.pop(&key);
        }
    }
}

/// Why flags are older than asked for though nothing fails.
const TOO_LARGE: &str = "they take longer to read than a request may";

/// What became of waiting for a reading.
enum WaitOutcome<V> {
    Read(Result<Arc<V>, StoreError>),
    /// Nothing came of it.
    InSilence,
    /// Something came all the time, but not the end.
    TooLong,
}

/// Waits for a reading until nothing more comes of it for that long, or [`MAX_WAIT`] is over.
async fn wait_while_it_comes<V>(
    reading: impl Future<Output = Result<Arc<V>, StoreError>>,
    progress: &Progress,
    patience: Duration,
) -> WaitOutcome<V> {
    let mut reading = pin!(reading);
    let began = Instant::now();
    loop {
        let before = progress.count();
        match timeout(patience, reading.as_mut()).await {
            Ok(read) => return WaitOutcome::Read(read),
            Err(_) if progress.count() == before => return WaitOutcome::InSilence,
            // There is no time for as much once more.
            Err(_) if began.elapsed() + patience / 2 > MAX_WAIT => return WaitOutcome::TooLong,
            Err(_) => {}
        }
    }
}

/// What is asked for.
#[derive(Debug, Clone, Copy)]
struct FreshnessRequirement {
    project: ProjectId,
    /// As of when it must be, at the earliest.
    wanted: Timestamp,
    /// Whether it must be read whatever is known: another may have written in the same millisecond.
    must_be_read: bool,
    now: Timestamp,
}

impl FreshnessRequirement {
    fn is_met_by<V>(self, reading: &CachedRead<V>) -> bool {
        !self.must_be_read && self.is_covered(reading.as_of)
    }

    /// The same, where what is asked for is not there as far as is remembered: it may have been made since.
    fn beside<V>(self, last: Option<&CachedRead<V>>) -> Self {
        let is_absent = last.is_some_and(|last| last.is_absent);
        Self { must_be_read: self.must_be_read || is_absent, ..self }
    }

    /// Whether it is enough to know what was at that time. What was read in the future was read before the
    /// clock was set back.
    fn is_covered(self, at: Timestamp) -> bool {
        self.wanted <= at && at <= self.now
    }
}

impl<V: Send + Sync + 'static> CacheEntry<V> {
    fn last(&self) -> Option<CachedRead<V>> {
        lock(&self.last).clone()
    }

    fn bytes(&self) -> usize {
        lock(&self.last).as_ref().map_or(0, |last| last.bytes)
    }

    /// What is as new as is asked for, by one reading for all who ask at the same time.
    async fn newer<R, F>(
        &self,
        store: &Store,
        states: &Arc<States>,
        mut asked: FreshnessRequirement,
        read: R,
    ) -> Result<Arc<V>, StoreError>
    where
        R: Fn(Store, Option<Arc<V>>, Progress) -> F + Clone + Send + 'static,
        F: Future<Output = Result<LoadedValue<V>, StoreError>> + Send + 'static,
    {
        let mut under_way = self.under_way.lock().await;
        let now = asked.now;
        loop {
            let last = self.last();
            if let Some(last) = last.as_ref().filter(|last| asked.is_met_by(last)) {
                return Ok(Arc::clone(&last.value));
            }
            if let Some(reading) = under_way.as_mut() {
                reading.look(self.progress.count(), now);
            }
            if under_way.as_ref().is_some_and(|it| it.is_of_no_use(asked)) {
                *under_way = None;
            }
            let is_own = under_way.is_none();
            let reading = under_way.get_or_insert_with(|| {
                let (store, states, read) = (store.clone(), Arc::clone(states), read.clone());
                let progress = self.progress.clone();
                let count = progress.count();
                let reading = Box::pin(newer(store, states, asked, last, read, progress));
                PendingRead { began: now, count_before: count, count, silent_since: now, reading }
            });
            let began = reading.began;
            let outcome = reading.reading.as_mut().await;
            *under_way = None;
            // What somebody else began is not as of now: the state is looked at once more.
            asked.must_be_read &= !is_own;
            match outcome {
                Ok(reading) => *lock(&self.last) = Some(reading),
                Err(_) if began < now => {}
                Err(error) => return Err(error),
            }
        }
    }
}

impl<V> PendingRead<V> {
    /// Notes how much has come by now.
    fn look(&mut self, count: u64, now: Timestamp) {
        if count != self.count {
            (self.count, self.silent_since) = (count, now);
        }
    }

    /// Whether it is better begun anew. Of which something came it goes on: it would have to come again.
    fn is_of_no_use(&self, asked: FreshnessRequirement) -> bool {
        let has_begun = self.count != self.count_before;
        let now = asked.now;
        self.began > now
            || now >= self.silent_since.plus(MAX_SILENCE)
            || asked.must_be_read && !has_begun
    }
}

impl<V> CachedRead<V> {
    /// Whether it serves while nothing newer can be read.
    fn serves_at(&self, now: Timestamp) -> bool {
        !self.is_absent && self.as_of <= now && now < self.as_of.plus(MAX_STALE)
    }
}

/// Reads the state, unless it is known, and makes anew what is not of that state.
async fn newer<V, R, F>(
    store: Store,
    states: Arc<States>,
    asked: FreshnessRequirement,
    last: Option<CachedRead<V>>,
    read: R,
    progress: Progress,
) -> Result<CachedRead<V>, StoreError>
where
    R: Fn(Store, Option<Arc<V>>, Progress) -> F,
    F: Future<Output = Result<LoadedValue<V>, StoreError>>,
{
    let FreshnessRequirement { project, now, .. } = asked;
    // What is not settled is read once more in any case.
    if let Some(last) = last.as_ref().filter(|last| last.is_settled) {
        let is_enough = |it: &KnownState| !asked.must_be_read && asked.is_covered(it.at);
        let known = match states.known(project).filter(is_enough) {
            Some(known) => known,
            None => states.note(project, FlagStore::new(&store).flags_state(project).await?, now),
        };
        if known.state == last.state {
            return Ok(CachedRead { as_of: known.at, ..last.clone() });
        }
        progress.note();
    }
    let made = read(store, last.map(|last| last.value), progress).await?;
    let known = states.note(project, made.state, now);
    Ok(CachedRead {
        value: Arc::new(made.value),
        bytes: made.bytes,
        state: made.state,
        is_settled: now >= known.since.plus(COMMIT_GRACE),
        is_absent: made.is_absent,
        as_of: now,
    })
}

impl Default for States {
    fn default() -> Self {
        Self {
            known: Mutex::new(LruCache::new(MAX_PROJECTS)),
            pauses: Mutex::new(LruCache::new(MAX_PROJECTS)),
        }
    }
}

impl States {
    fn known(&self, project: ProjectId) -> Option<KnownState> {
        lock(&self.known).get(&project).copied()
    }

    fn pause(&self, project: ProjectId) -> Arc<Cooldown> {
        Arc::clone(lock(&self.pauses).get_or_insert(project, Arc::default))
    }

    /// What is asked for by somebody who asks at `now`.
    fn asked(
        &self,
        project: ProjectId,
        freshness: Freshness,
        now: Timestamp,
    ) -> FreshnessRequirement {
        if freshness == Freshness::Cached {
            let wanted = now.minus(MAX_AGE).plus(Duration::from_millis(1));
            return FreshnessRequirement { project, wanted, must_be_read: false, now };
        }
        let mut states = lock(&self.known);
        let Some(known) = states.get_mut(&project) else {
            return FreshnessRequirement { project, wanted: now, must_be_read: true, now };
        };
        let of_others = known.current_at.filter(|at| *at <= now && now < at.plus(CURRENT_PERIOD));
        if let Some(wanted) = of_others {
            return FreshnessRequirement { project, wanted, must_be_read: false, now };
        }
        known.current_at = Some(now);
        FreshnessRequirement { project, wanted: now, must_be_read: true, now }
    }

    /// Notes the state that was read at `now`.
    fn note(&self, project: ProjectId, state: FlagSetRevision, now: Timestamp) -> KnownState {
        let mut states = lock(&self.known);
        let before = states.get(&project).copied();
        let known = KnownState {
            state,
            since: before.filter(|it| it.state == state).map_or(now, |it| it.since),
            at: now,
            current_at: before.and_then(|it| it.current_at),
        };
        states.put(project, known);
        known
    }
}

#[cfg(test)]
mod tests;
