//! Deletes the source maps of a debug ID or a release. maintain-source-maps removes their pieces.

use shared::app::{Access, App, Operation};
use shared::audit::{AuditAction, AuditTarget};
use shared::auth::Caller;
use shared::http::{ApiRequest, ApiResponse, ApiResult, Method, StatusCode};
use shared::json::Violations;
use shared::projects::api_key::Scope;
use source_maps::MapKey;
use source_maps::http::{Selection, selection};
use source_maps::store::ProjectMaps;

/// The operation of this function.
pub static OPERATION: Operation = Operation::new(
    env!("CARGO_PKG_NAME"),
    Method::DELETE,
    "/v0/projects/{idOrSlug}/source-maps",
    Access::ApiKey(Scope::SourceMapsWrite, shared::handler!(handle)),
)
.within(shared::app::COUNTING_TIME_BUDGET);

async fn handle(app: &App, caller: &Caller<'_>, incoming: &ApiRequest) -> ApiResult {
    // Request.
    let mut violations = Violations::default();
    let selection = selection(incoming, &mut violations);
    let selection = violations.into_result(selection)?;
    let store = ProjectMaps::new(&app.store, caller.project()?);

    // Storage. A release has any number of maps, each of which is deleted for itself.
    let now = app.clock.now();
    let entry_of = |map_key: &MapKey| {
        let target = AuditTarget::new("source_map", map_key, map_key.to_string());
        app.store.audit(&caller.audit(&app.ids, AuditAction::SourceMapDeleted, target))
    };
    match selection {
        Selection::DebugId(id) => store.delete_map(&id, entry_of, now).await?,
        Selection::Release(release) => store.delete_by_release(&release, entry_of, now).await?,
    }

    // Response. A repeat finds nothing left to delete.
    Ok(ApiResponse::empty(StatusCode::NO_CONTENT))
}
