//! What a warm function remembers of keys and projects.

use std::num::NonZeroUsize;
use std::time::Duration;

use crate::cache::{Cooldown, TimedCache};
use crate::projects::api_key::{ApiKeyRecord, KeyId};
use crate::projects::project::IdOrSlug;
use crate::projects::store::{Access, ProjectIdentity};
use crate::timestamp::Timestamp;

/// How long a key or a project is remembered: the longest that a revoked key may go on working.
const MAX_AGE: Duration = Duration::from_mins(1);
/// How many keys and how many projects are remembered; about 1 KB each.
const CAPACITY: NonZeroUsize = NonZeroUsize::new(1_000).unwrap();

/// Keys and projects that exist, and ids that no key has. Nobody can ask for a key before it is made, since its
/// id is random: so it works from that moment on all the same. A project can be asked for before, so that one
/// that does not exist is never remembered.
#[derive(Debug)]
pub(crate) struct AccessCache {
    keys: TimedCache<KeyId, ApiKeyRecord>,
    /// By themselves, so that whoever makes up ids pushes out no key.
    unknown_keys: TimedCache<KeyId, ()>,
    projects: TimedCache<IdOrSlug, ProjectIdentity>,
    /// While the tables could not be asked.
    pub(super) pause: Cooldown,
}

impl Default for AccessCache {
    fn default() -> Self {
        Self {
            keys: TimedCache::new(CAPACITY, MAX_AGE),
            unknown_keys: TimedCache::new(CAPACITY, MAX_AGE),
            projects: TimedCache::new(CAPACITY, MAX_AGE),
            pause: Cooldown::default(),
        }
    }
}

impl AccessCache {
    /// What is remembered of a key and a project.
    pub(super) fn get(&self, key_id: &KeyId, project: Option<&IdOrSlug>, now: Timestamp) -> Access {
        Access {
            key: self.keys.get(key_id, now),
            project: project.and_then(|project| self.get_project(project, now)),
        }
    }

    /// What is remembered of a key and a project for as long as nothing newer can be read, if it is enough
    /// to let somebody in.
    pub(super) fn recall(
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

    /// Whether there was no key of an id a moment ago.
    pub(super) fn is_unknown(&self, key_id: &KeyId, now: Timestamp) -> bool {
        self.unknown_keys.holds(key_id, now)
    }

    /// Remembers that there was no key of an id at `now`.
    pub(super) fn insert_unknown(&self, key_id: &KeyId, now: Timestamp) {
        self.unknown_keys.insert(key_id.clone(), (), now);
    }

    /// What is remembered of a project by its name.
    pub(super) fn get_project(&self, name: &IdOrSlug, now: Timestamp) -> Option<ProjectIdentity> {
        self.projects.get(name, now)
    }

    /// Remembers what was found when it was asked for at `now`; `project` is the name by which it
    /// was asked for.
    pub(super) fn insert(&self, found: &Access, project: Option<&IdOrSlug>, now: Timestamp) {
        if let Some(key) = &found.key {
            self.keys.insert(key.key_id.clone(), key.clone(), now);
        }
        if let (Some(name), Some(identity)) = (project, &found.project) {
            self.projects.insert(name.clone(), identity.clone(), now);
        }
    }
}
