//! Changes, archives or brings back a feature flag.

use shared::app::{Access, App, Operation};
use shared::auth::Caller;
use shared::dynamodb::ConflictRetry;
use shared::flags::patch::FlagPatch;
use shared::flags::store::FlagReplacement;
use shared::http::{Answer, Incoming, Method, Problem};
use shared::projects::api_key::Scope;

/// What this function is.
pub static OPERATION: Operation = Operation::new(
    env!("CARGO_PKG_NAME"),
    Method::PATCH,
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
    let body = incoming.merge_patch()?;
    let patch = FlagPatch::check(&body)?;
    let key = incoming.flag_key()?;

    let now = app.clock.now();
    let mut retry = ConflictRetry::default();
    while retry.next_attempt().await {
        // Storage: the flag as it is.
        let stored = app.store.find_flag(project_id, &key).await?;
        let stored = stored.ok_or_else(Problem::flag_not_found)?;

        // Rules.
        if_match.check(stored.version)?;
        let flag = patch.apply(&stored, now, || app.ids.new_uuid(now))?;
        let answer = Answer::ok(&flag)?.with_version(flag.version)?;
        if flag == stored {
            return Ok(answer);
        }
        if stored.archived_at.is_some() && flag.archived_at.is_some() {
            return Err(Problem::flag_archived());
        }

        // Storage and answer.
        match app.store.replace_flag(&stored, &flag, Some(caller.user())).await? {
            FlagReplacement::Done => return Ok(answer),
            FlagReplacement::Outdated => {}
            FlagReplacement::LimitReached => return Err(Problem::flag_limit_reached()),
            FlagReplacement::ReferencesRefused(violations) => return Err(violations.into()),
            FlagReplacement::InUse(dependents) => return Err(Problem::flag_in_use(&dependents)),
        }
    }
    Err(Problem::conflict("the flag, or what it rests on, kept changing"))
}
