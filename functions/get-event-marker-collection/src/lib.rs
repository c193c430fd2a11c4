//! Reads an event marker collection: GET `/v0/projects/{idOrSlug}/event-marker-collections/{collectionId}`.

use shared::app::App;
use shared::auth::Caller;
use shared::http::{Answer, Incoming, Problem, StatusCode};
use shared::models::api_key::Scope;

/// The operation's name in `openapi.yaml` and in the logs.
pub const OPERATION: &str = env!("CARGO_PKG_NAME");

/// Answers one request.
pub async fn handle(app: &App, incoming: &Incoming) -> Result<Answer, Problem> {
    let caller = Caller::authenticate(app, incoming).await?;
    caller.require(Scope::MarkersRead)?;
    let project_id = caller.project()?;
    let id = incoming.collection_id()?;

    let collection = app.store.find_collection(project_id, id).await?;
    let collection = collection.ok_or_else(Problem::collection_not_found)?;
    Answer::json(StatusCode::OK, &collection)
}
