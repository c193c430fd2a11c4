//! Authentication of callers, their permissions, and the projects that they can see
//! (`docs/api-conventions.md`, "Authentication").

mod cache;
mod credential;
mod identity;

use std::collections::{BTreeSet, HashMap};

use tokio::time::timeout;

use crate::audit::{AuditAction, AuditEntry, AuditSource, AuditTarget};
use crate::cache::{Cooldown, STALL_TIMEOUT};
use crate::dynamodb::{Store, StoreError};
use crate::http::{ApiRequest, Problem};
use crate::id::Ids;
use crate::page::{Page, PageRequest};
use crate::projects::api_key::{Actor, ApiKey, ApiKeyRecord, Scope, UserId};
use crate::projects::member::{Member, MemberId};
use crate::projects::project::{IdOrSlug, ListedProject, Organization, Project, ProjectId};
use crate::projects::role::Role;
use crate::projects::secret::Secret;
use crate::projects::session::Session;
use crate::projects::store::{Access, Membership, ProjectIdentity, StoredSession, UseOf};
use crate::timestamp::Timestamp;
use cache::USE_INTERVAL;
use credential::Sent;
use identity::Identity;

pub(crate) use cache::AccessCache;
pub(crate) use credential::{HEADERS, HEADERS_AND_COOKIE};
pub use identity::Credential;

/// An authenticated caller and the project in the request's path.
pub struct Caller<'r> {
    identity: Identity,
    project: Option<ProjectIdentity>,
    /// The uses of the credential to record.
    uses: Vec<UseOf>,
    incoming: &'r ApiRequest,
    store: &'r Store,
    cache: &'r AccessCache,
    now: Timestamp,
}

/// A lookup of a request's credential and project.
struct Lookup<'r> {
    store: &'r Store,
    cache: &'r AccessCache,
    project: Option<IdOrSlug>,
    now: Timestamp,
}

impl Lookup<'_> {
    /// Finds a valid key, the project and the limits of the stack. The lookups share one round trip,
    /// and cached results need none. The membership behind a key needs a second one.
    ///
    /// If `outlives_outages`, cached results up to ten minutes old admit callers while the tables
    /// fail or stall.
    async fn find_key(&self, sent: &ApiKey, outlives_outages: bool) -> Result<Access, Problem> {
        let Self { cache, now, .. } = *self;
        let project = self.project.as_ref();
        if cache.is_unknown(sent.key_id(), now) {
            return Err(Problem::invalid_api_key());
        }
        let mut access = cache.get(sent.key_id(), project, now);
        let needs_member = |key: &ApiKeyRecord| key.member.is_some();
        let needs_limits = cache.needs_limits(now);
        let is_complete = !needs_limits
            && (project.is_none() || access.project.is_some())
            && (access.key.as_ref())
                .is_some_and(|key| !needs_member(key) || access.membership.is_some());
        if !is_complete {
            if access.key.as_ref().is_some_and(|key| !key.admits(sent, now)) {
                // A key that rejects this request now always will, so skip the lookup.
                return Err(Problem::invalid_api_key());
            }
            let lookup = async {
                let missing_key = access.key.is_none().then(|| sent.key_id());
                let missing_project = project.filter(|_| access.project.is_none());
                if missing_key.is_some() || missing_project.is_some() || needs_limits {
                    let found =
                        self.store.find_access(missing_key, None, missing_project, needs_limits);
                    let found = found.await?;
                    cache.insert(&found, missing_project, now);
                    if let Some(key_id) = missing_key.filter(|_| found.key.is_none()) {
                        cache.insert_unknown(key_id, now);
                    }
                    access.key = access.key.or(found.key);
                    access.project = access.project.or(found.project);
                }
                if let Some(key) = access.key.as_ref().filter(|key| needs_member(key)) {
                    access.membership =
                        Some(self.find_membership(&key.organization, &key.user).await?);
                }
                Ok(access)
            };
            let stale =
                outlives_outages.then(|| cache.get_stale(sent.key_id(), project, now)).flatten();
            access = match stale {
                Some(stale) => lookup_or_stale(stale, lookup, &cache.cooldown, now).await,
                None => lookup.await?,
            };
        }
        access.key = access.key.filter(|key| key.admits(sent, now));
        Ok(access)
    }

    /// Finds an unexpired session, its membership, the project and the limits of the stack. A cold
    /// function needs two round trips.
    async fn find_session(&self, sent: &Secret) -> Result<Access, Problem> {
        let (digest, project) = (sent.digest(), self.project.as_ref());
        let mut access = self.cache.get_session(&digest, project, self.now);
        let missing_session = access.session.is_none().then_some(&digest);
        let missing_project = project.filter(|_| access.project.is_none());
        let needs_limits = self.cache.needs_limits(self.now);
        if missing_session.is_some() || missing_project.is_some() || needs_limits {
            let found =
                self.store.find_access(None, missing_session, missing_project, needs_limits);
            let found = found.await?;
            self.cache.insert(&found, missing_project, self.now);
            access.session = access.session.or(found.session);
            access.project = access.project.or(found.project);
        }
        access.session =
            access.session.filter(|stored| stored.session.is_active(stored.last_used_at, self.now));
        if let Some(StoredSession { session, .. }) = &access.session {
            access.membership =
                Some(self.find_membership(&session.organization, &session.user).await?);
        }
        Ok(access)
    }

    async fn find_membership(
        &self,
        organization: &Organization,
        user: &UserId,
    ) -> Result<Membership, StoreError> {
        if let Some(cached) = self.cache.get_membership(organization, user, self.now) {
            return Ok(cached);
        }
        let found = self.store.find_membership(organization, user).await?;
        self.cache.insert_membership(&found, self.now);
        Ok(found)
    }
}

