//! Deletes the source maps of a debug ID or a release. maintain-source-maps removes their pieces.

use shared::app::{Access, App, Operation};
use shared::audit::{AuditAction, AuditTarget};
use shared::auth::Caller;
use shared::http::{ApiRequest, ApiResponse, ApiResult, Method, StatusCode};
use shared::projects::api_key::Scope;
use source_maps::http::read_selection;
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
    let (debug_id, release) = read_selection(incoming)?;
    let store = ProjectMaps::new(&app.store, caller.project()?);

    // Storage. A release has any number of maps, each of which is deleted for itself.
    let mut map_keys = Vec::from_iter(debug_id);
    if let Some(release) = release {
        map_keys.extend(store.find_by_release(&release).await?);
    }
    for map_key in map_keys {
        let target = AuditTarget::new("source_map", &map_key, map_key.to_string());
        let entry = caller.audit(&app.ids, AuditAction::SourceMapDeleted, target);
        store.delete_map(&map_key, app.store.audit(&entry)?, app.clock.now()).await?;
    }

    // Response. A repeat finds nothing left to delete.
    Ok(ApiResponse::empty(StatusCode::NO_CONTENT))
}
