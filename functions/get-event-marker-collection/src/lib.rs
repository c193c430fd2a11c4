//! Reads an event marker collection.

use markers::http;
use markers::store::MarkerStore;
use shared::app::{Access, App, Operation};
use shared::auth::Caller;
use shared::http::{ApiRequest, ApiResponse, ApiResult, Method, StatusCode};
use shared::projects::api_key::Scope;

/// The operation of this function.
pub static OPERATION: Operation = Operation::new(
    env!("CARGO_PKG_NAME"),
    Method::GET,
    "/v0/projects/{idOrSlug}/event-marker-collections/{collectionId}",
    Access::ApiKey(Scope::MarkersRead, shared::handler!(handle)),
);

async fn handle(app: &App, caller: &Caller<'_>, incoming: &ApiRequest) -> ApiResult {
    let project_id = caller.project()?;
    let id = http::collection_id(incoming)?;

    let collection = MarkerStore::new(&app.store).find_collection(project_id, id).await?;
    let collection = collection.ok_or_else(http::collection_not_found)?;
    ApiResponse::json(StatusCode::OK, &collection)
}
