//! Deletes an event marker collection and all of its events (`interface.md` §4.3):
//! DELETE `/v0/projects/{idOrSlug}/event-marker-collections/{collectionId}`.
//!
//! From the answer on, no read shows any of it, however much it is; purge-event-markers removes the
//! events in the background.

use shared::app::App;
use shared::auth::Caller;
use shared::http::{Answer, Incoming, Problem, StatusCode};
use shared::models::api_key::Scope;
use shared::store::CollectionDeletion;

/// The operation's name in `openapi.yaml` and in the logs.
pub const OPERATION: &str = env!("CARGO_PKG_NAME");

/// Answers one request.
pub async fn handle(app: &App, incoming: &Incoming) -> Result<Answer, Problem> {
    let caller = Caller::authenticate(app, incoming).await?;
    caller.require(Scope::MarkersWrite)?;
    let project_id = caller.project()?;
    let id = incoming.collection_id()?;

    match app.store.delete_collection(project_id, id, app.clock.now()).await? {
        CollectionDeletion::Deleted => Ok(Answer::empty(StatusCode::NO_CONTENT)),
        CollectionDeletion::CollectionGone => Err(Problem::collection_not_found()),
    }
}
