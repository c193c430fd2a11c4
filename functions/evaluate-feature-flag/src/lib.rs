//! Evaluates a feature flag for `OpenFeature`'s providers (OFREP): POST
//! `/v0/project/{idOrSlug}/ofrep/v1/evaluate/flags/{key}`.

use std::sync::Arc;

use shared::app::App;
use shared::auth::Caller;
use shared::flags::{Flags, ofrep};
use shared::http::{Answer, Incoming, Problem};
use shared::models::api_key::Scope;
use shared::models::feature_flag::FlagKey;

/// The operation's name in `openapi.yaml` and in the logs.
pub const OPERATION: &str = env!("CARGO_PKG_NAME");

/// Answers one request.
pub async fn handle(app: &App, incoming: &Incoming) -> Result<Answer, Problem> {
    // Request.
    let caller = Caller::authenticate(app, incoming).await?;
    caller.require(Scope::FlagsEvaluate)?;
    let project_id = caller.project()?;
    let asked = incoming.evaluated_key();
    let context = match incoming.evaluation_context() {
        Ok(context) => context,
        Err(failure) => return failure.for_flag(&asked).try_into(),
    };

    // Storage: the flag and what it depends on, unless it is remembered.
    let flags = match FlagKey::parse(&asked) {
        Ok(key) => app.evaluated_flag(project_id, &key, incoming.freshness()).await?,
        // What is no key is the key of no flag.
        Err(_) => Arc::new(Flags::new(project_id, [])),
    };

    // Rules and answer.
    ofrep::evaluate_one(&flags, &asked, &context, app.clock.now()).try_into()
}
