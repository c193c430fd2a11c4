//! Deletes a project. erase-data removes its data in the background.

use people::ProjectDeletion;
use shared::app::{Access, App, Operation};
use shared::audit::{AuditAction, AuditTarget};
use shared::auth::Caller;
use shared::http::{ApiRequest, ApiResponse, ApiResult, Method, Problem, StatusCode};
use shared::projects::api_key::Scope;
use shared::projects::project::ProjectSummary;

/// The operation of this function.
pub static OPERATION: Operation = Operation::new(
    env!("CARGO_PKG_NAME"),
    Method::DELETE,
    "/v0/projects/{idOrSlug}",
    Access::ApiKey(Scope::ProjectsWrite, shared::handler!(handle)),
);

async fn handle(app: &App, caller: &Caller<'_>, incoming: &ApiRequest) -> ApiResult {
    // Request.
    let id = caller.project()?;
    let deletion = ProjectDeletion::read(&incoming.json()?)?;

    // Storage: the project.
    let project = app.store.read_project(id).await?.ok_or_else(Problem::project_not_found)?;

    // Rules.
    deletion.check(&project.slug)?;

    // Storage and response.
    let target = AuditTarget::new("project", id, project.slug.as_str());
    let entry = caller.audit(&app.ids, AuditAction::ProjectDeleted, target);
    let more = vec![app.store.audit(&entry)?];
    if !app.store.erase_project_with(&project, app.clock.now(), more).await? {
        return Err(Problem::project_not_found());
    }
    ApiResponse::json(StatusCode::ACCEPTED, &ProjectSummary::from(project))
}
