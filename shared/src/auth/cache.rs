//! What a warm function remembers of keys and projects.

use std::collections::HashMap;
use std::hash::Hash;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use crate::errors::day::Day;
use crate::errors::row::Fingerprint;
use crate::models::api_key::{ApiKeyRecord, KeyId};
use crate::models::dsn::IngestId;
use crate::models::error::ErrorId;
use crate::models::project::{IdOrSlug, ProjectId};
use crate::models::timestamp::Timestamp;
use crate::store::{Access, IngestAccess, ProjectIdentity};
use crate::usage::note_recall;

/// How long anything is remembered: the longest that a revoked key may go on working.
const MAX_AGE: Duration = Duration::from_mins(1);
/// How many keys and how many projects are remembered; about 1 KB each.
const MAX_ENTRIES: usize = 1_000;

/// Keys and projects that exist. What does not exist is never remembered: a key or project works
/// from the moment it is made.
#[derive(Debug, Default)]
pub(crate) struct AccessCache {
    keys: Mutex<Remembered<KeyId, ApiKeyRecord>>,
    projects: Mutex<Remembered<IdOrSlug, ProjectIdentity>>,
    ingest: Mutex<Remembered<IngestId, IngestAccess>>,
    days: Mutex<Remembered<(ProjectId, Day), u8>>,
    errors: Mutex<Remembered<(ProjectId, Fingerprint), ErrorId>>,
}

impl AccessCache {
    /// What is remembered of a key and a project.
    pub(crate) fn recall(
        &self,
        key_id: &KeyId,
        project: Option<&IdOrSlug>,
        now: Timestamp,
    ) -> Access {
        Access {
            key: lock(&self.keys).get(key_id, now),
            project: project.and_then(|project| lock(&self.projects).get(project, now)),
        }
    }

    /// What is remembered of a project by its name.
    pub(crate) fn recall_project(
        &self,
        project: &IdOrSlug,
        now: Timestamp,
    ) -> Option<ProjectIdentity> {
        lock(&self.projects).get(project, now)
    }

    /// What is remembered of a project by its ingest id.
    pub(crate) fn recall_ingest(&self, id: IngestId, now: Timestamp) -> Option<IngestAccess> {
        lock(&self.ingest).get(&id, now)
    }

    /// Remembers a project that was found when its ingest id was asked for at `now`.
    pub(crate) fn remember_ingest(&self, id: IngestId, found: &IngestAccess, now: Timestamp) {
        lock(&self.ingest).insert(id, found.clone(), now);
    }

    /// Over how many partitions an open day is remembered to be spread.
    pub(crate) fn recall_day(&self, project: ProjectId, day: Day, now: Timestamp) -> Option<u8> {
        lock(&self.days).get(&(project, day), now)
    }

    /// Remembers that a day was open at `now`.
    pub(crate) fn remember_day(&self, project: ProjectId, day: Day, lanes: u8, now: Timestamp) {
        lock(&self.days).insert((project, day), lanes, now);
    }

    /// Which error a fingerprint is remembered to belong to.
    pub(crate) fn recall_error(
        &self,
        project: ProjectId,
        fingerprint: Fingerprint,
        now: Timestamp,
    ) -> Option<ErrorId> {
        lock(&self.errors).get(&(project, fingerprint), now)
    }

    /// Remembers to which error a fingerprint belonged at `now`.
    pub(crate) fn remember_error(
        &self,
        project: ProjectId,
        fingerprint: Fingerprint,
        error: ErrorId,
        now: Timestamp,
    ) {
        lock(&self.errors).insert((project, fingerprint), error, now);
    }

    /// Remembers what was found when it was asked for at `now`; `project` is the name by which it
    /// was asked for.
    pub(crate) fn remember(&self, found: &Access, project: Option<&IdOrSlug>, now: Timestamp) {
        if let Some(key) = &found.key {
            lock(&self.keys).insert(key.key_id.clone(), key.clone(), now);
        }
        if let (Some(name), Some(identity)) = (project, &found.project) {
            lock(&self.projects).insert(name.clone(), identity.clone(), now);
        }
    }
}

/// A panic while the lock was held cannot have left the map half-changed.
fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[derive(Debug)]
struct Remembered<K, V>(HashMap<K, (V, Timestamp)>);

impl<K, V> Default for Remembered<K, V> {
    fn default() -> Self {
        Self(HashMap::new())
    }
}

impl<K: Eq + Hash, V: Clone> Remembered<K, V> {
    fn get(&self, key: &K, now: Timestamp) -> Option<V> {
        let fresh = self.0.get(key).filter(|(_, since)| is_fresh(*since, now));
        note_recall(fresh.is_some());
        fresh.map(|(value, _)| value.clone())
    }

    fn insert(&mut self, key: K, value: V, now: Timestamp) {
        if self.0.len() >= MAX_ENTRIES {
            self.0.retain(|_, (_, since)| is_fresh(*since, now));
        }
        if self.0.len() >= MAX_ENTRIES {
            self.0.clear();
        }
        self.0.insert(key, (value, now));
    }
}

/// Also false for what was remembered in the future: the clock was set back.
fn is_fresh(since: Timestamp, now: Timestamp) -> bool {
    since <= now && now < since.plus(MAX_AGE)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn forgets_after_a_minute_and_when_the_clock_is_set_back() {
        let at = Timestamp::from_millis;
        let mut remembered = Remembered::default();
        remembered.insert(1, 'a', at(100_000));
        assert_eq!(remembered.get(&1, at(100_000)), Some('a'));
        assert_eq!(remembered.get(&1, at(159_999)), Some('a'));
        assert_eq!(remembered.get(&1, at(160_000)), None);
        assert_eq!(remembered.get(&1, at(99_999)), None);
        assert_eq!(remembered.get(&2, at(100_000)), None);
    }

    #[test]
    fn remembers_a_bounded_number() {
        let at = Timestamp::from_millis;
        let mut remembered = Remembered::default();
        for key in 0..MAX_ENTRIES {
            let age = if key < 10 { 0 } else { 50_000 };
            remembered.insert(key, key, at(age));
        }
        // Ten are stale by now: they make room, the others stay.
        remembered.insert(MAX_ENTRIES, 0, at(70_000));
        assert_eq!(remembered.0.len(), MAX_ENTRIES - 9);
        for key in 0..MAX_ENTRIES * 3 {
            remembered.insert(MAX_ENTRIES + key, key, at(70_000));
            assert!(remembered.0.len() <= MAX_ENTRIES);
        }
    }
}