impl<'r> Caller<'r> {
    /// Checks the request's credential and looks up the project in its path. Fails with 401, or
    /// with 403 if another site could have caused a change with a session.
    pub(crate) async fn authenticate(
        store: &'r Store,
        cache: &'r AccessCache,
        incoming: &'r ApiRequest,
        outlives_outages: bool,
        now: Timestamp,
    ) -> Result<Self, Problem> {
        let sent = credential::read(incoming)?;
        let project = incoming.path_parameter("idOrSlug").as_deref().and_then(IdOrSlug::parse);
        let lookup = Lookup { store, cache, project, now };
        let (identity, project, uses) = match sent {
            Sent::Key(key) => {
                let Access { key, membership, project, .. } =
                    lookup.find_key(&key, outlives_outages).await?;
                let identity = key.and_then(|key| Identity::of_key(key, membership));
                let identity = identity.ok_or_else(Problem::invalid_api_key)?;
                (identity, project, Vec::new())
            }
            Sent::Session(secret) => {
                let Access { session, membership, project, .. } =
                    lookup.find_session(&secret).await?;
                let used_at = session.as_ref().and_then(|stored| stored.last_used_at);
                let identity = session
                    .zip(membership)
                    .and_then(|(stored, member)| Identity::of_session(stored.session, member));
                let identity = identity.ok_or_else(Problem::invalid_session)?;
                incoming.require_same_origin()?;
                let recorded = used_at.is_some_and(|used| now < used.plus(USE_INTERVAL));
                let member = identity.member.map(|(id, _)| UseOf::Member(id));
                let uses = match &identity.credential {
                    Credential::Session(session) if !recorded => {
                        member.into_iter().chain([UseOf::Session(session.digest.clone())]).collect()
                    }
                    _ => member.into_iter().collect(),
                };
                (identity, project, uses)
            }
        };
        // Only now: the log must not show a rejected credential as a caller.
        incoming.note_key(&identity.credential);
        let uses = match &identity.credential {
            Credential::Key { id, .. } => vec![UseOf::Key(id.clone())],
            Credential::Session(_) => uses,
        };
        Ok(Self { identity, project, uses, incoming, store, cache, now })
    }

    /// Returns the caller that a new session of a member stands for.
    pub(crate) fn of_session(
        store: &'r Store,
        cache: &'r AccessCache,
        incoming: &'r ApiRequest,
        session: Session,
        member: Member,
        now: Timestamp,
    ) -> Result<Self, Problem> {
        let membership = Membership { member: Some(member), ..Membership::default() };
        let identity = Identity::of_session(session, membership);
        let identity = identity.ok_or_else(Problem::invalid_session)?;
        incoming.note_key(&identity.credential);
        Ok(Self { identity, project: None, uses: Vec::new(), incoming, store, cache, now })
    }

    /// Records the use of the credential, at most once an hour. A failure is only logged.
    pub(crate) async fn record_use(&self) {
        for used in self.uses.iter().filter(|used| self.cache.takes_use(used, self.now)) {
            match timeout(STALL_TIMEOUT, self.store.put_last_use(used, self.now)).await {
                Ok(Ok(())) => {}
                Ok(Err(error)) => tracing::warn!(%error, "a use cannot be recorded"),
                Err(_) => tracing::warn!("a use cannot be recorded in time"),
            }
        }
    }

