//! Reads an error.

use errors::http;
use errors::store::ErrorStore;
use shared::app::{Access, App, COUNTING_TIME_BUDGET, Operation};
use shared::auth::Caller;
use shared::http::{ApiRequest, ApiResponse, ApiResult, Method};
use shared::projects::api_key::Scope;

/// The operation of this function.
pub static OPERATION: Operation = Operation::new(
    env!("CARGO_PKG_NAME"),
    Method::GET,
    "/v0/projects/{idOrSlug}/errors/{errorId}",
    Access::ApiKey(Scope::ErrorsRead, shared::handler!(handle)),
)
.within(COUNTING_TIME_BUDGET);

async fn handle(app: &App, caller: &Caller<'_>, incoming: &ApiRequest) -> ApiResult {
    let project_id = caller.project()?;
    let id = http::error_id(incoming)?;

    let now = app.clock.now();
    let store = ErrorStore::new(&app.store);
    // The packer stores when an error was last seen before it hides the rows that say so.
    let counts = store.count_events_by_error(project_id, now).await?;
    let error = store.find_error(project_id, id, now).await?;
    let (error, count) = counts.of(error.ok_or_else(http::error_not_found)?);
    ApiResponse::ok(&error.shown(count))?.with_version(error.version)
}
