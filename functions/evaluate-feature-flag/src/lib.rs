//! Evaluates a feature flag for `OpenFeature`'s providers (OFREP).

use std::sync::Arc;

use flags::evaluation::Flags;
use flags::ofrep::{self, OFREP};
use flags::{FlagCache, FlagKey};
use shared::app::{Access, App, Operation};
use shared::auth::Caller;
use shared::http::{ApiRequest, ApiResponse, Method, Problem};
use shared::projects::api_key::Scope;

/// What this function is.
pub static OPERATION: Operation = Operation::new(
    env!("CARGO_PKG_NAME"),
    Method::POST,
    "/v0/project/{idOrSlug}/ofrep/v1/evaluate/flags/{key}",
    Access::ApiKey(Scope::FlagsEvaluate, |app, caller, incoming| {
        Box::pin(handle(app, caller, incoming))
    }),
)
.speaking(OFREP);

/// Answers one request.
async fn handle(
    app: &App,
    caller: &Caller<'_>,
    incoming: &ApiRequest,
) -> Result<ApiResponse, Problem> {
    // Request.
    let project_id = caller.project()?;
    let asked = ofrep::evaluated_key(incoming);
    let context = match ofrep::evaluation_context(incoming) {
        Ok(context) => context,
        Err(failure) => return failure.for_flag(&asked).try_into(),
    };

    // Storage: the flag and what it depends on, unless it is remembered.
    let (now, freshness) = (app.clock.now(), ofrep::freshness(incoming));
    let flags = match FlagKey::parse(&asked) {
        Ok(key) => {
            let cache = app.cache::<FlagCache>();
            cache.flag(&app.store, project_id, &key, freshness, now).await?
        }
        // What is no key is the key of no flag.
        Err(_) => Arc::new(Flags::new(project_id, [])),
    };

    // Rules and answer.
    ofrep::evaluate_one(&flags, &asked, &context, now).try_into()
}
