//! Returns the flags of a project in the form that flagd fetches: for its synchronization over
//! HTTP, and for providers that evaluate in process.

use flags::{ConfigurationCache, ofrep};
use shared::app::{Access, App, Operation};
use shared::auth::Caller;
use shared::http::{ApiRequest, ApiResult, Method};
use shared::projects::api_key::Scope;

/// The operation of this function.
pub static OPERATION: Operation = Operation::new(
    env!("CARGO_PKG_NAME"),
    Method::GET,
    "/v0/project/{idOrSlug}/flagd.json",
    Access::ApiKey(Scope::FlagsEvaluate, shared::handler!(handle)),
);

/// The stack's own distribution returns a response for two seconds, and for three more while it asks
/// for a new one (`docs/security.md`, "Attackers without a key", limits a revoked key).
const AT_EDGE: &str = "max-age=2, stale-while-revalidate=3";

async fn handle(app: &App, caller: &Caller<'_>, incoming: &ApiRequest) -> ApiResult {
    let project_id = caller.project()?;

    let cache = app.cache::<ConfigurationCache>();
    let configuration = cache.get(&app.store, project_id, app.clock.now()).await?;
    let response = configuration.to_response(ofrep::if_none_match(incoming))?;
    if incoming.is_from_edge() {
        response.with_text("cache-control", AT_EDGE)
    } else {
        Ok(response)
    }
}
