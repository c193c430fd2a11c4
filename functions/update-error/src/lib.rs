//! Sets the status and the assignee of an error.

use errors::store::ErrorStore;
use errors::{ErrorPatch, http};
use shared::app::{Access, App, COUNTING_TIME_BUDGET, Operation};
use shared::auth::Caller;
use shared::dynamodb::ConflictRetry;
use shared::http::{ApiRequest, ApiResponse, ApiResult, Method, Problem};
use shared::projects::api_key::Scope;

/// The operation of this function.
pub static OPERATION: Operation = Operation::new(
    env!("CARGO_PKG_NAME"),
    Method::PATCH,
    "/v0/projects/{idOrSlug}/errors/{errorId}",
    Access::ApiKey(Scope::ErrorsWrite, shared::handler!(handle)),
)
.within(COUNTING_TIME_BUDGET);

async fn handle(app: &App, caller: &Caller<'_>, incoming: &ApiRequest) -> ApiResult {
    // Request.
    let if_match = incoming.if_match();
    let project_id = caller.project()?;
    let patch = ErrorPatch::read(&incoming.merge_patch()?)?;
    let id = http::error_id(incoming)?;

    // Every read that can fail comes before the write.
    let now = app.clock.now();
    let store = ErrorStore::new(&app.store);
    let counts = store.count_events_by_error(project_id, now).await?;
    let mut retry = ConflictRetry::default();
    while retry.next_attempt().await {
        // Storage: the current error.
        let stored = store.find_error(project_id, id, now).await?;
        let stored = stored.ok_or_else(http::error_not_found)?;

        // Rules.
        if_match.check(stored.version)?;
        let mut error = stored.clone();
        error.apply(&patch, caller.user(), now);

        // Storage and response.
        let is_same = error == stored;
        if is_same || store.replace_error(project_id, &stored, &error, None).await? {
            let (error, count) = counts.of(error);
            return ApiResponse::ok(&error.shown(count))?.with_version(error.version);
        }
    }
    Err(Problem::conflict("the error kept changing"))
}
