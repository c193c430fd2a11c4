//! Lists the errors of a project with events that match filters.

use errors::http;
use errors::query::errors::{ErrorCounts, ErrorsQuery};
use errors::store::ErrorStore;
use shared::app::{Access, App, COUNTING_TIME_BUDGET, Operation};
use shared::auth::Caller;
use shared::http::{ApiRequest, ApiResult, Method, open_cursor, page_response};
use shared::page::Page;
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
    let Page { items: ranked, end } =
        query.page(&counted.outlines, counts, &counted.last_unpacked)?;

    // Response.
    let found = errors.find_ranked_errors(project_id, ranked, now).await?;
    let shown = found.iter().map(|(ranked, error)| ranked.shown(error));
    let response = page_response(cursor_key, incoming, &Page { items: shown.collect(), end })?;
    Ok(if query.with_series { http::with_buckets_of(response, &events.range) } else { response })
}
