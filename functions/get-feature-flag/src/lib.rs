//! Reads a feature flag, archived or not.

use flags::http;
use flags::store::FlagStore;
use shared::app::{Access, App, Operation};
use shared::auth::Caller;
use shared::http::{ApiRequest, ApiResponse, ApiResult, Method};
use shared::projects::api_key::Scope;

/// The operation of this function.
pub static OPERATION: Operation = Operation::new(
    env!("CARGO_PKG_NAME"),
    Method::GET,
    "/v0/project/{idOrSlug}/feature-flags/{key}",
    Access::ApiKey(Scope::FlagsRead, shared::handler!(handle)),
);

async fn handle(app: &App, caller: &Caller<'_>, incoming: &ApiRequest) -> ApiResult {
    let project_id = caller.project()?;
    let key = http::flag_key(incoming)?;

    let flag = FlagStore::new(&app.store).find_flag(project_id, &key).await?;
    let flag = flag.ok_or_else(http::flag_not_found)?;
    ApiResponse::ok(&flag)?.with_version(flag.tag())
}
