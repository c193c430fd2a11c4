//! Keys and projects that a warm function caches.

use std::num::NonZeroUsize;
use std::time::Duration;

use crate::cache::{Cooldown, TimedCache};
use crate::projects::api_key::{ApiKeyRecord, KeyId};
use crate::projects::project::IdOrSlug;
use crate::projects::store::{Access, ProjectIdentity};
use crate::timestamp::Timestamp;

/// Longest time that a key or project is cached, and that a revoked key still works.
const MAX_AGE: Duration = Duration::from_mins(1);
/// Number of cached keys, and of cached projects; about 1 KB each.
const CAPACITY: NonZeroUsize = NonZeroUsize::new(1_000).unwrap();

/// A cache of existing keys, existing projects and unknown key ids.
///
/// Unknown key ids can be cached: ids are random, so no client sends one before the key exists.
/// Unknown projects are not cached, since a client can request a project before it is created.
#[derive(Debug)]
pub(crate) struct AccessCache {
    keys: TimedCache<KeyId, ApiKeyRecord>,
    /// Separate, so that made-up ids do not evict keys.
    unknown_keys: TimedCache<KeyId, ()>,
    projects: TimedCache<IdOrSlug, ProjectIdentity>,
    /// Active after the tables failed or stalled.
    pub(super) cooldown: Cooldown,
}

impl Default for AccessCache {
    fn default() -> Self {
        Self {
            keys: TimedCache::new(CAPACITY, MAX_AGE),
            unknown_keys: TimedCache::new(CAPACITY, MAX_AGE),
            projects: TimedCache::new(CAPACITY, MAX_AGE),
            cooldown: Cooldown::default(),
        }
    }
}

impl AccessCache {
    /// Returns the cached key and project.
    pub(super) fn get(&self, key_id: &KeyId, project: Option<&IdOrSlug>, now: Timestamp) -> Access {
        Access {
            key: self.keys.get(key_id, now),
            project: project.and_then(|project| self.get_project(project, now)),
        }
    }

    /// Returns the cached key and project up to [`MAX_STALE`](crate::cache::MAX_STALE) old, if both
    /// suffice to admit the caller.
    pub(super) fn get_stale(
        &self,
        key_id: &KeyId,
        project: Option<&IdOrSlug>,
        now: Timestamp,
    ) -> Option<Access> {
        let key = Some(self.keys.get_stale(key_id, now)?);
        let project = match project {
            Some(project) => Some(self.projects.get_stale(project, now)?),
            None => None,
        };
        Some(Access { key, project })
    }

    /// Returns `true` if a recent lookup found no key with this id.
    pub(super) fn is_unknown(&self, key_id: &KeyId, now: Timestamp) -> bool {
        self.unknown_keys.holds(key_id, now)
    }

    /// Caches that no key had this id at `now`.
    pub(super) fn insert_unknown(&self, key_id: &KeyId, now: Timestamp) {
        self.unknown_keys.insert(key_id.clone(), (), now);
    }

    /// Returns the cached project with this id or slug.
    pub(super) fn get_project(&self, name: &IdOrSlug, now: Timestamp) -> Option<ProjectIdentity> {
        self.projects.get(name, now)
    }

    /// Caches the result of a lookup at `now`. `project` is the id or slug that was looked up.
    pub(super) fn insert(&self, found: &Access, project: Option<&IdOrSlug>, now: Timestamp) {
        if let Some(key) = &found.key {
            self.keys.insert(key.key_id.clone(), key.clone(), now);
        }
        if let (Some(name), Some(identity)) = (project, &found.project) {
            self.projects.insert(name.clone(), identity.clone(), now);
        }
    }
}
