//! Changes the name, limits and `production` of a project.

use people::read_project_patch;
use shared::app::{Access, App, Operation};
use shared::audit::{AuditAction, AuditTarget};
use shared::auth::Caller;
use shared::http::{ApiRequest, ApiResponse, ApiResult, Method, Problem};
use shared::projects::api_key::Scope;
use shared::projects::project::ListedProject;

/// The operation of this function.
pub static OPERATION: Operation = Operation::new(
    env!("CARGO_PKG_NAME"),
    Method::PATCH,
    "/v0/projects/{idOrSlug}",
    Access::ApiKey(Scope::ProjectsWrite, shared::handler!(handle)),
);

async fn handle(app: &App, caller: &Caller<'_>, incoming: &ApiRequest) -> ApiResult {
    // Request.
    let id = caller.project()?;
    let patch = read_project_patch(&incoming.merge_patch()?)?;

    // Storage: the current project.
    let stored = app.store.read_project(id).await?.ok_or_else(Problem::project_not_found)?;

    // Rules.
    let project = patch.apply(&stored);
    let response = ApiResponse::ok(&ListedProject::from(project.clone()))?;
    if project == stored {
        return Ok(response);
    }

    // Storage and response.
    let target = AuditTarget::new("project", id, stored.slug.as_str());
    let entry = caller.audit(&app.ids, AuditAction::ProjectUpdated, target);
    let more = vec![app.store.audit(&entry)?];
    if !app.store.update_project(&stored, &patch, more).await? {
        return Err(Problem::project_not_found());
    }
    Ok(response)
}
