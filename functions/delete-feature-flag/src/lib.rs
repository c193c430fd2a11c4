//! Deletes an archived feature flag for good, which frees its key.

use shared::app::{Access, App, Operation};
use shared::auth::Caller;
use shared::dynamodb::ConflictRetry;
use shared::flags::store::FlagDeletion;
use shared::http::{Answer, Incoming, Method, Problem, StatusCode};
use shared::projects::api_key::Scope;

/// What this function is.
pub static OPERATION: Operation = Operation::new(
    env!("CARGO_PKG_NAME"),
    Method::DELETE,
    "/v0/project/{idOrSlug}/feature-flags/{key}",
    Access::ApiKey(Scope::FlagsWrite, |app, caller, incoming| {
        Box::pin(handle(app, caller, incoming))
    }),
);

/// Answers one request.
async fn handle(app: &App, caller: &Caller<'_>, incoming: &Incoming) -> Result<Answer, Problem> {
    // Request.
    let if_match = incoming.if_match();
    let project_id = caller.project()?;
    let key = incoming.flag_key()?;

    let mut retry = ConflictRetry::default();
    while retry.next_attempt().await {
        // Storage: the flag as it is.
        let flag = app.store.find_flag(project_id, &key).await?;
        let flag = flag.ok_or_else(Problem::flag_not_found)?;

        // Rules.
        if_match.check(flag.tag())?;
        if flag.archived_at.is_none() {
            return Err(Problem::flag_not_archived());
        }

        // Storage and answer.
        let (author, now) = (caller.author(), app.clock.now());
        if app.store.delete_flag(&flag, &author, now).await? == FlagDeletion::Done {
            return Ok(Answer::empty(StatusCode::NO_CONTENT));
        }
    }
    Err(Problem::conflict("the flag kept changing"))
}
