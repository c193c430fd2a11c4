//! Caches of warm functions: bounded numbers of values, each with a maximum age.

use std::hash::Hash;
use std::num::NonZeroUsize;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use lru::LruCache;

use crate::timestamp::Timestamp;
use crate::usage::note_cache_lookup;

/// Maximum age of a stale value, which is served while no newer one can be read.
pub const MAX_STALE: Duration = Duration::from_mins(10);
/// Longest wait for a newer value before a stale one is served.
pub const STALL_TIMEOUT: Duration = Duration::from_millis(250);
/// Duration of a [`Cooldown`].
const COOLDOWN: Duration = Duration::from_secs(1);

/// A period in which requests do not wait for the tables, because one just waited without success.
#[derive(Debug, Default)]
pub struct Cooldown(Mutex<Option<Timestamp>>);

impl Cooldown {
    /// Returns `true` during the period, and `false` if the clock was set back.
    pub fn is_cooling_down(&self, now: Timestamp) -> bool {
        let until = *self.0.lock().unwrap_or_else(PoisonError::into_inner);
        until.is_some_and(|until| now < until && until <= now.plus(COOLDOWN))
    }

    /// Starts the period.
    pub fn begin(&self, now: Timestamp) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Some(now.plus(COOLDOWN));
    }
}

/// A counter of a long read's progress. It distinguishes slow reads from stalled ones.
#[derive(Debug, Clone, Default)]
pub struct Progress(Arc<AtomicU64>);

impl Progress {
    /// Records progress.
    pub fn note(&self) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }

    /// Returns how many times progress was recorded.
    pub fn count(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

/// A cache of values with a maximum age. It evicts the least recently used value.
#[derive(Debug)]
pub struct TimedCache<K: Eq + Hash, V> {
    max_age: Duration,
    entries: Mutex<LruCache<K, (V, Timestamp)>>,
}

impl<K: Eq + Hash, V: Clone> TimedCache<K, V> {
    /// Creates a cache of at most `capacity` values, each valid for less than `max_age`.
    pub fn new(capacity: NonZeroUsize, max_age: Duration) -> Self {
        Self { max_age, entries: Mutex::new(LruCache::new(capacity)) }
    }

    /// Returns the value of a key. Ignores values that are too old, or from the future because the
    /// clock was set back.
    pub fn get(&self, key: &K, now: Timestamp) -> Option<V> {
        let fresh = self.get_within(key, self.max_age, now);
        note_cache_lookup(fresh.is_some());
        fresh
    }

    /// Returns `true` if a key has a valid value. This is not counted as a cache lookup, since a
    /// request would count twice.
    pub fn holds(&self, key: &K, now: Timestamp) -> bool {
        self.get_within(key, self.max_age, now).is_some()
    }

    /// Returns the value of a key up to [`MAX_STALE`] old, for use while no newer value can be
    /// read.
    pub(crate) fn get_stale(&self, key: &K, now: Timestamp) -> Option<V> {
        self.get_within(key, MAX_STALE, now)
    }

    fn get_within(&self, key: &K, max_age: Duration, now: Timestamp) -> Option<V> {
        // A panic while the lock was held cannot have left the map half-changed.
        let mut entries = self.entries.lock().unwrap_or_else(PoisonError::into_inner);
        let entry = entries.get(key);
        let usable = entry.filter(|(_, since)| *since <= now && now < since.plus(max_age));
        usable.map(|(value, _)| value.clone())
    }

    /// Caches the value that a key had at `now`.
    pub fn insert(&self, key: K, value: V, now: Timestamp) {
        let mut entries = self.entries.lock().unwrap_or_else(PoisonError::into_inner);
        entries.put(key, (value, now));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(seconds: i64) -> Timestamp {
        Timestamp::from_millis(seconds * 1_000)
    }

    fn cache(capacity: usize) -> TimedCache<usize, char> {
        TimedCache::new(NonZeroUsize::new(capacity).unwrap(), Duration::from_mins(1))
    }

    #[test]
    fn values_expire_by_age_or_clock_reset() {
        let cache = cache(10);
        cache.insert(1, 'a', at(100));
        assert_eq!(cache.get(&1, at(100)), Some('a'));
        assert_eq!(cache.get(&1, Timestamp::from_millis(159_999)), Some('a'));
        assert_eq!(cache.get(&1, at(160)), None);
        assert_eq!(cache.get(&1, Timestamp::from_millis(99_999)), None);
        assert_eq!(cache.get(&2, at(100)), None);
        assert!(cache.holds(&1, at(100)) && !cache.holds(&1, at(160)) && !cache.holds(&2, at(100)));
        assert_eq!(cache.get_stale(&1, at(699)), Some('a'));
        assert_eq!(cache.get_stale(&1, at(700)), None);
    }

    #[test]
    fn cooldowns_last_one_second() {
        let cooldown = Cooldown::default();
        assert!(!cooldown.is_cooling_down(at(100)));
        cooldown.begin(at(100));
        assert!(cooldown.is_cooling_down(at(100)));
        assert!(cooldown.is_cooling_down(Timestamp::from_millis(100_999)));
        assert!(!cooldown.is_cooling_down(at(101)));
        assert!(!cooldown.is_cooling_down(at(99)), "the clock was set back");
    }

    #[test]
    fn recently_used_values_are_kept() {
        let cache = cache(2);
        cache.insert(1, 'a', at(1));
        cache.insert(2, 'b', at(2));
        assert_eq!(cache.get(&1, at(3)), Some('a'));
        cache.insert(3, 'c', at(3));
        assert_eq!([1, 2, 3].map(|key| cache.get(&key, at(4))), [Some('a'), None, Some('c')]);
    }
}
