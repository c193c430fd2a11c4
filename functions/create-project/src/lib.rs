//! Creates a project in the caller's organization, with its automatic event marker collections.

use markers::store::MarkerStore;
use people::{ProjectDraft, http};
use shared::app::{Access, App, Operation};
use shared::audit::{AuditAction, AuditTarget};
use shared::auth::Caller;
use shared::dynamodb::Idempotent;
use shared::http::{ApiRequest, ApiResponse, ApiResult, Method, Problem};
use shared::projects::api_key::Scope;
use shared::projects::project::{ListedProject, Project, ProjectId};
use shared::projects::store::ProjectCreation;

/// Number of random ingest ids to try.
const ATTEMPTS: u32 = 3;

/// The operation of this function.
pub static OPERATION: Operation = Operation::new(
    env!("CARGO_PKG_NAME"),
    Method::POST,
    "/v0/projects",
    Access::ApiKey(Scope::ProjectsWrite, shared::handler!(handle)),
);

async fn handle(app: &App, caller: &Caller<'_>, incoming: &ApiRequest) -> ApiResult {
    // Request.
    let request = incoming.idempotent(caller.credential())?;
    caller.require_all_projects()?;
    let ProjectDraft { name, slug, production } = ProjectDraft::read(&incoming.json()?)?;

    for _ in 0..ATTEMPTS {
        // Rules.
        let now = app.clock.now();
        let id = ProjectId::new(app.ids.new_uuid(now));
        let organization = caller.organization().clone();
        let mut project = Project::new(id, slug.clone(), name.clone(), organization, now)
            .map_err(|error| Problem::internal(error.to_string()))?;
        project.production = production;
        let listed = ListedProject::from(project.clone());
        let response = ApiResponse::created(&format!("/v0/projects/{id}"), &listed)?;

        // Storage and response.
        let target = AuditTarget::new("project", id, slug.as_str());
        let entry = caller.audit(&app.ids, AuditAction::ProjectCreated, target);
        let new_id = || app.ids.new_uuid(now);
        let mut more = MarkerStore::new(&app.store).automatic_collections(&project, new_id)?;
        more.push(app.store.audit(&entry)?);
        let stored_response = response.to_stored();
        let idempotent = Idempotent::of(request.as_ref(), &stored_response);
        match app.store.create_project_with(&project, more, idempotent).await? {
            ProjectCreation::Created => return Ok(response),
            ProjectCreation::Replay(replay) => return ApiResponse::replay(replay),
            ProjectCreation::SlugTaken => return Err(http::project_exists(&slug)),
            ProjectCreation::IngestIdTaken => {}
        }
    }
    Err(Problem::conflict("all ingest ids were taken"))
}