    /// Fails with 403 unless the key has the scope.
    pub(crate) fn require(&self, scope: Scope) -> Result<(), Problem> {
        if self.identity.scopes.contains(&scope) {
            Ok(())
        } else {
            Err(Problem::insufficient_scope(scope))
        }
    }

    /// Fails with 403 if the key lists projects.
    pub fn require_all_projects(&self) -> Result<(), Problem> {
        match self.identity.projects {
            None => Ok(()),
            Some(_) => Err(Problem::limited_to_projects()),
        }
    }

    /// Returns the project in the path. Fails with 404 if it does not exist or the key cannot see
    /// it.
    pub fn project(&self) -> Result<ProjectId, Problem> {
        let visible =
            |project: &&ProjectIdentity| self.identity.may_see(project.id, &project.organization);
        let project =
            self.project.as_ref().filter(visible).ok_or_else(Problem::project_not_found)?;
        self.incoming.note_project(project.id);
        Ok(project.id)
    }

    /// Returns the project in the path and its own limit of requests per minute, if it has one and
    /// the caller can see it.
    pub(crate) fn own_request_limit(&self) -> Option<(ProjectId, u32)> {
        let project = self.project.as_ref()?;
        let limit = project.requests_per_minute?;
        self.identity.may_see(project.id, &project.organization).then_some((project.id, limit))
    }

