//! Changes, archives or brings back a feature flag: PATCH
//! `/v0/project/{idOrSlug}/feature-flags/{key}`.

use shared::app::App;
use shared::auth::Caller;
use shared::http::{Answer, Incoming, Problem};
use shared::models::api_key::Scope;
use shared::models::feature_flag::patch::FlagPatch;
use shared::store::{Attempts, FlagReplacement};

/// The operation's name in `openapi.yaml` and in the logs.
pub const OPERATION: &str = env!("CARGO_PKG_NAME");

/// Answers one request.
pub async fn handle(app: &App, incoming: &Incoming) -> Result<Answer, Problem> {
    // Request.
    let caller = Caller::authenticate(app, incoming).await?;
    caller.require(Scope::FlagsWrite)?;
    let if_match = incoming.if_match();
    let project_id = caller.project()?;
    let body = incoming.merge_patch()?;
    let patch = FlagPatch::check(&body)?;
    let key = incoming.flag_key()?;

    let now = app.clock.now();
    let mut attempts = Attempts::default();
    while attempts.another().await {
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
        match app.store.replace_flag(&stored, &flag).await? {
            FlagReplacement::Done => return Ok(answer),
            FlagReplacement::Outdated => {}
            FlagReplacement::LimitReached => return Err(Problem::flag_limit_reached()),
            FlagReplacement::PrerequisitesRefused(violations) => return Err(violations.into()),
            FlagReplacement::InUse(dependents) => return Err(Problem::flag_in_use(&dependents)),
        }
    }
    Err(Problem::conflict("the flag, or what it rests on, kept changing"))
}
