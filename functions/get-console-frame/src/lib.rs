//! Returns the caller and the current project of the console, in one request.

use std::collections::BTreeSet;

use errors::ErrorStatus;
use errors::store::ErrorStore;
use flags::store::FlagStore;
use insights::store::InsightStore;
use serde::Serialize;
use shared::app::{Access, App, Operation};
use shared::auth::Caller;
use shared::dynamodb::StoreError;
use shared::http::{ApiRequest, ApiResponse, Method, Problem};
use shared::page::PageRequest;
use shared::projects::api_key::{KeyId, Scope, UserId};
use shared::projects::project::{IdOrSlug, Organization, ProjectSummary};
use shared::timestamp::Timestamp;

/// The operation of this function.
pub static OPERATION: Operation = Operation::new(
    env!("CARGO_PKG_NAME"),
    Method::GET,
    "/v0/console-frame",
    Access::AnyApiKey(|app, caller, incoming| Box::pin(handle(app, caller, incoming))),
);

/// Most projects in the response, as in get-caller.
const MAX_PROJECTS: u32 = 100;

/// The response.
#[derive(Serialize)]
struct ConsoleFrame<'c> {
    caller: CallerInfo<'c>,
    project: Option<ConsoleProject>,
}

/// The caller's details, as get-caller returns them.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct CallerInfo<'c> {
    user: Option<&'c UserId>,
    organization: &'c Organization,
    scopes: &'c BTreeSet<Scope>,
    projects: Vec<ProjectSummary>,
    key_id: &'c KeyId,
    expires_at: Option<Timestamp>,
}

/// The current project and the numbers of its open work.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct ConsoleProject {
    #[serde(flatten)]
    project: ProjectSummary,
    open_errors: Option<u64>,
    open_insights: Option<u64>,
    live_flags: Option<u64>,
}

async fn handle(
    app: &App,
    caller: &Caller<'_>,
    incoming: &ApiRequest,
) -> Result<ApiResponse, Problem> {
    // Every visitor of a page can read its key, and a user is often an email address.
    let is_private = caller.scopes().iter().any(|scope| *scope != Scope::FlagsEvaluate);
    let first = PageRequest { limit: MAX_PROJECTS, after: None };
    let projects = caller.name_projects(&first).await?.items;
    let current = match incoming.query_texts("project").first() {
        None => projects.first(),
        Some(named) => projects.iter().find(|project| is_named(project, named)),
    };
    let project = match current {
        Some(project) => Some(open_work(app, caller, project.clone()).await?),
        None => None,
    };
    let caller = CallerInfo {
        user: is_private.then(|| caller.user()),
        organization: caller.organization(),
        scopes: caller.scopes(),
        projects,
        key_id: caller.key_id(),
        expires_at: caller.expires_at(),
    };
    ApiResponse::ok(&ConsoleFrame { caller, project })
}

fn is_named(project: &ProjectSummary, name: &str) -> bool {
    match IdOrSlug::parse(name) {
        Some(IdOrSlug::Id(id)) => project.id == id,
        Some(IdOrSlug::Slug(slug)) => project.slug == slug,
        None => false,
    }
}

/// Counts what the caller can read of a project, in one round trip.
async fn open_work(
    app: &App,
    caller: &Caller<'_>,
    project: ProjectSummary,
) -> Result<ConsoleProject, StoreError> {
    let (store, id, now) = (&app.store, project.id, app.clock.now());
    let (open_errors, open_insights, live_flags) = tokio::try_join!(
        when(caller, Scope::ErrorsRead, || {
            ErrorStore::new(store).count_with_status(id, ErrorStatus::Open, now)
        }),
        when(caller, Scope::InsightsRead, || InsightStore::new(store).count_open(id, now)),
        when(caller, Scope::FlagsRead, || FlagStore::new(store).count_live_flags(id)),
    )?;
    Ok(ConsoleProject { project, open_errors, open_insights, live_flags })
}

/// Reads a number, if the caller has the scope for it.
async fn when<F: Future<Output = Result<u64, StoreError>>>(
    caller: &Caller<'_>,
    scope: Scope,
    read: impl FnOnce() -> F,
) -> Result<Option<u64>, StoreError> {
    if !caller.scopes().contains(&scope) {
        return Ok(None);
    }
    read().await.map(Some)
}
