//! Reads a feature flag, archived or not: GET `/v0/project/{idOrSlug}/feature-flags/{key}`.

use shared::app::App;
use shared::auth::Caller;
use shared::http::{Answer, Incoming, Problem};
use shared::models::api_key::Scope;

/// The operation's name in `openapi.yaml` and in the logs.
pub const OPERATION: &str = env!("CARGO_PKG_NAME");

/// Answers one request.
pub async fn handle(app: &App, incoming: &Incoming) -> Result<Answer, Problem> {
    let caller = Caller::authenticate(app, incoming).await?;
    caller.require(Scope::FlagsRead)?;
    let project_id = caller.project()?;
    let key = incoming.flag_key()?;

    let flag = app.store.find_flag(project_id, &key).await?;
    let flag = flag.ok_or_else(Problem::flag_not_found)?;
    Answer::ok(&flag)?.with_version(flag.version)
}
