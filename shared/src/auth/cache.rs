//! Keys, sessions, memberships and projects that a warm function caches.

use std::num::NonZeroUsize;
use std::time::Duration;

use crate::cache::{Cooldown, TimedCache};
use crate::projects::api_key::{ApiKeyRecord, KeyId, UserId};
use crate::projects::limits::Limits;
use crate::projects::project::{IdOrSlug, Organization};
use crate::projects::secret::SecretDigest;
use crate::projects::store::{Access, Membership, ProjectIdentity, StoredSession, UseOf};
use crate::timestamp::Timestamp;

/// Longest time that a key, a project or a limit is cached, and that a revoked key still works.
const MAX_AGE: Duration = Duration::from_mins(1);
/// Time after which another use is recorded.
pub(super) const USE_INTERVAL: Duration = Duration::from_hours(1);
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
    sessions: TimedCache<SecretDigest, StoredSession>,
    memberships: TimedCache<(Organization, UserId), Membership>,
    /// The uses that this function recorded.
    uses: TimedCache<UseOf, ()>,
    projects: TimedCache<IdOrSlug, ProjectIdentity>,
    /// The limits of the stack.
    limits: TimedCache<(), Limits>,
    /// Active after the tables failed or stalled.
    pub(super) cooldown: Cooldown,
}

impl Default for AccessCache {
    fn default() -> Self {
        Self {
            keys: TimedCache::new(CAPACITY, MAX_AGE),
            unknown_keys: TimedCache::new(CAPACITY, MAX_AGE),
            sessions: TimedCache::new(CAPACITY, MAX_AGE),
            memberships: TimedCache::new(CAPACITY, MAX_AGE),
            uses: TimedCache::new(CAPACITY, USE_INTERVAL),
            projects: TimedCache::new(CAPACITY, MAX_AGE),
            limits: TimedCache::new(NonZeroUsize::MIN, MAX_AGE),
            cooldown: Cooldown::default(),
        }
    }
}

impl AccessCache {
    /// Returns the cached key with its membership, and the cached project.
    pub(super) fn get(&self, key_id: &KeyId, project: Option<&IdOrSlug>, now: Timestamp) -> Access {
        let key = self.keys.get(key_id, now);
        Access {
            membership: key
                .as_ref()
                .filter(|key| key.member.is_some())
                .and_then(|key| self.get_membership(&key.organization, &key.user, now)),
            key,
            project: project.and_then(|project| self.get_project(project, now)),
            ..Access::default()
        }
    }

    /// Returns the cached session and project.
    pub(super) fn get_session(
        &self,
        digest: &SecretDigest,
        project: Option<&IdOrSlug>,
        now: Timestamp,
    ) -> Access {
        Access {
            session: self.sessions.get(digest, now),
            project: project.and_then(|project| self.get_project(project, now)),
            ..Access::default()
        }
    }

    /// Returns the cached membership of a user.
    pub(super) fn get_membership(
        &self,
        organization: &Organization,
        user: &UserId,
        now: Timestamp,
    ) -> Option<Membership> {
        self.memberships.get(&(organization.clone(), user.clone()), now)
    }

    /// Caches a membership. A missing one is not cached, since the user can join at any time.
    pub(super) fn insert_membership(&self, membership: &Membership, now: Timestamp) {
        if let Some(member) = &membership.member {
            let name = (member.organization.clone(), member.user.clone());
            self.memberships.insert(name, membership.clone(), now);
        }
    }

    /// Returns `true` if this function must record a use, and expects it to.
    pub(super) fn takes_use(&self, used: &UseOf, now: Timestamp) -> bool {
        let is_due = !self.uses.holds(used, now);
        if is_due {
            self.uses.insert(used.clone(), (), now);
        }
        is_due
    }

    /// Returns the cached key and project up to [`MAX_STALE`](crate::cache::MAX_STALE) old, if both
    /// suffice to admit the caller.
    pub(super) fn get_stale(
        &self,
        key_id: &KeyId,
        project: Option<&IdOrSlug>,
        now: Timestamp,
    ) -> Option<Access> {
        let key = self.keys.get_stale(key_id, now)?;
        let membership = match key.member {
            Some(_) => {
                let name = (key.organization.clone(), key.user.clone());
                Some(self.memberships.get_stale(&name, now)?)
            }
            None => None,
        };
        let project = match project {
            Some(project) => Some(self.projects.get_stale(project, now)?),
            None => None,
        };
        Some(Access { key: Some(key), membership, project, ..Access::default() })
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

    /// Returns `true` if the limits of the stack must be read again.
    pub(crate) fn needs_limits(&self, now: Timestamp) -> bool {
        !self.limits.holds(&(), now)
    }

    /// Returns the limits of the stack as they were last read.
    pub(crate) fn limits(&self, now: Timestamp) -> Limits {
        self.limits.get_stale(&(), now).unwrap_or_default()
    }

    /// Caches the limits that the stack had at `now`.
    pub(crate) fn insert_limits(&self, limits: Limits, now: Timestamp) {
        self.limits.insert((), limits, now);
    }

    /// Caches the result of a lookup at `now`. `project` is the id or slug that was looked up.
    pub(super) fn insert(&self, found: &Access, project: Option<&IdOrSlug>, now: Timestamp) {
        if let Some(key) = &found.key {
            self.keys.insert(key.key_id.clone(), key.clone(), now);
        }
        if let Some(stored) = &found.session {
            self.sessions.insert(stored.session.digest.clone(), stored.clone(), now);
        }
        if let (Some(name), Some(identity)) = (project, &found.project) {
            self.projects.insert(name.clone(), identity.clone(), now);
        }
        if let Some(limits) = found.limits {
            self.insert_limits(limits, now);
        }
    }
}
