//! Deletes an archived feature flag for good, which frees its key: DELETE
//! `/v0/project/{idOrSlug}/feature-flags/{key}`.

use shared::app::App;
use shared::auth::Caller;
use shared::http::{Answer, Incoming, Problem, StatusCode};
use shared::models::api_key::Scope;
use shared::store::{Attempts, FlagDeletion};

/// The operation's name in `openapi.yaml` and in the logs.
pub const OPERATION: &str = env!("CARGO_PKG_NAME");

/// Answers one request.
pub async fn handle(app: &App, incoming: &Incoming) -> Result<Answer, Problem> {
    // Request.
    let caller = Caller::authenticate(app, incoming).await?;
    caller.require(Scope::FlagsWrite)?;
    let if_match = incoming.if_match();
    let project_id = caller.project()?;
    let key = incoming.flag_key()?;

    let mut attempts = Attempts::default();
    while attempts.another().await {
        // Storage: the flag as it is.
        let flag = app.store.find_flag(project_id, &key).await?;
        let flag = flag.ok_or_else(Problem::flag_not_found)?;

        // Rules.
        if_match.check(flag.version)?;
        if flag.archived_at.is_none() {
            return Err(Problem::flag_not_archived());
        }

        // Storage and answer.
        if app.store.delete_flag(&flag).await? == FlagDeletion::Done {
            return Ok(Answer::empty(StatusCode::NO_CONTENT));
        }
    }
    Err(Problem::conflict("the flag kept changing"))
}
