//! Limits of requests or events per sender and minute.
//!
//! A function counts the requests that it accepts, and adds its count to an item that all functions
//! share. It adds every ten requests. Above half of the limit, it also adds with the first request
//! after two seconds. The item then contains the total of all functions.
//!
//! Most requests therefore need no call, and each execution environment accepts at most
//! [`ADDED_AT_ONCE`] requests over the limit.

use std::mem;
use std::num::{NonZeroU32, NonZeroUsize};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use lru::LruCache;

use crate::cache::STALL_TIMEOUT;
use crate::dynamodb::Store;
use crate::timestamp::Timestamp;

/// Ratio between the limits of envelopes without an event and of events.
pub const ENVELOPES_PER_EVENT: NonZeroU32 = NonZeroU32::new(10).unwrap();

/// The sender exceeded the limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct OverQuota {
    /// Seconds until the sender can retry: 1 to 60.
    pub retry_after: u16,
    /// `true` if this is the function's first rejection of the sender in this minute.
    pub is_first: bool,
}

/// Most requests that are added to the shared item at once.
pub const ADDED_AT_ONCE: u32 = 10;
/// Time after which fewer requests are added, above half of the limit.
const ADDED_AFTER: Duration = Duration::from_secs(2);
/// Length of a window.
const WINDOW_SECONDS: i64 = 60;
/// Time that an item is kept after its window. DynamoDB removes it some time later.
const RETENTION_SECONDS: i64 = 3_600;
/// Number of senders that a function counts. An evicted sender loses fewer than ten requests.
const CAPACITY: NonZeroUsize = NonZeroUsize::new(1_000).unwrap();

/// The counts of a function.
#[derive(Debug)]
pub(crate) struct Quotas {
    windows: Mutex<LruCache<String, Window>>,
}

/// The count of one sender in one minute.
#[derive(Debug, Clone, Copy)]
struct Window {
    minute: i64,
    /// The total of all functions, when this function last added.
    total: u64,
    /// The count of this function since then.
    pending: u32,
    added_at: Timestamp,
    /// `true` if a request was rejected.
    is_over: bool,
}

impl Default for Quotas {
    fn default() -> Self {
        Self { windows: Mutex::new(LruCache::new(CAPACITY)) }
    }
}

impl Quotas {
    /// Counts one request of a sender, unless the limit is reached. Returns the count to add to the
    /// shared item, if any.
    fn take(&self, sender: &str, limit: u64, now: Timestamp) -> Result<Option<u32>, OverQuota> {
        let seconds = now.as_seconds();
        let minute = seconds.div_euclid(WINDOW_SECONDS);
        // A panic while the lock was held cannot have left the map half-changed.
        let mut windows = self.windows.lock().unwrap_or_else(PoisonError::into_inner);
        let fresh = Window { minute, total: 0, pending: 0, added_at: now, is_over: false };
        let window = windows.get_or_insert_mut_ref(sender, || fresh);
        if window.minute != minute {
            *window = fresh;
        }
        let taken = window.total.saturating_add(window.pending.into());
        if taken >= limit {
            let left = WINDOW_SECONDS - seconds.rem_euclid(WINDOW_SECONDS);
            let is_first = !mem::replace(&mut window.is_over, true);
            return Err(OverQuota { retry_after: u16::try_from(left).unwrap_or(1), is_first });
        }
        window.pending = window.pending.saturating_add(1);
        let is_due = taken >= limit / 2 && now >= window.added_at.plus(ADDED_AFTER);
        if window.pending < ADDED_AT_ONCE && !is_due {
            return Ok(None);
        }
        let added = mem::take(&mut window.pending);
        (window.added_at, window.total) = (now, window.total.saturating_add(added.into()));
        Ok(Some(added))
    }

    /// Records the total of all functions in a minute.
    fn note_total(&self, sender: &str, minute: i64, total: u64) {
        let mut windows = self.windows.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(window) = windows.get_mut(sender).filter(|window| window.minute == minute) {
            window.total = window.total.max(total);
        }
    }

    /// Counts one request of a sender, which is named by its kind and id. If the shared item cannot
    /// be updated, the request is still accepted: a quota must not reject requests within it.
    pub(crate) async fn count(
        &self,
        store: &Store,
        sender: &str,
        limit: NonZeroU32,
        now: Timestamp,
    ) -> Result<(), OverQuota> {
        let Some(added) = self.take(sender, limit.get().into(), now)? else { return Ok(()) };
        let minute = now.as_seconds().div_euclid(WINDOW_SECONDS);
        let expires_at = (minute + 1) * WINDOW_SECONDS + RETENTION_SECONDS;
        let window = format!("{sender}#{minute}");
        let added = store.add_to_window(&window, added, expires_at);
        match tokio::time::timeout(STALL_TIMEOUT, added).await {
            Ok(Ok(total)) => self.note_total(sender, minute, total),
            Ok(Err(error)) => tracing::warn!(%error, "a quota cannot be counted"),
            Err(_) => tracing::warn!("a quota cannot be counted in time"),
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(seconds: i64) -> Timestamp {
        Timestamp::from_millis(seconds * 1_000)
    }

    #[test]
    fn every_tenth_request_is_added_within_the_limit() {
        let quotas = Quotas::default();
        let added: Vec<_> =
            (0..25).filter_map(|_| quotas.take("a", 100, at(60)).unwrap()).collect();
        assert_eq!(added, [10, 10]);
        // The total of other functions counts as soon as it is known, but only in its window.
        quotas.note_total("a", 0, 100);
        assert_eq!(quotas.take("a", 100, at(61)), Ok(None));
        quotas.note_total("a", 1, 94);
        let over = |retry_after, is_first| Err(OverQuota { retry_after, is_first });
        assert_eq!(quotas.take("a", 100, at(70)), over(50, true));
        assert_eq!(quotas.take("b", 100, at(70)), Ok(None));
        assert_eq!(quotas.take("a", 100, at(119)), over(1, false));
        assert_eq!(quotas.take("a", 100, at(120)), Ok(None));
    }

    #[test]
    fn few_requests_are_added_above_half_the_limit() {
        let quotas = Quotas::default();
        let take = |second| quotas.take("a", 6, at(second)).unwrap();
        assert_eq!([0, 3, 6].map(take), [None, None, None]);
        assert_eq!([7, 8, 9].map(take), [Some(4), None, Some(2)]);
        assert_eq!(quotas.take("a", 6, at(9)), Err(OverQuota { retry_after: 51, is_first: true }));
    }
}
