//! Lists the events of an error, the latest first.

use errors::http;
use errors::store::ErrorStore;
use shared::app::{Access, App, Operation};
use shared::auth::Caller;
use shared::http::{ApiRequest, ApiResponse, Method, Problem, page_response, read_page_request};
use shared::json::Violations;
use shared::projects::api_key::Scope;

/// The operation of this function.
pub static OPERATION: Operation = Operation::new(
    env!("CARGO_PKG_NAME"),
    Method::GET,
    "/v0/projects/{idOrSlug}/errors/{errorId}/events",
    Access::ApiKey(Scope::ErrorsRead, |app, caller, incoming| {
        Box::pin(handle(app, caller, incoming))
    }),
);

async fn handle(
    app: &App,
    caller: &Caller<'_>,
    incoming: &ApiRequest,
) -> Result<ApiResponse, Problem> {
    // Request.
    let mut violations = Violations::default();
    let page_request = read_page_request(app.cursor_key()?, incoming, &mut violations);
    let page_request = violations.into_result(page_request)?;
    let project_id = caller.project()?;
    let id = http::error_id(incoming)?;

    // Storage and response.
    let now = app.clock.now();
    let error = ErrorStore::new(&app.store).find_error(project_id, id, now).await?;
    let events = (&error.ok_or_else(http::error_not_found)?).into();
    let page = ErrorStore::new(&app.store)
        .list_error_events(project_id, &events, &page_request, now)
        .await?;
    page_response(app.cursor_key()?, incoming, &page)
}
