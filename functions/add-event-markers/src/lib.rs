//! Adds events to a collection: POST `/v0/projects/{idOrSlug}/event-marker-collections/{collectionId}/events`.

use shared::app::App;
use shared::auth::Caller;
use shared::http::{Answer, Incoming, Problem};
use shared::models::api_key::Scope;
use shared::models::event_marker::{AddedEvents, EventDraft, EventMarker};
use shared::store::{EventAddition, Idempotent};

/// The operation's name in `openapi.yaml`, in the logs and among idempotency keys.
pub const OPERATION: &str = env!("CARGO_PKG_NAME");

/// Answers one request.
pub async fn handle(app: &App, incoming: &Incoming) -> Result<Answer, Problem> {
    // Request.
    let caller = Caller::authenticate(app, incoming).await?;
    caller.require(Scope::MarkersWrite)?;
    let request = incoming.idempotent(caller.key_id(), OPERATION)?;
    let project_id = caller.project()?;
    let drafts = EventDraft::read_all(&incoming.json()?)?;
    let id = match incoming.collection_id() {
        Ok(id) => id,
        Err(problem) => return app.repeated_or(problem, request.as_ref()).await,
    };

    // Rules.
    let now = app.clock.now();
    let events: Vec<EventMarker> =
        drafts.into_iter().map(|draft| draft.into_event(app.ids.new_uuid(now))).collect();
    let location = format!("/v0/projects/{project_id}/event-marker-collections/{id}/events");
    let answer = Answer::created(&location, &AddedEvents { events: &events })?;

    // Storage and answer.
    let stored_answer = answer.to_stored();
    let idempotent = Idempotent::of(request.as_ref(), &stored_answer);
    match app.store.add_events(project_id, id, &events, now, idempotent).await? {
        EventAddition::Added => Ok(answer),
        EventAddition::CollectionGone => Err(Problem::collection_not_found()),
        EventAddition::Repetition(repetition) => Answer::repeated(repetition),
    }
}
