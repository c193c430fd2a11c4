//! Deletes an event marker collection and all of its events.
//!
//! After the response, no read shows the collection or its events. purge-event-markers removes the
//! events in the background.

use markers::http;
use markers::store::{CollectionDeletion, MarkerStore};
use shared::app::{Access, App, Operation};
use shared::audit::{AuditAction, AuditTarget};
use shared::auth::Caller;
use shared::http::{ApiRequest, ApiResponse, ApiResult, Method, StatusCode};
use shared::projects::api_key::Scope;

/// The operation of this function.
pub static OPERATION: Operation = Operation::new(
    env!("CARGO_PKG_NAME"),
    Method::DELETE,
    "/v0/projects/{idOrSlug}/event-marker-collections/{collectionId}",
    Access::ApiKey(Scope::MarkersWrite, shared::handler!(handle)),
);

async fn handle(app: &App, caller: &Caller<'_>, incoming: &ApiRequest) -> ApiResult {
    let project_id = caller.project()?;
    let id = http::collection_id(incoming)?;

    let target = AuditTarget::new("collection", id, id.to_string());
    let entry = caller.audit(&app.ids, AuditAction::CollectionDeleted, target);
    let (store, now) = (MarkerStore::new(&app.store), app.clock.now());
    let more = vec![app.store.audit(&entry)?];
    match store.delete_collection(project_id, id, more, now).await? {
        CollectionDeletion::Deleted => Ok(ApiResponse::empty(StatusCode::NO_CONTENT)),
        CollectionDeletion::CollectionGone => Err(http::collection_not_found()),
    }
}
