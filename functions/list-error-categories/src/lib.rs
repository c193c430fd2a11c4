//! Lists the categories and values that filter a project's errors, as interpret-error-filters
//! accepts them.

use errors::query::categories::{ValueCounts, listed_events};
use errors::store::ErrorStore;
use shared::app::{Access, App, COUNTING_TIME_BUDGET, Operation};
use shared::auth::Caller;
use shared::http::{ApiResponse, ApiResult, Method};
use shared::projects::api_key::Scope;

/// The operation of this function.
pub static OPERATION: Operation = Operation::new(
    env!("CARGO_PKG_NAME"),
    Method::GET,
    "/v0/projects/{idOrSlug}/errors/categories",
    Access::ApiKey(Scope::ErrorsRead, |app, caller, _| Box::pin(handle(app, caller))),
)
.within(COUNTING_TIME_BUDGET);

async fn handle(app: &App, caller: &Caller<'_>) -> ApiResult {
    let project_id = caller.project()?;
    let now = app.clock.now();
    let errors = ErrorStore::new(&app.store);
    let tags = errors.tag_keys(&[project_id]).await?;
    let mut counts = ValueCounts::new(&tags);
    errors.count_project(project_id, &listed_events(now), &mut counts, now).await?;
    ApiResponse::ok(&counts.into_categories())
}
