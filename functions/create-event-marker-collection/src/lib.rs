//! Creates an event marker collection.

use markers::store::{CollectionCreation, MarkerStore};
use markers::{CollectionDraft, CollectionId};
use shared::app::{Access, App, Operation};
use shared::auth::Caller;
use shared::dynamodb::Idempotent;
use shared::http::{ApiRequest, ApiResponse, ApiResult, Method};
use shared::projects::api_key::Scope;

/// The operation of this function.
pub static OPERATION: Operation = Operation::new(
    env!("CARGO_PKG_NAME"),
    Method::POST,
    "/v0/projects/{idOrSlug}/event-marker-collections",
    Access::ApiKey(Scope::MarkersWrite, shared::handler!(handle)),
);

async fn handle(app: &App, caller: &Caller<'_>, incoming: &ApiRequest) -> ApiResult {
    // Request.
    let request = incoming.idempotent(caller.credential())?;
    let project_id = caller.project()?;
    let draft = CollectionDraft::read(&incoming.json()?)?;

    // Rules.
    let now = app.clock.now();
    let id = CollectionId::new(app.ids.new_uuid(now));
    let collection = draft.into_collection(id, project_id, now);
    let location = format!("/v0/projects/{project_id}/event-marker-collections/{id}");
    let response = ApiResponse::created(&location, &collection)?;

    // Storage and response.
    let stored_response = response.to_stored();
    let idempotent = Idempotent::of(request.as_ref(), &stored_response);
    match MarkerStore::new(&app.store).create_collection(&collection, idempotent).await? {
        CollectionCreation::Created => Ok(response),
        CollectionCreation::Replay(replay) => ApiResponse::replay(replay),
    }
}
