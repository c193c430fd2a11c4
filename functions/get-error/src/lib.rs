//! Reads an error.

use errors::http;
use errors::store::ErrorStore;
use shared::app::{Access, App, COUNTING_TIME_BUDGET, Operation};
use shared::auth::Caller;
use shared::http::{ApiRequest, ApiResponse, Method, Problem};
use shared::projects::api_key::Scope;

/// What this function is.
pub static OPERATION: Operation = Operation::new(
    env!("CARGO_PKG_NAME"),
    Method::GET,
    "/v0/projects/{idOrSlug}/errors/{errorId}",
    Access::ApiKey(Scope::ErrorsRead, |app, caller, incoming| {
        Box::pin(handle(app, caller, incoming))
    }),
)
.within(COUNTING_TIME_BUDGET);

/// Answers one request.
async fn handle(
    app: &App,
    caller: &Caller<'_>,
    incoming: &ApiRequest,
) -> Result<ApiResponse, Problem> {
    let project_id = caller.project()?;
    let id = http::error_id(incoming)?;

    let now = app.clock.now();
    let error = ErrorStore::new(&app.store).find_error(project_id, id, now).await?;
    let error = error.ok_or_else(http::error_not_found)?;
    let activity = ErrorStore::new(&app.store).find_activity(project_id, &error, now).await?;
    let activity = activity.ok_or_else(http::error_not_found)?;
    ApiResponse::ok(&error.shown(activity.events, activity.latest))?.with_version(error.version)
}
