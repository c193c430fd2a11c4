//! Reads a segment.

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
    "/v0/project/{idOrSlug}/segments/{key}",
    Access::ApiKey(Scope::FlagsRead, shared::handler!(handle)),
);

async fn handle(app: &App, caller: &Caller<'_>, incoming: &ApiRequest) -> ApiResult {
    let project_id = caller.project()?;
    let key = http::segment_key(incoming)?;

    let segment = FlagStore::new(&app.store).find_segment(project_id, &key).await?;
    let segment = segment.ok_or_else(http::segment_not_found)?;
    ApiResponse::ok(&segment)?.with_version(segment.tag())
}
