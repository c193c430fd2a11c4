//! Evaluates all feature flags of a project for `OpenFeature`'s providers (OFREP): POST
//! `/v0/project/{idOrSlug}/ofrep/v1/evaluate/flags`.

use shared::app::App;
use shared::auth::Caller;
use shared::flags::ofrep;
use shared::http::{Answer, Incoming, Problem};
use shared::models::api_key::Scope;

/// The operation's name in `openapi.yaml` and in the logs.
pub const OPERATION: &str = env!("CARGO_PKG_NAME");

/// Answers one request.
pub async fn handle(app: &App, incoming: &Incoming) -> Result<Answer, Problem> {
    // Request.
    let caller = Caller::authenticate(app, incoming).await?;
    caller.require(Scope::FlagsEvaluate)?;
    let project_id = caller.project()?;
    let path = incoming.path();
    if !path.strip_suffix('/').unwrap_or(path).ends_with("/ofrep/v1/evaluate/flags") {
        // The template routes all that may end with a slash here.
        return Err(Problem::unknown_evaluation());
    }
    let context = match incoming.evaluation_context() {
        Ok(context) => context,
        Err(failure) => return failure.for_all_flags().try_into(),
    };

    // Storage: the project's flags, unless they are remembered.
    let flags = app.evaluated_flags(project_id, incoming.freshness()).await?;

    // Rules and answer.
    let if_none_match = incoming.if_none_match();
    ofrep::evaluate_all(&flags, &context, app.clock.now(), if_none_match).try_into()
}
