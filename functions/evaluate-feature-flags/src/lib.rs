//! Evaluates all feature flags of a project for `OpenFeature`'s providers (OFREP).

use flags::ofrep::{self, OFREP};
use flags::{FlagCache, http};
use shared::app::{Access, App, Operation};
use shared::auth::Caller;
use shared::http::{ApiRequest, ApiResult, Method};
use shared::projects::api_key::Scope;

/// The operation of this function.
pub static OPERATION: Operation = Operation::new(
    env!("CARGO_PKG_NAME"),
    Method::POST,
    "/v0/project/{idOrSlug}/ofrep/v1/evaluate/flags",
    Access::ApiKey(Scope::FlagsEvaluate, shared::handler!(handle)),
)
.speaking(OFREP);

async fn handle(app: &App, caller: &Caller<'_>, incoming: &ApiRequest) -> ApiResult {
    // Request.
    let project_id = caller.project()?;
    let path = incoming.path();
    if !path.strip_suffix('/').unwrap_or(path).ends_with("/ofrep/v1/evaluate/flags") {
        // The gateway's greedy route for trailing slashes also matches other paths.
        return Err(http::unknown_evaluation());
    }
    let context = match ofrep::evaluation_context(incoming) {
        Ok(context) => context,
        Err(failure) => return failure.for_all_flags().try_into(),
    };

    // Storage: the project's flags, unless they are cached.
    let (now, freshness) = (app.clock.now(), ofrep::freshness(incoming));
    let flags = app.cache::<FlagCache>().flags(&app.store, project_id, freshness, now).await?;

    // Rules and response.
    let if_none_match = ofrep::if_none_match(incoming);
    ofrep::evaluate_all(&flags, &context, now, if_none_match).try_into()
}
