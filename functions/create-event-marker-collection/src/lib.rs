//! Creates an event marker collection: POST `/v0/projects/{idOrSlug}/event-marker-collections`.

use shared::app::App;
use shared::auth::Caller;
use shared::http::{Answer, Incoming, Problem};
use shared::models::api_key::Scope;
use shared::models::event_marker::{CollectionDraft, CollectionId};
use shared::store::{CollectionCreation, Idempotent};

/// The operation's name in `openapi.yaml`, in the logs and among idempotency keys.
pub const OPERATION: &str = env!("CARGO_PKG_NAME");

/// Answers one request.
pub async fn handle(app: &App, incoming: &Incoming) -> Result<Answer, Problem> {
    // Request.
    let caller = Caller::authenticate(app, incoming).await?;
    caller.require(Scope::MarkersWrite)?;
    let request = incoming.idempotent(caller.key_id(), OPERATION)?;
    let project_id = caller.project()?;
    let draft = CollectionDraft::read(&incoming.json()?)?;

    // Rules.
    let now = app.clock.now();
    let id = CollectionId::new(app.ids.new_uuid(now));
    let collection = draft.into_collection(id, project_id, now);
    let location = format!("/v0/projects/{project_id}/event-marker-collections/{id}");
    let answer = Answer::created(&location, &collection)?;

    // Storage and answer.
    let stored_answer = answer.to_stored();
    let idempotent = Idempotent::of(request.as_ref(), &stored_answer);
    match app.store.create_collection(&collection, idempotent).await? {
        CollectionCreation::Created => Ok(answer),
        CollectionCreation::Repetition(repetition) => Answer::repeated(repetition),
    }
}
