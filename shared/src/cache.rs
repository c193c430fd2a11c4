//! What a warm function remembers between requests: a bounded number of values, each for a while.

use std::hash::Hash;
use std::num::NonZeroUsize;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use lru::LruCache;

use crate::timestamp::Timestamp;
use crate::usage::note_cache_lookup;

/// How long what was read last serves while nothing newer can be read.
pub const MAX_STALE: Duration = Duration::from_mins(10);
/// How long whoever could be served that waits for something newer.
pub const STALL_TIMEOUT: Duration = Duration::from_millis(250);
/// How long nobody waits after somebody did in vain.
const PAUSE: Duration = Duration::from_secs(1);

/// A time in which nobody waits for the tables, since somebody just did in vain.
#[derive(Debug, Default)]
pub struct Cooldown(Mutex<Option<Timestamp>>);

impl Cooldown {
    /// Whether it goes on. Not where the clock was set back.
    pub fn is_cooling_down(&self, now: Timestamp) -> bool {
        let until = *self.0.lock().unwrap_or_else(PoisonError::into_inner);
        until.is_some_and(|until| now < until && until <= now.plus(PAUSE))
    }

    /// Begins it.
    pub fn begin(&self, now: Timestamp) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Some(now.plus(PAUSE));
    }
}

/// How often something has come of a reading of many steps: one that is slow because it is large is told so from
/// one that fails.
#[derive(Debug, Clone, Default)]
pub struct Progress(Arc<AtomicU64>);

impl Progress {
    /// Notes that something came.
    pub fn note(&self) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }

    /// How often something has come.
    pub fn count(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

/// Values by key, of which the one that was of no use for the longest time makes way for a new one.
#[derive(Debug)]
pub struct TimedCache<K: Eq + Hash, V> {
    max_age: Duration,
    entries: Mutex<LruCache<K, (V, Timestamp)>>,
}

impl<K: Eq + Hash, V: Clone> TimedCache<K, V> {
    /// A cache of at most `capacity` values, each of use for less than `max_age`.
    pub fn new(capacity: NonZeroUsize, max_age: Duration) -> Self {
        Self { max_age, entries: Mutex::new(LruCache::new(capacity)) }
    }

    /// The value of a key, unless it is too old, or of the future: the clock was set back.
    pub fn get(&self, key: &K, now: Timestamp) -> Option<V> {
        let fresh = self.get_within(key, self.max_age, now);
        note_cache_lookup(fresh.is_some());
        fresh
    }

    /// Whether a key has a value that is neither too old nor of the future. Not counted as a lookup: it would be
    /// one beside that of what the key stands for.
    pub fn holds(&self, key: &K, now: Timestamp) -> bool {
        self.get_within(key, self.max_age, now).is_some()
    }

    /// The value of a key even if it is older than it may be, while nothing newer can be read.
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

    /// Remembers the value that a key had at `now`.
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
    fn forgets_after_its_age_and_when_the_clock_is_set_back() {
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
    fn a_pause_lasts_a_second() {
        let pause = Cooldown::default();
        assert!(!pause.is_cooling_down(at(100)));
        pause.begin(at(100));
        assert!(pause.is_cooling_down(at(100)));
        assert!(pause.is_cooling_down(Timestamp::from_millis(100_999)));
        assert!(!pause.is_cooling_down(at(101)));
        assert!(!pause.is_cooling_down(at(99)), "the clock was set back");
    }

    #[test]
    fn remembers_what_was_of_use_last() {
        let cache = cache(2);
        cache.insert(1, 'a', at(1));
        cache.insert(2, 'b', at(2));
        assert_eq!(cache.get(&1, at(3)), Some('a'));
        cache.insert(3, 'c', at(3));
        assert_eq!([1, 2, 3].map(|key| cache.get(&key, at(4))), [Some('a'), None, Some('c')]);
    }
}
