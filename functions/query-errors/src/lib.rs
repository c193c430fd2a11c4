//! Lists the errors of a project with events that match filters.

use errors::http;
use errors::query::errors::{ErrorCounts, ErrorsQuery, RankedError};
use errors::store::ErrorStore;
use shared::app::{Access, App, COUNTING_TIME_BUDGET, Operation};
use shared::auth::Caller;
use shared::http::{ApiRequest, ApiResult, Method, open_cursor, page_response};
use shared::projects::api_key::Scope;

/// The operation of this function.
pub static OPERATION: Operation = Operation::new(
    env!("CARGO_PKG_NAME"),
    Method::POST,
    "/v0/projects/{idOrSlug}/errors/query",
    Access::ApiKey(Scope::ErrorsRead, shared::handler!(handle)),
)
.within(COUNTING_TIME_BUDGET);

async fn handle(app: &App, caller: &Caller<'_>, incoming: &ApiRequest) -> ApiResult {
    // Request.
    let project_id = caller.project()?;
    let now = app.clock.now();
    let cursor_key = app.cursor_key()?;
    let open = |cursor: &str| open_cursor(cursor_key, incoming, cursor);
    let mut query = ErrorsQuery::read(&incoming.json()?, open, now)?;

    // Storage and rules.
    let errors = ErrorStore::new(&app.store);
    errors.recognize_tags(&[project_id], &mut query.events).await?;
    let events = &query.events;
    let mut counts = ErrorCounts::of_users(query.with_series);
    let counted = errors.count_project(project_id, events, &mut counts, now).await?;
    let page = query.page(counted.stored, counts)?;

    // Response.
    let response = page_response(cursor_key, incoming, &page.map(RankedError::shown))?;
    Ok(if query.with_series { http::with_buckets_of(response, &events.range) } else { response })
}
