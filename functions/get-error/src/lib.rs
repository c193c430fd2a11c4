//! Reads an error: GET `/v0/projects/{idOrSlug}/errors/{errorId}`.

use shared::app::App;
use shared::auth::Caller;
use shared::http::{Answer, Incoming, Problem};
use shared::models::api_key::Scope;

/// The operation's name in `openapi.yaml` and in the logs.
pub const OPERATION: &str = env!("CARGO_PKG_NAME");

/// Answers one request.
pub async fn handle(app: &App, incoming: &Incoming) -> Result<Answer, Problem> {
    let caller = Caller::authenticate(app, incoming).await?;
    caller.require(Scope::ErrorsRead)?;
    let project_id = caller.project()?;
    let id = incoming.error_id()?;

    let error = app.store.find_error(project_id, id).await?;
    let error = error.ok_or_else(Problem::error_not_found)?;
    let activity = app.store.find_activity(project_id, &error, app.clock.now()).await?;
    Answer::ok(&error.shown(activity.events, activity.latest))?.with_version(error.version)
}
