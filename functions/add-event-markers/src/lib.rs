//! Adds events to a collection.

use markers::store::{EventAddition, MarkerStore};
use markers::{AddedEvents, EventDraft, EventMarker, http};
use shared::app::{Access, App, Operation};
use shared::auth::Caller;
use shared::dynamodb::Idempotent;
use shared::http::{ApiRequest, ApiResponse, ApiResult, Method};
use shared::projects::api_key::Scope;

/// The operation of this function.
pub static OPERATION: Operation = Operation::new(
    env!("CARGO_PKG_NAME"),
    Method::POST,
    "/v0/projects/{idOrSlug}/event-marker-collections/{collectionId}/events",
    Access::ApiKey(Scope::MarkersWrite, shared::handler!(handle)),
);

async fn handle(app: &App, caller: &Caller<'_>, incoming: &ApiRequest) -> ApiResult {
    // Request.
    let request = incoming.idempotent(caller.credential())?;
    let project_id = caller.project()?;
    let drafts = EventDraft::read_all(&incoming.json()?)?;
    let id = match http::collection_id(incoming) {
        Ok(id) => id,
        Err(problem) => return app.replay_or(problem, request.as_ref()).await,
    };

    // Rules.
    let now = app.clock.now();
    let events: Vec<EventMarker> =
        drafts.into_iter().map(|draft| draft.into_event(app.ids.new_uuid(now))).collect();
    let location = format!("/v0/projects/{project_id}/event-marker-collections/{id}/events");
    let response = ApiResponse::created(&location, &AddedEvents { events: &events })?;

    // Storage and response.
    let stored_response = response.to_stored();
    let idempotent = Idempotent::of(request.as_ref(), &stored_response);
    match MarkerStore::new(&app.store).add_events(project_id, id, &events, now, idempotent).await? {
        EventAddition::Added => Ok(response),
        EventAddition::CollectionGone => Err(http::collection_not_found()),
        EventAddition::Replay(replay) => ApiResponse::replay(replay),
    }
}
