//! Authentication of callers, their permissions, and the projects that they can see
//! (`docs/api-conventions.md`, "Authentication").

mod cache;
mod credential;

use std::collections::{BTreeSet, HashMap};

use tokio::time::timeout;

use crate::cache::{Cooldown, STALL_TIMEOUT};
use crate::dynamodb::{Store, StoreError};
use crate::http::{ApiRequest, Problem};
use crate::page::{Page, PageRequest};
use crate::projects::api_key::{Actor, ApiKeyRecord, KeyId, Scope, UserId};
use crate::projects::project::{
    IdOrSlug, ListedProject, Organization, Project, ProjectId, ProjectSummary,
};
use crate::projects::store::{Access, ProjectIdentity};
use crate::timestamp::Timestamp;

pub(crate) use cache::AccessCache;
pub(crate) use credential::HEADERS as CREDENTIAL_HEADERS;

/// An authenticated caller and the project in the request's path.
pub struct Caller<'r> {
    key: ApiKeyRecord,
    project: Option<ProjectIdentity>,
    incoming: &'r ApiRequest,
    store: &'r Store,
    cache: &'r AccessCache,
    now: Timestamp,
}

impl<'r> Caller<'r> {
    /// Checks the request's key and looks up the project in its path. Both lookups share one round
    /// trip, and cached results need none. Fails with 401.
    ///
    /// If `outlives_outages`, cached results up to ten minutes old admit callers while the tables
    /// fail or stall.
    pub(crate) async fn authenticate(
        store: &'r Store,
        cache: &'r AccessCache,
        incoming: &'r ApiRequest,
        outlives_outages: bool,
        now: Timestamp,
    ) -> Result<Self, Problem> {
        let sent = credential::read(incoming)?;
        let project = incoming.path_parameter("idOrSlug").as_deref().and_then(IdOrSlug::parse);

        if cache.is_unknown(sent.key_id(), now) {
            return Err(Problem::invalid_api_key());
        }
        let mut access = cache.get(sent.key_id(), project.as_ref(), now);
        let missing_key = access.key.is_none().then(|| sent.key_id());
        let missing_project = project.as_ref().filter(|_| access.project.is_none());
        if missing_key.is_some() || missing_project.is_some() {
            if access.key.as_ref().is_some_and(|key| !key.admits(&sent, now)) {
                // A key that rejects this request now always will, so skip the lookup.
                return Err(Problem::invalid_api_key());
            }
            let lookup = async {
                let found = store.find_access(missing_key, missing_project).await?;
                cache.insert(&found, missing_project, now);
                if let Some(key_id) = missing_key.filter(|_| found.key.is_none()) {
                    cache.insert_unknown(key_id, now);
                }
                let Access { key, project } = access;
                Ok(Access { key: key.or(found.key), project: project.or(found.project) })
            };
            let stale = outlives_outages
                .then(|| cache.get_stale(sent.key_id(), project.as_ref(), now))
                .flatten();
            access = match stale {
                Some(stale) => lookup_or_stale(stale, lookup, &cache.cooldown, now).await,
                None => lookup.await?,
            };
        }
        let key = access.key.filter(|key| key.admits(&sent, now));
        let key = key.ok_or_else(Problem::invalid_api_key)?;
        // Only now: the log must not show a rejected key id as a caller.
        incoming.note_key(&key.key_id);
        Ok(Self { key, project: access.project, incoming, store, cache, now })
    }

    /// Fails with 403 unless the key has the scope.
    pub(crate) fn require(&self, scope: Scope) -> Result<(), Problem> {
        if self.key.scopes.contains(&scope) {
            Ok(())
        } else {
            Err(Problem::insufficient_scope(scope))
        }
    }

    /// Fails with 403 if the key lists projects.
    pub fn require_all_projects(&self) -> Result<(), Problem> {
        match self.key.projects {
            None => Ok(()),
            Some(_) => Err(Problem::limited_to_projects()),
        }
    }

    /// Returns the project in the path. Fails with 404 if it does not exist or the key cannot see
    /// it.
    pub fn project(&self) -> Result<ProjectId, Problem> {
        let visible =
            |project: &&ProjectIdentity| self.key.may_see(project.id, &project.organization);
        let project =
            self.project.as_ref().filter(visible).ok_or_else(Problem::project_not_found)?;
        self.incoming.note_project(project.id);
        Ok(project.id)
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
                None => missing.push(name.clone()),
            }
        }
        for (name, project) in self.store.find_projects(&missing).await? {
            let found = Access { key: None, project: Some(project.clone()) };
            self.cache.insert(&found, Some(&name), self.now);
            known.insert(name, project);
        }
        let visible = |name: &IdOrSlug| {
            let project = known.get(name)?;
            self.key.may_see(project.id, &project.organization).then_some(project.id)
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

    /// Returns a page of summaries of the projects that the caller can see, sorted by slug.
    pub async fn name_projects(
        &self,
        page_request: &PageRequest,
    ) -> Result<Page<ProjectSummary>, Problem> {
        let Some(ids) = &self.key.projects else {
            return Ok(self.store.list_organization(&self.key.organization, page_request).await?);
        };
        let Page { items, end } = self.page_of_named(ids, page_request).await?;
        Ok(Page { items: items.into_iter().map(ProjectSummary::from).collect(), end })
    }

    /// Returns a page of the projects that the caller can see, sorted by slug. Their keys are
    /// strongly consistent: a rotated key takes effect immediately.
    pub async fn list_projects(
        &self,
        page_request: &PageRequest,
    ) -> Result<Page<ListedProject>, Problem> {
        let Page { items, end } = if let Some(ids) = &self.key.projects {
            self.page_of_named(ids, page_request).await?
        } else {
            let organization = &self.key.organization;
            let named = self.store.list_organization(organization, page_request).await?;
            let ids: Vec<ProjectId> = named.items.iter().map(|it| it.id).collect();
            let mut items = self.store.read_projects(&ids).await?;
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
        projects.retain(|it| self.key.may_see(it.id, &it.organization));
        Ok(page_of(projects, page_request))
    }

    /// Returns the user that the caller's key acts for.
    pub fn user(&self) -> &UserId {
        &self.key.user
    }

    /// Returns the user's organization.
    pub fn organization(&self) -> &Organization {
        &self.key.organization
    }

    /// Returns the caller as the actor of a change.
    pub fn author(&self) -> Actor {
        Actor::Key { user: self.key.user.clone(), key_id: self.key.key_id.clone() }
    }

    /// Returns the id of the caller's key.
    pub fn key_id(&self) -> &KeyId {
        &self.key.key_id
    }

    /// Returns the scopes of the caller's key.
    pub fn scopes(&self) -> &BTreeSet<Scope> {
        &self.key.scopes
    }

    /// Returns `true` if the key has only the scope `flags:evaluate`, like keys in web pages.
    pub(crate) fn only_evaluates_flags(&self) -> bool {
        self.key.scopes.iter().eq(&[Scope::FlagsEvaluate])
    }

    /// Returns when the caller's key expires, if it does.
    pub fn expires_at(&self) -> Option<Timestamp> {
        self.key.expires_at
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
