//! What a warm function remembers of the flags that it evaluates.

use std::collections::HashMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use crate::app::App;
use crate::dynamodb::StoreError;
use crate::flags::FlagKey;
use crate::flags::evaluation::Flags;
use crate::flags::store::StoredFlags;
use crate::projects::project::ProjectId;
use crate::timestamp::Timestamp;
use crate::usage::note_cache_lookup;

/// How long flags are remembered: the longest that a flag may go on being served after it was
/// switched off.
const MAX_AGE: Duration = Duration::from_secs(5);
/// How many readings are remembered.
const MAX_READINGS: usize = 1_000;
/// How many bytes of stored flags are remembered, of all projects together.
const MAX_BYTES: usize = 32_000_000;

/// How new the flags of an evaluation must be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Freshness {
    /// As of at most five seconds ago.
    Cached,
    /// As of now: the caller asks for it.
    Current,
}

/// The flags of projects that were evaluated lately.
#[derive(Debug, Default)]
pub(crate) struct FlagCache {
    slots: Mutex<HashMap<Selection, Arc<Slot>>>,
}

/// All flags of a project, or one of them with all that it depends on.
type Selection = (ProjectId, Option<FlagKey>);

/// The place of a reading. Whoever reads holds its lock, so that others who want the same wait for
/// that reading.
#[derive(Debug, Default)]
struct Slot {
    bytes: AtomicUsize,
    reading: tokio::sync::Mutex<Option<Reading>>,
}

#[derive(Debug)]
struct Reading {
    flags: Arc<Flags>,
    /// When it began.
    at: Timestamp,
}

impl FlagCache {
    fn slot(&self, selection: &Selection) -> Arc<Slot> {
        // A panic while the lock was held cannot have left the map half-changed.
        let mut slots = self.slots.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(slot) = slots.get(selection) {
            return Arc::clone(slot);
        }
        let bytes: usize = slots.values().map(|slot| slot.bytes.load(Ordering::Relaxed)).sum();
        if slots.len() >= MAX_READINGS || bytes > MAX_BYTES {
            slots.clear();
        }
        Arc::clone(slots.entry(selection.clone()).or_default())
    }
}

impl Reading {
    /// Also false for what was read in the future: the clock was set back.
    fn is_fresh(&self, now: Timestamp) -> bool {
        self.at <= now && now < self.at.plus(MAX_AGE)
    }
}

impl App {
    /// All flags of a project that are not archived.
    pub async fn evaluated_flags(
        &self,
        project: ProjectId,
        freshness: Freshness,
    ) -> Result<Arc<Flags>, StoreError> {
        let slot = self.cache::<FlagCache>().slot(&(project, None));
        let mut reading = slot.reading.lock().await;
        if let Some(fresh) = self.fresh(reading.as_ref(), freshness) {
            return Ok(fresh);
        }
        let at = self.clock.now();
        let known = reading.as_ref().map(|reading| reading.flags.as_ref());
        let read = self.store.flags_to_evaluate(project, known).await?;
        Ok(slot.fill(&mut reading, read, at))
    }

    /// A flag with all that it depends on; nothing if there is no such flag, or it is archived. That
    /// there is none is not remembered: a flag can be evaluated from the moment it is made.
    pub async fn evaluated_flag(
        &self,
        project: ProjectId,
        flag: &FlagKey,
        freshness: Freshness,
    ) -> Result<Arc<Flags>, StoreError> {
        let slot = self.cache::<FlagCache>().slot(&(project, Some(flag.clone())));
        let mut reading = slot.reading.lock().await;
        if let Some(fresh) = self.fresh(reading.as_ref(), freshness) {
            return Ok(fresh);
        }
        let at = self.clock.now();
        let known = reading.as_ref().map(|reading| reading.flags.as_ref());
        let read = self.store.flag_to_evaluate(project, flag, known).await?;
        if read.flags.get(flag.as_str()).is_none() {
            *reading = None;
            return Ok(Arc::new(read.flags));
        }
        Ok(slot.fill(&mut reading, read, at))
    }

    fn fresh(&self, reading: Option<&Reading>, freshness: Freshness) -> Option<Arc<Flags>> {
        let fresh = reading
            .filter(|reading| freshness == Freshness::Cached && reading.is_fresh(self.clock.now()));
        note_cache_lookup(fresh.is_some());
        fresh.map(|reading| Arc::clone(&reading.flags))
    }
}

impl Slot {
    fn fill(&self, reading: &mut Option<Reading>, read: StoredFlags, at: Timestamp) -> Arc<Flags> {
        let flags = Arc::new(read.flags);
        self.bytes.store(read.bytes, Ordering::Relaxed);
        *reading = Some(Reading { flags: Arc::clone(&flags), at });
        flags
    }
}

#[cfg(test)]
mod tests {
    use uuid::Uuid;

    use super::*;

    fn project(number: usize) -> ProjectId {
        ProjectId::new(Uuid::from_u128(number as u128))
    }

    fn remember(flags: &FlagCache, number: usize, bytes: usize) -> Arc<Slot> {
        let slot = flags.slot(&(project(number), None));
        slot.bytes.store(bytes, Ordering::Relaxed);
        slot
    }

    #[test]
    fn a_reading_is_fresh_for_five_seconds_from_its_begin() {
        let at = Timestamp::from_millis;
        let flags = Arc::new(Flags::new(project(1), []));
        let reading = Reading { flags, at: at(100_000) };
        for (now, is_fresh) in [(99_999, false), (100_000, true), (104_999, true), (105_000, false)]
        {
            assert_eq!(reading.is_fresh(at(now)), is_fresh, "{now}");
        }
    }

    #[test]
    fn what_is_remembered_is_bounded_in_number() {
        let flags = FlagCache::default();
        for number in 0..3 * MAX_READINGS {
            remember(&flags, number, 1);
            assert!(flags.slots.lock().unwrap().len() <= MAX_READINGS);
        }
    }

    #[test]
    fn what_is_remembered_is_bounded_in_bytes() {
        let flags = FlagCache::default();
        let first = remember(&flags, 1, MAX_BYTES);
        remember(&flags, 2, 1);
        assert!(Arc::ptr_eq(&first, &flags.slot(&(project(1), None))), "it is known");
        remember(&flags, 3, 1);
        assert!(!Arc::ptr_eq(&first, &flags.slot(&(project(1), None))), "it was forgotten");
    }

    #[test]
    fn a_flag_and_all_flags_are_remembered_apart() {
        let flags = FlagCache::default();
        let all = flags.slot(&(project(1), None));
        let one = flags.slot(&(project(1), FlagKey::parse("a").ok()));
        assert!(!Arc::ptr_eq(&all, &one));
    }
}
