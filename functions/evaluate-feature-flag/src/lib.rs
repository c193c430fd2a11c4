//! Evaluates a feature flag for `OpenFeature`'s providers (OFREP).

use std::sync::Arc;

use flags::evaluation::Flags;
use flags::ofrep::{self, OFREP};
use flags::{FlagCache, FlagKey};
use shared::app::{Access, App, Operation};
use shared::auth::Caller;
use shared::http::{ApiRequest, ApiResult, Method};
use shared::projects::api_key::Scope;

/// The operation of this function.
pub static OPERATION: Operation = Operation::new(
    env!("CARGO_PKG_NAME"),
    Method::POST,
    "/v0/project/{idOrSlug}/ofrep/v1/evaluate/flags/{key}",
    Access::ApiKey(Scope::FlagsEvaluate, shared::handler!(handle)),
)
.speaking(OFREP);

async fn handle(app: &App, caller: &Caller<'_>, incoming: &ApiRequest) -> ApiResult {
    // Request.
    let project_id = caller.project()?;
    let requested_key = ofrep::evaluated_key(incoming);
    let context = match ofrep::evaluation_context(incoming) {
        Ok(context) => context,
        Err(failure) => return failure.for_flag(&requested_key).try_into(),
    };

    // Storage: the flag and its dependencies, unless they are cached.
    let (now, freshness) = (app.clock.now(), ofrep::freshness(incoming));
    let flags = match FlagKey::parse(&requested_key) {
        Ok(key) => {
            let cache = app.cache::<FlagCache>();
            cache.flag(&app.store, project_id, &key, freshness, now).await?
        }
        // No flag has an invalid key.
        Err(_) => Arc::new(Flags::new(project_id, [])),
    };

    // Rules and response.
    ofrep::evaluate_one(&flags, &requested_key, &context, now).try_into()
}