    /// Returns the projects with these names, in order and each once. Fails with 404 if any of them
    /// does not exist or the key cannot see it. The problem lists all of those.
    pub async fn projects<'n>(
        &self,
        names: impl Iterator<Item = (&'n str, Option<&'n IdOrSlug>)>,
    ) -> Result<Vec<ProjectId>, Problem> {
        let names: Vec<_> = names.collect();
        let mut known: HashMap<IdOrSlug, ProjectIdentity> = HashMap::new();
        let mut missing = Vec::new();
        for name in names.iter().filter_map(|(_, name)| *name) {
            match self.cache.get_project(name, self.now) {
                Some(project) => drop(known.insert(name.clone(), project)),
                // A batch read rejects duplicates.
                None if missing.contains(name) => {}
                None => missing.push(name.clone()),
            }
        }
        for (name, project) in self.store.find_projects(&missing).await? {
            let found = Access { project: Some(project.clone()), ..Access::default() };
            self.cache.insert(&found, Some(&name), self.now);
            known.insert(name, project);
        }
        let visible = |name: &IdOrSlug| {
            let project = known.get(name)?;
            self.identity.may_see(project.id, &project.organization).then_some(project.id)
        };
        let (mut projects, mut unknown) = (Vec::with_capacity(names.len()), Vec::new());
        for (written, name) in names {
            match name.and_then(visible) {
                // Both the id and the slug of a project can be in the list.
                Some(project) if projects.contains(&project) => {}
                Some(project) => projects.push(project),
                None => unknown.push(written),
            }
        }
        if unknown.is_empty() { Ok(projects) } else { Err(Problem::projects_not_found(&unknown)) }
    }

    /// Returns a page of the projects that the caller can see, sorted by slug. Their keys are
    /// strongly consistent: a rotated key takes effect immediately.
    pub async fn list_projects(
        &self,
        page_request: &PageRequest,
    ) -> Result<Page<ListedProject>, Problem> {
        let Page { items, end } = if let Some(ids) = &self.identity.projects {
            self.page_of_named(ids, page_request).await?
        } else {
            let organization = &self.identity.organization;
            let named = self.store.list_organization(organization, page_request).await?;
            let mut items = self.store.read_projects(&named.items).await?;
            items.sort_by(|one, other| one.slug.cmp(&other.slug));
            Page { items, end: named.end }
        };
        Ok(Page { items: items.into_iter().map(ListedProject::from).collect(), end })
    }

    /// Returns a page of the projects that the caller's key lists.
    async fn page_of_named(
        &self,
        ids: &BTreeSet<ProjectId>,
        page_request: &PageRequest,
    ) -> Result<Page<Project>, Problem> {
        let ids: Vec<ProjectId> = ids.iter().copied().collect();
        let mut projects = self.store.read_projects(&ids).await?;
        projects.retain(|it| self.identity.may_see(it.id, &it.organization));
        Ok(page_of(projects, page_request))
    }

    /// Returns the user that the caller's key acts for.
    pub fn user(&self) -> &UserId {
        &self.identity.user
    }

    /// Returns the user's organization.
    pub fn organization(&self) -> &Organization {
        &self.identity.organization
    }

    /// Returns the caller as the actor of a change.
    pub fn author(&self) -> Actor {
        let user = self.identity.user.clone();
        match &self.identity.credential {
            Credential::Key { id, .. } => Actor::Key { user, key_id: id.clone() },
            Credential::Session(_) => Actor::Session { user },
        }
    }

    /// Returns the caller's credential.
    pub fn credential(&self) -> &Credential {
        &self.identity.credential
    }

    /// Returns the caller's session. Fails with 403 if the caller sent a key.
    pub fn session(&self) -> Result<&Session, Problem> {
        match &self.identity.credential {
            Credential::Session(session) => Ok(session),
            Credential::Key { .. } => Err(Problem::session_required()),
        }
    }

    /// Like [`Self::session`], for a request that replaces the session. Fails with 401 if it has
    /// ended since the membership was cached: the new one would outlive that end.
    pub async fn unended_session(&self) -> Result<&Session, Problem> {
        let session = self.session()?;
        let membership = self.store.find_membership(&session.organization, &session.user).await?;
        match Identity::of_session(session.clone(), membership) {
            Some(_) => Ok(session),
            None => Err(Problem::invalid_session()),
        }
    }

    /// Returns the role of the member behind the credential. `None` for keys of the `waymark`
    /// command, which have no member.
    pub fn role(&self) -> Option<Role> {
        self.identity.member.map(|(_, role)| role)
    }

    /// Returns the membership behind the credential, if any.
    pub fn member_id(&self) -> Option<MemberId> {
        self.identity.member.map(|(id, _)| id)
    }

    /// Returns the projects to which the caller is limited, if any.
    pub fn projects_limit(&self) -> Option<&BTreeSet<ProjectId>> {
        self.identity.projects.as_ref()
    }

    /// Returns the audit entry of a change that the caller makes now.
    pub fn audit(&self, ids: &Ids, action: AuditAction, target: AuditTarget) -> AuditEntry {
        AuditEntry {
            id: ids.new_uuid(self.now),
            at: self.now,
            organization: self.identity.organization.clone(),
            actor: self.author(),
            action,
            target,
            source: AuditSource::of(self.incoming),
        }
    }

    /// Returns the header `user-agent` if the caller has a session, which only browsers have.
    pub fn browser(&self) -> Option<String> {
        self.session().ok()?;
        AuditSource::of(self.incoming).user_agent
    }

    /// Returns the scopes of the caller's key.
    pub fn scopes(&self) -> &BTreeSet<Scope> {
        &self.identity.scopes
    }

    /// Returns `true` if the key has only the scope `flags:evaluate`, like keys in web pages.
    pub(crate) fn only_evaluates_flags(&self) -> bool {
        self.identity.scopes.iter().eq(&[Scope::FlagsEvaluate])
    }

    /// Returns when the caller's credential expires, if it does.
    pub fn expires_at(&self) -> Option<Timestamp> {
        match &self.identity.credential {
            Credential::Key { expires_at, .. } => *expires_at,
            Credential::Session(session) => Some(session.ends_at()),
        }
    }
}

/// Returns the result of a lookup, or `stale` if the lookup fails or stalls.
async fn lookup_or_stale(
    stale: Access,
    lookup: impl Future<Output = Result<Access, StoreError>>,
    cooldown: &Cooldown,
    now: Timestamp,
) -> Access {
    if cooldown.is_cooling_down(now) {
        return stale;
    }
    let cause = match timeout(STALL_TIMEOUT, lookup).await {
        Ok(Ok(found)) => return found,
        Ok(Err(error)) => error.to_string(),
        Err(_) => "DynamoDB did not respond in time".to_owned(),
    };
    cooldown.begin(now);
    tracing::warn!(cause, "a cached key and project are used");
    stale
}

/// Returns a page of projects, sorted by slug.
fn page_of(mut projects: Vec<Project>, page_request: &PageRequest) -> Page<Project> {
    projects.sort_by(|one, other| one.slug.cmp(&other.slug));
    if let Some(after) = &page_request.after {
        projects.retain(|project| project.slug.as_str() > after.as_str());
    }
    let limit = usize::try_from(page_request.limit).unwrap_or(usize::MAX);
    let more = projects.len() > limit;
    projects.truncate(limit);
    let end = projects.last().filter(|_| more).map(|project| project.slug.to_string());
    Page { items: projects, end }
}
