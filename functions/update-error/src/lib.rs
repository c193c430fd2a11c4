//! Sets the status of an error: PATCH `/v0/projects/{idOrSlug}/errors/{errorId}`.

use shared::app::App;
use shared::auth::Caller;
use shared::http::{Answer, Incoming, Problem};
use shared::models::api_key::Scope;
use shared::models::error::read_status_patch;
use shared::store::Attempts;

/// The operation's name in `openapi.yaml` and in the logs.
pub const OPERATION: &str = env!("CARGO_PKG_NAME");

/// Answers one request.
pub async fn handle(app: &App, incoming: &Incoming) -> Result<Answer, Problem> {
    // Request.
    let caller = Caller::authenticate(app, incoming).await?;
    caller.require(Scope::ErrorsWrite)?;
    let if_match = incoming.if_match();
    let project_id = caller.project()?;
    let status = read_status_patch(&incoming.merge_patch()?)?;
    let id = incoming.error_id()?;

    let now = app.clock.now();
    let mut attempts = Attempts::default();
    while attempts.another().await {
        // Storage: the error as it is.
        let stored = app.store.find_error(project_id, id).await?;
        let stored = stored.ok_or_else(Problem::error_not_found)?;

        // Rules.
        if_match.check(stored.version)?;
        let mut error = stored.clone();
        if let Some(status) = status {
            error.set_status(status, now);
        }

        // Storage and answer: all that may fail is read before anything is written.
        let activity = app.store.find_activity(project_id, &error, now).await?;
        if error == stored || app.store.replace_error(project_id, &stored, &error).await? {
            let shown = error.shown(activity.events, activity.latest);
            return Answer::ok(&shown)?.with_version(error.version);
        }
    }
    Err(Problem::conflict("the error kept changing"))
}
